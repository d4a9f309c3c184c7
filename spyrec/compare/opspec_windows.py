"""Where the windows of a pool or convolution take their elements, read off an OpSpec: a page of its evaluation.

Written apart from code generation, which names the dims of such an operation, and from the emulator: an axis is found
where the input's device dims are, a tap where the output has no such symbol.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from spyrec.codegen.expression import CoordinateExpression, Symbol
from spyrec.codegen.opspec import OpSpec, TensorArgument
from spyrec.dataclass import dataclass
from spyrec.device_ops import window_of
from spyrec.device_ops.record import WindowForm

_HELD = "padded_wzeropad"
"""What ``pad_type`` says where the input's memory holds the padding."""


@dataclass(frozen=True, slots=True)
class WindowAxis:
    """One axis of the input: element ``output * stride + tap * dilation - front``, counted from what memory holds.

    ``output`` and ``tap``: symbols, ``None`` where there is one only.  ``dims``: the device dims that count elements,
    outer to inner; an element is divided among them by their extents.
    """

    output: str | None
    tap: str | None
    dims: tuple[int, ...]
    stride: int
    dilation: int
    front: int


def slid_axes(spec: OpSpec, source: TensorArgument) -> list[WindowAxis] | None:
    """Return rows, then columns; ``None`` where the OpSpec does not say where they lie."""
    if window_of(spec.op) is WindowForm.DEPTHWISE:
        return _of_outputs(spec, source)
    return _of_taps(spec, source)


def _plain(coordinate: CoordinateExpression) -> str | None:
    """Return the symbol that a coordinate is."""
    if len(coordinate.terms) != 1 or coordinate.offset:
        return None
    (term,) = coordinate.terms
    return term.atom.name if isinstance(term.atom, Symbol) and term.coefficient == 1 else None


def _symbols(argument: TensorArgument) -> set[str]:
    return {name for coordinate in argument.device_coordinates for name in coordinate.symbols}


def _number(values: Mapping[str, object], name: str, default: int = 1) -> int:
    found = values.get(name, default)
    assert isinstance(found, int | float), "code generation has read it"
    return int(found)


def _of_taps(spec: OpSpec, source: TensorArgument) -> list[WindowAxis] | None:
    """Of pools and convolutions the input is indexed by taps, each behind the symbol of its axis where there is one."""
    values: Mapping[str, object] = (
        spec.op_info.constants if window_of(spec.op) is WindowForm.POOL else spec.op_info.conv_params
    )
    kept, lanes = _symbols(spec.args[-1]), set(source.device_coordinates[-1].symbols)
    taps = [at for at, item in enumerate(source.device_coordinates) if _is_tap(_plain(item), kept | lanes)]
    suffixes = [name for name in "hw" if _number(values, f"kernel_{name}") > 1]
    suffixes = ["h", "w"] if len(taps) == 2 else suffixes
    if len(taps) != len(suffixes):
        return None
    found: list[WindowAxis] = []
    for at, suffix in zip(taps, suffixes, strict=True):
        before = _plain(source.device_coordinates[at - 1]) if at else None
        output = before if before in kept else None
        is_held = values.get("pad_type") == _HELD and values is not spec.op_info.constants
        found.append(
            WindowAxis(
                output,
                _plain(source.device_coordinates[at]),
                (at,) if output is None else (at - 1, at),
                _number(values, f"stride_{suffix}"),
                _number(values, f"dil_{suffix}"),
                0 if is_held else _number(values, f"pad_{suffix}", 0),
            )
        )
    return found


def _is_tap(symbol: str | None, others: set[str]) -> bool:
    return symbol is not None and symbol not in others


def _of_outputs(spec: OpSpec, source: TensorArgument) -> list[WindowAxis] | None:
    """Of a depthwise convolution the input is indexed by outputs alone; total sizes tell its axes from other dims."""
    params = spec.op_info.conv_params
    taps = [dim.symbol for dim in spec.iteration_space if dim.symbol not in _symbols(spec.args[-1])]
    sized = [name for name in "hw" if _number(params, f"kernel_{name}") > 1] if len(taps) < 2 else ["h", "w"]
    if len(taps) != len(sized):
        return None
    tap_of = dict(zip(sized, taps, strict=True))
    pairs = [(rows, columns) for rows in _dims_of(spec, source, "i") for columns in _dims_of(spec, source, "j")]
    dims = next(((rows, columns) for rows, columns in pairs if rows < columns), None)
    if dims is None:
        return None
    return [
        WindowAxis(
            _plain(source.device_coordinates[at]),
            tap_of.get(suffix),
            (at,),
            _number(params, f"stride_{axis}"),
            _number(params, f"dilation_{axis}"),
            0 if params.get("pad_type") == _HELD else _number(params, f"pad_{axis}", 0),
        )
        for axis, suffix, at in zip("ij", "hw", dims, strict=True)
    ]


def _dims_of(spec: OpSpec, source: TensorArgument, axis: str) -> Iterator[int]:
    """Yield the device dims that may be an axis: as long as its elements, and as many outputs as it has."""
    params, ranges = spec.op_info.conv_params, spec.node_output_ranges
    sizes = {dim.symbol: int(dim.size) for dim in spec.iteration_space}
    absent = 0 if params.get("pad_type") == _HELD else 2 * _number(params, f"pad_{axis}", 0)
    for at, coordinate in enumerate(source.device_coordinates[:-1]):
        outputs = sizes.get(_plain(coordinate) or "", 1)
        is_known = ranges is None or ranges["ij".index(axis) + 2] == outputs
        if source.device_size[at] + absent == _number(params, f"total_size_{axis}") and is_known:
            yield at
