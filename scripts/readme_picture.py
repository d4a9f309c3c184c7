"""The Mermaid picture of the README: what ``spyrec report digits.bundle --format mermaid`` prints."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory

import spyrec
from spyrec.report.build import Source, report_of
from spyrec.report.exports import mermaid

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
_BLOCK = re.compile(r"^```mermaid\n.*?^```$", re.MULTILINE | re.DOTALL)


def readme_text() -> str:
    """Return the README with the picture as the tool draws it now."""
    with TemporaryDirectory() as directory:
        bundle = Path(directory) / "digits.bundle"
        spyrec.compile(ROOT / "examples" / "digits" / "graph.json").save(bundle)
        picture = mermaid.render(report_of(Source(bundle)))
    text, count = _BLOCK.subn(lambda _: f"```mermaid\n{picture}```", README.read_text(encoding="utf-8"))
    assert count == 1, "the README has one picture"
    return text
