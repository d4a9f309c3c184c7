"""Compiled kernels on disk, kept as long as no file that they are made of has changed.

numba itself looks at the kernel's own file alone.  Ours are inlined across files (a codec into every operation): after
an update of one file the others' kernels would go on with its old code.
"""

# numba ships no type information: what it returns is unknown to the checker, here and in the emulator's jit.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit

from spyrec import dlfloat, target

F = TypeVar("F", bound=Callable[..., object])

_PACKAGE = "spyrec."
_CONSTANTS = (dlfloat.__name__, target.__name__)
"""Modules whose numbers kernels use: a number does not tell where it comes from."""


def cached_kernel(function: F, *, is_called_from_python: bool = True) -> F:
    """Compile ``function`` on first call, cache it on disk, and run it without the interpreter lock.

    Without ``is_called_from_python`` it takes the calls of C instead.  Each costs a wrapper to compile.  Where numba
    finds no directory to write to, every process compiles for itself.
    """
    wrappers: dict[str, Any] = {"no_cfunc_wrapper": is_called_from_python}
    wrappers["no_cpython_wrapper"] = not is_called_from_python
    try:
        compiled: Any = njit(nogil=True, cache=True, error_model="numpy", **wrappers)(function)
    except RuntimeError:  # "no locator available": neither beside the file nor in the user's cache
        return cast("F", njit(nogil=True, error_model="numpy", **wrappers)(function))
    index: Any = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if hasattr(index, "_source_stamp"):  # numba's own affair: a version without it has its own rule alone
        index._source_stamp = (index._source_stamp, *_stamps(function.__module__))  # noqa: SLF001
    return cast("F", compiled)


def source_modules(module: str) -> set[str]:
    """Return the modules of this package whose code or numbers the kernels of ``module`` may be made of, itself too."""
    found = set(_CONSTANTS)
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += _homes(name)
    return found


def _homes(module: str) -> Iterator[str]:
    """Yield the modules of this package that define what ``module`` has imported so far."""
    for value in map(_sample, list(vars(sys.modules[module]).values())):
        # compiled functions and intrinsics hold the Python function that they were made of
        inner: object = getattr(value, "py_func", None) or getattr(value, "_defn", None) or value
        home = getattr(inner, "__module__", None)
        if isinstance(home, str) and home.startswith(_PACKAGE) and home in sys.modules:
            yield home


def _sample(value: object) -> object:
    """Return what tells where a value comes from: of a table of functions, one of them."""
    items: Iterable[object] = value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else ()
    return next(iter(items), value)


def _stamps(module: str) -> Iterator[tuple[str, int, int]]:
    """Yield name, time of change in ns and size in bytes of each file."""
    for name in sorted(source_modules(module)):
        file = getattr(sys.modules[name], "__file__", None)
        if file is not None:
            about = Path(file).stat()
            yield name, about.st_mtime_ns, about.st_size
