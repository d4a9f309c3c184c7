"""Compiled kernels on disk, kept as long as nothing that they may be made of has changed.

A kernel is made of more than its own file: a codec is inlined into every operation.  What is kept is machine code by
the hash of all that it was made of, processor and compilers included; a process that finds it never imports numba.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar, cast

from spyrec.diagnostics import Diagnostic, Severity
from spyrec.files.kernel_operands import OperandKind, called_with, kind_of
from spyrec.files.kernel_store import KernelStore
from spyrec.files.machine_code import MachineCode, lacking, loaded, processor
from spyrec.files.numba_names import Ingredient, compiled_apart
from spyrec.files.private_directory import PrivateDirectory, made_private, private_directory

F = TypeVar("F", bound=Callable[..., object])

NOTICE_BEGIN = "compiled kernels"
"""How the notice begins: the command line shows it its own way."""

_IMPORT = re.compile(r"^from (spyrec[\w.]*) import ([\w, ]*)", re.MULTILINE)

_ONE_COMPILER = RLock()


def cached_kernel(function: F) -> F:
    """Compile ``function`` for the operands that it is called with, keep that on disk, run it without the lock.

    Operands are numbers and arrays; it returns a number or nothing.
    """
    return cast("F", _Kernel(function))


class _Kernel(Ingredient):
    """A kernel that Python calls; others that call it get its function."""

    def __init__(self, function: Callable[..., object]) -> None:
        apart = compiled_apart(function)
        super().__init__(function, lambda: apart.for_numba)
        self.__doc__ = function.__doc__
        self._ready: dict[tuple[OperandKind, ...], Callable[..., Any]] = {}

    def __call__(self, *operands: object) -> object:
        """Run the kernel."""
        kinds = tuple(map(kind_of, operands))
        found = self._ready.get(kinds)
        if found is None:
            address, result = kernel_code(self.py_func, kinds)
            found = self._ready[kinds] = called_with(address, kinds, result)
        return found(*operands)


def kernel_code(function: Callable[..., object], operands: Sequence[OperandKind]) -> tuple[int, str]:
    """Return the address of a kernel for operands of these kinds, and what it returns, by numba's name."""
    with _ONE_COMPILER:
        kept = _kept(function, operands)
        address = None if kept is None else loaded(kept)
        if kept is not None and address is not None:
            return address, kept.result
        code = _compiled(function, operands)
        address = loaded(code)
        assert address is not None, "what was compiled here finds here what it needs"
        return address, code.result


def keep_kernel(function: Callable[..., object], operands: Sequence[OperandKind]) -> bool:
    """Compile a kernel for operands of these kinds and keep it, unless that is kept; whether it was compiled."""
    with _ONE_COMPILER:
        if is_kept(function, operands):
            return False
        _compiled(function, operands)
        return True


def is_kept(function: Callable[..., object], operands: Sequence[OperandKind]) -> bool:
    """Whether a run would find a kernel for operands of these kinds, and what it needs."""
    kept = _kept(function, operands)
    return kept is not None and not lacking(kept.needs)


def _kept(function: Callable[..., object], operands: Sequence[OperandKind]) -> MachineCode | None:
    name = kernel_name(function, operands)
    store = None if name is None else _store()
    kept = None if name is None or store is None else store.read(name)
    return None if kept is None else MachineCode.of(kept)


def _compiled(function: Callable[..., object], operands: Sequence[OperandKind]) -> MachineCode:
    """Compile a kernel and keep it, where that can be."""
    from spyrec.files.kernel_compiler import compiled

    code, name = compiled(function, operands), kernel_name(function, operands)
    store = None if name is None else _store()
    if name is not None and store is not None:
        store.write(name, code.written())
    return code


def kernel_name(function: Callable[..., object], operands: Sequence[OperandKind]) -> str | None:
    """Return what a kernel is kept under: the hash of all that it is made of; ``None`` where that cannot be told.

    What it closes over must be numbers and text.
    """
    source = _digest_of(function.__code__.co_filename)
    closed = [cell.cell_contents for cell in function.__closure__ or ()]
    if source is None or not all(isinstance(item, str | int | float | None) for item in closed):
        return None
    made_of = (function.__module__, function.__qualname__, source, _sources_digest(function.__module__))
    text = repr((made_of, [(type(item).__name__, item) for item in closed], [_text_of(kind) for kind in operands]))
    return hashlib.sha256(f"{text} {_compilers()}".encode()).hexdigest()


def _text_of(kind: OperandKind) -> str:
    return kind.__name__ if isinstance(kind, type) else f"{kind.dtype.str} {kind[1:]}"


@cache
def _compilers() -> str:
    """Return what compiles, and for which processor; numba's settings are a part of it."""
    settings = sorted(item for item in os.environ.items() if item[0].startswith("NUMBA_") and item[0] != _DIRECTORY)
    numba = find_spec("numba")
    assert numba is not None, "a requirement"
    version = _digest_of(str(Path(numba.origin or "").with_name("_version.py")))
    return repr((sys.version_info[:2], version, processor(), settings))


@cache
def _digest_of(file: str) -> str | None:
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()
    except OSError:
        return None


@cache
def _sources_digest(module: str) -> str:
    """Return the hash of all files of this package that the kernels of a module may be made of."""
    found = hashlib.sha256()
    for name in sorted(source_modules(module)):
        file = getattr(sys.modules[name], "__file__", None)
        found.update(f"{name} {None if file is None else _digest_of(file)}\n".encode())
    return found.hexdigest()


_DIRECTORY = "NUMBA_CACHE_DIR"


@cache
def _store() -> KernelStore | None:
    """Return where kernels are kept: in the directory that is named for them, or the user's cache; else elsewhere."""
    with suppress(RuntimeError):
        path = wanted_directory()
        if made_private(path):
            return KernelStore(path)
    found = kept_elsewhere()
    return None if found is None else KernelStore(found.path)


def wanted_directory() -> Path:
    """Return the directory that kernels are kept in where it is, or can be made, this user's alone."""
    named = os.environ.get(_DIRECTORY)
    if named:
        return Path(named) / "spyrec-kernels"
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (given if given.is_absolute() else Path("~/.cache").expanduser()) / "spyrec" / "kernels"


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
    try:
        wanted = f'in "{wanted_directory()}" for this user alone'
    except RuntimeError:
        wanted = "in the home of this user, who has none"
    message = f"{NOTICE_BEGIN} cannot be kept {wanted}, and {where}"
    return Diagnostic("SPY0754", message, severity=Severity.WARNING)


def source_modules(module: str) -> set[str]:
    """Return the modules of this package whose code or numbers the kernels of ``module`` may be made of, itself too."""
    found: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in found and name in sys.modules:
            found.add(name)
            waiting += _homes(name)
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
