"""The cases of ``tests/cases/errors``: run one, compare what it prints, write what it prints now.

``python scripts/error_cases.py [CODE ...]`` rewrites what the last command of each case prints (all, or those named),
and says which changed.  A case runs in this process, in a fresh directory, and its commands are those of a shell that
has only a few words:

* ``spyrec ...``: the command line;
* ``python FILE``: a program; where a ``SpyrecError`` ends it, its diagnostics are printed as the command line does;
* ``edit FILE POINTER VALUE``: put a JSON value at a JSON pointer; ``edit FILE POINTER`` removes what is there;
* ``replace FILE OLD NEW``: put one text for another that stands in the file;
* ``rm PATH``, ``mkdir PATH``.
"""

from __future__ import annotations

import json
import os
import runpy
import shlex
import shutil
import sys
import tempfile
import warnings
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any, cast

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # a script is started from anywhere

from spyrec.cli import main as spyrec  # noqa: E402 -- needs the path
from spyrec.diagnostics import SpyrecError  # noqa: E402 -- as above
from spyrec.diagnostics.examples import Example  # noqa: E402 -- as above

FOLDER = ROOT / "tests" / "cases" / "errors"


def codes() -> list[str]:
    """Return the codes that have a case, sorted."""
    return sorted(path.stem for path in FOLDER.glob("SPY*.txt"))


def example_of(code: str) -> Example:
    """Return the case of a code."""
    return Example.read((FOLDER / f"{code}.txt").read_text(encoding="utf-8"))


def printed_by(example: Example) -> str:
    """Return what the last command of an example prints; the others must succeed and may print what they like."""
    with tempfile.TemporaryDirectory() as directory, chdir(directory):
        for name, content in example.files:
            path = Path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
        *before, last = example.commands
        for command in before:
            status, output = _run(command)
            assert status == 0, f"{command}: {status}\n{output}"
        _, output = _run(last)
        return output.replace(os.path.realpath(directory) + os.sep, "")


def _run(command: str) -> tuple[int, str]:
    word, *arguments = shlex.split(command)
    output = StringIO()
    with redirect_stdout(output), redirect_stderr(output):
        status = _WORDS[word](arguments)
    return status, output.getvalue()


def _python(arguments: list[str]) -> int:
    (file,) = arguments
    modules = dict(sys.modules)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an example that ends in an error leaves its device as it is
            runpy.run_path(file, run_name="__main__")
    except SpyrecError as error:
        print("\n".join(item.render(with_excerpt=True) for item in error.diagnostics))
        return 1
    finally:  # an example may say of a module that it is not installed
        hidden = [name for name, module in cast("dict[str, object]", sys.modules).items() if module is None]
        for name in hidden:
            del sys.modules[name]
        sys.modules.update({name: modules[name] for name in hidden if name in modules})
    return 0


def _edit(arguments: list[str]) -> int:
    file, pointer, *value = arguments
    path = Path(file)
    data = json.loads(path.read_text(encoding="utf-8"))
    *parents, last = (token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:])
    place: Any = data
    for token in parents:
        place = place[_member(place, token)]
    if value:
        place[_member(place, last)] = json.loads(value[0])
    else:
        del place[_member(place, last)]
    path.write_text(json.dumps(data, indent=1), encoding="utf-8")
    return 0


def _member(place: object, token: str) -> str | int:
    return int(token) if isinstance(place, list) else token


def _replace(arguments: list[str]) -> int:
    file, old, new = arguments
    path = Path(file)
    text = path.read_text(encoding="utf-8")
    assert old in text, f"{file} does not hold {old}"
    path.write_text(text.replace(old, new), encoding="utf-8")
    return 0


def _rm(arguments: list[str]) -> int:
    for name in arguments:
        path = Path(name)
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return 0


def _mkdir(arguments: list[str]) -> int:
    for name in arguments:
        Path(name).mkdir(parents=True)
    return 0


_WORDS = {"spyrec": spyrec, "python": _python, "edit": _edit, "replace": _replace, "rm": _rm, "mkdir": _mkdir}


def rewrite(chosen: list[str]) -> list[str]:
    """Write what each case prints now; return the codes whose text changed."""
    changed: list[str] = []
    for code in chosen:
        example = example_of(code)
        printed = printed_by(example)
        if f"[{code}]" not in printed and f'"{code}"' not in printed:
            print(f"{code}: not printed by its case\n{printed}")
        if printed != example.printed:
            (FOLDER / f"{code}.txt").write_text(replace(example, printed=printed).text(), encoding="utf-8")
            changed.append(code)
    return changed


def main() -> int:
    """Rewrite the cases that are named, or all of them."""
    changed = rewrite(sys.argv[1:] or codes())
    print("\n".join(f"written: {code}" for code in changed) or "nothing changed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
