"""The numbers of a constant as text: few of them written out, many as bytes, those in a file by its name.

Neither printing nor reading opens a file of numbers: no pass that a text goes through looks at them.
"""

from __future__ import annotations

import base64
import binascii
import math
import os
from pathlib import Path

import numpy as np
import numpy.typing as npt

from spyrec.files.array_memory import shown_memory
from spyrec.hardware.dtypes import DType
from spyrec.ir.graph import ConstantData
from spyrec.ir.inference import MAX_ELEMENTS
from spyrec.ir.text.tokens import Cursor, Token, number_text

Array = npt.NDArray[np.generic]

_MOST_WRITTEN_OUT = 64
_KINDS = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "float16", "float32", "float64")
_UNREAD = os.devnull + "/"
"""Before the name of a file that a text names: no file of that name exists, so nothing outside is ever opened."""


def data_text(data: ConstantData, shape: tuple[int, ...], dtype: DType, base: Path | None) -> str:
    """Return the numbers of a constant of this shape and dtype; names of files are relative to ``base``."""
    if data.array is None:
        assert data.file is not None
        tensor = "" if data.tensor is None else f" tensor {_quoted(data.tensor)}"
        return f"file {_quoted(_file_name(data.file, base))}{tensor}"
    array = data.array
    assert array.shape == shape, (array.shape, shape)
    kind = "" if array.dtype == np.dtype(dtype.carrier) else f"{array.dtype.name} "
    memory = shown_memory(array)
    if memory is None:
        return kind + _stored_text(np.ascontiguousarray(array).reshape(-1), is_one=not shape)
    if memory.numbers.size == 1:
        return kind + _stored_text(memory.numbers, is_one=True)
    return f"{kind}{_stored_text(memory.numbers, is_one=False)} seen {list(memory.steps)} from {memory.start}"


def _quoted(text: str) -> str:
    import json

    return json.dumps(text)


def _file_name(file: str, base: Path | None) -> str:
    if file.startswith(_UNREAD):
        return file.removeprefix(_UNREAD)
    path = Path(file)
    return path.relative_to(base).as_posix() if base is not None and path.is_relative_to(base) else path.name


def _stored_text(flat: Array, *, is_one: bool) -> str:
    is_nan = flat.dtype.kind == "f" and bool(np.isnan(flat).any())
    if is_nan or flat.size > _MOST_WRITTEN_OUT:
        little = np.ascontiguousarray(flat, flat.dtype.newbyteorder("<"))
        return f'bytes "{base64.b64encode(little.tobytes()).decode("ascii")}"'
    numbers = [number_text(_plain(item)) for item in flat]
    return numbers[0] if is_one else f"[{', '.join(numbers)}]"


def _plain(item: np.generic) -> float | int | bool:
    found = item.item()
    assert isinstance(found, float | int | bool), item
    return found


def read_data(cursor: Cursor, shape: tuple[int, ...], dtype: DType) -> ConstantData:
    """Take the numbers of a constant.  Errors: SPY0180."""
    if cursor.accept("file"):
        return _read_file(cursor)
    first = cursor.peek()
    kind = _read_kind(cursor, dtype)
    count = math.prod(shape)
    if count * kind.itemsize >= MAX_ELEMENTS:
        raise cursor.refuse(f"{count} numbers of {kind.itemsize} bytes are 2**63 bytes or more", first)
    if not cursor.at("[") and not cursor.at("bytes"):
        return ConstantData(array=np.broadcast_to(_array(cursor, [cursor.peek()], [cursor.number()], kind)[0], shape))
    flat = _read_stored(cursor, kind)
    if cursor.accept("seen"):
        return ConstantData(array=_read_view(cursor, flat, shape))
    if flat.size == 1 and count != 1:
        return ConstantData(array=np.broadcast_to(flat[0], shape))
    if flat.size != count:
        raise cursor.refuse(f"{flat.size} numbers stand for the {count} of shape {list(shape)}", first)
    return ConstantData(array=_frozen(flat.reshape(shape)))


def _read_file(cursor: Cursor) -> ConstantData:
    file = cursor.string()
    if not file or "\0" in file or len(file) > MAX_ELEMENTS.bit_length() ** 2:
        raise cursor.refuse("this is no name of a file")
    tensor = cursor.string() if cursor.accept("tensor") else None
    return ConstantData(file=_UNREAD + file, tensor=tensor)


def _read_kind(cursor: Cursor, dtype: DType) -> np.dtype[np.generic]:
    carrier = np.dtype(dtype.carrier)
    if not cursor.is_name() or cursor.peek().text not in _KINDS:
        return carrier
    token = cursor.take()
    found = np.dtype(token.text)
    is_kept_whole = dtype in (DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32) and token.text in ("float32", "float64")
    if found != carrier and not is_kept_whole:
        raise cursor.refuse(f"{dtype.value} is not carried in {token.text}", token)
    return found


def _read_stored(cursor: Cursor, kind: np.dtype[np.generic]) -> Array:
    if cursor.accept("bytes"):
        token = cursor.peek()
        try:
            content = base64.b64decode(cursor.string(), validate=True)
        except (binascii.Error, ValueError):
            raise cursor.refuse("the text in quotes is no base64", token) from None
        if len(content) % kind.itemsize or not content:
            raise cursor.refuse(f"{len(content)} bytes are no whole numbers of {kind.itemsize}", token)
        if kind.kind == "b" and not set(content) <= {0, 1}:
            raise cursor.refuse("a bool is a byte 0 or 1", token)
        return np.frombuffer(content, kind.newbyteorder("<")).astype(kind, copy=False)
    tokens: list[Token] = []

    def number() -> float | int | bool:
        tokens.append(cursor.peek())
        return cursor.number()

    return _array(cursor, tokens, cursor.items("[", "]", number), kind)


def _array(cursor: Cursor, tokens: list[Token], numbers: list[float | int | bool], kind: np.dtype[np.generic]) -> Array:
    for token, number in zip(tokens, numbers, strict=True):
        problem = _misfit(number, kind)
        if problem is not None:
            raise cursor.refuse(f"{token.text[:40]} is no {kind.name}: {problem}", token)
    return np.array(numbers, kind)


def _misfit(number: float | bool, kind: np.dtype[np.generic]) -> str | None:
    if (kind.kind == "b") != isinstance(number, bool):
        return "true and false are bools, and nothing else is"
    if kind.kind in "iu":
        limits = np.iinfo(kind.name)
        if isinstance(number, float) or not limits.min <= number <= limits.max:
            return f"it is no whole number within {limits.min} and {limits.max}"
    if kind.kind == "f" and math.isfinite(number) and abs(number) > float(np.finfo(kind.name).max):
        return "it is too large"
    return None


def _read_view(cursor: Cursor, flat: Array, shape: tuple[int, ...]) -> Array:
    """Take how an array shows numbers that it holds once: elements from neighbour to neighbour, and the first one."""
    token = cursor.peek()
    steps = cursor.integers(-flat.size, flat.size)
    cursor.expect("from")
    start = cursor.integer(0, max(0, flat.size - 1))
    if len(steps) != len(shape):
        raise cursor.refuse(f"{len(steps)} steps stand for the {len(shape)} dims of {list(shape)}", token)
    ways = [step * (extent - 1) for step, extent in zip(steps, shape, strict=True)]
    first, last = start + sum(min(0, way) for way in ways), start + sum(max(0, way) for way in ways)
    if not flat.size or not all(shape) or first < 0 or last >= flat.size:
        raise cursor.refuse(f"the steps lead from number {first} to {last} of {flat.size}", token)
    strides = tuple(step * flat.itemsize for step in steps)
    return np.lib.stride_tricks.as_strided(flat[start:], shape, strides, writeable=False)


def _frozen(array: Array) -> Array:
    array.flags.writeable = False
    return array
