"""``spyrec.import_onnx``: an ONNX model, from memory or from a file, as a graph.

The onnx package reads the file, inlines its functions and infers its shapes; torch is not needed.  Tensors that lie in
files beside the model are mapped, never loaded.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.diagnostics import Location, refuse
from spyrec.files.reading import open_regular
from spyrec.frontends.model_import.keep_ops import kept_ops, refuse_uncalled
from spyrec.frontends.model_import.mapped_bytes import MappedBytes
from spyrec.frontends.model_import.names import legal_name
from spyrec.frontends.model_import.source_graph import HostArray, SourceGraph, Weight, Weights, weight_dtype
from spyrec.frontends.model_import.symbolic_sizes import DimChoice
from spyrec.frontends.onnx.open_numbers import read_open_size
from spyrec.frontends.onnx.well_formed import check_functions, check_names, check_tensor, nodes_of, tensors_of
from spyrec.hardware.dtypes import DType
from spyrec.layout.symbolic_dim import SymbolicDim

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, TensorProto
    from onnx.defs import OpSchema

LEAST_OPSET = 13
_MOST_FILE_BYTES = 1 << 31
"""A protobuf message has less than 2 GiB; larger models keep their tensors in files of their own."""

_MOST_DIGITS = 19
"""No file has more bytes than 2**63."""

DTYPES: Mapping[int, tuple[str, str]] = {
    1: ("float32", "<f4"), 2: ("uint8", "u1"), 3: ("int8", "i1"), 5: ("int16", "<i2"), 6: ("int32", "<i4"),
    7: ("int64", "<i8"), 9: ("bool", "?"), 10: ("float16", "<f2"), 11: ("float64", "<f8"), 16: ("bfloat16", "<u2"),
    17: ("float8_e4m3fn", "u1"), 4: ("uint16", ""), 8: ("string", ""), 12: ("uint32", ""), 13: ("uint64", ""),
    14: ("complex64", ""), 15: ("complex128", ""), 18: ("float8_e4m3fnuz", ""), 19: ("float8_e5m2", ""),
    20: ("float8_e5m2fnuz", ""), 21: ("uint4", ""), 22: ("int4", ""), 23: ("float4_e2m1fn", ""),
    24: ("float8_e8m0fnu", ""), 25: ("uint2", ""), 26: ("int2", ""),
}  # fmt: skip
"""The numbers that ONNX has for element types (``TensorProto.DataType``): PyTorch's name, NumPy's form.

Those that a graph does not have are here by name, without a form."""

UNSIGNED: Mapping[int, str] = {4: "<u2", 12: "<u4", 13: "<u8"}
"""Element types that a graph does not have, and what is known beforehand has: NumPy's form."""


@dataclass(frozen=True, slots=True)
class OnnxModel:
    """A model that is read: functions inlined, shapes inferred, tensors in files left there."""

    proto: ModelProto
    place: Location
    folder: Path | None


def read_onnx(
    model: ModelProto | str | os.PathLike[str], dims: Mapping[str, DimChoice], keep_ops: Sequence[str] = ()
) -> tuple[SourceGraph, Weights]:
    """Return an ONNX model as a graph in its own dtypes, and its weights; nothing of them is read.

    ``dims``: of symbolic dims (``dim_param``) the extent, or those that runs may have.  ``keep_ops``: functions that
    are one operator each.  Errors: SPY0160 to SPY0164, SPY0167 an operator cannot be kept.
    """
    from spyrec.frontends.onnx.operators import OPERATORS

    kept = kept_ops(keep_ops, _unqualified, lambda _, name: name if name in OPERATORS else None, list(OPERATORS))
    read = load_onnx(model, dims, kept)
    from spyrec.frontends.onnx.lower import OnnxLowering
    from spyrec.frontends.onnx.open_numbers import OpenNumber
    from spyrec.frontends.onnx.probe import Probe, probed_extents

    weights = {item.name: weight_of(item, read) for item in read.proto.graph.initializer}
    refuse_uncalled(kept, {node.op_type for node in read.proto.graph.node})
    bound = _extents(dims)
    open_dims = {
        legal_name(name): choice
        for name, choice in dims.items()
        if isinstance(choice, SymbolicDim) and name not in bound
    }
    if not open_dims:
        return OnnxLowering(read, weights, kept).graph(), weights
    extents = probed_extents(open_dims)
    probed = OnnxLowering(
        read, dict(weights), kept, bound | {name: extents[legal_name(name)] for name in dims.keys() - bound.keys()}
    )
    source = probed.graph()
    if source.problems:
        return source, weights
    numbers = {name: OpenNumber({(legal_name(name),): 1}, open_dims) for name in dims if name not in bound}
    probe = Probe(probed.made, extents, open_dims)
    return OnnxLowering(read, weights, kept, {**bound, **numbers}, probe).graph(), weights


def _unqualified(name: str) -> str:
    return name.replace("::", ".").rpartition(".")[2]


def load_onnx(
    model: ModelProto | str | os.PathLike[str], dims: Mapping[str, DimChoice], kept: Collection[str] = ()
) -> OnnxModel:
    """Read a model: functions but those ``kept`` inlined, dims bound, shapes inferred.

    Errors: SPY0160 to SPY0164.
    """
    extents = _extents(dims)
    try:
        import onnx
        from onnx import inliner, shape_inference
    except ImportError:
        message = "the onnx package is not installed, and it reads ONNX models"
        raise refuse("SPY0163", message, hint="pip install 'spyrec[onnx]'") from None
    folder: Path | None = None
    place = Location("<model>")
    if isinstance(model, str | os.PathLike):
        path = Path(model)
        folder, place = path.parent, Location(str(path))
        proto = _load(path, place)
    else:
        proto = onnx.ModelProto()
        proto.CopyFrom(model)
    for tensor in tensors_of(proto.graph):
        carrier = form_of(tensor.data_type)
        check_tensor(tensor, np.dtype(carrier).itemsize if carrier else 0, place)
    check_functions(proto, place)
    try:
        _bind(proto, extents)
        functions = [(item.domain, item.name) for item in proto.functions if item.name not in kept]
        inlined = _written_out(inliner.inline_selected_functions(proto, functions))
        inferred = shape_inference.infer_shapes(inlined, data_prop=True)
    except Exception as error:  # noqa: BLE001 -- the package raises what its C++ raises
        message = f"the onnx package does not read the model: {str(error).splitlines()[0][:300]}"
        raise refuse("SPY0164", message, place) from None
    check_names(inferred.graph, place)
    _refuse_old(inferred, place)
    return OnnxModel(inferred, place, folder)


def _written_out(proto: ModelProto) -> ModelProto:
    """Return a model with operators written out that the importer has no row for and that ONNX defines as functions.

    What the package cannot write out stays, and is told with the other problems.
    """
    from onnx import inliner

    before: set[str] = set()
    while (found := _composed(proto)) and found != before:
        _declare_weights(proto)
        try:
            proto = inliner.inline_selected_functions(proto, [("", name) for name in found], False, True)
        except Exception:  # noqa: BLE001 -- the package raises what its C++ raises
            return proto
        before = found
    return proto


def _declare_weights(proto: ModelProto) -> None:
    """Say of which types a model's weights are, which the package looks for among its declared values alone."""
    import onnx

    said = {item.name for item in (*proto.graph.value_info, *proto.graph.input)}
    proto.graph.value_info.extend(
        onnx.helper.make_tensor_value_info(item.name, item.data_type, tuple(item.dims))
        for item in proto.graph.initializer
        if item.name not in said
    )


def _composed(proto: ModelProto) -> set[str]:
    """Return the operators of a model that no row of the importer is for and that ONNX writes out as functions.

    Such nodes get the attributes that they have by default: the package writes functions out without them.
    """
    from spyrec.frontends.onnx.lower import operator_of

    opset = opset_of(proto)
    found: set[str] = set()
    for node in nodes_of(proto.graph):
        schema = None if operator_of(node.op_type) is not None else schema_of(node, opset)
        if schema is not None and _is_function(schema):
            found.add(node.op_type)
            said = {item.name for item in node.attribute}
            defaults = (item.default_value for name, item in schema.attributes.items() if name not in said)
            node.attribute.extend(item for item in defaults if item.name)
    return found


def _is_function(schema: OpSchema) -> bool:
    """Whether the specification writes an operator out, for all operands or for those that it has."""
    return bool(getattr(schema, "has_function", False) or getattr(schema, "has_context_dependent_function", False))


def opset_of(proto: ModelProto) -> int:
    """Return the version of ONNX's own operators that a model is written with, 0 where it does not say."""
    versions = {item.domain: item.version for item in proto.opset_import}
    return versions.get("", versions.get("ai.onnx", 0))


def schema_of(node: NodeProto, opset: int) -> OpSchema | None:
    """Return what the specification says of a node's operator, ``None`` where it does not know it."""
    import onnx

    try:
        return onnx.defs.get_schema(node.op_type, opset, "" if node.domain == "ai.onnx" else node.domain)
    except onnx.defs.SchemaError:
        return None


def _load(path: Path, place: Location) -> ModelProto:
    import onnx

    try:
        with open_regular(path) as stream:
            size_bytes = os.fstat(stream.fileno()).st_size
            if size_bytes >= _MOST_FILE_BYTES:
                raise refuse("SPY0161", f"the file has {size_bytes} bytes, a protobuf message less than 2 GiB", place)
            load = cast("Callable[..., ModelProto]", onnx.load_model_from_string)
            return load(stream.read())
    except OSError as error:
        raise refuse("SPY0160", f"the file cannot be read: {error.strerror or error}", place) from None
    except Exception as error:
        if type(error).__name__ not in ("DecodeError", "ParseError", "ValidationError"):
            raise
        raise refuse("SPY0161", f"the file is no ONNX model: {error}", place) from None


def _extents(dims: Mapping[str, DimChoice]) -> dict[str, int]:
    """Return what dims are bound to, but for those that stay symbolic."""
    fixed = {name: choice for name, choice in dims.items() if not _is_open(choice)}
    return {name: choice if isinstance(choice, int) else choice.smallest for name, choice in fixed.items()}


def _is_open(choice: DimChoice) -> bool:
    return isinstance(choice, SymbolicDim) and choice.smallest < choice.largest


def _bind(proto: ModelProto, dims: Mapping[str, int]) -> None:
    """Give symbolic dims of inputs and outputs their extents; shape inference carries them on."""
    del proto.graph.value_info[:]  # what the writer inferred without them
    for value in (*proto.graph.input, *proto.graph.output):
        for dim in value.type.tensor_type.shape.dim:
            found = read_open_size(dim.dim_param, dims) if dim.dim_param else None
            if isinstance(found, int):
                dim.dim_value = found


def _refuse_old(proto: ModelProto, place: Location) -> None:
    found = opset_of(proto)
    if found < LEAST_OPSET:
        hint = f"convert it first: onnx.version_converter.convert_version(model, {LEAST_OPSET})"
        raise refuse(
            "SPY0161", f"the model is of opset {found}, and {LEAST_OPSET} is the oldest read", place, hint=hint
        )


# --- tensors ---


def form_of(number: int) -> str:
    """Return NumPy's form of one of ONNX's element types, empty where its numbers are not read."""
    return UNSIGNED.get(number) or DTYPES.get(number, ("", ""))[1]


def weight_of(tensor: TensorProto, model: OnnxModel) -> Weight:
    """Return a tensor of a model as a weight.  Errors: SPY0161 it lies in no file of the model's directory."""
    name, carrier = DTYPES.get(tensor.data_type, (f"type {tensor.data_type}", ""))[0], form_of(tensor.data_type)
    shape = tuple(tensor.dims)
    dtype = weight_dtype(name)
    if tensor.data_location == 1:
        return _external(tensor, model, dtype, carrier)

    def read() -> HostArray:
        if not carrier:
            raise refuse("SPY0161", f'the tensor "{tensor.name[:80]}" has {name}, which is not read', model.place)
        return array_of(tensor)

    return Weight(dtype, shape, read, tensor.name)


def array_of(tensor: TensorProto) -> HostArray:
    """Return a tensor that stands in the model, in the carrier of its dtype."""
    import onnx

    carrier = form_of(tensor.data_type)
    if tensor.raw_data:
        return np.frombuffer(tensor.raw_data, carrier).reshape(tuple(tensor.dims))
    if DTYPES[tensor.data_type][0] == "bfloat16":
        return np.asarray(tensor.int32_data, np.uint16).reshape(tuple(tensor.dims))
    return onnx.numpy_helper.to_array(tensor).astype(carrier, copy=False)


def _is_count(text: str) -> bool:
    """Whether a text is a number of bytes that a file can have."""
    return text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS


def _external(tensor: TensorProto, model: OnnxModel, dtype: DType, carrier: str) -> Weight:
    """Return a tensor that lies in a file beside the model; the file has to lie in the model's directory."""
    entries = {item.key: item.value for item in tensor.external_data}
    shape = tuple(tensor.dims)
    size_bytes = math.prod(shape) * np.dtype(carrier or "u1").itemsize
    location, written = entries.get("location", ""), entries.get("offset") or "0"
    if model.folder is None:
        raise refuse("SPY0161", f'"{tensor.name[:80]}" lies in a file, and the model came without one', model.place)
    if not _is_count(written) or "\0" in location:
        raise refuse("SPY0161", f'"{tensor.name[:80]}" lies at {written[:40]!r} of {location[:80]!r}', model.place)
    length = entries.get("length") or "0"  # none, or 0: nobody says it
    if not _is_count(length) or (carrier and int(length) not in (0, size_bytes)):
        fact = f'"{tensor.name[:80]}" has {length[:40]} bytes of "{location[:80]}"'
        raise refuse("SPY0161", f"{fact}, and its extents say {size_bytes}", model.place)
    base, offset = model.folder.resolve(), int(written)
    path = (base / location).resolve()
    if Path(location).is_absolute() or not path.is_relative_to(base) or not path.is_file():
        raise refuse("SPY0161", f'"{location[:200]}" is no file in the directory of the model', model.place)
    if offset + size_bytes > path.stat().st_size:
        message = f'"{tensor.name[:80]}" ends at byte {offset + size_bytes} of "{location[:80]}", which is shorter'
        raise refuse("SPY0161", message, model.place)
    mapped = MappedBytes(path, offset, size_bytes)

    def read() -> HostArray:
        return mapped.read().view(carrier).reshape(shape) if size_bytes else np.empty(shape, carrier)

    return Weight(dtype, shape, read, (str(path), offset), mapped.release)
