"""Run inputs from a ``.safetensors`` file, bfloat16 as raw bits (which the library's NumPy reader refuses)."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt

from spyrec.diagnostics import Location, SpyrecError, located, refuse
from spyrec.diagnostics.json_reading import JsonValue, load_json
from spyrec.files.reading import open_regular
from spyrec.runtime.binding import ExpectedInput, refuse_unknown_or_missing

HostArray = npt.NDArray[np.generic]

_HEADER_LIMIT_BYTES = 100_000_000
"""The limit that the safetensors library itself sets for a header."""

_DTYPE_NAMES = {
    "F16": "float16",
    "BF16": "bfloat16",
    "F32": "float32",
    "BOOL": "bool",
    "I8": "int8",
    "I16": "int16",
    "I32": "int32",
    "I64": "int64",
    "U8": "uint8",
    "F8_E4M3": "float8_e4m3fn",
}


def read_safetensors(path: Path, expected: tuple[ExpectedInput, ...]) -> dict[str, HostArray]:
    """Read the tensors of a bundle's inputs; errors SPY0760 to SPY0765 as :func:`tensor_files.read_inputs` lists."""
    try:
        with open_regular(path) as file:
            size_bytes = os.fstat(file.fileno()).st_size
            header, data_start = _read_header(file, size_bytes, path)
            with located(Location(str(path))):
                refuse_unknown_or_missing(header, expected)
            return {
                item.name: _read_tensor(file, header[item.name], item, data_start, path)
                for item in expected
                if item.name in header
            }
    except OSError as error:
        raise _unreadable(path, str(error.strerror)) from error


def _read_header(file: IO[bytes], size_bytes: int, path: Path) -> tuple[dict[str, JsonValue], int]:
    length = int.from_bytes(file.read(8), "little")
    if size_bytes < 8 or length > min(size_bytes - 8, _HEADER_LIMIT_BYTES):
        raise _unreadable(path, f"its header claims {length} bytes, the file has {size_bytes}")
    header = load_json(file.read(length), str(path))[0]
    if not isinstance(header, dict):
        raise _unreadable(path, "its header is not an object")
    return {key: value for key, value in header.items() if key != "__metadata__"}, 8 + length


def _read_tensor(file: IO[bytes], entry: JsonValue, item: ExpectedInput, data_start: int, path: Path) -> HostArray:
    match entry:
        case {"dtype": str(code), "shape": list(extents), "data_offsets": [int(begin), int(end)]}:
            shape = tuple(extent for extent in extents if isinstance(extent, int))
        case _:
            raise _unreadable(path, f'its entry for "{item.name}" is malformed')
    name = _DTYPE_NAMES.get(code, code)
    carrier = item.carrier if name == item.dtype else np.dtype(np.void)
    if name != item.dtype:
        raise refuse(
            "SPY0763",
            f'run input "{item.name}" has dtype {name}, the bundle takes {item.dtype}',
            Location(str(path)),
            hint=f"convert it to {item.dtype} before it is written",
        )
    wrong = item.refuse_wrong(shape, carrier, Location(str(path)))
    if wrong is not None:
        raise wrong
    size_bytes = carrier.itemsize * math.prod(shape)
    file.seek(0, os.SEEK_END)
    if begin < 0 or end - begin != size_bytes or data_start + end > file.tell():
        raise refuse(
            "SPY0765",
            f'run input "{item.name}" declares bytes {begin} to {end}, its shape has {size_bytes} bytes',
            Location(str(path)),
            hint="the file is truncated or altered: write it again",
        )
    file.seek(data_start + begin)
    return np.frombuffer(bytearray(file.read(size_bytes)), carrier).reshape(shape)


def _unreadable(path: Path, why: str) -> SpyrecError:
    return refuse(
        "SPY0764",
        f"the file is not a readable .safetensors file: {why}",
        Location(str(path)),
        hint="write it with safetensors.numpy.save_file",
    )
