"""``constants.safetensors``: streamed out tensor by tensor, mapped in lazily.

The format is safetensors (eight bytes of header length, a JSON header, the raw little-endian data).  It is written
here because the library copies every tensor once more, and read here so that sizes are checked before anything else.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path

import numpy as np
import numpy.typing as npt

from spyrec.bundle.json_cursor import Cursor
from spyrec.dataclass import dataclass
from spyrec.diagnostics import Location, SpyrecError, refuse
from spyrec.diagnostics.json_reading import load_json
from spyrec.files.array_memory import pieces
from spyrec.files.reading import open_regular
from spyrec.hardware.dtypes import DType
from spyrec.progress import BYTES, count_of

HostArray = npt.NDArray[np.generic]

MALFORMED_CONSTANTS = "SPY0616"
"""Code of a constants file that is damaged or disagrees with the manifest."""

_HINT = "write the bundle again: the constants must be those that the manifest lists"

MAX_HEADER_BYTES = 1 << 26

_NAMES: dict[DType, str] = {
    DType.FLOAT16: "F16",
    DType.BFLOAT16: "BF16",
    DType.FLOAT32: "F32",
    DType.BOOL: "BOOL",
    DType.INT8: "I8",
    DType.INT16: "I16",
    DType.INT32: "I32",
    DType.INT64: "I64",
    DType.UINT8: "U8",
    DType.FLOAT8_E4M3FN: "F8_E4M3",
    DType.FLOAT8_E5M2FNUZ: "F8_E5M2FNUZ",
}


@dataclass(frozen=True, slots=True)
class ConstantForm:
    """Dtype and shape a tensor of the file has."""

    dtype: DType
    shape: tuple[int, ...]

    @property
    def size_bytes(self) -> int:
        """Bytes of the raw data."""
        return self.dtype.item_bytes * math.prod(self.shape)


def write_constants(
    write: Callable[[memoryview | bytes], object], tensors: Mapping[str, HostArray], forms: Mapping[str, ConstantForm]
) -> None:
    """Pass the bytes of the file to ``write`` piece by piece; of a tensor that is not contiguous, pieces are copied.

    Errors: none of its own.
    """

    def pieces_of(name: str) -> Iterator[HostArray]:
        array, form = tensors[name], forms[name]
        assert array.shape == form.shape, f"constant {name}: {array.shape} is not {form.shape}"
        assert array.dtype == np.dtype(form.dtype.carrier), f"constant {name}: {array.dtype} carries no {form.dtype}"
        return pieces(array)

    write_streamed(write, {name: forms[name] for name in tensors}, pieces_of)


def write_streamed(
    write: Callable[[memoryview | bytes], object],
    forms: Mapping[str, ConstantForm],
    pieces_of: Callable[[str], Iterator[HostArray]],
) -> None:
    """As :func:`write_constants`, of tensors whose contiguous pieces ``pieces_of`` gives by name, in row-major order.

    Larger items come first, so that every tensor is aligned; names break ties, so that the bytes are always the same.
    """
    order = sorted(forms, key=lambda name: (-forms[name].dtype.item_bytes, name))
    header: dict[str, object] = {}
    end = 0
    for name in order:
        form = forms[name]
        begin, end = end, end + form.size_bytes
        header[name] = {"dtype": _NAMES[form.dtype], "shape": list(form.shape), "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    write(len(text).to_bytes(8, "little"))
    write(text)
    count = count_of(BYTES, end)
    for name in order:
        left_bytes = forms[name].size_bytes
        for piece in pieces_of(name):
            write(np.ascontiguousarray(piece).reshape(-1).view(np.uint8).data)
            if count is not None:
                count.advance(piece.nbytes)
            left_bytes -= piece.nbytes
        assert left_bytes == 0, f"constant {name}: {left_bytes} bytes are missing"


class MappedConstants(Mapping[str, HostArray]):
    """The tensors of one file, mapped into memory when first asked for; the arrays are read-only."""

    def __init__(self, path: Path, places: Mapping[str, tuple[ConstantForm, int]]) -> None:
        self._path = path
        self._places = dict(places)
        self._bytes: npt.NDArray[np.uint8] | None = None

    def __getitem__(self, name: str) -> HostArray:
        form, offset = self._places[name]
        if self._bytes is None:
            with open_regular(self._path) as stream:
                self._bytes = np.memmap(stream, dtype=np.uint8, mode="r")
        raw = self._bytes[offset : offset + form.size_bytes]
        return np.asarray(raw).view(np.dtype(form.dtype.carrier)).reshape(form.shape)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


class RenamedConstants(Mapping[str, HostArray]):
    """Constants under other names; ``names``: by name, that of the tensor in ``tensors``."""

    def __init__(self, tensors: Mapping[str, HostArray], names: Mapping[str, str]) -> None:
        self._tensors = tensors
        self._names = names

    def __getitem__(self, name: str) -> HostArray:
        return self._tensors[self._names[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def open_constants(
    path: Path, forms: Mapping[str, ConstantForm], shown: str, *, has_others: bool = False
) -> MappedConstants:
    """Open the file that must hold exactly the tensors of ``forms``, or these and others.

    Errors: SPY0616 where the header is damaged, a tensor is missing, unknown, of another dtype or shape, or lies
    outside the file.
    """
    size_bytes = path.stat().st_size
    with open_regular(path) as stream:
        header_bytes = int.from_bytes(stream.read(8), "little")
        if size_bytes < 8 or header_bytes > min(MAX_HEADER_BYTES, size_bytes - 8):
            fact = f"header of {header_bytes} bytes in a file of {size_bytes} bytes"
            raise refuse(MALFORMED_CONSTANTS, fact, Location(shown), hint=_HINT)
        text = stream.read(header_bytes)
    data_begin = 8 + header_bytes
    try:
        root = Cursor(load_json(text, shown)[0], Location(shown))
        tensors = {name: member for name, member in root.members() if name != "__metadata__"}
        _require_names(tensors.keys(), forms.keys(), shown, has_others=has_others)
        places = {name: (form, _offset(tensors[name], form, size_bytes - data_begin)) for name, form in forms.items()}
    except SpyrecError as error:
        raise _recoded(error) from None
    return MappedConstants(path, {name: (form, data_begin + offset) for name, (form, offset) in places.items()})


def _recoded(error: SpyrecError) -> SpyrecError:
    """Return the same refusal under the code of this file: its header is JSON only inside."""
    message = error.diagnostics[0].message
    where = error.diagnostics[0].location
    return refuse(MALFORMED_CONSTANTS, message, where, hint=_HINT)


def _require_names(found: AbstractSet[str], wanted: AbstractSet[str], shown: str, *, has_others: bool) -> None:
    missing, unknown = sorted(wanted - found), [] if has_others else sorted(found - wanted)
    if missing or unknown:
        fact = f"the file lacks constants {missing[:8]} and has unknown ones {unknown[:8]}"
        raise refuse(MALFORMED_CONSTANTS, fact, Location(shown))


def _offset(tensor: Cursor, form: ConstantForm, data_bytes: int) -> int:
    dtype, shape = tensor.member("dtype").text(), tensor.member("shape").integers(0)
    if (dtype, shape) != (_NAMES[form.dtype], form.shape):
        fact = f"dtype {dtype[:20]} and shape {list(shape)}, the manifest has {_NAMES[form.dtype]} {list(form.shape)}"
        tensor.refuse(MALFORMED_CONSTANTS, fact)
    offsets = tensor.member("data_offsets").integers(0)
    if len(offsets) != 2 or offsets[1] - offsets[0] != form.size_bytes or offsets[1] > data_bytes:
        fact = f"data_offsets {list(offsets)[:4]} for {form.size_bytes} bytes in {data_bytes} bytes of data"
        tensor.refuse(MALFORMED_CONSTANTS, fact)
    return offsets[0]
