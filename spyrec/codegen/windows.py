"""Operations that slide a window: what their dims are called, how the window slides, which dims files leave out.

Axis ``i`` has the window dim ``ki``, axis ``j`` has ``kj``; the extents of ``i`` and ``j`` are those of the output.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from spyrec.bundle.superdsc import LabelInfo, PaddingKind, PaddingSizes, UnneededPadding
from spyrec.bundle.superdsc_windows import WINDOW_DIMS, padding_of
from spyrec.codegen.coordinates import ArgumentView
from spyrec.codegen.iteration import IterationSpace
from spyrec.codegen.operand_dims import OperandDims
from spyrec.codegen.opspec import AllocationKind, OpSpec, TensorArgument
from spyrec.dataclass import dataclass
from spyrec.device_ops import device_operation
from spyrec.device_ops.record import WindowForm
from spyrec.diagnostics import Location, SpyrecError, refuse

CHANNELS = "out"

_POOL_LABELS = ("mb", "i", "j", "out", "ki", "kj")
_CONVOLUTION_LABELS = ("mb", "i", "j", "out", "in", "ki", "kj")
_DEPTHWISE_LABELS = ("mb", "out", "i", "j", "ki", "kj")

_KEEPS_WINDOWS = "KERNEL"
"""The label whose operands list the window dims."""

SUFFIX_OF_AXIS = {"i": "h", "j": "w"}
"""How the parameters of an OpSpec name the axes."""


def window_form(spec: OpSpec) -> WindowForm | None:
    """Return how an operation slides a window, if it does."""
    return device_operation(spec.op).window


def window_labels(spec: OpSpec, form: WindowForm, location: Location | None) -> dict[str, str]:
    """Return the dim label of each iteration symbol.  Errors: SPY0507 too many dims, SPY0538 they do not fit."""
    names = [dim.symbol for dim in spec.iteration_space]
    most = {WindowForm.CONVOLUTION: 7}.get(form, 6)
    at = None if location is None else location.child("iteration_space")
    if len(names) > most or len(set(names)) != len(names):
        fact = f'"{spec.op}" iterates {len(names)} dims {names[:8]}, at most {most} distinct ones have a part in it'
        raise refuse("SPY0507", fact, at)
    match form:
        case WindowForm.POOL:
            found = _pool_labels(spec, location)
        case WindowForm.CONVOLUTION:
            found = _labels_by_structure(spec) or dict(
                zip(names, _CONVOLUTION_LABELS[most - len(names) :], strict=True)
            )
        case WindowForm.DEPTHWISE:
            found = _depthwise_labels(spec, location)
    if len(set(found.values())) != len(names):
        raise refuse("SPY0538", f'two dims of "{spec.op}" have the same part in it: {found}', at)
    return found


def _ranges(spec: OpSpec, location: Location | None) -> tuple[int, ...]:
    found = spec.node_output_ranges
    if found is None or len(found) != 4:
        fact = f'"{spec.op}" needs node_output_ranges [N, C, H, W], found {None if found is None else list(found)}'
        raise refuse("SPY0538", fact, None if location is None else location.child("node_output_ranges"))
    return found


def _unfit(spec: OpSpec, labels: Sequence[str], location: Location | None) -> SpyrecError:
    fact = f'"{spec.op}" iterates {len(spec.iteration_space)} dims, its node_output_ranges leave {list(labels)}'
    return refuse("SPY0538", fact, None if location is None else location.child("iteration_space"))


def _pool_labels(spec: OpSpec, location: Location | None) -> dict[str, str]:
    """Dims of extent 1 are not iterated; a window is always."""
    images, channels, rows, columns = _ranges(spec, location)
    extents = {"mb": images, "i": rows, "j": columns, CHANNELS: channels}
    iterated = len(spec.iteration_space) - 2
    # axes of extent 1 may be iterated all the same
    axes = WINDOW_DIMS if iterated > sum(extent != 1 for extent in extents.values()) else ()
    labels = [label for label in _POOL_LABELS if extents.get(label) != 1 or label in axes]
    if len(labels) != len(spec.iteration_space):
        raise _unfit(spec, labels, location)
    return {dim.symbol: label for dim, label in zip(spec.iteration_space, labels, strict=True)}


def _depthwise_labels(spec: OpSpec, location: Location | None) -> dict[str, str]:
    names = [dim.symbol for dim in spec.iteration_space]
    params = spec.op_info.conv_params
    if spec.node_output_ranges is None or "kernel_h" not in params or "kernel_w" not in params:
        return dict(zip(names, _DEPTHWISE_LABELS[len(_DEPTHWISE_LABELS) - len(names) :], strict=True))
    images, channels, rows, columns = _ranges(spec, location)
    extents = (images, channels, rows, columns, params["kernel_h"], params["kernel_w"])
    labels = list(_DEPTHWISE_LABELS)
    for label, extent in reversed(list(zip(_DEPTHWISE_LABELS, extents, strict=True))):
        if len(labels) > len(names) and extent == 1:
            labels.remove(label)
    if len(labels) != len(names):
        raise _unfit(spec, labels, location)
    single = [dim.symbol for dim in spec.iteration_space if dim.size == 1]
    if rows == 1 and {"i", "j", "ki", "kj"} <= set(labels) and len(single) == 2:
        # an output of one element iterates its rows and columns behind the window
        rest = iter(label for label in labels if label not in WINDOW_DIMS)
        axes = iter(WINDOW_DIMS)
        return {name: next(axes) if name in single else next(rest) for name in names}
    return dict(zip(names, labels, strict=True))


def _labels_by_structure(spec: OpSpec) -> dict[str, str] | None:
    """Return the labels of a convolution by who shares which symbol with whom, ``None`` where that says nothing."""
    inputs, output = spec.args[:-1], spec.args[-1]
    channel = _stick_symbol(output)
    weights = next((item for item in inputs if _stick_symbol(item) == channel), None)
    source = next((item for item in inputs if item is not weights), None)
    if len(inputs) != 2 or channel is None or weights is None or source is None:
        return None
    contracted = _stick_symbol(source)
    others = _symbols(output, {channel})
    if contracted is None or contracted == channel or len(others) > 3:
        return None
    labels = dict(zip(others, ("i", "j", "mb"), strict=False))
    order = _symbols(source, set())
    taps: dict[str, str] = {}
    for tap in _symbols(weights, {channel, contracted}):
        before = order[: order.index(tap)] if tap in order else []
        axis = next((labels[name] for name in reversed(before) if labels.get(name) in WINDOW_DIMS), None)
        if axis is None:
            return None
        taps[tap] = WINDOW_DIMS[axis]
    found = {**labels, **taps, channel: CHANNELS, contracted: "in"}
    names = [dim.symbol for dim in spec.iteration_space]
    return {name: found[name] for name in names} if set(names) <= found.keys() else None


def _stick_symbol(argument: TensorArgument) -> str | None:
    symbols = set(argument.device_coordinates[-1].symbols)
    return symbols.pop() if len(symbols) == 1 else None


def _symbols(argument: TensorArgument, without: set[str]) -> list[str]:
    """Return the symbols of an argument, first coordinate first."""
    found = (name for coordinate in argument.device_coordinates for name in sorted(set(coordinate.symbols)))
    return [name for name in dict.fromkeys(found) if name not in without]


def with_whole_windows(spec: OpSpec, form: WindowForm, iteration: IterationSpace) -> IterationSpace:
    """Return the space in which no window is divided, and a depthwise one has both of its dims."""
    if form is WindowForm.DEPTHWISE:
        params = spec.op_info.conv_params
        for axis, window in WINDOW_DIMS.items():
            if window not in iteration.sizes:
                size = int(params.get(f"kernel_{SUFFIX_OF_AXIS[axis]}", 1))
                iteration = replace(
                    iteration,
                    sizes={**iteration.sizes, window: size},
                    work_slices={**iteration.work_slices, window: 1},
                )
    return iteration.undivided(dict.fromkeys(WINDOW_DIMS.values(), 1))


def with_channels(
    spec: OpSpec, form: WindowForm, iteration: IterationSpace, location: Location | None
) -> IterationSpace:
    """Return the space with the channel dim that was left out because there is one channel."""
    if CHANNELS in iteration.sizes:
        fact = f'the input of "{spec.op}" has one element per stick, and "{CHANNELS}" is iterated all the same'
        raise refuse("SPY0538", fact, location)
    channels = {CHANNELS: _ranges(spec, location)[1]}
    sizes = {**channels, **iteration.sizes} if form is WindowForm.DEPTHWISE else {**iteration.sizes, **channels}
    work_slices = {**iteration.work_slices, CHANNELS: 1}
    return replace(iteration, sizes=sizes, work_slices=work_slices, missing_stick=CHANNELS)


def weights_view(view: ArgumentView, iteration: IterationSpace) -> ArgumentView:
    """Return the view of depthwise weights: no rows and columns of the output, and always both window dims."""
    order = [dim for dim in view.dim_order if dim not in WINDOW_DIMS or iteration.sizes[dim] != 1]
    for window in WINDOW_DIMS.values():
        if window not in order:
            order.insert(0, window)
    return replace(view, dim_order=tuple(order))


@dataclass(frozen=True, slots=True)
class WindowPlan:
    """How the window of one operation slides: ``axes`` are those whose window is iterated."""

    form: WindowForm
    axes: tuple[str, ...]
    sizes: Mapping[str, PaddingSizes]
    stage_sizes: Mapping[str, PaddingSizes]
    padding: Mapping[str, PaddingKind]

    def padding_of(self, position: int, count: int, dims: Sequence[str]) -> dict[str, PaddingKind]:
        """Return ``padding_`` of an operand out of ``count`` that lists ``dims``."""
        if self.form is WindowForm.DEPTHWISE:
            return dict(self.padding) if position == 0 else {}
        return {axis: kind for axis, kind in self.padding.items() if axis in dims} if position < count - 1 else {}

    def absent(self, axis: str) -> int:
        """Return the elements of padding that the input's memory does not hold."""
        return 0 if self.padding[axis] is PaddingKind.WITH_ZEROS else padding_of(self.sizes[axis])

    def _left_out(self, label: str) -> frozenset[str]:
        if self.form is WindowForm.DEPTHWISE or label == _KEEPS_WINDOWS:
            return frozenset()
        return frozenset(WINDOW_DIMS[axis] for axis in self.axes)

    def listed(self, dims: OperandDims, label: str) -> OperandDims:
        """Return the dims that the file lists of an operand."""
        out = self._left_out(label)
        order = tuple(dim for dim in dims.dim_order if dim not in out)
        return replace(dims, dim_order=order, scales={dim: dims.scales[dim] for dim in order})

    def listed_label(self, label: str, info: LabelInfo) -> LabelInfo:
        """Return the dims that the file lists of a label."""
        order = tuple(dim for dim in info.layout_dim_order if dim not in self._left_out(label))
        return replace(info, layout_dim_order=order)


def plan_window(
    spec: OpSpec, form: WindowForm, iteration: IterationSpace, location: Location | None, *, is_exact: bool
) -> WindowPlan:
    """Return how the window slides.  ``is_exact``: known mistakes included.  Errors: SPY0539 a parameter."""
    params = _Parameters(spec, form, location, is_exact=is_exact)
    axes = tuple(axis for axis, window in WINDOW_DIMS.items() if window in iteration.sizes)
    if form is WindowForm.DEPTHWISE:
        sizes = {axis: params.depthwise(axis, None) for axis in WINDOW_DIMS}
        stages = {axis: params.depthwise(axis, iteration) for axis in WINDOW_DIMS if axis in iteration.sizes}
    else:
        sizes = {axis: params.shared(axis, iteration) for axis in axes}
        stages = dict(sizes)
    padding = {axis: params.kind(sizes[axis]) for axis in sizes}
    if not is_exact:
        stages = {axis: _of_stage(item, iteration.work_slices.get(axis, 1)) for axis, item in stages.items()}
    return WindowPlan(form, axes, sizes, stages, padding)


def _of_stage(sizes: PaddingSizes, slices: int) -> PaddingSizes:
    """Return what a stage says: cores of a divided axis have different padding (Q21)."""
    return sizes if slices == 1 else replace(sizes, pad_front=-1, pad_back=-1)


class _Parameters:
    """The numbers of a window, as an OpSpec gives them."""

    def __init__(self, spec: OpSpec, form: WindowForm, location: Location | None, *, is_exact: bool) -> None:
        self._spec = spec
        self._is_exact = is_exact
        self._key = "constants" if form is WindowForm.POOL else "conv_params"
        self._values: Mapping[str, object] = (
            spec.op_info.constants if form is WindowForm.POOL else spec.op_info.conv_params
        )
        self._location = location

    def _number(self, name: str, default: int | None, least: int) -> int:
        found = self._values.get(name, default)
        at = None if self._location is None else self._location.child("op_info", self._key, name)
        if found is None:
            raise refuse("SPY0539", f'"{self._spec.op}" needs "{name}" in {self._key}', at)
        if isinstance(found, bool) or not isinstance(found, int | float) or found != int(found) or found < least:
            raise refuse("SPY0539", f'"{name}" of "{self._spec.op}" is {found!r}, no integer from {least} on', at)
        return int(found)

    def shared(self, axis: str, iteration: IterationSpace) -> PaddingSizes:
        """Return how the window of a pool or convolution slides: as far as the output needs."""
        suffix = SUFFIX_OF_AXIS[axis]
        taps, stride = self._number(f"kernel_{suffix}", None, 1), self._number(f"stride_{suffix}", 1, 1)
        pad = self._number(f"pad_{suffix}", 0, 0)
        # upstream writes 1 whatever is asked for
        dilation = 1 if self._is_exact else self._number(f"dil_{suffix}", 1, 1)
        total = (iteration.sizes.get(axis, 1) - 1) * stride + (taps - 1) * dilation + 1
        return PaddingSizes(pad, pad, total, stride, dilation, WINDOW_DIMS[axis])

    def depthwise(self, axis: str, iteration: IterationSpace | None) -> PaddingSizes:
        """Return how the window of a depthwise convolution slides, over all, or over what one core has of a space."""
        taps, stride = self._number(f"kernel_{SUFFIX_OF_AXIS[axis]}", None, 1), self._number(f"stride_{axis}", None, 1)
        total, pad = self._number(f"total_size_{axis}", None, 1), self._number(f"pad_{axis}", 0, 0)
        dilation = self._number(f"dilation_{axis}", 1, 1)
        reach = taps if self._is_exact else (taps - 1) * dilation + 1
        outputs = (total - reach) // stride + 1
        if iteration is not None:
            slices = iteration.work_slices[axis]
            outputs = iteration.sizes[axis] // slices
            total = total if slices == 1 else outputs * stride + reach - 1
        unneeded = total - ((outputs - 1) * stride + reach)
        back = max(0, min(pad, unneeded))
        valid = max(0, total - 2 * pad)
        front = max(0, min(pad, unneeded - back - valid))
        rest = UnneededPadding(unneeded, front, back)
        return PaddingSizes(pad - front, pad - back, total, stride, dilation, WINDOW_DIMS[axis], rest)

    def kind(self, sizes: PaddingSizes) -> PaddingKind:
        """Return what an axis has beyond its elements.

        Upstream says the same of every axis, also of one with padding, whose memory it leaves open.  Of its own accord
        memory holds no padding; an OpSpec may say that it holds zeros there.  Errors: SPY0539, SPY0557.
        """
        named = self._named_kind()
        is_stored = named is PaddingKind.WITH_ZEROS
        return PaddingKind.NO_ZEROS if not self._is_exact and padding_of(sizes) and not is_stored else named

    def _named_kind(self) -> PaddingKind:
        if "pad_type" not in self._values or self._key == "constants":
            return PaddingKind.WHOLE_SPAN
        name = self._values["pad_type"]
        at = None if self._location is None else self._location.child("op_info", self._key, "pad_type")
        known = {kind.value: kind for kind in PaddingKind}
        if name not in known:
            raise refuse("SPY0539", f'"pad_type" is {str(name)[:60]!r}, none of {list(known)}', at)
        if known[str(name)] is PaddingKind.LOWERED and not self._is_exact:
            fact = f'"pad_type" is "{name}": what memory holds of a lowered axis is not published'
            raise refuse("SPY0557", fact, at)
        return known[str(name)]


def with_input_extents(
    spec: OpSpec, view: ArgumentView, plan: WindowPlan, iteration: IterationSpace, location: Location | None
) -> WindowPlan:
    """Return the plan whose axes are as long as the input, and refuse an input that cannot be what the window needs.

    A window that is iterated stands beside its axis in the input's device dims, ``[rows / stride, stride]``: rows that
    fill no step are lost there (Q17).  Errors: SPY0540.
    """
    at = None if location is None else location.child("args", 0)
    lengths = {axis: _input_length(spec, view, plan, axis, at) for axis in plan.sizes}
    for axis, sizes in plan.sizes.items():
        reach = (iteration.sizes[sizes.window_dim] - 1) * sizes.dilation + 1
        outputs = iteration.sizes.get(axis, 1)
        padded = lengths[axis] + plan.absent(axis)
        if (outputs - 1) * sizes.stride + reach > padded:
            fact = f'the windows of {outputs} outputs along "{axis}" reach over '
            fact += f"{(outputs - 1) * sizes.stride + reach} elements, the input has {lengths[axis]}"
            hint = "give the input's rows and columns whole steps of the window"
            raise refuse("SPY0540", f"{fact} and {plan.absent(axis)} of padding", at, hint=hint)
        if view.argument.allocation.kind is AllocationKind.LX and iteration.work_slices.get(axis, 1) > 1:
            fact = f'an input in LX whose axis "{axis}" is divided: the file cannot say what a core holds of it'
            raise refuse("SPY0540", fact, at, hint="put the input into device memory")
    if plan.form is WindowForm.DEPTHWISE:
        return plan
    sizes = {axis: replace(item, total_size=lengths[axis] + plan.absent(axis)) for axis, item in plan.sizes.items()}
    stages = {axis: replace(item, total_size=sizes[axis].total_size) for axis, item in plan.stage_sizes.items()}
    return replace(plan, sizes=sizes, stage_sizes=stages)


def _input_length(spec: OpSpec, view: ArgumentView, plan: WindowPlan, axis: str, location: Location | None) -> int:
    sizes, device_size = plan.sizes[axis], view.argument.device_size
    own, window = view.axes.get(axis), view.axes.get(sizes.window_dim)
    if own is None or own.offset or (window is not None and window.offset):
        if own is None and sizes.total_size == 1:
            return 1
        fact = f'the input of "{spec.op}" has no device dim of its own for "{axis}" that begins at 0'
        raise refuse("SPY0540", fact, location, hint="iterate the axis, with extent 1 if it is the output's")
    if plan.form is WindowForm.DEPTHWISE:
        if device_size[own.index] + plan.absent(axis) != sizes.total_size:
            fact = f"total_size_{axis} is {sizes.total_size}, the input has {device_size[own.index]} elements along it"
            raise refuse("SPY0540", f"{fact} and {plan.absent(axis)} of padding", location)
        return device_size[own.index]
    steps = 1 if window is None else device_size[window.index]
    beside = window is None or view.unit_elements(own.index) == steps * view.unit_elements(window.index)
    if steps != sizes.stride or not beside:
        fact = f'device dims of "{axis}" and "{sizes.window_dim}" are {device_size[own.index]} and {steps}'
        raise refuse("SPY0540", f"{fact}; they stand side by side, the second as long as the stride", location)
    return device_size[own.index] * steps
