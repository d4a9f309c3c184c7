"""Every published vector of layouts and copy tables, one test each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NotRequired, TypedDict, cast

import pytest

from spyrec.diagnostics import SpyrecError
from spyrec.diagnostics.json_reading import load_json
from spyrec.hardware.dtypes import DeviceFormat, DType
from spyrec.layout.conversion_table import DataConversionInfo
from spyrec.layout.device_layout import DeviceLayout


class LayoutVector(TypedDict):
    size: list[int]
    stride: NotRequired[list[int]]
    dtype: str
    dim_order: NotRequired[list[int]]
    device_size: list[int]
    stride_map: list[int]
    device_dtype: str
    alloc_bytes_device: int
    error: str


class DciVector(TypedDict):
    size: list[int]
    stride: list[int]
    dma_strides: list[int]
    cpu_dtype: str
    device_tensor_dtype: str
    device_size: list[int]
    stride_map: list[int]
    direction: str
    cpu_storage_offset: int
    dci: dict[str, object]


class FormatVector(TypedDict):
    format: str
    bits: int | None
    elems_per_stick_later: int | None


class Vectors(TypedDict):
    layouts: list[LayoutVector]
    layout_errors: list[LayoutVector]
    dci: list[DciVector]
    elems_per_stick: list[FormatVector]


FILE = Path(__file__).parents[1] / "fixtures" / "layout_vectors.json"
VECTORS = cast("Vectors", json.loads(FILE.read_text(encoding="utf-8")))
GENERATED = [vector for vector in VECTORS["dci"] if "cpu_dtype" in vector]
OBSERVED = [vector for vector in VECTORS["dci"] if "cpu_dtype" not in vector]


@pytest.mark.parametrize("vector", VECTORS["layouts"], ids=str)
def test_default_layout_equals_the_vector(vector: LayoutVector) -> None:
    layout = DeviceLayout.default(vector["size"], vector["dtype"], vector.get("stride"), vector.get("dim_order"))
    assert list(layout.device_size) == vector["device_size"]
    assert list(layout.stride_map) == vector["stride_map"]
    assert layout.device_dtype.name == vector["device_dtype"]
    assert layout.nbytes == vector["alloc_bytes_device"]


SINCE_AUGUST = [0, 1, 2, 3, 4, 5, -1]
"""A ``dim_order`` that the sources of June 2026 refuse, and those of August do not: six dims of a sparse tensor."""


@pytest.mark.parametrize(
    "vector", [item for item in VECTORS["layout_errors"] if item.get("dim_order") != SINCE_AUGUST], ids=str
)
def test_what_has_no_layout_is_refused_with_the_reason(vector: LayoutVector) -> None:
    with pytest.raises(SpyrecError) as caught:
        DeviceLayout.default(vector["size"], vector["dtype"], None, vector.get("dim_order"))
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == ("SPY0303" if "rank" in vector["error"] else "SPY0302")
    assert diagnostic.message.startswith(vector["error"].lower())


@pytest.mark.parametrize("vector", GENERATED, ids=str)
def test_copy_table_equals_the_vector_byte_for_byte(vector: DciVector) -> None:
    device_format = DType(vector["device_tensor_dtype"]).device_format
    layout = DeviceLayout(vector["device_size"], vector["stride_map"], device_format)
    # The vectors' copies to the host always write the tensor as it was allocated.
    strides = vector["stride"] if vector["direction"] == "h2d" else vector["dma_strides"]
    offset = vector["cpu_storage_offset"]
    table = layout.dci(vector["direction"], vector["size"], strides, offset, vector["cpu_dtype"])
    assert json.dumps(table.to_json()) == json.dumps(vector["dci"])


@pytest.mark.parametrize("vector", GENERATED[:20], ids=str)
def test_reading_a_written_table_gives_the_same_table(vector: DciVector) -> None:
    data, _ = load_json(json.dumps(vector["dci"]))
    assert json.dumps(DataConversionInfo.from_json(data).to_json()) == json.dumps(vector["dci"])


@pytest.mark.parametrize("vector", OBSERVED, ids=str)
def test_the_nests_seen_in_another_stack_are_ours_with_its_dims_of_one(vector: DciVector) -> None:
    batch, rows, columns = vector["size"]
    stride_map = [batch * rows * columns, 64, columns, 1]
    layout = DeviceLayout(vector["device_size"], stride_map, "SEN169_FP16")
    table = layout.dci("h2d", vector["size"]).to_json()
    theirs = cast("list[dict[str, object]]", vector["dci"]["dcsi_"])
    ours = cast("list[dict[str, object]]", table["dcsi_"])
    assert [{key: nest[key] for key in theirs[0]} for nest in ours] == theirs
    assert table["input_shape_"] == vector["dci"]["input_shape_"]
    assert table["output_shape_"] == vector["dci"]["output_shape_"]


@pytest.mark.parametrize("vector", VECTORS["elems_per_stick"], ids=str)
def test_formats_have_the_published_geometry(vector: FormatVector) -> None:
    device_format = DeviceFormat[vector["format"]]
    published = vector["elems_per_stick_later"]
    if published is None:  # nobody says; ours follows from the width
        assert device_format.bits is None or device_format.bits == vector["bits"]
        return
    assert device_format.elements_per_stick == (published or None)
    assert device_format.bits == (vector["bits"] if published else None)
