"""The part of numba that spyrec uses: a compiled function keeps the type of the Python function it was made from."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar, overload

_P = ParamSpec("_P")
_R = TypeVar("_R")

__version__: str

@overload
def njit(function: Callable[_P, _R], /) -> Callable[_P, _R]: ...
@overload
def njit(
    *,
    cache: bool = ...,
    parallel: bool = ...,
    nogil: bool = ...,
    fastmath: bool | set[str] = ...,
    boundscheck: bool = ...,
    error_model: str = ...,
    inline: str = ...,
    forceinline: bool = ...,
    no_cpython_wrapper: bool = ...,
    no_cfunc_wrapper: bool = ...,
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]: ...

prange = range

def get_num_threads() -> int: ...
def set_num_threads(count: int) -> None: ...
