"""The C headers as data: which functions there are, with which parameters."""

from __future__ import annotations

import re
import sysconfig
from functools import cache
from pathlib import Path

from spyrec.dataclass import dataclass

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_DIRECTIVE = re.compile(r"^\s*#.*$", re.MULTILINE)
_FUNCTION = re.compile(r"([\w ]+[\w*]\s*\*?)\s*\b((?:frt|spyrec)_\w+)\(((?:[^()]|\([^()]*\))*)\);")
_CALLBACK = re.compile(r"void \(\*(\w+)\)\(.*\)")

HEADERS = ("exec.h", "spyrec.h")
"""The contract, and what the backend offers beside it."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter: its C type without the name, ``callback`` for a function pointer."""

    type: str
    name: str


@dataclass(frozen=True, slots=True)
class ExportedFunction:
    """One exported function."""

    result: str
    name: str
    parameters: tuple[Parameter, ...]


def include_directory() -> Path:
    """Return the directory of the headers: that of the source tree, or of the installation."""
    source = Path(__file__).resolve().parents[3] / "include"
    installed = Path(sysconfig.get_paths()["data"]) / "include"
    return source if (source / "flashrt" / "exec.h").is_file() else installed


def declarations(header: str) -> str:
    """Return a header's text without comments, directives and the linkage for C++."""
    text = (include_directory() / "flashrt" / header).read_text(encoding="utf-8")
    text = _DIRECTIVE.sub("", _COMMENT.sub("", text))
    return text.replace('extern "C" {', "").replace("\n}\n", "\n")


@cache
def functions(header: str) -> tuple[ExportedFunction, ...]:
    """Return the functions of a header, in its order."""
    flat = " ".join(declarations(header).split())
    return tuple(
        ExportedFunction(result.replace("typedef", "").strip(), name, tuple(_parameters(text)))
        for result, name, text in _FUNCTION.findall(flat)
    )


def _parameters(text: str) -> list[Parameter]:
    found: list[Parameter] = []
    # a comma inside of a function pointer's own parameters separates nothing here
    for part in re.split(r",\s*(?![^()]*\))", text):
        callback = _CALLBACK.fullmatch(part)
        if callback is not None:
            found.append(Parameter("callback", callback[1]))
        elif part != "void":
            kind, name = part.rsplit(" ", 1)
            found.append(Parameter(kind, name))
    return found
