"""Reads one operand of a SuperDSC: its allocate node joined with its entry in ``labeledDs_``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from spyrec.bundle.dialects import Dialect
from spyrec.bundle.json_cursor import CONTRADICTORY, MALFORMED, NOT_UNDERSTOOD, Cursor
from spyrec.bundle.superdsc import Component, Indirection, LabelInfo, Operand
from spyrec.bundle.superdsc_distribution import DistributionReader
from spyrec.bundle.superdsc_windows import read_padding
from spyrec.bundle.superdsc_writer import CORE_FOLD_KINDS, INTERLEAVED
from spyrec.dataclass import dataclass
from spyrec.hardware.dtypes import DeviceFormat

_NO_LIMIT = -1
"""``maxDimSizes_`` where the file leaves it out."""

Member = TypeVar("Member", Component, Indirection)


def read_format(cursor: Cursor) -> DeviceFormat:
    """Read the DeepTools name of a device format."""
    name = cursor.text()
    if name not in DeviceFormat.__members__:
        cursor.refuse(MALFORMED, f'"{name[:80]}" is no data format')
    return DeviceFormat[name]


@dataclass(frozen=True, slots=True)
class OperandReader:
    """What every operand of one SuperDSC shares: its dialect, cores and labels, and the index of each node by name.

    ``distributions``: reads who owns an operand, where the operation is one that asks for it.  ``has_window``: whether
    the operation slides one, so that operands may be padded.
    """

    dialect: Dialect
    core_ids: tuple[int, ...]
    labels: Mapping[str, LabelInfo]
    nodes: Mapping[str, int]
    distributions: DistributionReader | None
    has_window: bool

    def read(self, node: Cursor, labeled: Cursor) -> Operand:
        """Read one operand; SPY0620 malformed, SPY0621 not understood, SPY0622 contradictory."""
        kind = node.member("nodeType_")
        if kind.text() != "allocate":
            kind.refuse(NOT_UNDERSTOOD, f'node type "{kind.text()[:80]}"; only "allocate" is understood (rule V14)')
        label_name = self._label_name(labeled.member("dsType_"))
        label = self.labels[label_name]
        component = _choice(node.member("component_"), Component)
        starts, is_symbolic = self._starts(node)
        order = _own_order(node.member("layoutDimOrder_"), label)
        return Operand(
            label=label_name,
            component=component,
            layout_dim_order=order,
            scales=_per_dim(labeled.member("scale_"), label.layout_dim_order),  # the label's, not the own
            max_dim_sizes=self._max_dim_sizes(node, label, order),
            start_addresses=starts,
            is_symbolic=is_symbolic,
            back_gap=self._back_gap(node.optional("backGapCore_"), component, label),
            data_format=read_format(labeled.member("dataFormat_")),
            word_length=labeled.member("wordLength").integer(1, 128),
            indirection=_indirection(node),
            related_operand=self._related(node.optional("relatedIndirectAccessAlloc_")),
            distribution=None if self.distributions is None else self.distributions.read(node, label),
            padding=read_padding(node, has_window=self.has_window),
            is_interleaved=_is_interleaved(node, label),
        )

    def _max_dim_sizes(self, node: Cursor, label: LabelInfo, own: tuple[str, ...]) -> dict[str, int]:
        order = own if self.dialect.has_own_size_order else label.layout_dim_order
        cursor = node.optional("maxDimSizes_")
        return dict.fromkeys(order, _NO_LIMIT) if cursor is None else _per_dim(cursor, order)

    def _label_name(self, cursor: Cursor) -> str:
        if cursor.text() not in self.labels:
            cursor.refuse(CONTRADICTORY, f'label "{cursor.text()[:80]}" is not in primaryDsInfo_ {list(self.labels)}')
        return cursor.text()

    def _related(self, cursor: Cursor | None) -> int | None:
        if cursor is None:
            return None
        if cursor.text() not in self.nodes:
            cursor.refuse(CONTRADICTORY, f'allocate node "{cursor.text()[:80]}" does not exist')
        return self.nodes[cursor.text()]

    def _starts(self, node: Cursor) -> tuple[tuple[int, ...], bool]:
        """Return the start of each core and whether the starts are symbol ids."""
        folds = node.member("startAddressCoreCorelet_")
        corelets = self._corelets(folds)
        data = folds.member("data_")
        expected = {f"[{core}, {corelet}, 0]" for core in self.core_ids for corelet in range(corelets)}
        unexpected = sorted({key for key, _ in data.entries()} - expected)
        if unexpected:
            data.refuse(CONTRADICTORY, f'start "{unexpected[0][:40]}" is of no core in coreIdsUsed_')
        starts = tuple(data.member(f"[{core}, 0, 0]").decimal() for core in self.core_ids)
        if corelets == 2:
            self._require_equal_corelets(data, starts)
        return starts, _is_symbolic(node, data, starts)

    def _require_equal_corelets(self, data: Cursor, starts: tuple[int, ...]) -> None:
        for core, start in zip(self.core_ids, starts, strict=True):
            other = data.optional(f"[{core}, 1, 0]")
            if other is not None and other.decimal() != start:
                fact = f"corelet 1 of core {core} starts at {other.decimal()}, corelet 0 at {start}: distinct corelets"
                other.refuse(NOT_UNDERSTOOD, f"{fact} are not understood (rule V14)")

    def _corelets(self, folds: Cursor) -> int:
        kinds = [member.only_member("fold function")[0] for member in folds.member("dim_prop_func").items()]
        if kinds != list(CORE_FOLD_KINDS):
            fact = f"start address folds {kinds} where {list(CORE_FOLD_KINDS)} are understood (rule V14)"
            folds.member("dim_prop_func").refuse(NOT_UNDERSTOOD, fact)
        attributes = folds.member("dim_prop_attr")
        named = [(item.member("label_").text(), item.member("factor_").integer(1)) for item in attributes.items()]
        if [name for name, _ in named] != ["core", "corelet", "time"]:
            attributes.refuse(
                NOT_UNDERSTOOD, f"folds over {named} where core, corelet and time are understood (rule V14)"
            )
        cores, corelets, times = (factor for _, factor in named)
        if cores != len(self.core_ids):
            attributes.refuse(CONTRADICTORY, f"core factor {cores} with {len(self.core_ids)} cores")
        if corelets > 2 or times != 1:
            fact = f"corelet factor {corelets}, time factor {times}: only 1 or 2 and 1 are understood (rule V14)"
            attributes.refuse(NOT_UNDERSTOOD, fact)
        return corelets

    def _back_gap(self, cursor: Cursor | None, component: Component, label: LabelInfo) -> dict[str, int]:
        gaps: dict[str, int] = {}
        keys = {"-1"} if component is Component.HBM else {str(core) for core in self.core_ids}
        for dim, by_core in () if cursor is None else cursor.entries():
            if dim not in label.layout_dim_order:
                order = list(label.layout_dim_order)
                by_core.refuse(CONTRADICTORY, f'gap in dim "{dim[:80]}" outside {order} (rule V11)')
            given = dict(by_core.entries())
            if given.keys() != keys:
                by_core.refuse(CONTRADICTORY, f"gaps of {sorted(given)[:40]} where {sorted(keys)} are due")
            values = {member.decimal() for member in given.values()}
            if len(values) != 1:
                by_core.refuse(NOT_UNDERSTOOD, f"gaps {sorted(values)} that differ by core (rule V14)")
            gaps[dim] = values.pop()
        return gaps


def _choice(cursor: Cursor, choices: type[Member]) -> Member:
    known = {choice.value: choice for choice in choices}
    if cursor.text() not in known:
        cursor.refuse(NOT_UNDERSTOOD, f'"{cursor.text()[:80]}" is none of {list(known)}')
    return known[cursor.text()]


def _indirection(node: Cursor) -> Indirection:
    if (kind := node.optional("indexTensorType_")) is not None and kind.text() != "index":
        kind.refuse(NOT_UNDERSTOOD, f'index tensor of type "{kind.text()[:80]}" (rule V14)')
    cursor = node.optional("indirectAllocType_")
    return Indirection.NONE if cursor is None else _choice(cursor, Indirection)


def _own_order(cursor: Cursor, label: LabelInfo) -> tuple[str, ...]:
    dims = cursor.texts()
    if set(dims) != set(label.layout_dim_order):
        cursor.refuse(CONTRADICTORY, f"dims {list(dims)}, the label has {list(label.layout_dim_order)} (rule V11)")
    return dims


def _is_interleaved(node: Cursor, label: LabelInfo) -> bool:
    """Whether the folds of the stick dim state that halves of a stick alternate every 8 elements.

    Folds are no more than compared elsewhere; these alone say what nothing else in the file does.
    """
    coordinates = node.optional("coordinates_")
    info = None if coordinates is None else coordinates.optional("coordInfo")
    stick = None if info is None else info.optional(label.stick_dims[0])
    count = None if stick is None else stick.optional("elemArr")
    if stick is None or count is None or count.integer() <= 2:
        return False
    folds = stick.member("folds")
    functions = tuple(folds.member("dim_prop_func").items())[-len(INTERLEAVED) :]
    factors = tuple(folds.member("dim_prop_attr").items())[-len(INTERLEAVED) :]
    found = [
        (function.member("Affine").member("alpha_").integer(), attribute.member("factor_").integer())
        for function, attribute in zip(functions, factors)
    ]
    wanted = [(alpha, own if factor is None else factor) for (alpha, factor), (_, own) in zip(INTERLEAVED, found)]
    if count.integer() != len(INTERLEAVED) or found != wanted:
        count.refuse(NOT_UNDERSTOOD, f"the order {found} of elements inside a stick is not understood (rule V14)")
    return True


def _per_dim(cursor: Cursor, order: tuple[str, ...]) -> dict[str, int]:
    """Return the numbers of a list that stands in this order, by dim."""
    numbers = cursor.integers()
    if len(numbers) != len(order):
        cursor.refuse(CONTRADICTORY, f"{len(numbers)} numbers for dims {list(order)} (rule V11)")
    return dict(zip(order, numbers, strict=True))


def _is_symbolic(node: Cursor, data: Cursor, starts: tuple[int, ...]) -> bool:
    flag = node.optional("isStartAddrSymbolic_")
    negative = sum(start < 0 for start in starts)
    if negative and negative != len(starts):
        data.refuse(CONTRADICTORY, "some starts are symbol ids (negative) and some are addresses (rule V9)")
    if flag is not None and flag.flag() and not negative:
        flag.refuse(CONTRADICTORY, "the start is marked symbolic, but no start is a negative symbol id (rule V9)")
    return bool(negative)
