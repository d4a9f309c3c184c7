"""SuperDSC to JSON: the bytes of ``sdsc_N.json``, as torch-spyre's writer puts them.

Everything that the file repeats (folds, names, memory organisation, schedules) is derived here from the data in
:class:`~spyrec.bundle.superdsc.SuperDsc`; key order and number forms follow torch-spyre's ``generate_sdsc``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

import orjson

from spyrec.bundle.data_dsc_writer import data_document
from spyrec.bundle.dsc_schedule import DscSchedule, ScheduleStep, SharedTensor
from spyrec.bundle.known_texts import WRITTEN_SUPERDSCS
from spyrec.bundle.superdsc import Component, DimFold, Distribution, Indirection, LabelInfo, Operand, SuperDsc
from spyrec.bundle.superdsc_windows import (
    PADDING_SIZES,
    axis_span,
    has_padding_first,
    is_reused,
    memory_organisation,
    padding_document,
    sizes_document,
)
from spyrec.diagnostics.json_reading import JsonValue
from spyrec.hardware.dtypes import DeviceFormat

JsonObject = dict[str, JsonValue]

EXTENDS = 1
"""Scale code: the operand extends along the dim."""

DOES_NOT_VARY = -1
"""Scale code: one entry along the dim (a broadcast input, or an output reduced over a dim that is no stick dim)."""

ONE_LANE_PER_STICK = -2
"""Scale code, stick dim only: one stick whose lane 0 holds the value."""

STAGE_DETAILS = (
    "symbolicDimInfo_", "maxSymbolicVolume_", "coreletSplit_", "rowSplit_", "peSfpSplit_", PADDING_SIZES,
)  # fmt: skip
"""Keys that end a data stage, in this order."""

CORE_FOLD_KINDS = ("Map", "Const", "Const")
"""How a start address depends on (core, corelet, time)."""

SPATIAL_FOLDS = ("core_fold", "corelet_fold", "row_fold")
"""Folds of a dim before those of its elements, outer to inner."""


def to_bytes(dsc: SuperDsc) -> bytes:
    """Return the bytes of the file: two blanks of indentation, no trailing newline."""
    assert dsc.op_func_name.isascii(), "orjson and the standard library differ on non-ASCII text"
    text = _escaped(orjson.dumps(document(dsc), option=orjson.OPT_INDENT_2))
    WRITTEN_SUPERDSCS.remember(text, dsc)
    return text


def _escaped(text: bytes) -> bytes:
    """Return JSON with what is not ASCII as escapes, in UTF-16 units, which is how the standard library writes it."""
    return text if text.isascii() else _BEYOND_ASCII.sub(_escape, text.decode()).encode()


def _escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")


def to_json(dsc: SuperDsc) -> JsonObject:
    """Return the content of the file as fresh dictionaries and lists."""
    content: JsonObject = orjson.loads(orjson.dumps(document(dsc)))
    return content


def document(dsc: SuperDsc) -> JsonObject:
    """Return the content of the file for dumping or comparing only: parts of it are shared between calls."""
    keys = _core_keys(dsc.every_core)
    cores = len(keys)
    provenance: JsonObject = {}
    if dsc.dialect.has_debug_handles:
        provenance["debug_handle_"] = None if dsc.debug_handle is None else dsc.debug_handle.document()
    return {
        f"{dsc.index}_{dsc.op_func_name}": {
            **provenance,
            "sdscFoldProps_": [_fold_property(1, "time")],
            "sdscFolds_": {
                "dim_prop_func": [_affine(1)],
                "dim_prop_attr": [_fold_property(1, "time")],
                "data_": {"[0]": "0"},
            },
            "coreFoldProp_": _fold_property(cores, "core"),
            "coreletFoldProp_": _fold_property(dsc.corelets, "corelet"),
            "numCoresUsed_": cores,
            **(_one_dsc(dsc, keys) if dsc.schedule is None else _scheduled(dsc, dsc.schedule)),
            **_symbols(dsc),
        }
    }


def _one_dsc(dsc: SuperDsc, keys: Sequence[str]) -> JsonObject:
    """Return what each core does where all run the one DSC once."""
    return {
        "coreIdToDsc_": dict.fromkeys(keys, 0),
        "numWkSlicesPerDim_": dict(dsc.work_slices),
        "coreIdToWkSlice_": dict(zip(keys, map(dict[str, JsonValue], dsc.core_work_slices), strict=True)),
        "coreIdToDscSchedule": dict.fromkeys(keys, _SCHEDULE),
        "dscs_": [{dsc.op_func_name: _design_space(dsc)}],
    }


def _scheduled(dsc: SuperDsc, schedule: DscSchedule) -> JsonObject:
    """Return what each core does where there are several DSCs, or data DSCs."""
    owners = dsc.dscs or (dsc,)
    slices = {core: own for item in owners for core, own in zip(item.core_ids, item.core_work_slices, strict=True)}
    shares: list[JsonValue] = [_share_document(item) for item in schedule.shares]
    moves: list[JsonValue] = [data_document(item) for item in schedule.data_dscs]
    operations: list[JsonValue] = list(dict.fromkeys(item.op for item in schedule.data_dscs))
    return {
        "coreIdToDsc_": {str(core): number for core, number in schedule.own_dscs.items()},
        "numWkSlicesPerDim_": dict(dsc.work_slices),
        "coreIdToWkSlice_": {str(core): dict(slices[core]) for core in schedule.core_ids if slices.get(core)},
        "coreIdToDscSchedule": {
            str(core): [_step_document(step) for step in schedule.steps[core]] for core in schedule.core_ids
        },
        "dscs_": [{item.op_func_name: _design_space(item)} for item in dsc.dscs],
        **({"datadscs_": moves, "opFuncsUsed_": operations} if moves else {}),
        **({"ldsShareInfo_": shares} if shares else {}),
    }


def _step_document(step: ScheduleStep) -> list[JsonValue]:
    runs = [-1 if number is None else number for number in (step.data_dsc, step.dsc)]
    return [*runs, int(step.waits_before), int(step.waits_after)]


def _share_document(share: SharedTensor) -> JsonObject:
    repetition = {} if share.repetition is None else {"repeatHbmLxThroImbalDim": orjson.loads(share.repetition)}
    return {"dsName_": f"Tensor{share.operand}", "sharedDscs": [list(item) for item in share.sets], **repetition}


def _symbols(dsc: SuperDsc) -> JsonObject:
    """Return what ends the file of an operation with dynamic dims: the names of their symbols."""
    if not dsc.dynamic_dims:
        return {}
    return {
        "datadscs_": [],
        "dimToSymbolMappingOpcodeCorrection_": {},
        "inputSymbolsAndTags_": {str(item.symbol_id): item.name for item in dsc.dynamic_dims.values()},
        "symbolDefinitions_": {},
    }


def operand_name(index: int) -> str:
    """Return the name of an operand in ``computeOp_``."""
    return f"Tensor{index}-idx{index}"


def node_name(index: int, operand: Operand) -> str:
    """Return the name of an operand's allocate node."""
    return f"allocate-Tensor{index}_{operand.component.value}"


_SCHEDULE: JsonValue = [[-1, 0, 0, 0]]


@lru_cache(maxsize=64)
def _core_keys(core_ids: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(str(core) for core in core_ids)


@lru_cache(maxsize=64)
def _start_keys(core_ids: tuple[int, ...], corelets: int = 1) -> tuple[str, ...]:
    return tuple(f"[{core}, {corelet}, 0]" for core in core_ids for corelet in range(corelets))


@lru_cache(maxsize=256)
def _fold_property(factor: int, label: str) -> JsonObject:
    return {"factor_": factor, "label_": label}


@lru_cache(maxsize=4096)
def _affine(alpha: int) -> JsonObject:
    return {"Affine": {"alpha_": alpha, "beta_": 0}}


@lru_cache(maxsize=64)
def _kinds(*kinds: str) -> list[JsonValue]:
    return [{kind: {}} for kind in kinds]


@lru_cache(maxsize=64)
def _core_corelet_time(cores: int, corelets: int = 1) -> list[JsonValue]:
    return [_fold_property(cores, "core"), _fold_property(corelets, "corelet"), _fold_property(1, "time")]


def _underscored(name: str, extents: Mapping[str, int]) -> JsonObject:
    return {"name_": name, **{f"{dim}_": extent for dim, extent in extents.items()}}


def _design_space(dsc: SuperDsc) -> JsonObject:
    stage = _underscored("core", dsc.core_extent) | _stage_details(dsc)
    operands, dynamic = range(len(dsc.operands)), dsc.dynamic_dims
    sizes: JsonObject = {PADDING_SIZES: sizes_document(dsc.padding_sizes)} if dsc.padding_sizes else {}
    relation: JsonObject = {"pdsRelation_": {"isPdsReuse": 1}} if is_reused(dsc) else {}
    return {
        "numCoresUsed_": len(dsc.core_ids),
        "numCoreletsUsed_": dsc.corelets,
        "coreIdsUsed_": list(dsc.core_ids),
        "N_": _underscored("n", dsc.iteration) | sizes,
        "coordinateMasking_": {
            dim: [[start, count] for start, count in ranges] for dim, ranges in dsc.coordinate_masking.items()
        },
        "maskingConstId_": dsc.masking_constant_id,
        **({"dimToSymbolMapping_": {d: [item.symbol_id] for d, item in dynamic.items()}} if dynamic else {}),
        "dataStageParam_": {"0": {"ss_": stage, "el_": stage}},
        "primaryDsInfo_": {name: _label(dsc, label) for name, label in dsc.labels.items()},
        **relation,
        "scheduleTree_": [_allocate_node(dsc, index) for index in operands],
        "labeledDs_": [_labeled(dsc, index) for index in operands],
        "constantInfo_": _constants(dsc),
        "computeOp_": [_compute(dsc)],
    }


def _stage_details(dsc: SuperDsc) -> JsonObject:
    """Return what ends a data stage, as the dialect has it."""
    if not dsc.dialect.has_stage_details:
        return {}
    details: JsonObject = {key: {} for key in STAGE_DETAILS}
    details["symbolicDimInfo_"] = {
        dim: {"maxSize_": item.max_size, "granularity_": item.granularity} for dim, item in dsc.dynamic_dims.items()
    }
    details[PADDING_SIZES] = sizes_document(dsc.stage_padding_sizes)
    return details


def _label(dsc: SuperDsc, label: LabelInfo) -> JsonObject:
    replicated: JsonObject = {"stickRepl_": [1]} if is_reused(dsc) else {}
    return {
        "layoutDimOrder_": list(label.layout_dim_order),
        "stickDimOrder_": list(label.stick_dims),
        "stickSize_": list(label.stick_sizes),
        **replicated,
    }


def _allocate_node(dsc: SuperDsc, index: int) -> JsonObject:
    operand = dsc.operands[index]
    label = dsc.labels[operand.label]
    node: JsonObject = {
        "nodeType_": "allocate",
        "name_": node_name(index, operand),
        "prev_": "",
        "ldsIdx_": index,
        "component_": operand.component.value,
    }
    padding: JsonObject = {"padding_": padding_document(operand)} if operand.padding else {}
    if has_padding_first(dsc):
        node |= padding
    if operand.is_symbolic:
        node["isStartAddrSymbolic_"] = 1
    node["layoutDimOrder_"] = list(operand.layout_dim_order)
    order = operand.layout_dim_order if dsc.dialect.has_own_size_order else label.layout_dim_order
    node["maxDimSizes_"] = [operand.max_dim_sizes[dim] for dim in order]
    node["indirectAllocType_"] = operand.indirection.value
    if operand.related_operand is not None:
        partner = operand.related_operand
        node["relatedIndirectAccessAlloc_"] = node_name(partner, dsc.operands[partner])
    if operand.indirection is Indirection.INDEX:
        node["indexTensorType_"] = "index"
    node["startAddressCoreCorelet_"] = _start_addresses(dsc.core_ids, operand)
    if not has_padding_first(dsc):
        node |= padding
    if operand.back_gap:
        node["backGapCore_"] = _back_gap(dsc.core_ids, operand)
    owned = {} if operand.distribution is None else _owned(dsc, operand.distribution)
    node["coordinates_"] = {"coordInfo": _coordinates(dsc, index), "coreIdToWkSlice_": owned}
    return node


def _owned(dsc: SuperDsc, distribution: Distribution) -> JsonObject:
    """Return who owns which slices, dims in the order of the iteration."""
    in_order = ({dim: slices[dim] for dim in dsc.iteration} for slices in distribution.core_slices)
    return dict(zip(_core_keys(dsc.core_ids), map(dict[str, JsonValue], in_order), strict=True))


def _start_addresses(core_ids: tuple[int, ...], operand: Operand) -> JsonObject:
    corelets = 1 if operand.distribution is None else operand.distribution.corelets
    keys = _start_keys(core_ids, corelets)
    starts = operand.start_addresses
    if corelets > 1:
        starts = tuple(start for start in starts for _ in range(corelets))
    return {
        "dim_prop_func": _kinds(*CORE_FOLD_KINDS),
        "dim_prop_attr": _core_corelet_time(len(core_ids), corelets),
        "data_": dict(zip(keys, map(str, starts), strict=True)),
    }


def _back_gap(core_ids: tuple[int, ...], operand: Operand) -> JsonObject:
    keys = ("-1",) if operand.component is Component.HBM else _core_keys(core_ids)
    return {dim: dict.fromkeys(keys, str(gap)) for dim, gap in operand.back_gap.items()}


def _coordinates(dsc: SuperDsc, index: int) -> JsonObject:
    operand = dsc.operands[index]
    label = dsc.labels[operand.label]
    info: dict[str, JsonObject] = {}
    for dim in label.layout_dim_order:
        if operand.distribution is not None:
            info[dim] = _own_folds(operand.distribution.folds[dim])
            continue
        scale = operand.scales[dim]
        extends = scale == EXTENDS
        extent = dsc.core_extent[dim] if extends else 1
        slices = dsc.work_slices[dim] if extends else 1
        if dim not in label.stick_dims:
            span = axis_span(dsc, index, dim)
            info[dim] = _plain_folds(extent, slices) if span is None else _axis_folds(slices, span)
        elif len(label.stick_dims) == 2 and dim == label.stick_dim and operand.data_format is DeviceFormat.SEN143_FP8:
            info[dim] = _paired_folds(extent, slices)
        elif operand.is_interleaved:
            info[dim] = _interleaved_folds(extent, slices)
        else:
            info[dim] = _stick_folds(extent, slices, label.stick_size, scale == ONE_LANE_PER_STICK)
        if dim in operand.padding:
            info[dim] = {**info[dim], "padding": operand.padding[dim].value}
    return {**info}


@lru_cache(maxsize=4096)
def _plain_folds(extent: int, slices: int) -> JsonObject:
    factors = ((slices, "core_fold"), (1, "corelet_fold"), (1, "row_fold"), (extent, "elem_arr_0"))
    return _fold_info((extent, 0, 0, 1), factors)


def _axis_folds(slices: int, span: tuple[int, int]) -> JsonObject:
    """Return the folds of an axis that a window slides along: cores begin ``span[0]`` apart, each has ``span[1]``."""
    factors = ((slices, "core_fold"), (1, "corelet_fold"), (1, "row_fold"), (span[1], "elem_arr_0"))
    return _fold_info((span[0], 0, 0, 1), factors)


@lru_cache(maxsize=4096)
def _stick_folds(extent: int, slices: int, stick_size: int, is_one_lane: bool) -> JsonObject:
    sticks = 1 if is_one_lane else extent // stick_size
    alphas = (stick_size if is_one_lane else extent, 0, 0, stick_size, 0 if is_one_lane else 1)
    cores = ((slices, "core_fold"), (1, "corelet_fold"), (1, "row_fold"))
    return _fold_info(alphas, (*cores, (sticks, "elem_arr_1"), (stick_size, "elem_arr_0")))


@lru_cache(maxsize=256)
def _own_folds(folds: tuple[DimFold, ...]) -> JsonObject:
    elements = (f"elem_arr_{number}" for number in reversed(range(len(folds) - len(SPATIAL_FOLDS))))
    labels = (*SPATIAL_FOLDS, *elements)
    factors = [(fold.factor, label) for fold, label in zip(folds, labels, strict=True)]
    return _fold_info([fold.alpha for fold in folds], factors)


INTERLEAVED = ((128, None), (8, 8), (64, 2), (1, 8))
"""Alpha and factor of each element fold of a stick whose halves alternate every 8 elements; the first counts sticks."""


@lru_cache(maxsize=4096)
def _interleaved_folds(extent: int, slices: int) -> JsonObject:
    cores = ((slices, "core_fold"), (1, "corelet_fold"), (1, "row_fold"))
    return _fold_info(
        (extent, 0, 0, *(alpha for alpha, _ in INTERLEAVED)),
        (*cores, *((factor or extent // 128, f"elem_arr_{3 - at}") for at, (_, factor) in enumerate(INTERLEAVED))),
    )


@lru_cache(maxsize=4096)
def _paired_folds(extent: int, slices: int) -> JsonObject:
    """Folds of the second dim of a two-dimensional stick, as they are written (docs/compatibility.md, Q22)."""
    cores = ((slices, "core_fold"), (1, "corelet_fold"), (1, "row_fold"))
    elements = ((64, "elem_arr_2"), (2, "elem_arr_1"), (1, "elem_arr_0"))
    return _fold_info((extent, 0, 0, extent // 8, 8, 1), (*cores, *elements))


def _fold_info(alphas: Sequence[int], factors: Sequence[tuple[int, str]]) -> JsonObject:
    """Folds of one dim: coordinate = sum of alpha * index over folds, each index below its factor."""
    return {
        "spatial": 3,
        "temporal": 0,
        "elemArr": len(alphas) - 3,
        "padding": "nopad",
        "folds": {
            "dim_prop_func": [_affine(alpha) for alpha in alphas],
            "dim_prop_attr": [_fold_property(factor, label) for factor, label in factors],
        },
    }


def _labeled(dsc: SuperDsc, index: int) -> JsonObject:
    operand = dsc.operands[index]
    return {
        "ldsIdx_": index,
        "dsName_": f"Tensor{index}",
        "dsType_": operand.label,
        "scale_": [operand.scales[dim] for dim in dsc.labels[operand.label].layout_dim_order],
        "wordLength": operand.word_length,
        "dataFormat_": operand.data_format.name,
        "memOrg_": memory_organisation(dsc, index, node_name(index, operand)) or _memory_organisation(operand),
    }


def _memory_organisation(operand: Operand) -> JsonObject:
    if operand.component is Component.LX:
        return {"lx": {"isPresent": 1}}
    if operand.indirection is Indirection.INDEX:
        return {"hbm": {"isPresent": 1}}
    return {"hbm": {"isPresent": 1}, "lx": {"isPresent": 1}}


def _constants(dsc: SuperDsc) -> JsonValue:
    """Return ``constantInfo_``, which is the text ``{}`` and no object where there is none."""
    if not dsc.constants:
        return "{}"
    return {
        str(position): {
            "dataFormat_": entry.data_format.name,
            "name_": entry.name,
            "data_": {
                "dim_prop_func": _kinds(*reversed(CORE_FOLD_KINDS)),
                "dim_prop_attr": _core_corelet_time(len(dsc.core_ids)),
                "data_": {"[0, 0, 0]": [entry.bits]},
            },
        }
        for position, entry in enumerate(dsc.constants)
    }


def _compute(dsc: SuperDsc) -> JsonObject:
    compute = dsc.compute
    entry: JsonObject = {
        "exUnit": compute.execution_unit,
        "opFuncName": compute.op_func_name,
        "attributes_": {"dataFormat_": compute.data_format.name, "fidelity_": "regular"},
        "location": "Inner",
        "inputLabeledDs": [operand_name(index) for index in compute.inputs],
        "outputLabeledDs": [operand_name(index) for index in compute.outputs],
    }
    if compute.indirect_access_indices:
        entry["indirectAccessIndexLabeledDs"] = [operand_name(index) for index in compute.indirect_access_indices]
    return entry
