"""Functions that kernels, or Python, call by address, so that each is compiled once, and only where it is used.

What numba links into a kernel it optimises anew in every kernel: decoding, for one, cost more in each of its callers
than the caller itself.  A call by address costs a few nanoseconds: linked functions work on runs and blocks.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cached_property, partial
from inspect import signature

from spyrec.files.kernel_cache import is_kept, keep_kernel, kernel_code
from spyrec.files.kernel_operands import OperandKind

UNREAD_OPERANDS = 2
"""Addresses that each function takes before its own operands, for what it returns and for what it raises: nothing.

So is it called without the wrapper that numba would make for calls of C, with a copy of the function in it: that took
15 to 30 ms each.
"""

_unread = ctypes.c_int64()


def called_at(
    address: int, operands: int, kind: type[ctypes.c_int64 | ctypes.c_void_p] = ctypes.c_int64
) -> Callable[..., None]:
    """Return what calls the linked function at an address from Python, without the interpreter lock.

    ``kind``: as addresses, which have to be Python's own integers, six operands take half of the time (0.36 us).
    """
    function = ctypes.CFUNCTYPE(None, *[kind] * (UNREAD_OPERANDS + operands))(address)
    return partial(function, *[ctypes.addressof(_unread)] * UNREAD_OPERANDS)


class Linked:
    """A function of integers (counts, addresses) that returns nothing; kernels get its :attr:`address` and ``call``.

    It raises nothing: nobody would look.
    """

    def __init__(self, function: Callable[..., None]) -> None:
        self.py_func = function
        self.kinds: tuple[OperandKind, ...] = (int,) * len(signature(function).parameters)

    @cached_property
    def address(self) -> int:
        """Where the function stands in this process; compiled, or read from the disk, when first asked for."""
        address, result = kernel_code(self.py_func, self.kinds)
        assert result == "none", "a linked function returns nothing"
        return address

    @property
    def is_kept(self) -> bool:
        """Whether a run would find it compiled."""
        return is_kept(self.py_func, self.kinds)

    def keep(self) -> bool:
        """Compile it and keep that, unless it is kept; whether it was compiled."""
        return keep_kernel(self.py_func, self.kinds)

    def __call__(self, *operands: int) -> None:
        """Call it from Python, without the interpreter lock."""
        self.from_python(*operands)

    @cached_property
    def from_python(self) -> Callable[..., None]:
        """What calls it, with Python's own integers."""
        return called_at(self.address, len(self.kinds), ctypes.c_void_p)


def linked(function: Callable[..., None]) -> Linked:
    """Make a function of integers one that is called by address."""
    return Linked(function)
