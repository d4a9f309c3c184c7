"""What kernels are made of, known by name until the first of them is compiled: to import numba takes 0.3 s.

A kernel that is compiled gets the names of its module as they are here, those below made for numba.
"""

# numba ships no type information: what it returns is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from importlib import import_module
from types import CellType, CodeType, FunctionType
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., object])


class _Later:
    """A module that is imported when something in it is asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> object:
        return getattr(import_module(self._name), name)


types: Any = _Later("numba.core.types")
cgutils: Any = _Later("numba.core.cgutils")
arrayobj: Any = _Later("numba.np.arrayobj")
numpy_support: Any = _Later("numba.np.numpy_support")

COMPILED: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""How every kernel is compiled: without the interpreter lock, and callable from machine code alone."""


class Ingredient:
    """What kernels call: made for numba, by ``make``, when the first of them is compiled."""

    def __init__(self, function: Callable[..., object], make: Callable[[], object]) -> None:
        self.py_func = function
        self._make = make

    @cached_property
    def for_numba(self) -> object:
        """What numba knows it as."""
        return self._make()


def inlined(function: F) -> F:
    """Compile ``function`` into its callers."""
    return cast("F", Ingredient(function, partial(_dispatcher, function, forceinline=True)))


def compiled_apart(function: Callable[..., object]) -> Ingredient:
    """Return what kernels call that were given the function of another kernel."""
    return Ingredient(function, partial(_dispatcher, function))


def intrinsic(function: Callable[..., object], *, prefer_literal: bool = False) -> Any:  # noqa: ANN401 - numba's
    """Return a function inside kernels that is written as instructions, by numba's own protocol."""
    return Ingredient(function, partial(_intrinsic, function, prefer_literal))


def literal_intrinsic(function: Callable[..., object]) -> Any:  # noqa: ANN401 - numba's
    """Return the same, with operands as constants where they are such."""
    return intrinsic(function, prefer_literal=True)


def _dispatcher(function: Callable[..., object], **options: bool) -> object:
    from numba import njit

    compile_as: Any = njit
    return compile_as(**COMPILED, **options)(with_ingredients(function))


def _intrinsic(function: Callable[..., object], prefer_literal: bool) -> object:
    from numba.extending import intrinsic as numbas

    return numbas(prefer_literal=True)(function) if prefer_literal else numbas(function)


def with_ingredients(function: Callable[..., object]) -> FunctionType:
    """Return the same function, what it names and closes over made for numba."""
    given = cast("FunctionType", function)
    asked_for = {"__builtins__", "__name__", *names_in(given.__code__)}
    names = {name: _for_numba(value) for name, value in given.__globals__.items() if name in asked_for}
    cells = tuple(CellType(_for_numba(cell.cell_contents)) for cell in given.__closure__ or ())
    made = FunctionType(given.__code__, names, given.__name__, given.__defaults__, cells)
    made.__module__, made.__qualname__ = given.__module__, given.__qualname__
    return made


def names_in(code: CodeType) -> set[str]:
    """Return the names that code may look up, that of functions inside it too."""
    inside = [names_in(item) for item in code.co_consts if isinstance(item, CodeType)]
    return set(code.co_names).union(*inside)


def _for_numba(value: object) -> object:
    return value.for_numba if isinstance(value, Ingredient) else value
