"""Python text in files: it is parsed, never run, and what the parser would say of it is for whoever wrote it."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from typing import IO, cast

from spyrec.dataclass import dataclass

MAX_NPY_HEADER_BYTES = 10_000
"""Longest npy header that is read (NumPy's own limit): it is a Python literal, and parsing long ones is costly."""


@contextmanager
def unremarked() -> Generator[None]:
    """Let text be parsed inside without warnings, such as of ``1is 2`` or a wrong escape: they are no diagnostics."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        warnings.simplefilter("ignore", DeprecationWarning)  # of escapes, up to Python 3.11
        yield


class NpyHeaderError(Exception):
    """What is wrong with the header of an npy file, as a sentence."""


@dataclass(frozen=True, slots=True)
class NpyHeader:
    """What an npy file says of its array: NumPy's name of the dtype, memory order, shape, bytes before the numbers."""

    descr: str
    is_fortran: bool
    shape: tuple[int, ...]
    size_bytes: int


def read_npy_header(stream: IO[bytes]) -> NpyHeader:
    """Read the header of an npy file by its specification (NEP 1); NumPy's own reader is lenient and warns.

    ``stream`` stands behind the header then.  :class:`NpyHeaderError` where it is none, or of a structured dtype.
    """
    preamble = stream.read(8)
    if len(preamble) < 8 or preamble[:6] != b"\x93NUMPY" or preamble[6] not in (1, 2, 3):
        raise NpyHeaderError("the file is no npy file of version 1, 2 or 3")
    length_bytes = 2 if preamble[6] == 1 else 4
    header_bytes = int.from_bytes(stream.read(length_bytes), "little")
    if header_bytes > MAX_NPY_HEADER_BYTES:
        raise NpyHeaderError(f"the npy header has {header_bytes} bytes, more than {MAX_NPY_HEADER_BYTES}")
    try:
        with unremarked():
            header: object = ast.literal_eval(stream.read(header_bytes).decode("latin-1").strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise NpyHeaderError("the npy header is no Python literal") from None
    return _checked(header, 8 + length_bytes + header_bytes)


def _checked(header: object, size_bytes: int) -> NpyHeader:
    wrong = NpyHeaderError("the npy header lacks descr, fortran_order or shape, or has others")
    if not isinstance(header, dict):
        raise wrong
    members = cast("dict[object, object]", header)
    descr, is_fortran, shape = (members.get(key) for key in ("descr", "fortran_order", "shape"))
    if len(members) != 3 or not isinstance(descr, str) or not isinstance(is_fortran, bool):
        raise wrong
    if not isinstance(shape, tuple):
        raise wrong
    extents = [extent for extent in cast("tuple[object, ...]", shape) if type(extent) is int and extent >= 0]
    if len(extents) != len(cast("tuple[object, ...]", shape)):
        raise wrong
    return NpyHeader(descr, is_fortran, tuple(extents), size_bytes)
