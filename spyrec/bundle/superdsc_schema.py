"""The JSON schema of one SuperDSC file, as far as a schema can say it; generated into ``schemas/``.

It describes the form that is read: what torch-spyre emits, with the deviations of the public specification that
readers accept.  References between fields (labels, operands, cores) are the reader's to check.
"""

from __future__ import annotations

import json

from spyrec.bundle.data_dsc import LX_TO_LX
from spyrec.bundle.superdsc import Component, Indirection, PaddingKind
from spyrec.bundle.superdsc_windows import PADDING_SIZES
from spyrec.bundle.superdsc_writer import STAGE_DETAILS
from spyrec.diagnostics.json_reading import JsonValue
from spyrec.hardware.dtypes import DeviceFormat

Schema = dict[str, JsonValue]

_NAME = "^[A-Za-z_][A-Za-z0-9_]{0,63}$"
_TEXT: Schema = {"type": "string"}
_DECIMAL: Schema = {"anyOf": [{"type": "string", "pattern": "^-?[0-9]{1,19}$"}, {"type": "integer"}]}
_FLAG: Schema = {"enum": [0, 1, False, True]}


def superdsc_schema() -> str:
    """Return the text of ``schemas/superdsc.schema.json``."""
    schema: Schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "SuperDSC (sdsc_N.json)",
        "description": "One operation of a bundle, divided among cores, or several DSCs and operations that move data. "
        "The key of the root is <index>_<operation>.",
        "type": "object",
        "minProperties": 1,
        "maxProperties": 1,
        "patternProperties": {"^[0-9]{1,9}_[A-Za-z_][A-Za-z0-9_]{0,63}$": {"$ref": "#/$defs/superDsc"}},
        "additionalProperties": False,
        "$defs": {
            "superDsc": _super_dsc(),
            "dsc": _dsc(),
            "dataDsc": _data_dsc(),
            "moved": _moved(),
            "share": _share(),
            "node": _node(),
            "labeled": _labeled(),
            "compute": _compute(),
            "constant": _constant(),
            "fold": _fold(),
            "extents": _extents(),
            "window": _window(),
            "format": {"enum": [item.name for item in DeviceFormat]},
        },
    }
    return json.dumps(schema, indent=2) + "\n"


def _object(properties: Schema, required: list[str]) -> Schema:
    wanted: list[JsonValue] = list(required)
    return {"type": "object", "properties": properties, "required": wanted}


def _by_pattern(pattern: str, member: Schema) -> Schema:
    return {"type": "object", "patternProperties": {pattern: member}, "additionalProperties": False}


def _array(item: Schema, **limits: int) -> Schema:
    array: Schema = {"type": "array", "items": item}
    return array | dict[str, JsonValue](limits)


def _integer(minimum: int, maximum: int | None = None) -> Schema:
    integer: Schema = {"type": "integer", "minimum": minimum}
    return integer if maximum is None else {**integer, "maximum": maximum}


def _by_core(member: Schema) -> Schema:
    return _by_pattern("^[0-9]+$", member)


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _super_dsc() -> Schema:
    fold: Schema = _object({"factor_": _integer(1), "label_": _TEXT}, ["factor_", "label_"])
    dsc, data_dsc = _named("dsc"), _named("dataDsc")
    return _object(
        {
            "sdscFoldProps_": _array(fold),
            "sdscFolds_": {"type": "object"},
            "coreFoldProp_": fold,
            "coreletFoldProp_": fold,
            "numCoresUsed_": _integer(1, 32),
            "coreIdToDsc_": _by_core(_integer(0, 31)),
            "numWkSlicesPerDim_": _by_pattern(_NAME, _integer(1)),
            "coreIdToWkSlice_": _by_core(_by_pattern(_NAME, _integer(0))),
            "coreIdToDscSchedule": _by_core(_array(_array({"type": "integer"}, minItems=4, maxItems=4))),
            "dscs_": _array(dsc, maxItems=32),
            "datadscs_": _array(data_dsc, maxItems=256),
            "opFuncsUsed_": _array(_TEXT),
            "ldsShareInfo_": _array(_ref("share")),
            "inputSymbolsAndTags_": _by_pattern("^-[0-9]+$", _TEXT),
        },
        ["numCoresUsed_", "dscs_"],
    )


def _named(name: str) -> Schema:
    """Return an object of one key, the name of what is below it."""
    return {"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": _ref(name)}


def _data_dsc() -> Schema:
    """Return a data operation: two tensors in pieces."""
    names = _array(_TEXT)
    primary = _object({"name_": _TEXT, "dimNames": names}, ["name_", "dimNames"])
    return _object(
        {
            "coreIdsUsed_": _array(_integer(0, 31), minItems=1, maxItems=32),
            "dimPool_": names,
            "primaryDs_": _array(primary),
            "outDimTodimRelation_": {"type": "array", "maxItems": 0},
            "labeledDs_": _array(_ref("moved"), minItems=2, maxItems=2),
            "op": _object({"name": {"const": LX_TO_LX}}, ["name"]),
        },
        ["coreIdsUsed_", "dimPool_", "primaryDs_", "labeledDs_", "op"],
    )


def _moved() -> Schema:
    """Return one side of a data operation; an address in device memory is in sticks, one in LX in bytes."""
    coordinates, sizes = _by_pattern(_NAME, _integer(0)), _by_pattern(_NAME, _integer(1))
    gaps = _by_pattern(_NAME, _array(_array(_integer(0), minItems=2, maxItems=2)))
    place = _object(
        {"type": {"enum": ["lx", "hbm"]}, "memId": _array(_integer(-1, 31)), "startAddr": _array(_DECIMAL)},
        ["type", "memId", "startAddr"],
    )
    piece = _object(
        {
            "key_": _TEXT,
            "dimToStartCordinate": coordinates,
            "dimToSize_": sizes,
            "validGap_": gaps,
            "PlacementInfo": _array(place, minItems=1),
        },
        ["key_", "dimToStartCordinate", "dimToSize_", "PlacementInfo"],
    )
    return _object(
        {
            "ldsName_": _TEXT,
            "pdsName_": _TEXT,
            "wordLength": _integer(1, 128),
            "dataformat": _ref("format"),
            "layoutDimOrder_": _array(_TEXT),
            "stickDimOrder_": _array(_TEXT, minItems=1, maxItems=1),
            "dimToLayoutSize_": sizes,
            "dimToStickSize_": sizes,
            "validGap_": gaps,
            "PieceInfo": _array(piece, minItems=1, maxItems=1024),
        },
        ["ldsName_", "pdsName_", "wordLength", "dataformat", "layoutDimOrder_", "stickDimOrder_", "dimToLayoutSize_",
         "dimToStickSize_", "PieceInfo"],
    )  # fmt: skip


def _share() -> Schema:
    sets = _array(_array(_integer(0, 31)))
    return _object({"dsName_": _TEXT, "sharedDscs": sets}, ["dsName_", "sharedDscs"])


def _dsc() -> Schema:
    stage = _object({"ss_": _ref("extents"), "el_": _ref("extents")}, ["ss_", "el_"])
    label = _object(
        {
            "layoutDimOrder_": _array(_TEXT),
            "stickDimOrder_": _array(_TEXT, minItems=1, maxItems=2),
            "stickSize_": _array(_integer(1), minItems=1, maxItems=2),
        },
        ["layoutDimOrder_", "stickDimOrder_", "stickSize_"],
    )
    ranges = _array(_array(_integer(0), minItems=2, maxItems=2))
    return _object(
        {
            "numCoresUsed_": _integer(1, 32),
            "numCoreletsUsed_": _integer(1, 2),
            "coreIdsUsed_": _array(_integer(0, 31), minItems=1, maxItems=32),
            "N_": _ref("extents"),
            "coordinateMasking_": _by_pattern(_NAME, ranges),
            "maskingConstId_": _integer(-1),
            "dimToSymbolMapping_": _by_pattern(_NAME, _array({"type": "integer", "maximum": -1}, maxItems=1)),
            "dataStageParam_": _by_pattern("^0$", stage),
            "primaryDsInfo_": _by_pattern(_NAME, label),
            "scheduleTree_": _array(_ref("node"), minItems=1, maxItems=64),
            "labeledDs_": _array(_ref("labeled"), minItems=1, maxItems=64),
            "constantInfo_": {"anyOf": [{"const": "{}"}, _by_core(_ref("constant"))]},
            "computeOp_": _array(_ref("compute"), minItems=1, maxItems=1),
        },
        ["numCoresUsed_", "coreIdsUsed_", "N_", "dataStageParam_", "primaryDsInfo_", "scheduleTree_", "labeledDs_",
         "computeOp_"],
    )  # fmt: skip


def _extents() -> Schema:
    """Return extents by dim, with a name and, of operations that slide a window, how it slides along each axis."""
    others = "|".join(f"{key}$" for key in STAGE_DETAILS)
    dims = f"^name_$|^(?!{others})[A-Za-z_][A-Za-z0-9_]*_$"
    extents = _by_pattern(dims, {"type": ["integer", "string"], "minimum": 1})
    windows = _by_pattern(_NAME, _ref("window"))
    details: Schema = {key: windows if key == PADDING_SIZES else {"type": "object"} for key in STAGE_DETAILS}
    extents["properties"] = details
    return extents


def _window() -> Schema:
    numbers: Schema = {
        "padFront_": _integer(-1),
        "padBack_": _integer(-1),
        "unneededPad_": {"type": "integer"},
        "unneededPadFront_": {"type": "integer"},
        "unneededPadBack_": {"type": "integer"},
        "totalSize_": _integer(1),
        "stride_": _integer(1),
        "dilation_": _integer(1),
        "windowDim_": _TEXT,
    }
    needed = ["padFront_", "padBack_", "totalSize_", "stride_", "dilation_", "windowDim_"]
    return _object(numbers, needed) | {"additionalProperties": False}


def _fold() -> Schema:
    function: Schema = {"type": "object", "minProperties": 1, "maxProperties": 1}
    attribute = _object({"factor_": _integer(1), "label_": _TEXT}, ["factor_", "label_"])
    properties: Schema = {
        "dim_prop_func": _array(function),
        "dim_prop_attr": _array(attribute),
        "data_": {"type": "object"},
    }
    return _object(properties, ["dim_prop_func", "dim_prop_attr", "data_"])


def _node() -> Schema:
    starts: Schema = {
        "allOf": [
            _ref("fold"),
            _object({"data_": _by_pattern(r"^\[[0-9]+, [01], 0\]$", _DECIMAL)}, ["data_"]),
        ]
    }
    return _object(
        {
            "nodeType_": {"const": "allocate"},
            "name_": _TEXT,
            "prev_": _TEXT,
            "ldsIdx_": _integer(0),
            "component_": {"enum": [item.value for item in Component]},
            "padding_": _by_pattern(_NAME, {"enum": [item.value for item in PaddingKind]}),
            "isStartAddrSymbolic_": _FLAG,
            "layoutDimOrder_": _array(_TEXT),
            "maxDimSizes_": _array({"type": "integer"}),
            "indirectAllocType_": {"enum": [item.value for item in Indirection]},
            "relatedIndirectAccessAlloc_": _TEXT,
            "indexTensorType_": {"const": "index"},
            "startAddressCoreCorelet_": starts,
            "backGapCore_": _by_pattern(_NAME, _by_pattern("^(-1|[0-9]+)$", _DECIMAL)),
            "coordinates_": {"type": "object"},
        },
        ["nodeType_", "ldsIdx_", "component_", "layoutDimOrder_", "startAddressCoreCorelet_"],
    ) | {"additionalProperties": False}


def _labeled() -> Schema:
    return _object(
        {
            "ldsIdx_": _integer(0),
            "dsName_": _TEXT,
            "dsType_": _TEXT,
            "scale_": _array({"type": "integer"}),
            "wordLength": _integer(1, 128),
            "dataFormat_": _ref("format"),
            "memOrg_": {"type": "object"},
        },
        ["ldsIdx_", "dsName_", "dsType_", "scale_", "wordLength", "dataFormat_"],
    )


def _compute() -> Schema:
    operands = _array(_TEXT)
    return _object(
        {
            "exUnit": _TEXT,
            "opFuncName": _TEXT,
            "attributes_": _object({"dataFormat_": _ref("format"), "fidelity_": _TEXT}, ["dataFormat_"]),
            "location": _TEXT,
            "inputLabeledDs": operands,
            "outputLabeledDs": operands,
            "indirectAccessIndexLabeledDs": operands,
            "indirectAccessIndexLabeledDs_": operands,
        },
        ["exUnit", "opFuncName", "attributes_", "inputLabeledDs", "outputLabeledDs"],
    )


def _constant() -> Schema:
    bits = _integer(0, (1 << 32) - 1)
    value: Schema = {"anyOf": [bits, _array(bits, minItems=1, maxItems=1)]}
    data: Schema = {"type": "object", "properties": {"[0, 0, 0]": value}, "required": ["[0, 0, 0]"]}
    return _object(
        {
            "dataFormat_": _ref("format"),
            "name_": _TEXT,
            "data_": _object({"data_": data}, ["data_"]),
        },
        ["dataFormat_", "name_", "data_"],
    )
