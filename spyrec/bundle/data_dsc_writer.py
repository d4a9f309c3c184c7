"""Data DSCs to JSON: entries of ``datadscs_``."""

from __future__ import annotations

import json

from spyrec.bundle.data_dsc import DataDsc, MovedTensor, Piece
from spyrec.diagnostics.json_reading import JsonValue

JsonObject = dict[str, JsonValue]

DETAILS = ("isExternal_", "segment_", "hbmStartAddress_", "hbmSize_", "lxSize_", "lxStartAddress_", "totElements")
"""Keys of an operand that execution does not need: pieces say where the tensor lies."""


def data_document(item: DataDsc) -> JsonObject:
    """Return the content of one entry."""
    return {
        item.name: {
            "coreIdsUsed_": list(item.core_ids),
            "dimPool_": list(item.dims),
            "primaryDs_": [{"name_": name, "dimNames": list(dims)} for name, dims in item.primaries],
            "outDimTodimRelation_": [],
            "labeledDs_": [_tensor_document(item.source), _tensor_document(item.destination)],
            "op": {"name": item.op},
        }
    }


def _tensor_document(tensor: MovedTensor) -> JsonObject:
    details: JsonObject = {key: json.loads(text) for key, text in tensor.details.items()}
    return {
        "ldsName_": tensor.name,
        "pdsName_": tensor.primary,
        "wordLength": tensor.word_length,
        "dataformat": tensor.data_format.name,
        **{key: details[key] for key in DETAILS[:2] if key in details},
        "layoutDimOrder_": list(tensor.layout_dim_order),
        "stickDimOrder_": [tensor.stick_dim],
        "dimToLayoutSize_": dict(tensor.extents),
        "dimToStickSize_": {tensor.stick_dim: tensor.stick_size},
        "validGap_": {dim: [[extent, 0]] for dim, extent in tensor.extents.items()},
        **{key: details[key] for key in DETAILS[2:] if key in details},
        "PieceInfo": [_piece_document(piece) for piece in tensor.pieces],
    }


def _piece_document(piece: Piece) -> JsonObject:
    return {
        "key_": piece.key,
        "dimToStartCordinate": dict(piece.first),
        "dimToSize_": dict(piece.extents),
        "validGap_": {dim: [[extent, 0]] for dim, extent in piece.extents.items()},
        "PlacementInfo": [
            {
                "type": "hbm" if place.core is None else "lx",
                "memId": [-1 if place.core is None else place.core],
                "startAddr": [place.start],
            }
            for place in piece.places
        ],
    }
