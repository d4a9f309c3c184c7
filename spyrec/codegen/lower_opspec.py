"""One OpSpec to one SuperDSC.

The steps are those of torch-spyre's ``parse_op_spec`` and ``generate_sdsc``; ``docs/compatibility.md`` lists where the
result differs on purpose.  What SuperDSC cannot express is refused, nothing is rounded.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache
from typing import Protocol

from spyrec.bundle.dialects import Dialect
from spyrec.bundle.superdsc import Component, ComputeOp, DynamicDim, Indirection, LabelInfo, Operand, SuperDsc
from spyrec.codegen.checks import (
    check_combination,
    check_cores,
    check_even,
    check_formats,
    check_gather,
    check_operand_list,
    check_operation,
    check_pairs,
    check_places,
    check_top,
)
from spyrec.codegen.constants import constant_entries, mask_ranges
from spyrec.codegen.coordinates import ArgumentView, CoordinateReader, elements_per_stick
from spyrec.codegen.extents import Footprint, FootprintContext, FootprintReader
from spyrec.codegen.iteration import (
    IterationSpace,
    core_slices,
    initial_iteration,
    label_symbols,
    needs_cast_row,
    next_label,
)
from spyrec.codegen.operand_dims import (
    EXTENDS,
    ONE_LANE_PER_STICK,
    DimsContext,
    OperandDims,
    ReferenceDims,
    SizeRule,
    index_dims,
    max_dim_sizes,
    operand_dims,
)
from spyrec.codegen.opspec import AllocationKind, ArgumentAllocation, DynamicBound, DynamicSize, OpSpec, TensorArgument
from spyrec.codegen.ownership import OwnedSpace, check_owners, distribution_of, owned_spaces
from spyrec.codegen.padding import pad_contraction, pad_sticks
from spyrec.codegen.positional import Positional, PositionalFootprint
from spyrec.codegen.single_axes import with_single_axes
from spyrec.codegen.stick_labels import assign_labels
from spyrec.codegen.unit_dims import UnitDims, unit_dims
from spyrec.codegen.windows import (
    WindowPlan,
    plan_window,
    weights_view,
    window_form,
    window_labels,
    with_channels,
    with_input_extents,
    with_whole_windows,
)
from spyrec.dataclass import dataclass
from spyrec.device_ops import (
    DEVICE_OPERATIONS,
    FP8_CASTS,
    FP8_PRODUCTS,
    IDENTITY,
    MATMULS,
    RESTICKIFY,
    SHUFFLE,
    TOPKS,
    device_operation,
)
from spyrec.device_ops.record import WindowForm
from spyrec.diagnostics import Location, refuse
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.hardware.target import Target


class StartBinder(Protocol):
    """Says what stands in the file for a start address in device memory."""

    @property
    def is_symbolic(self) -> bool:
        """Whether the numbers are symbol ids."""
        ...

    def bind_size(self, name: str, bound: DynamicBound) -> int:
        """Return the symbol id of a dynamic size; SPY0534 and SPY0546 where it cannot have one."""
        ...

    def bind(
        self, position: int, argument: TensorArgument, offsets_bytes: Sequence[int], *, is_unplaced: bool
    ) -> tuple[int, ...]:
        """Return one number per core for operand ``position``; offsets count from the argument's allocation.

        ``is_unplaced``: it lies along a dynamic dim that cores share, as upstream places such (Q18).
        """
        ...


@dataclass(frozen=True, slots=True)
class LoweringOptions:
    """What a lowering depends on besides the OpSpec.

    ``dialect``: whose files are written; ``is_exact``: as its own writer writes them, known mistakes included.
    """

    target: Target
    dialect: Dialect
    is_exact: bool = False


@dataclass(frozen=True, slots=True)
class _Operation:
    """An OpSpec with its views and spaces: what the parts of the file are made from."""

    spec: OpSpec
    options: LoweringOptions
    symbol_labels: Mapping[str, str]
    """Dim label of each iteration symbol."""
    views: tuple[ArgumentView, ...]
    dims: tuple[OperandDims, ...]
    iteration: IterationSpace
    footprints: tuple[Footprint | PositionalFootprint, ...]
    labels: Mapping[str, LabelInfo]
    label_of: tuple[str, ...]
    related: Mapping[int, int]
    """Partner of each operand that takes part in a gather."""
    sizes: SizeRule
    owned: tuple[OwnedSpace, ...]
    """How each operand of a shuffle is divided; nothing for other operations."""
    window: WindowPlan | None = None


def lower_opspec(
    spec: OpSpec, index: int, binder: StartBinder, options: LoweringOptions, location: Location | None = None
) -> SuperDsc:
    """Return the SuperDSC number ``index`` for one OpSpec.

    Errors: SPY0506 to SPY0522, SPY0526, SPY0529 to SPY0531 and SPY0538 to SPY0541, each at the part of the OpSpec that
    is to blame.
    """
    check_owners(spec, options.dialect, location)
    check_places(spec, binder.is_symbolic, location)
    operation = _read_operation(spec, options, location) if location is not None else _read_alike(spec, options)
    output = len(spec.args) - 1
    iteration = operation.iteration
    dynamic = _dynamic_dims(operation, binder, location)
    shared = frozenset(dim for dim in dynamic if iteration.work_slices[dim] > 1)
    masking = mask_ranges(spec, iteration, operation.dims[output].scales, options.dialect)
    data_formats = tuple(_data_format(operation, position) for position in range(len(spec.args)))
    op_format = data_formats[1 if operation.related else 0]
    constants = constant_entries(spec.op, _constants(spec), op_format, is_masked=bool(masking))
    slices = core_slices(spec, iteration, options.dialect)
    op_func_name = SHUFFLE if operation.owned else _op_func_name(spec, operation.dims[output], location)
    window = operation.window
    return SuperDsc(
        index=index,
        op_func_name=op_func_name,
        core_ids=tuple(range(len(slices))),
        iteration=iteration.sizes,
        work_slices=iteration.work_slices,
        core_extent={dim: iteration.core_extent(dim) for dim in iteration.sizes},
        core_work_slices=slices,
        labels=operation.labels,
        operands=tuple(
            _operand(
                operation,
                position,
                data_formats[position],
                _Starts(binder, slices, shared),
            )
            for position in range(len(spec.args))
        ),
        constants=constants,
        coordinate_masking=masking,
        masking_constant_id=_mask_id(len(constants) - 1, options) if masking else -1,
        compute=_compute(operation, op_func_name, op_format),
        dialect=options.dialect,
        debug_handle=spec.debug_handle,
        dynamic_dims=dynamic,
        padding_sizes={} if window is None else window.sizes,
        stage_padding_sizes={} if window is None else window.stage_sizes,
    )


def _constants(spec: OpSpec) -> Mapping[str, float]:
    """Return the constants that the file has: of a pool the scale alone, under another name."""
    found = spec.op_info.constants
    return {"nmap": found.get("scaling_factor", 1.0)} if window_form(spec) is WindowForm.POOL else found


def _dynamic_dims(operation: _Operation, binder: StartBinder, location: Location | None) -> dict[str, DynamicDim]:
    """Return the dynamic dims; their symbols come before those of the operands.  Errors: SPY0534, SPY0546, SPY0547."""
    spec, options = operation.spec, operation.options
    found: dict[str, DynamicDim] = {}
    for position, dim in enumerate(spec.iteration_space):
        if not isinstance(dim.size, DynamicSize):
            continue
        at = None if location is None else location.child("iteration_space", position)
        label, name = operation.symbol_labels[dim.symbol], dim.size.name
        bound, slices = spec.symbolic_dim_bounds[name], operation.iteration.work_slices[label]
        if not options.dialect.has_dynamic_sizes or not binder.is_symbolic:
            fact = f'"{name}" is given when the program starts; that takes symbolic addresses, and a later dialect'
            raise refuse("SPY0534", fact, at)
        if slices > 1 and not options.is_exact:
            fact = f'{slices} slices divide the dynamic dim "{dim.symbol}" ("{name}"); where they begin is known late'
            raise refuse("SPY0547", fact, at)
        symbol_id = binder.bind_size(name, bound)
        found[label] = DynamicDim(symbol_id, name, bound.max // slices, max(1, bound.granularity // slices))
    return found


def _mask_id(last: int, options: LoweringOptions) -> int:
    return 0 if options.is_exact else last


@dataclass(frozen=True, slots=True)
class _Question:
    """A plain operation; two that differ in the places of their operands only are equal."""

    facts: Hashable
    options: LoweringOptions
    spec: OpSpec = field(compare=False)


def _read_alike(spec: OpSpec, options: LoweringOptions) -> _Operation:
    """Return :func:`_read_operation` of what no file asks for; of operations that are alike it is done once."""
    facts = _facts_but_places(spec)
    if facts is None:
        return _read_operation(spec, options, None)
    return replace(_answered(_Question(facts, options, spec)), spec=spec)


@lru_cache(maxsize=1 << 10)
def _answered(question: _Question) -> _Operation:
    return _read_operation(question.spec, question.options, None)


def _facts_but_places(spec: OpSpec) -> Hashable | None:
    """Return all of an operation but where its operands lie; ``None`` where it has more than plain operations have."""
    is_plain = not (spec.symbolic_dim_bounds or spec.op_info.conv_params or spec.node_output_ranges)
    if not is_plain or window_form(spec) is not None or any(item.name or item.work_division for item in spec.args):
        return None
    constants = tuple([(name, float(value).hex()) for name, value in spec.op_info.constants.items()])
    first: dict[ArgumentAllocation, int] = {}
    operands = [
        (
            item.is_input,
            item.arg_index is None,
            item.allocation.kind.value,
            item.allocation.start_bytes if item.allocation.kind is AllocationKind.LX else None,  # which has an end
            first.setdefault(item.allocation, position),
            item.device_dtype.name,
            item.device_size,
            item.device_coordinates,
            item.stride_map,
            item.per_tile_fixed,
            item.tile_advance,
            item.element_arrangement,
            item.ends_in_padding,
            item.moves,
        )
        for position, item in enumerate(spec.args)
    ]
    loops = (spec.tiled_symbols, spec.tiled_levels, tuple(spec.tiled_symbol_trip_counts.items()))
    return (spec.op, spec.is_reduction, spec.iteration_space, constants, loops, *operands)


def _read_operation(spec: OpSpec, options: LoweringOptions, location: Location | None) -> _Operation:
    dialect = options.dialect
    index_of = _index_of_values(spec, dialect, location)
    check_operation(spec, location)
    form = window_form(spec)
    if form is not None and not options.dialect.has_stage_details:
        fact = f'"{spec.op}" slides a window, for which dialect {options.dialect.name} has no fields'
        raise refuse("SPY0541", fact, location, hint="write a newer dialect")
    check_operand_list(spec, location)
    if form is not None and not options.is_exact:
        spec = with_single_axes(spec, form)
    indices = frozenset(index_of.values())
    labels = label_symbols(spec, location) if form is None else window_labels(spec, form, location)
    ragged = initial_iteration(spec, labels, is_divided=not (indices and dialect.gathers_on_one_core))
    if form is not None:
        ragged = with_whole_windows(spec, form, ragged)
    check_cores(ragged, options.target, location)
    views = _read_views(spec, labels, ragged, indices, location)
    if form is WindowForm.DEPTHWISE:
        views = (views[0], weights_view(views[1], ragged), *views[2:])
    check_formats(spec, indices, options.dialect, location, is_exact=options.is_exact)
    reference_view = views[0 if spec.is_reduction or spec.op in MATMULS else -1]
    reference = ReferenceDims(reference_view.dim_order, reference_view.stick_dim)
    ragged = _with_synthetic_dims(spec, ragged, reference, location)
    unit = unit_dims(spec, views, indices, reference.dim_order, location) if dialect.adds_unit_dims else UnitDims()
    ragged = ragged.with_unit_dims(unit.labels)
    views = _with_rows(views, unit)
    whole = pad_contraction(spec, views, ragged)
    dims_context = DimsContext(reference, whole, unit, options.is_exact)
    dims = tuple(
        index_dims(view, unit, _argument_at(location, position))
        if position in indices
        else operand_dims(spec, position, view, dims_context, _argument_at(location, position))
        for position, view in enumerate(views)
    )
    label_of, label_infos = assign_labels(spec, views, dims, indices, location)
    iteration = pad_sticks(spec, views, dims, whole)
    check_even(iteration, location)
    check_combination(spec, dims, iteration, location)
    related = index_of | {index: value for value, index in index_of.items()}
    found = _Operation(
        spec, options, labels, views, dims, iteration, (), label_infos, label_of, related, SizeRule(dialect, unit),
        owned_spaces(spec, labels, iteration, location, is_exact=options.is_exact),
    )  # fmt: skip
    if options.is_exact and dialect.reproduces_mistakes:
        return _counted_by_position(found, whole, location)
    return _with_footprints(found, ragged, location)


def _counted_by_position(found: _Operation, whole: IterationSpace, location: Location | None) -> _Operation:
    """Return an operation whose operands lie where upstream counts them; ``whole``: its space before sticks are rounded
    up, but for what a product contracts.
    """
    form = window_form(found.spec)
    counted = Positional(found.spec.op, form, found.sizes.unit, whole, found.iteration)
    footprints = tuple(counted.footprint(view, own) for view, own in zip(found.views, found.dims, strict=True))
    found = replace(found, footprints=footprints)
    if form is None:
        return found
    return _with_window(found, plan_window(found.spec, form, found.iteration, location, is_exact=True))


def _with_footprints(found: _Operation, ragged: IterationSpace, location: Location | None) -> _Operation:
    """Return an operation with what each operand covers; ``ragged``: its space before sticks are rounded up."""
    spec, options, form = found.spec, found.options, window_form(found.spec)
    views, dims, iteration = found.views, found.dims, found.iteration
    window = None
    if form is not None:
        window = plan_window(spec, form, iteration, location, is_exact=False)
        window = with_input_extents(spec, views[0], window, iteration, location)
    if not options.is_exact:
        check_pairs(spec, dims, location)
        check_top(spec, dims, iteration, options.target, location)
    context = FootprintContext(
        ragged,
        iteration,
        options.target,
        spec.op == RESTICKIFY,
        _stick_sizes(views),
    )
    own = [replace(context, iteration=item.space) for item in found.owned] or [context] * len(views)
    footprints = tuple(
        FootprintReader(
            view,
            dims[position],
            replace(own[position], strides=_window_strides(window, position)),
            _argument_at(location, position),
        ).read()
        for position, view in enumerate(views)
    )
    found = replace(found, footprints=footprints)
    return found if window is None else _with_window(found, window)


def _window_strides(window: WindowPlan | None, position: int) -> Mapping[str, int]:
    """Return the dims of an operand that a window slides along, with how far a step of the output moves there.

    Where the window dims stand beside their axes, an entry of an axis is a whole step.
    """
    if window is None or position != 0:
        return {}
    is_split = window.form is not WindowForm.DEPTHWISE
    axes = {axis: 1 if is_split else sizes.stride for axis, sizes in window.sizes.items()}
    return axes | {sizes.window_dim: 1 for sizes in window.sizes.values()}


def _with_window(operation: _Operation, window: WindowPlan) -> _Operation:
    """Return the operation as files show it: without the window dims of operands that do not list them."""
    dims = tuple(window.listed(item, label) for item, label in zip(operation.dims, operation.label_of, strict=True))
    footprints = tuple(
        replace(item, back_gap={dim: gap for dim, gap in item.back_gap.items() if dim in own.dim_order})
        for item, own in zip(operation.footprints, dims, strict=True)
    )
    labels = {name: window.listed_label(name, info) for name, info in operation.labels.items()}
    return replace(operation, dims=dims, footprints=footprints, labels=labels, window=window)


def _argument_at(location: Location | None, position: int) -> Location | None:
    return None if location is None else location.child("args", position)


def _index_of_values(spec: OpSpec, dialect: Dialect, location: Location | None) -> dict[int, int]:
    """Return, for each operand whose rows an index tensor names, the position of the index tensor."""
    positions = {argument.name: position for position, argument in enumerate(spec.args) if argument.name is not None}
    found: dict[int, int] = {}
    for value, argument in enumerate(spec.args):
        for name in (name for coordinate in argument.device_coordinates for name in coordinate.indirect_names):
            found[value] = check_gather(spec, value, positions.get(name), dialect, location)
    return found


def _read_views(
    spec: OpSpec, labels: Mapping[str, str], ragged: IterationSpace, indices: frozenset[int], location: Location | None
) -> tuple[ArgumentView, ...]:
    # Index tensors first: the rows of a value tensor stand for their dims.
    plain = CoordinateReader(labels, ragged.sizes, {})
    index_views = {
        position: plain.read(spec.args[position], _argument_at(location, position)) for position in sorted(indices)
    }
    names = {spec.args[position].name or "": view.dim_order for position, view in index_views.items()}
    reader = CoordinateReader(labels, ragged.sizes, names)
    return tuple(
        index_views.get(position) or reader.read(argument, _argument_at(location, position))
        for position, argument in enumerate(spec.args)
    )


def _with_synthetic_dims(
    spec: OpSpec, iteration: IterationSpace, reference: ReferenceDims, location: Location | None
) -> IterationSpace:
    if needs_cast_row(spec, reference.stick_dim, reference.dim_order):
        return iteration.with_cast_row()
    form = window_form(spec)
    if reference.stick_dim is None and form in {WindowForm.POOL, WindowForm.DEPTHWISE}:
        return with_channels(spec, form, iteration, location)
    if reference.stick_dim is None:
        lanes = elements_per_stick(spec.args[0], _argument_at(location, 0))
        return iteration.with_missing_stick(next_label(spec, "a stick dim", location), lanes)
    return iteration


def _with_rows(views: Sequence[ArgumentView], unit: UnitDims) -> tuple[ArgumentView, ...]:
    """Return the views with the row dim, where there is one, on the axes of tables that have no dim there."""
    return tuple(view.with_row(unit.row) if unit.row and view.index_name else view for view in views)


def _stick_sizes(views: Sequence[ArgumentView]) -> dict[str, int]:
    return {view.stick_dim: view.elements_per_stick for view in views if view.stick_dim is not None}


def _data_format(operation: _Operation, position: int) -> DeviceFormat:
    if operation.dims[position].is_index:
        return DeviceFormat.SENUINT32
    data_format = operation.spec.args[position].device_dtype
    if operation.spec.op == IDENTITY and data_format is DeviceFormat.IEEE_INT32:
        return DeviceFormat.IEEE_FP32
    return data_format


def _op_func_name(spec: OpSpec, output: OperandDims, location: Location | None) -> str:
    is_plain = not spec.is_reduction or spec.op in MATMULS | TOPKS or window_form(spec) is not None
    if is_plain or ONE_LANE_PER_STICK in output.scales.values():
        return spec.op
    outer_name = device_operation(spec.op).outer_name
    if outer_name is None:
        at = None if location is None else location.child("op")
        fact = f'operation "{spec.op}" folds no other dim than that of the sticks'
        raise refuse("SPY0530", fact, at, hint="fold the dim of the sticks, or use a reduction such as sum")
    return outer_name


@dataclass(frozen=True, slots=True)
class _Starts:
    """What the starts of an operation's operands follow from.

    ``slices``: of each core.  ``shared_dynamic``: dynamic dims that cores share; upstream places no operand that
    extends along one (Q18).
    """

    binder: StartBinder
    slices: Sequence[Mapping[str, int]]
    shared_dynamic: frozenset[str]


def _operand(
    operation: _Operation,
    position: int,
    data_format: DeviceFormat,
    starts_of: _Starts,
) -> Operand:
    argument, dims, view = operation.spec.args[position], operation.dims[position], operation.views[position]
    partner = operation.related.get(position)
    is_value = partner is not None and not dims.is_index
    index_view = operation.views[partner] if is_value and partner is not None else None
    footprint = operation.footprints[position]
    is_lx = argument.allocation.kind is AllocationKind.LX
    if is_lx:
        starts = (argument.allocation.start_bytes + footprint.offset_bytes,) * len(starts_of.slices)
    else:
        is_unplaced = any(dims.scales.get(dim) == EXTENDS for dim in starts_of.shared_dynamic)
        offsets = _core_offsets(footprint, starts_of.slices)
        starts = starts_of.binder.bind(position, argument, offsets, is_unplaced=is_unplaced)
    return Operand(
        label=operation.label_of[position],
        component=Component.LX if is_lx else Component.HBM,
        layout_dim_order=dims.dim_order,
        scales=dims.scales,
        max_dim_sizes=max_dim_sizes(dims, view, index_view, operation.sizes),
        start_addresses=starts,
        is_symbolic=starts_of.binder.is_symbolic and not is_lx,
        back_gap=footprint.back_gap,
        data_format=data_format,
        word_length=view.word_bytes,
        indirection=Indirection.INDEX if dims.is_index else Indirection.VALUE if is_value else Indirection.NONE,
        related_operand=partner,
        distribution=distribution_of(operation.owned[position], dims, view) if operation.owned else None,
        padding={}
        if operation.window is None
        else operation.window.padding_of(position, len(operation.dims), dims.dim_order),
        is_interleaved=_is_interleaved(operation, position),
    )


def _is_interleaved(operation: _Operation, position: int) -> bool:
    """Whether the halves of an operand's sticks alternate: as 8-bit products take it, and casts leave it.

    Upstream's own casts do not state it; without ``is_exact`` the file does.
    """
    spec, options = operation.spec, operation.options
    if not options.dialect.interleaves_fp8:
        return False
    is_left = spec.args[position].element_arrangement == "QFP8CH"
    if spec.op in FP8_PRODUCTS:
        return position == 0 and (options.is_exact or is_left)
    return is_left and not options.is_exact and spec.op in FP8_CASTS


def _core_offsets(footprint: Footprint | PositionalFootprint, slices: Sequence[Mapping[str, int]]) -> list[int]:
    if isinstance(footprint, PositionalFootprint):
        return [footprint.offset_of(entry) for entry in slices]
    steps = tuple(footprint.slice_bytes.items())
    if len(steps) == 1:
        ((dim, step),) = steps
        return [footprint.offset_bytes + entry[dim] * step for entry in slices]
    return [footprint.offset_bytes + sum(entry[dim] * step for dim, step in steps) for entry in slices]


def _compute(operation: _Operation, op_func_name: str, op_format: DeviceFormat) -> ComputeOp:
    spec, count = operation.spec, len(operation.spec.args)
    indices = tuple(position for position in range(count) if operation.dims[position].is_index)
    # torch-spyre lists the output of a reduction among its inputs; readers drop it there.
    known, form = DEVICE_OPERATIONS.get(spec.op), window_form(spec)
    if spec.op in TOPKS or form is WindowForm.POOL:
        inputs = 1
    elif spec.is_reduction and spec.op not in MATMULS and form is not WindowForm.CONVOLUTION:
        inputs = count
    else:
        inputs = count - 1
    return ComputeOp(
        execution_unit="sfp" if known is None else known.unit,
        op_func_name=op_func_name,
        data_format=op_format,
        inputs=tuple(position for position in range(inputs) if position not in indices),
        outputs=(count - 1,),
        indirect_access_indices=indices,
    )
