"""Device layouts as values and as a map between host and device."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spyrec.diagnostics import SpyrecError
from spyrec.hardware.dtypes import DeviceFormat, DType
from spyrec.layout.device_layout import DeviceLayout
from spyrec.layout.tiling import row_major_strides

SEED = DeviceLayout.default((5, 100, 150), "float16")


@st.composite
def layouts(draw: st.DrawFn) -> DeviceLayout:
    """Default layouts of every rank: permuted and pitched host strides, any dim order, sparse ones, any dtype."""
    shape = tuple(draw(st.lists(st.sampled_from([1, 2, 3, 5, 33, 64, 65, 130]), max_size=6)))
    while math.prod(shape) > 500:
        shape = (*shape[:-1], 1) if shape[-1] > 1 else shape[:-1]
    stride = [0] * len(shape)
    reach = 1
    for dim in draw(st.permutations(range(len(shape)))):
        stride[dim] = reach
        reach *= shape[dim] + draw(st.integers(0, 2))
    order = list(draw(st.permutations(range(len(shape)))))
    if len(shape) < 6 and draw(st.booleans()):
        order.append(-1)
    return DeviceLayout.default(shape, draw(st.sampled_from(list(DType))), stride, order)


def code_of(caught: pytest.ExceptionInfo[SpyrecError]) -> str:
    (diagnostic,) = caught.value.diagnostics
    return diagnostic.code


@settings(max_examples=80)
@given(layouts())
def test_host_indices_of_many_elements_are_those_of_each(layout: DeviceLayout) -> None:
    count = min(math.prod(layout.device_size), 4096)
    offsets = np.unique(np.linspace(0, math.prod(layout.device_size) - 1, count, dtype=np.int64))
    indices, is_element = layout.host_indices(offsets)
    for offset, index, is_any in zip(offsets.tolist(), indices.tolist(), is_element.tolist(), strict=True):
        coordinate: list[int] = []
        for stride in layout.device_strides():
            place, offset = divmod(offset, stride)
            coordinate.append(place)
        wanted = layout.host_index(coordinate)
        assert (tuple(index) if is_any else None) == wanted


@given(layouts())
def test_elements_and_valid_lanes_are_in_bijection_and_obey_the_identity(layout: DeviceLayout) -> None:
    mask = layout.valid_lane_mask()
    assert mask.shape == layout.device_size
    seen: set[tuple[int, ...]] = set()
    for index in product(*(range(size) for size in layout.host_shape)):
        coordinate = layout.device_coordinate(index)
        assert mask[coordinate]
        assert layout.host_index(coordinate) == index
        assert layout.at_byte_address(layout.byte_address(index)) == coordinate
        walked = sum(at * max(step, 0) for at, step in zip(coordinate, layout.stride_map, strict=True))
        assert walked == sum(at * step for at, step in zip(index, layout.host_strides, strict=True))
        seen.add(coordinate)
    assert len(seen) == mask.sum() == math.prod(layout.host_shape)
    for coordinate in list(zip(*np.nonzero(~mask), strict=True))[:50]:
        assert layout.host_index([int(at) for at in coordinate]) is None


@pytest.mark.parametrize(
    ("device_size", "stride_map", "shape"),
    [
        ((38, 64), (64, 1), (40, 60)),
        ((2, 6, 2, 1, 2, 64), (720, 120, 60, 64, 1200, 1), (40, 60)),
        ((3, 2, 14, 64), (120, 64, 360, 1), (4800,)),
        ((1, 512, 64), (64, 60, 1), (40, 60)),
        ((1024, 2, 64), (128, 64, 1), (100, 128)),
        ((3, 64), (7, 1), (20,)),
    ],
)
def test_explicit_layouts_hold_every_element_once(
    device_size: tuple[int, ...], stride_map: tuple[int, ...], shape: tuple[int, ...]
) -> None:
    layout = DeviceLayout(device_size, stride_map, "SEN169_FP16", shape)
    mask = layout.valid_lane_mask()
    homes = {layout.device_coordinate(index) for index in np.ndindex(shape)}
    assert len(homes) == mask.sum() == math.prod(shape)
    assert all(mask[home] for home in homes)


def test_an_expanded_dim_is_found_at_each_of_its_copies() -> None:
    layout = DeviceLayout.default((3, 100, 70), "float16", stride=(0, 70, 1))
    assert layout.stride_map == (70, 64, 0, 1)
    assert layout.device_coordinate((2, 50, 69)) == (50, 1, 2, 5)
    assert layout.host_index((50, 1, 2, 5)) == (2, 50, 69)
    assert layout.valid_lane_mask().sum() == 3 * 100 * 70


def test_the_seeds_examples_print_as_the_seed_prints_them() -> None:
    assert str(SEED) == (
        "SpyreTensorLayout(device_size=[100, 3, 5, 64], stride_map =[150, 64, 15000, 1], "
        "device_dtype=DataFormats.SEN169_FP16)"
    )
    inverted = DeviceLayout.default((5, 100, 150), "float16", dim_order=(1, 0, 2))
    assert "device_size=[5, 3, 100, 64], stride_map =[15000, 64, 150, 1]" in str(inverted)
    assert DeviceLayout.default((128, 256, 512), "float16").stride_map == (512, 64, 131072, 1)
    assert DeviceLayout.default((50, 10, 200), "float16").device_size == (10, 4, 50, 64)
    assert DeviceLayout.default((1024, 256), "float16").dci("h2d").triples() == [
        ((4, 1024, 64), (64, 256, 1), (65536, 64, 1))
    ]


def test_the_public_examples_of_the_front_hold() -> None:
    assert SEED.device_coordinate((3, 17, 140)) == (17, 2, 3, 12)
    assert SEED.host_index((17, 2, 3, 12)) == (3, 17, 140)
    assert SEED.host_index((17, 2, 3, 22)) is None
    assert SEED.byte_address((3, 17, 140)) == 2 * (17 * 960 + 2 * 320 + 3 * 64 + 12)
    assert SEED.nbytes == 128 * 100 * 3 * 5


def test_a_layout_is_a_value_compared_by_its_device_form() -> None:
    explicit = DeviceLayout([100, 3, 5, 64], [150, 64, 15000, 1], DeviceFormat.SEN169_FP16)
    assert explicit == SEED
    assert len({explicit, SEED, explicit.with_host((5, 100, 150))}) == 1
    with pytest.raises(FrozenInstanceError):
        explicit.device_size = (1, 64)  # type: ignore[misc] -- that it cannot be set is the point
    assert explicit != DeviceLayout([100, 3, 5, 64], [150, 64, 15000, 1], DeviceFormat.IEEE_FP16)


def test_equality_up_to_padding_means_equal_addresses() -> None:
    two = DeviceLayout([2, 64, 64], [64, 128, 1], "SEN169_FP16")
    assert two.equal_up_to_padding(DeviceLayout([1, 3, 64, 64], [-1, 64, 128, 1], "SEN169_FP16"))
    assert not two.equal_up_to_padding(DeviceLayout([2, 65, 64], [64, 128, 1], "SEN169_FP16"))
    flat = DeviceLayout([8, 64], [64, 1], "SEN169_FP16")
    assert flat.equal_up_to_padding(DeviceLayout([2, 4, 64], [256, 64, 1], "SEN169_FP16"))
    assert not flat.equal_up_to_padding(DeviceLayout([8, 64], [64, 1], "IEEE_FP16"))


def test_a_padded_layout_serves_a_smaller_tensor_with_the_same_strides() -> None:
    layout = DeviceLayout((256, 8, 128, 64), (512, 64, 131072, 1), "SEN169_FP16", (100, 200, 500))
    assert layout.host_strides == (131072, 512, 1)
    assert layout.host_index((200, 0, 0, 0)) is None
    assert layout.device_coordinate((99, 199, 499)) == (199, 7, 99, 51)


def test_without_a_host_shape_the_largest_tensor_that_fits_is_meant() -> None:
    layout = DeviceLayout((3, 40, 64), (64, 130, 1), "SEN169_FP16")
    assert (layout.host_shape, layout.host_strides) == ((40, 130), (130, 1))
    assert layout.dci("h2d") == DeviceLayout.default((40, 130), "float16").dci("h2d")


@pytest.mark.parametrize(
    ("code", "shape", "dtype", "stride", "order"),
    [
        ("SPY0301", (4, 5), "float64", None, None),
        ("SPY0302", (4, 5), "float16", (1,), None),
        ("SPY0302", (4, 5), "float16", None, (0,)),
        ("SPY0303", (1,) * 7, "float16", None, None),
        ("SPY0304", (4, 5), "float16", None, (0, 0)),
        ("SPY0304", (4, 5), "float16", None, (1, 2)),
        ("SPY0305", (4, -5), "float16", None, None),
        ("SPY0305", (4, 5), "float16", (-5, 1), None),
        ("SPY0309", (4, 5), "float16", (4, 1), None),
        ("SPY0319", (1 << 32, 1 << 32), "float16", None, None),
    ],
)
def test_what_no_layout_can_be_made_for_is_refused(
    code: str, shape: tuple[int, ...], dtype: str, stride: tuple[int, ...] | None, order: tuple[int, ...] | None
) -> None:
    with pytest.raises(SpyrecError) as caught:
        DeviceLayout.default(shape, dtype, stride, order)
    assert code_of(caught) == code


@pytest.mark.parametrize(
    ("code", "device_size", "stride_map", "device_dtype", "shape"),
    [
        ("SPY0301", (1, 64), (64, 1), "SENINT24", None),
        ("SPY0302", (1, 64), (64, 1, 1), "SEN169_FP16", None),
        ("SPY0302", (), (), "SEN169_FP16", None),
        ("SPY0303", (1,) * 40 + (64,), (1,) * 41, "SEN169_FP16", None),
        ("SPY0305", (1, 64), (-2, 1), "SEN169_FP16", None),
        ("SPY0306", (1, 32), (32, 1), "SEN169_FP16", None),
        ("SPY0307", (1, 40, 64), (64, 60, 1), "SEN169_FP16", (41, 60)),
        ("SPY0307", (2, 64), (7, 1), "SEN169_FP16", (20,)),
        ("SPY0307", (2, 64), (64, 1), "SEN169_FP16", (129,)),
        ("SPY0308", (2, 1, 1, 64), (7, 1, 1, 2), "SEN169_FP16", (20,)),
    ],
)
def test_an_explicit_layout_that_contradicts_itself_or_its_tensor_is_refused(
    code: str,
    device_size: tuple[int, ...],
    stride_map: tuple[int, ...],
    device_dtype: str,
    shape: tuple[int, ...] | None,
) -> None:
    with pytest.raises(SpyrecError) as caught:
        DeviceLayout(device_size, stride_map, device_dtype, shape)
    assert code_of(caught) == code


def test_places_outside_the_tensor_are_refused() -> None:
    for ask in (
        lambda: SEED.device_coordinate((5, 0, 0)),
        lambda: SEED.device_coordinate((0, 0)),
        lambda: SEED.host_index((0, 3, 0, 0)),
        lambda: SEED.at_byte_address(SEED.nbytes),
    ):
        with pytest.raises(SpyrecError) as caught:
            ask()
        assert code_of(caught) == "SPY0310"


def test_huge_masks_and_unknown_directions_are_refused() -> None:
    with pytest.raises(SpyrecError) as caught:
        DeviceLayout.default((1 << 20, 1 << 16), "float16").valid_lane_mask()
    assert code_of(caught) == "SPY0319"
    with pytest.raises(SpyrecError) as caught:
        SEED.dci("sideways")
    assert code_of(caught) == "SPY0320"


def test_a_copy_that_would_write_one_host_element_twice_is_refused() -> None:
    layout = DeviceLayout.default((4, 64), "float16")
    for strides in ((0, 1), (32, 1)):
        layout.dci("h2d", (4, 64), strides)
        with pytest.raises(SpyrecError) as caught:
            layout.dci("d2h", (4, 64), strides)
        assert code_of(caught) == "SPY0309"
    expanded = DeviceLayout.default((4, 64), "float16", stride=(0, 1))
    with pytest.raises(SpyrecError) as caught:
        expanded.dci("h2d", (4, 64), row_major_strides((4, 64)))
    assert code_of(caught) == "SPY0307"


def test_a_device_format_equals_its_name() -> None:
    layout = DeviceLayout((64, 1024, 64), (64, 4096, 1), "SEN169_FP16")
    name: str = "SEN169_FP16"
    assert layout.device_dtype == name
    assert name == layout.device_dtype
    assert layout.device_dtype != "IEEE_FP32"
    assert layout.device_dtype != 0
    for item in DeviceFormat:
        assert hash(item) == hash(item.name)
        assert {item: 1}[item] == 1
        assert sum(other == item for other in DeviceFormat) == 1
