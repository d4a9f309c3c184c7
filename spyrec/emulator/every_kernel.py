"""Every kernel that the emulator and the copies of the host can need, found where each is declared.

Kernels stand in the namespaces of their modules, one by one or in tables that are made of the device's operations;
those of folds are made of the accumulators of these.  The sanitizers' own are compiled for the arrays that they are
given and are not among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import cast

from spyrec.device_ops import DEVICE_OPERATIONS
from spyrec.emulator import kernels
from spyrec.emulator.kernels.folds import fold_functions, pattern_fold
from spyrec.files.linked_kernel import Linked
from spyrec.runtime import host_copies

_PACKAGES = (kernels, host_copies)


def every_kernel() -> list[Linked]:
    """Return the kernels, each once, in the order of their modules."""
    found = [kernel for package in _PACKAGES for kernel in _declared_in(package)]
    folds = [record.fold for record in DEVICE_OPERATIONS.values() if record.fold is not None]
    for accumulator in dict.fromkeys(item for fold in folds for item in fold.accumulators):
        own = fold_functions(accumulator)
        found += [own.begin, own.fold, own.merge, own.merge_lanes]
    found += [pattern_fold(kinds) for kinds in dict.fromkeys(fold.accumulators for fold in folds)]
    return [*{id(kernel): kernel for kernel in found}.values()]


def _declared_in(package: ModuleType) -> Iterator[Linked]:
    for module in iter_modules(package.__path__, f"{package.__name__}."):
        for value in vars(import_module(module.name)).values():
            yield from _kernels_in(value)


def _kernels_in(value: object) -> Iterator[Linked]:
    if isinstance(value, Linked):
        yield value
    elif isinstance(value, Mapping):
        for item in cast("Mapping[object, object]", value).values():
            yield from _kernels_in(item)
