"""Any lawful layout may be pinned anywhere: numbers stay what they are without the pin, elements lie where it says."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spyrec
from spyrec.bundle.bundle import Bundle
from spyrec.diagnostics import SpyrecError
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.ir.device_layout import folded_shape
from spyrec.layout.device_layout import DeviceLayout
from spyrec.layout.tiling import row_major_strides
from tests.support.examples import examples
from tests.support.graphs import JsonObject, graph_data, node, only_diagnostic, random_arrays, tensor

_LANES = 64
_EXTENTS = (1, 2, 3, 4, 6, 10, 60, 64, 65, 70, 128)


@dataclass(frozen=True, slots=True)
class Pin:
    """A layout that holds a tensor of ``shape``, walking it as ``folded``."""

    shape: tuple[int, ...]
    folded: tuple[int, ...]
    device_size: tuple[int, ...]
    stride_map: tuple[int, ...]

    def to_json(self) -> JsonObject:
        return {"device_size": list(self.device_size), "stride_map": list(self.stride_map)}


@st.composite
def _shapes(draw: st.DrawFn) -> tuple[int, ...]:
    shape: list[int] = []
    for _ in range(draw(st.integers(1, 4))):
        fitting = [extent for extent in _EXTENTS if math.prod(shape) * extent <= 3000]
        shape.append(draw(st.sampled_from(fitting)))
    return tuple(draw(st.permutations(shape)))


@st.composite
def _pins(draw: st.DrawFn) -> Pin:
    """Fold neighbours, choose the dim in the sticks or none, cut into tiles, pad the outermost tile, permute."""
    shape = draw(_shapes())
    joints = [place for place in range(1, len(shape)) if draw(st.integers(0, 2)) == 0]
    bounds = [place for place in range(len(shape) + 1) if place not in joints]
    folded = tuple(math.prod(shape[first:end]) for first, end in pairwise(bounds))
    strides = row_major_strides(folded)
    stick = draw(st.sampled_from([None, *(dim for dim, size in enumerate(folded) if size > 1)]))
    dims: list[tuple[int, int]] = []
    for dim, size in enumerate(folded):
        unit, left = (_LANES, -(-size // _LANES)) if dim == stick else (1, size)
        while left > 1 and len(dims) + len(folded) - dim < 6 and draw(st.integers(0, 2)) == 0:
            tile = draw(st.integers(2, left))
            dims.append((tile, strides[dim] * unit))
            unit, left = unit * tile, -(-left // tile)
        padding = draw(st.integers(0, 2)) if left > 1 else 0
        if left > 1 or draw(st.booleans()):
            dims.append((left + padding, strides[dim] * unit))
    dims = list(draw(st.permutations(dims)))
    sizes, maps = [size for size, _ in dims], [stride if size > 1 else -1 for size, stride in dims]
    lane = -1 if stick is None else strides[stick]
    return Pin(shape, folded, (*sizes, _LANES), (*maps, lane))


def _graph(shape: tuple[int, ...], where: str | None, pin: Pin | None) -> JsonObject:
    """``where`` is the value that has the pin: an input, a value in the middle, an output."""
    layouts = {} if pin is None or where is None else {where: pin.to_json()}
    inputs = [tensor(name, *shape) | {"layout": layouts[name]} for name in ("a", "b") if name in layouts]
    inputs += [tensor(name, *shape) for name in ("a", "b") if name not in layouts]
    order = list(range(len(shape)))[::-1]
    nodes = [
        node("u", "add", "a", "b", layout=layouts.get("u")),
        node("v", "permute", "u", dims=order),
        node("w", "maximum", "v", 0.5),
        node("x", "permute", "w", dims=order),
        node("y", "sub", "x", "a", layout=layouts.get("y")),
    ]
    return graph_data(inputs, nodes, ["y"])


def _refused_by_host_copies(pin: Pin) -> str | None:
    """Return the code under which no conversion table follows the layout, if so: a ragged tile of sticks."""
    try:
        layout = DeviceLayout(pin.device_size, pin.stride_map, DeviceFormat.SEN169_FP16, pin.shape)
    except SpyrecError as error:
        return only_diagnostic(error).code
    return None if layout.host_strides == row_major_strides(pin.shape) else "SPY0307"


def _run(bundle: Bundle, data: JsonObject) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    return spyrec.run(bundle, random_arrays(data)).outputs["y"]


@examples(25)
@given(_pins(), st.sampled_from(("a", "u", "y")))
def test_a_pinned_layout_changes_no_number(pin: Pin, where: str) -> None:
    data = _graph(pin.shape, where, pin)
    refused = None if where == "u" else _refused_by_host_copies(pin)
    if refused is not None:
        with pytest.raises(SpyrecError) as caught:
            spyrec.compile(data)
        found = only_diagnostic(caught.value)
        assert found.code == refused
        assert found.location is not None
        assert str(found.location.pointer).endswith("/layout")
        return
    bundle = spyrec.compile(data)
    plain = _graph(pin.shape, None, None)
    np.testing.assert_array_equal(_run(bundle, data), _run(spyrec.compile(plain), plain))
    if where != "u":
        name = dict(bundle.manifest.outputs).get(where, where)
        (argument,) = (item for item in bundle.manifest.arguments if item.name == name)
        assert argument.shape == pin.shape
        assert argument.device_size == pin.device_size
        assert argument.stride_map == pin.stride_map


@examples(100)
@given(_pins())
def test_no_more_dims_are_folded_than_the_layout_needs(pin: Pin) -> None:
    assert len(folded_shape(pin.device_size, pin.stride_map, pin.shape)) >= len(pin.folded)


@pytest.mark.parametrize(
    ("shape", "device_size", "stride_map", "wanted"),
    [
        ((40, 60), (38, 64), (64, 1), (2400,)),
        ((40, 64), (40, 64), (64, 1), (40, 64)),
        ((4, 40, 60), (4, 38, 64), (2400, 64, 1), (4, 2400)),
        ((4, 40, 60), (1, 60, 160, 64), (-1, 1, 60, -1), (160, 60)),
        ((40, 60), (37, 64), (64, 1), (40, 60)),
    ],
)
def test_folding_gives_the_shape_that_the_layout_walks(
    shape: tuple[int, ...], device_size: tuple[int, ...], stride_map: tuple[int, ...], wanted: tuple[int, ...]
) -> None:
    assert folded_shape(device_size, stride_map, shape) == wanted
