"""A kernel in device form: its refined variables, each operand's device dims, and the rules of its op class.

``kernel_form`` is asked by ``assign-layouts`` (may this operand stand so?) and by code generation (what is written).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from functools import lru_cache

from spyrec.dataclass import dataclass
from spyrec.device_ops.record import WindowForm
from spyrec.ir.access import Access
from spyrec.ir.device_access import (
    DeviceAccess,
    DeviceDim,
    Inexpressible,
    Movement,
    Variable,
    VariablePart,
    cut_points,
    express,
    refine,
)
from spyrec.ir.device_layout import BufferLayout
from spyrec.ir.remembered_hash import RemembersHash, remembers_hash
from spyrec.ir.sliding import Window, standing

POINTWISE_LABELS = 8
"""Iteration dims of a SuperDSC that is no contraction (its label list has eight names)."""

CONTRACTION_LABELS = 7
"""Iteration dims of a contraction (its label list has seven names)."""

_WINDOW_LABELS = {WindowForm.POOL: 6, WindowForm.CONVOLUTION: 7, WindowForm.DEPTHWISE: 6}
"""Iteration dims of an operation that slides a window: each has a part in it."""


class Rule(Enum):
    """How the sticks of a kernel's operands hang together."""

    __hash__ = object.__hash__  # a member is one object, and a key of many tables

    SAME_STICK = "same stick"
    """Every operand has the kernel's lane variable in its sticks, or does not depend on it and is sparse."""
    REDUCTION = "reduction"
    """As above; the output lacks the reduced dim."""
    CONTRACTION = "contraction"
    """First operand sticked on K, second and output on N."""
    RESTICKIFY = "restickify"
    """One input and the output, each with lanes of its own."""
    CAST = "cast"
    """As SAME_STICK, with two element widths."""
    COPY = "copy"
    """A copy that becomes SAME_STICK or RESTICKIFY, whichever its layouts ask for."""
    STATISTICS = "statistics"
    """exx2 and layernormscale: stick reduction into two lanes, then sparse to sparse."""
    WINDOW = "window"
    """A window slides over the first operand; channels lie in the sticks of all operands."""


OUTPUT = -1
"""The role of the output among operands."""


@dataclass(frozen=True, slots=True)
class OperandUse:
    """One operand to be checked: its role (input index or ``OUTPUT``), access, layout and host extents.

    ``movement``: how the access moves along the loops around the kernel.
    """

    role: int
    access: Access
    layout: BufferLayout
    shape: tuple[int, ...]
    movement: Movement = ()


@remembers_hash
@dataclass(frozen=True, slots=True)
class KernelForm(RemembersHash):
    """Refined variables and operands; ``unit_lane`` says that a lane variable of extent 1 has to be added."""

    variables: tuple[Variable, ...]
    operands: tuple[DeviceAccess, ...]
    unit_lane: bool = False


@dataclass(frozen=True, slots=True)
class KernelShape:
    """What the rules need to know of a kernel: its rule, extents and reduced iteration dims.

    ``is_in_place``: it reads the buffer that it writes, element by element.  ``window``: what it slides.
    ``folds_sticks``: of a reduction, whether it may fold the dim in the sticks.
    """

    rule: Rule
    extents: tuple[int, ...]
    reduced: tuple[int, ...]
    is_in_place: bool = False
    window: Window | None = None
    folds_sticks: bool = True

    def slides_over(self, role: int) -> bool:
        """Whether its window slides over the operand of this role."""
        return self.window is not None and role == 0


def kernel_form(shape: KernelShape, operands: Sequence[OperandUse]) -> KernelForm | Inexpressible:
    """Return the device form of a kernel with these operands (the output last), or why it has none."""
    return _kernel_form(shape, tuple(operands))


@lru_cache(maxsize=1 << 14)
def _kernel_form(shape: KernelShape, operands: tuple[OperandUse, ...]) -> KernelForm | Inexpressible:
    cuts: set[tuple[int, int]] = set()
    for operand in operands:
        points = cut_points(_standing(shape, operand), operand.layout)
        if isinstance(points, Inexpressible):
            return points
        cuts |= points
    variables = refine(shape.extents, frozenset(cuts))
    if isinstance(variables, Inexpressible):
        return variables
    if shape.window is not None:
        variables = _with_axes(shape.window, variables)
        if len({variable.dim for variable in variables}) < len(variables):
            return Inexpressible("a dim of an operation that slides a window is cut into several")
    forms: list[DeviceAccess] = []
    for operand in operands:
        slides = shape.window.slides if shape.window is not None and shape.slides_over(operand.role) else ()
        form = express(_standing(shape, operand), operand.layout, variables, operand.movement, slides)
        if isinstance(form, Inexpressible):
            return form
        forms.append(form)
    assert operands[-1].role == OUTPUT
    broken = _store_breach(shape, operands[-1], forms[-1], variables)
    broken = broken or _rule_breach(shape, operands, forms, variables)
    if broken is not None:
        return broken
    form = KernelForm(variables, tuple(forms), _needs_unit_lane(shape, forms, variables))
    return _label_breach(shape, form) or form


def _standing(shape: KernelShape, operand: OperandUse) -> Access:
    """Return the access of an operand without what a window adds to it."""
    if shape.window is None or not shape.slides_over(operand.role):
        return operand.access
    return standing(operand.access, shape.window.slides)


def _with_axes(window: Window, variables: Sequence[Variable]) -> tuple[Variable, ...]:
    """Return the variables with one for each dim that a file lists of a window, of extent 1 too."""
    missing = window.named_dims - {variable.dim for variable in variables}
    added = (Variable(dim, 1, 1) for dim in missing)
    return tuple(sorted((*variables, *added), key=lambda variable: (variable.dim, -variable.divisor)))


def synthetic_count(forms: Sequence[DeviceAccess]) -> int:
    """Return how many size-1 variables the operands need for dims that stand at one position."""
    return max((sum(stands_at_one_position(dim) for dim in form.dims) for form in forms), default=0)


def stands_at_one_position(dim: DeviceDim) -> bool:
    """Whether a device dim of more than one position is read or written at one of them only."""
    return dim.variable is None and dim.extent > 1 and dim.part is not VariablePart.LANE


def _label_breach(shape: KernelShape, form: KernelForm) -> Inexpressible | None:
    count = len(form.variables) + synthetic_count(form.operands) + form.unit_lane + _labels_of_lanes(shape, form)
    limit = CONTRACTION_LABELS if shape.rule is Rule.CONTRACTION else POINTWISE_LABELS
    if shape.window is not None:
        limit = _WINDOW_LABELS[shape.window.form]
    if count > limit:
        return Inexpressible(f"{count} iteration dims exceed the {limit} labels of a SuperDSC")
    return None


def _labels_of_lanes(shape: KernelShape, form: KernelForm) -> int:
    """Return the labels lost where nothing lies in sticks: code generation names the lanes by the label after next."""
    is_sparse = not form.unit_lane and all(operand.lane is None for operand in form.operands)
    return 2 if is_sparse and shape.rule is not Rule.CONTRACTION else 0


def _store_breach(
    shape: KernelShape, output: OperandUse, form: DeviceAccess, variables: Sequence[Variable]
) -> Inexpressible | None:
    """A store into a window that ends inside a stick would overwrite its neighbour's lanes.

    Without a lane variable the device still computes, and stores, every lane of the stick.
    """
    if output.layout.stick_dim is None or shape.rule is Rule.STATISTICS:
        return None
    size = 1 if form.lane is None else variables[form.lane].size
    if size % form.lane_extent == 0:
        return None
    coordinate = output.access.coordinates[output.layout.stick_dim]
    if len(coordinate.terms) > 1 or coordinate.offset + size != output.shape[output.layout.stick_dim]:
        return Inexpressible(f"a store of {size} lanes would overwrite the rest of its last stick")
    return None


def _rule_breach(
    shape: KernelShape, operands: Sequence[OperandUse], forms: Sequence[DeviceAccess], variables: Sequence[Variable]
) -> Inexpressible | None:
    """Return which rule of the op class the operands break, ``None`` where they keep all."""
    match shape.rule:
        case Rule.SAME_STICK | Rule.REDUCTION:
            return _same_stick_breach(shape, operands, forms, variables)
        case Rule.CAST:
            return _same_stick_breach(shape, operands, forms, variables) or _cast_breach(forms, variables)
        case Rule.CONTRACTION:
            return _contraction_breach(shape, operands, forms, variables)
        case Rule.RESTICKIFY:
            return _restickify_breach(forms, variables)
        case Rule.COPY:
            raise AssertionError("assign-layouts turns copies into one of two kinds")
        case Rule.STATISTICS:
            return _statistics_breach(shape, operands, forms, variables)
        case Rule.WINDOW:
            return _window_breach(shape, operands, forms, variables)


def _needs_unit_lane(shape: KernelShape, forms: Sequence[DeviceAccess], variables: Sequence[Variable]) -> bool:
    """Whether the op class needs a lane variable where an operand has none."""
    match shape.rule:
        case Rule.SAME_STICK:
            return not shape.is_in_place and _is_fill_of_one_lane(forms)
        case Rule.CAST:
            return forms[-1].lane is None
        case Rule.CONTRACTION:
            return all(variable.dim != _columns(shape) for variable in variables)
        case Rule.RESTICKIFY:
            return any(form.lane is None for form in forms)
        case Rule.REDUCTION | Rule.STATISTICS | Rule.COPY | Rule.WINDOW:
            return False


def _is_fill_of_one_lane(forms: Sequence[DeviceAccess]) -> bool:
    """Whether one element fills one lane of every stick: with a lane variable of its own the store reaches all lanes.

    The zero rows of a padded contraction need that: they have to be zero in all columns, padding included.  Where the
    output has neighbours in its sticks, the store was refused.
    """
    return forms[-1].lane is None and len(forms) > 1 and not any(form.variables for form in forms[:-1])


def _reduced_variable(shape: KernelShape, variables: Sequence[Variable]) -> int | Inexpressible | None:
    """Return the variable of the reduced dim, ``None`` where it has one element or the kernel reduces nothing."""
    found = [index for index, variable in enumerate(variables) if variable.dim in shape.reduced]
    if len(found) > 1:
        return Inexpressible("the reduced dim is cut into several")
    return next(iter(found), None)


def _same_stick_breach(
    shape: KernelShape, operands: Sequence[OperandUse], forms: Sequence[DeviceAccess], variables: Sequence[Variable]
) -> Inexpressible | None:
    lanes = {form.lane for form in forms if form.lane is not None}
    if len(lanes) > 1:
        return Inexpressible("operands have different dims in their sticks")
    lane = next(iter(lanes), None)
    reduced = _reduced_variable(shape, variables)
    if isinstance(reduced, Inexpressible):
        return reduced
    if lane is not None and lane == reduced and not shape.folds_sticks:
        return Inexpressible("the operation folds no dim that lies in the sticks")
    for operand, form in zip(operands, forms, strict=True):
        if lane is not None and form.lane is None and lane in form.variables:
            return Inexpressible("the dim in the sticks of one operand is a plain dim of another")
        if operand.role == OUTPUT and lane is not None and form.lane is None and lane != reduced:
            return Inexpressible("the output does not have the dim in the sticks of its inputs")
        if operand.role != OUTPUT and shape.rule is Rule.REDUCTION and form.lane != lane:
            return Inexpressible("a reduction takes its stick dim from its input, which does not have it")
    return None


def _cast_breach(forms: Sequence[DeviceAccess], variables: Sequence[Variable]) -> Inexpressible | None:
    """Both sides of a cast cover whole sticks of the wider one (Q14 in docs/compatibility.md)."""
    widest = max(form.lane_extent for form in forms)
    for form in forms:
        for dim in form.dims:
            if dim.part is VariablePart.TILE and dim.variable is not None:
                needed = -(-variables[dim.variable].size // widest) * (widest // form.lane_extent)
                if dim.offset + needed > dim.extent:
                    return Inexpressible(f"a cast needs {needed} sticks where the layout has {dim.extent}")
                if dim.extent != needed and variables[dim.variable].size % widest:
                    return Inexpressible("a cast of a ragged stick dim reads or writes a window")
        if form.lane is None:
            tile = next((dim for dim in form.dims if dim.part is VariablePart.TILE), None)
            if tile is None or tile.offset or tile.extent != widest // form.lane_extent:
                return Inexpressible(f"a sparse cast needs {widest // form.lane_extent} sticks per element")
    return None


def _columns(shape: KernelShape) -> int:
    """Return the iteration dim of the columns of a contraction, whose iteration dims end with M, N, K."""
    return len(shape.extents) - 2


def _contraction_breach(
    shape: KernelShape, operands: Sequence[OperandUse], forms: Sequence[DeviceAccess], variables: Sequence[Variable]
) -> Inexpressible | None:
    """A sticked on K, B and C on N; K and N one variable each."""
    n_dim, k_dim = _columns(shape), len(shape.extents) - 1
    by_dim = {dim: [i for i, variable in enumerate(variables) if variable.dim == dim] for dim in (n_dim, k_dim)}
    if len(by_dim[n_dim]) > 1 or len(by_dim[k_dim]) > 1:
        return Inexpressible("the contracted dim or the columns are cut into several")
    n_variable = next(iter(by_dim[n_dim]), None)
    k_variable = next(iter(by_dim[k_dim]), None)
    for operand, form in zip(operands, forms, strict=True):
        wanted = k_variable if operand.role == 0 else n_variable
        if form.lane != wanted:
            return Inexpressible("an operand of a contraction has another dim in its sticks than it needs")
        if operand.role == 0 and n_variable in form.variables:
            return Inexpressible("the first operand of a contraction varies with the columns")
        if operand.role == 1:
            broken = _rows_breach(form, k_variable, variables, operands[0].layout.lane_extent)
            if broken is not None:
                return broken
    return None


def _rows_breach(
    form: DeviceAccess, k_variable: int | None, variables: Sequence[Variable], lanes: int
) -> Inexpressible | None:
    """The second operand has a row for every lane of the first one's last stick, zero where K has ended."""
    if k_variable is None:
        return Inexpressible("a contraction over an extent of 1 is a multiplication")
    size = variables[k_variable].size
    rows = next((dim for dim in form.dims if dim.variable == k_variable), None)
    if rows is None:
        return Inexpressible("the second operand of a contraction has one row for all of the contracted dim")
    if size % lanes and rows.extent != rows.offset + -(-size // lanes) * lanes:
        return Inexpressible(f"the contracted dim of {size} is not padded to whole sticks of {lanes}")
    return None


def _restickify_breach(forms: Sequence[DeviceAccess], variables: Sequence[Variable]) -> Inexpressible | None:
    """Lanes differ; a dim that is in one side's sticks and ragged is whole on the other (rules A3 and A4)."""
    source, target = forms
    if source.lane == target.lane:
        return Inexpressible("a restickify keeps the same dim in the sticks")
    for here, there in ((source, target), (target, source)):
        if there.lane is None:
            continue
        size = variables[there.lane].size
        dim = next((dim for dim in here.dims if dim.variable == there.lane), None)
        if dim is None:
            return Inexpressible("a restickify would also have to broadcast")
        if dim.extent != size and (size % there.lane_extent or dim.extent - size < there.lane_extent):
            return Inexpressible("a window on a dim that goes into or comes out of the sticks")
        own = next(dim for dim in there.dims if dim.variable == there.lane and dim.part is VariablePart.TILE)
        if size % there.lane_extent and own.extent != -(-size // there.lane_extent):
            return Inexpressible("a window on a ragged stick dim")
    for form in forms:
        if form.lane is None and not any(dim.part is VariablePart.TILE and dim.extent == 1 for dim in form.dims):
            return Inexpressible("one side is sparse with more than one stick per element, or stands at one lane")
    return None


def _statistics_breach(
    shape: KernelShape, operands: Sequence[OperandUse], forms: Sequence[DeviceAccess], variables: Sequence[Variable]
) -> Inexpressible | None:
    """exx2 reads the normalized dim from the sticks; its two results are neighbours in one stick."""
    reduced = _reduced_variable(shape, variables)
    if isinstance(reduced, Inexpressible):
        return reduced
    for operand, form in zip(operands, forms, strict=True):
        if (
            operand.shape[-1:] == (_STATISTICS,)
            and operand.layout.stick_dim != len(operand.shape) - 1
            and not (reduced is not None and operand.role != OUTPUT)
        ):
            return Inexpressible("mean and mean of squares have to share a stick")
        wanted = reduced if operand.role != OUTPUT else None
        if form.lane != wanted:
            return Inexpressible("the normalized dim is not in the sticks")
    return None


def _window_breach(
    shape: KernelShape, operands: Sequence[OperandUse], forms: Sequence[DeviceAccess], variables: Sequence[Variable]
) -> Inexpressible | None:
    """Channels lie in the sticks; of a convolution the summed ones in the input's, the result's in the weights'."""
    window = shape.window
    assert window is not None
    of_dim = {variable.dim: index for index, variable in enumerate(variables)}
    for operand, form in zip(operands, forms, strict=True):
        dim = window.source_channels if operand.role == 0 else window.channels
        if form.lane is None or form.lane != of_dim.get(dim):
            return Inexpressible("an operand of a window does not have the channels in its sticks")
        if any(stands_at_one_position(item) for item in form.dims):
            return Inexpressible("an operand of a window stands at one position of a dim")
        if operand.role == 1 and window.contracted is not None:
            broken = _rows_breach(form, of_dim.get(window.contracted), variables, form.lane_extent)
            if broken is not None:
                return broken
    return None


_STATISTICS = 2
"""Elements that exx2 stores in one stick."""
