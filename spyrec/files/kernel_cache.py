"""Compiled kernels on disk, kept as long as no file that they may be made of has changed.

numba itself looks at the kernel's own file alone.  Ours are inlined across files (a codec into every operation): after
an update of one file the others' kernels would go on with its old code.
"""

# numba ships no type information: what it returns is unknown to the checker, here and in the emulator's jit.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit
from numba.core import config

from spyrec.diagnostics import Diagnostic, Severity
from spyrec.files.private_directory import PrivateDirectory, is_ours_to_trust, private_directory

F = TypeVar("F", bound=Callable[..., object])

NOTICE_BEGIN = "compiled kernels"
"""How the notice begins: the command line shows it its own way."""

_IMPORT = re.compile(r"^from (spyrec[\w.]*) import ([\w, ]*)", re.MULTILINE)


def cached_kernel(function: F, *, is_called_from_python: bool = True) -> F:
    """Compile ``function`` on first call, cache it on disk, and run it without the interpreter lock.

    Without ``is_called_from_python`` only other kernels can call it: that takes no wrapper to compile.  Where numba
    finds no directory to write to, or one that others can write to, kernels are kept in a private one: they are code.
    """
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    options["no_cpython_wrapper"] = not is_called_from_python
    compiled = _cached(function, options)
    if compiled is None and Path(function.__code__.co_filename).exists():
        found = kept_elsewhere()
        compiled = None if found is None else _cached_in(found.path, function, options)
    if compiled is None:
        return cast("F", njit(**options)(function))
    index: Any = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if hasattr(index, "_source_stamp"):  # numba's own affair: a version without it has its own rule alone
        index._source_stamp = (index._source_stamp, *_stamps(function.__module__))  # noqa: SLF001
    return cast("F", compiled)


def _cached(function: Callable[..., object], options: dict[str, Any]) -> Any | None:  # noqa: ANN401 - numba's
    """Return the function cached where numba wants to; ``None`` where it can be nowhere, or others write there."""
    try:
        compiled: Any = njit(cache=True, **options)(function)
    except RuntimeError:  # "no locator available": neither beside the file nor in the user's cache
        return None
    place: object = getattr(getattr(compiled, "_cache", None), "cache_path", None)
    return compiled if not isinstance(place, str) or is_ours_to_trust(Path(place)) else None


def _cached_in(folder: Path, function: Callable[..., object], options: dict[str, Any]) -> Any | None:  # noqa: ANN401
    """Return the function cached in a folder: numba reads where from its settings, at this moment."""
    settings: Any = config
    before: object = settings.CACHE_DIR
    settings.CACHE_DIR = str(folder)
    try:
        return _cached(function, options)
    finally:
        settings.CACHE_DIR = before


@cache
def kept_elsewhere() -> PrivateDirectory | None:
    """Return the private directory that kernels are kept in; Python's users are warned where it is new, or is none."""
    found = private_directory("spyrec-kernels")
    if found is None or found.is_new:
        warnings.warn(_notice(found).message, RuntimeWarning, stacklevel=2)
    return found


def notice() -> Diagnostic | None:
    """Return what the user should know of where kernels are kept; ``None`` where all is as usual.

    That a directory was made for them is said once: it is there the next time.
    """
    if not kept_elsewhere.cache_info().currsize:
        return None
    found = kept_elsewhere()
    return _notice(found) if found is None or found.is_new else None


def _notice(found: PrivateDirectory | None) -> Diagnostic:
    where = "are compiled again by every run" if found is None else f"are kept in {found.path}"
    message = f"{NOTICE_BEGIN} cannot be kept beside spyrec or in the user's cache, and {where}"
    return Diagnostic("SPY0754", message, severity=Severity.WARNING)


def source_modules(module: str) -> set[str]:
    """Return the modules of this package whose code or numbers the kernels of ``module`` may be made of, itself too."""
    found: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in found and name in sys.modules:
            found.add(name)
            waiting += () if name == __name__ else _homes(name)  # this one gives kernels nothing of its own
    return found


@cache
def _homes(module: str) -> tuple[str, ...]:
    """Return the modules of this package that a module imports at its top; a file is read once, many kernels ask."""
    file = getattr(sys.modules[module], "__file__", None)
    text = "" if file is None else Path(file).read_text(encoding="utf-8")
    found: list[str] = []
    for home, names in _IMPORT.findall(text):
        found += [home, *(f"{home}.{name.strip()}" for name in names.split(","))]  # names may be modules themselves
    return tuple(found)


def _stamps(module: str) -> Iterator[tuple[str, int, int]]:
    """Yield name, time of change in ns and size in bytes of each file."""
    for name in sorted(source_modules(module)):
        file = getattr(sys.modules[name], "__file__", None)
        if file is not None:
            about = Path(file).stat()
            yield name, about.st_mtime_ns, about.st_size
