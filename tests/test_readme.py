"""Every console block of the READMEs prints what it says: the tour, and each example's expected output."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.console_blocks import FILES, ROOT, execute, rewritten, steps_of

PAGES = (*FILES, Path("CONTRIBUTING.md"), *sorted(path.relative_to(ROOT) for path in ROOT.glob("docs/*.md")))
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?://|#)([^)#]+)")


@pytest.mark.parametrize("file", FILES, ids=str)
def test_console_blocks_print_what_they_say(file: Path) -> None:
    written = steps_of((ROOT / file).read_text(encoding="utf-8"))
    assert written, f"{file} shows no command"
    assert execute([step.command for step in written]) == written


@pytest.mark.parametrize("program", PYTHON.findall((ROOT / "README.md").read_text(encoding="utf-8")))
def test_python_blocks_run(program: str) -> None:
    assert subprocess.run([sys.executable, "-W", "error", "-c", program], cwd=ROOT, check=True, timeout=120)


def test_every_example_has_a_readme_with_a_command() -> None:
    folders = {path.name for path in (ROOT / "examples").iterdir() if path.is_dir()}
    assert folders == {file.parent.name for file in FILES if file.name == "README.md" and len(file.parts) > 1}


@pytest.mark.parametrize("file", PAGES, ids=str)
def test_relative_links_lead_somewhere(file: Path) -> None:
    path = ROOT / file
    targets = LINK.findall(path.read_text(encoding="utf-8"))
    assert [target for target in targets if not (path.parent / target).exists()] == []


def test_a_wrong_output_is_noticed_and_rewritten() -> None:
    text = "```console\n$ echo one; false\ntwo\n$ echo $?\n0\n```\n"
    assert rewritten(text) == "```console\n$ echo one; false\none\n$ echo $?\n1\n```\n"


def test_a_command_of_several_lines_is_one_command() -> None:
    text = "```console\n$ cat <<'END'\n> a\n> $b\n> END\nold\n$ echo c\n```\n"
    assert [step.command for step in steps_of(text)] == ["cat <<'END'\na\n$b\nEND", "echo c"]
    assert rewritten(text) == "```console\n$ cat <<'END'\n> a\n> $b\n> END\na\n$b\n$ echo c\nc\n```\n"
