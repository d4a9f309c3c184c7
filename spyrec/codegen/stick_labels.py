"""Layout labels: the entries of ``primaryDsInfo_`` and which operand uses which."""

from __future__ import annotations

from collections.abc import Sequence

from spyrec.bundle.superdsc import PAIRED_STICK, LabelInfo
from spyrec.codegen.coordinates import ArgumentView
from spyrec.codegen.operand_dims import OperandDims
from spyrec.codegen.opspec import OpSpec
from spyrec.device_ops import MATMULS, window_of
from spyrec.device_ops.record import WindowForm
from spyrec.diagnostics import Location, refuse

_INDEX_LABEL = "KERNEL_IDX"
_MATMUL_ORDER = ("INPUT", "KERNEL", "OUTPUT", _INDEX_LABEL)
_OTHER_ORDER = ("OUTPUT", "KERNEL", "INPUT", _INDEX_LABEL)
_ORDER_OF_WINDOW: dict[WindowForm | None, tuple[str, ...]] = {
    WindowForm.CONVOLUTION: _MATMUL_ORDER,
    WindowForm.DEPTHWISE: ("OUTPUT", "INPUT", "KERNEL", _INDEX_LABEL),
}


def assign_labels(
    spec: OpSpec,
    views: Sequence[ArgumentView],
    dims: Sequence[OperandDims],
    indices: frozenset[int],
    location: Location | None,
) -> tuple[tuple[str, ...], dict[str, LabelInfo]]:
    """Return the label of each operand, and the labels in order of first use.

    Operands share a label when stick dims, set of dims and stick sizes agree; the first one's dim order is the label's.
    In a gather, index tensors have a label of their own and all others share one.  Errors: SPY0514.
    """
    names = _ORDER_OF_WINDOW.get(window_of(spec.op), _MATMUL_ORDER if spec.op in MATMULS else _OTHER_ORDER)
    labels: dict[str, LabelInfo] = {}
    chosen: list[str] = []
    for position, operand in enumerate(dims):
        sizes = PAIRED_STICK if operand.has_pairs else (views[position].elements_per_stick,)
        info = LabelInfo(operand.dim_order, operand.stick_dims, sizes)
        if indices:
            name = _INDEX_LABEL if position in indices else _OTHER_ORDER[0]
            _check_shared(labels.get(name), info, position, location)
        else:
            name = next((name for name, other in labels.items() if _agree(other, info)), None) or _next_name(
                names, len(labels), location
            )
        labels.setdefault(name, info)
        chosen.append(name)
    return tuple(chosen), labels


def _agree(one: LabelInfo, other: LabelInfo) -> bool:
    return (
        one.stick_dims == other.stick_dims
        and one.stick_sizes == other.stick_sizes
        and sorted(one.layout_dim_order) == sorted(other.layout_dim_order)
    )


def _check_shared(label: LabelInfo | None, info: LabelInfo, position: int, location: Location | None) -> None:
    if label is not None and not _agree(label, info):
        raise refuse(
            "SPY0514",
            f"operand {position} of a gather has {_shown(info)}, an earlier operand {_shown(label)}; all of them share "
            "one layout label",
            None if location is None else location.child("args", position),
        )


def _shown(label: LabelInfo) -> str:
    return f'sticks of {label.stick_size} along "{label.stick_dim}" over ({", ".join(label.layout_dim_order)})'


def _next_name(names: Sequence[str], used: int, location: Location | None) -> str:
    if used == len(names):
        raise refuse(
            "SPY0514",
            f"the operands have more than {len(names)} distinct layouts, a SuperDSC has {len(names)} labels",
            location,
        )
    return names[used]
