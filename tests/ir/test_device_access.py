from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spyrec.hardware.dtypes import DeviceFormat
from spyrec.ir.access import Access
from spyrec.ir.device_access import DeviceAccess, Inexpressible, Variable, cut_points, express, refine
from spyrec.ir.device_layout import BufferLayout, canonical_layout, pinned_layout
from spyrec.ir.kernel_form import OUTPUT, KernelForm, KernelShape, OperandUse, Rule, kernel_form
from spyrec.layout.device_layout import DeviceLayout
from spyrec.layout.tiling import row_major_strides
from spyrec.passes.assign_layouts.realize import forms_of
from tests.support.device_memory import accessed_address, element_address
from tests.support.examples import examples
from tests.support.view_chains import ViewChain, view_chains

HALF, SINGLE, BYTE = DeviceFormat.SEN169_FP16, DeviceFormat.IEEE_FP32, DeviceFormat.SENINT8
_EXTENTS = (1, 2, 3, 4, 5, 6, 8, 12, 32, 33, 63, 64, 65, 70, 96, 128, 130, 192, 256)


@st.composite
def shapes(draw: st.DrawFn, most: int = 20_000) -> tuple[int, ...]:
    """Draw a shape of at most ``most`` elements."""
    shape: list[int] = []
    for _ in range(draw(st.integers(0, 4))):
        fitting = [size for size in _EXTENTS if math.prod(shape) * size <= most]
        shape.append(draw(st.sampled_from(fitting)))
    return tuple(draw(st.permutations(shape)))


@st.composite
def tilings(draw: st.DrawFn, shape: tuple[int, ...], device_format: DeviceFormat) -> DeviceLayout:
    """Draw a layout as a user may pin it: any dim in the sticks, the others cut into tiles, in any order."""
    lanes = device_format.elements_per_stick
    assert lanes is not None
    strides = row_major_strides(shape)
    stick = draw(st.sampled_from(range(len(shape))))
    dims: list[tuple[int, int]] = []
    for dim, size in enumerate(shape):
        unit, left = (lanes, -(-size // lanes)) if dim == stick else (1, size)
        while left > 1 and draw(st.booleans()):
            tile = draw(st.sampled_from([d for d in range(1, left + 1) if left % d == 0]))
            dims.append((tile, strides[dim] * unit))
            unit, left = unit * tile, left // tile
        dims.append((left, strides[dim] * unit))
    dims = list(draw(st.permutations(dims)))
    sizes, maps = [size for size, _ in dims], [stride if size > 1 else -1 for size, stride in dims]
    return DeviceLayout((*sizes, lanes), (*maps, strides[stick] if shape[stick] > 1 else -1), device_format)


@st.composite
def placed_buffers(draw: st.DrawFn) -> tuple[tuple[int, ...], BufferLayout]:
    shape = draw(shapes())
    device_format = draw(st.sampled_from((HALF, HALF, SINGLE, BYTE)))
    if shape and draw(st.booleans()):
        tiling = draw(tilings(shape, device_format))
        layout = pinned_layout(tiling, shape)
        if layout is not None:
            return shape, layout
    forms = forms_of(shape, device_format)
    unpadded = [form for form in forms if form == canonical_layout(shape, device_format, form.stick_dim)]
    return shape, draw(st.sampled_from(unpadded))


@examples(80)
@given(placed_buffers())
def test_the_digits_of_a_layout_are_where_its_strides_put_each_element(
    placed: tuple[tuple[int, ...], BufferLayout],
) -> None:
    shape, layout = placed
    seen: set[int] = set()
    for index in np.ndindex(*shape):
        place = 0
        for digit in layout.digits:
            position = 0 if digit.host_dim is None else index[digit.host_dim] // digit.divisor % digit.extent
            place = place * digit.extent + position
        seen.add(place)
        if math.prod(shape) <= 3000:
            assert place == element_address(layout.device, shape, index)
    assert len(seen) == math.prod(shape), "two elements share a place"
    assert max(seen) < math.prod(layout.device.device_size)
    assert layout.size_bytes == math.prod(layout.device.device_size) // layout.lane_extent * 128


@examples(80)
@given(shapes().filter(bool), st.sampled_from((HALF, SINGLE, BYTE)), st.data())
def test_every_tiling_that_nests_is_read(
    shape: tuple[int, ...], device_format: DeviceFormat, data: st.DataObject
) -> None:
    tiling = data.draw(tilings(shape, device_format))
    layout = pinned_layout(tiling, shape)
    assert layout is not None, (shape, str(tiling))
    assert layout.device == tiling


def test_a_tiling_that_leaves_elements_out_is_not_read() -> None:
    assert pinned_layout(DeviceLayout((2, 3, 64), (64, 128, 1), HALF), (4, 128)) is None
    assert pinned_layout(DeviceLayout((3, 64), (128, 1), HALF), (3, 128)) is None
    assert pinned_layout(DeviceLayout((5, 64), (7, 1), HALF), (5, 64)) is None


@st.composite
def accessed_buffers(draw: st.DrawFn) -> tuple[ViewChain, BufferLayout]:
    shape, layout = draw(placed_buffers())
    return draw(view_chains(shape, most=4)), layout


def _indices(extents: Sequence[int]) -> list[tuple[int, ...]]:
    """All indices, or corners and a fixed selection of many."""
    count = math.prod(extents)
    numbers = range(count) if count <= 400 else [*range(40), *range(0, count, max(1, count // 300) | 1), count - 1]
    return [tuple(int(at) for at in np.unravel_index(number, tuple(extents))) if extents else () for number in numbers]


def _expressed(access: Access, layout: BufferLayout) -> tuple[tuple[Variable, ...], DeviceAccess] | Inexpressible:
    cuts = cut_points(access, layout)
    variables = cuts if isinstance(cuts, Inexpressible) else refine(access.extents, cuts)
    if isinstance(variables, Inexpressible):
        return variables
    form = express(access, layout, variables)
    return form if isinstance(form, Inexpressible) else (variables, form)


@examples(180)
@given(accessed_buffers())
def test_device_coordinates_denote_the_element_the_access_names(accessed: tuple[ViewChain, BufferLayout]) -> None:
    chain, layout = accessed
    access = chain.access
    if access is None:
        return
    found = _expressed(access, layout)
    if isinstance(found, Inexpressible):
        return
    variables, form = found
    assert math.prod(dim.extent for dim in form.dims) == math.prod(layout.device.device_size)
    for index in _indices(access.extents):
        number = int(chain.numbers[index])
        host = tuple(int(at) for at in np.unravel_index(number, chain.shape)) if chain.shape else ()
        assert accessed_address(form, variables, index) == element_address(layout.device, chain.shape, host), (
            chain.steps,
            str(layout),
            index,
        )


@examples(60)
@given(placed_buffers(), st.data())
def test_permutations_and_broadcasts_of_whole_buffers_are_always_expressible(
    placed: tuple[tuple[int, ...], BufferLayout], data: st.DataObject
) -> None:
    shape, layout = placed
    access = Access.identity(shape).permute(data.draw(st.permutations(range(len(shape)))))
    access = access.expand((3, *access.extents))
    found = _expressed(access, layout)
    assert not isinstance(found, Inexpressible)
    variables, form = found
    assert math.prod(variable.size for variable in variables) == math.prod(access.extents)
    assert (form.lane is None) == (layout.stick_dim is None)


@pytest.mark.parametrize(
    ("access", "text"),
    [
        (Access.identity((4, 128)).window(1, 10, 64, 1), "begins 10 lanes into a stick"),
        (Access.identity((4, 128)).window(1, 0, 64, 2), "not one by one"),
        (Access.identity((7, 128)).window(0, 1, 3, 2), "does not divide into pieces"),
        (Access.identity((4, 96)).reshape((4, 3, 32)), "do not nest|more than one index|does not"),
    ],
)
def test_what_sticks_cannot_say_is_refused_with_the_reason(access: Access | None, text: str) -> None:
    assert access is not None
    layout = canonical_layout((7, 128) if access.coordinates[0].terms[0].coefficient == 2 else (4, 128), HALF, 1)
    found = _expressed(access, layout)
    assert isinstance(found, Inexpressible)
    assert re.search(text, found.reason)


# --- rules of the op classes: one case accepted, its neighbour refused ---------------------------------------------


@dataclass(frozen=True, slots=True)
class _Operand:
    """A whole or viewed buffer: host shape, dim in the sticks, access, format."""

    shape: tuple[int, ...]
    stick: int | None
    access: Access | None = None
    device_format: DeviceFormat = HALF
    multiple: int = 1


def _form(shape: KernelShape, *operands: _Operand) -> KernelForm | Inexpressible:
    uses = [
        OperandUse(
            number if number < len(operands) - 1 else OUTPUT,
            operand.access or Access.identity(operand.shape),
            canonical_layout(operand.shape, operand.device_format, operand.stick, operand.multiple),
            operand.shape,
        )
        for number, operand in enumerate(operands)
    ]
    return kernel_form(shape, uses)


def _same(*extents: int) -> KernelShape:
    return KernelShape(Rule.SAME_STICK, extents, ())


def _over(shape: Sequence[int], extents: Sequence[int], *sources: int | None) -> Access:
    return Access.identity(shape).over(extents, sources)


def _into(shape: Sequence[int], dim: int, start: int, extent: int) -> Access:
    access = Access.identity(shape).window(dim, start, extent, 1)
    assert access is not None
    return access


_ROWS = KernelShape(Rule.REDUCTION, (6, 70), (1,))
_MEAN = _Operand((6, 1), None, _over((6, 1), (6, 70), 0, None))
_PRODUCT = KernelShape(Rule.CONTRACTION, (6, 70, 64), (2,))
_LEFT = _Operand((6, 64), 1, _over((6, 64), (6, 70, 64), 0, 2))
_RIGHT = _Operand((64, 70), 1, _over((64, 70), (6, 70, 64), 2, 1))
_RESULT = _Operand((6, 70), 1, _over((6, 70), (6, 70, 64), 0, 1))
_TURN = KernelShape(Rule.RESTICKIFY, (64, 128), ())
_CAST = KernelShape(Rule.CAST, (6, 128), ())
_RAGGED_CAST = KernelShape(Rule.CAST, (6, 70), ())
_STATISTICS = KernelShape(Rule.STATISTICS, (6, 70), (1,))
_PAIR = _over((6, 2), (6, 70), 0, None)
_K70 = KernelShape(Rule.CONTRACTION, (6, 5, 70), (2,))

_ACCEPTED: dict[str, tuple[KernelShape, tuple[_Operand, ...]]] = {
    "pointwise, one dim in all sticks": (_same(6, 70), (_Operand((6, 70), 0), _Operand((6, 70), 0))),
    "pointwise, a sparse operand broadcasts along the lanes": (
        _same(6, 70),
        (_Operand((6, 70), 1), _Operand((6, 1), None, _over((6, 1), (6, 70), 0, None)), _Operand((6, 70), 1)),
    ),
    "reduction of the stick": (_ROWS, (_Operand((6, 70), 1), _MEAN)),
    "reduction across sticks": (
        KernelShape(Rule.REDUCTION, (70, 6), (1,)),
        (_Operand((6, 70), 1, _over((6, 70), (70, 6), 1, 0)), _Operand((1, 70), 1, _over((1, 70), (70, 6), None, 0))),
    ),
    "product": (_PRODUCT, (_LEFT, _RIGHT, _RESULT)),
    "product of a ragged K with whole sticks of rows": (
        _K70,
        (
            _Operand((6, 70), 1, _over((6, 70), (6, 5, 70), 0, 2)),
            _Operand((128, 5), 1, _into((128, 5), 0, 0, 70).over((6, 5, 70), (2, 1))),
            _Operand((6, 5), 1, _over((6, 5), (6, 5, 70), 0, 1)),
        ),
    ),
    "restickify": (_TURN, (_Operand((64, 128), 1), _Operand((64, 128), 0))),
    "restickify of ragged dims": (
        KernelShape(Rule.RESTICKIFY, (70, 65), ()),
        (_Operand((70, 65), 1), _Operand((70, 65), 0)),
    ),
    "cast of whole sticks": (_CAST, (_Operand((6, 128), 1), _Operand((6, 128), 1, None, SINGLE))),
    "cast of ragged sticks that pair up": (
        _RAGGED_CAST,
        (_Operand((6, 70), 1), _Operand((6, 70), 1, None, SINGLE, 2)),
    ),
    "sparse cast": (
        KernelShape(Rule.CAST, (6, 1), ()),
        (_Operand((6, 1), None), _Operand((6, 1), None, None, SINGLE, 2)),
    ),
    "store up to the end of the buffer": (
        _same(6, 6),
        (_Operand((6, 6), 1), _Operand((6, 70), 1, _into((6, 70), 1, 64, 6))),
    ),
    "store of whole sticks": (
        _same(6, 64),
        (_Operand((6, 64), 1), _Operand((6, 192), 1, _into((6, 192), 1, 64, 64))),
    ),
    "mean and mean of squares": (_STATISTICS, (_Operand((6, 70), 1), _Operand((6, 2), 1, _PAIR))),
    "eight dims": (_same(*(2,) * 8), (_Operand((2,) * 8, 7), _Operand((2,) * 8, 7))),
    "six dims without sticks": (_same(*(2,) * 6), (_Operand((2,) * 6, None), _Operand((2,) * 6, None))),
}

_REFUSED: dict[str, tuple[KernelShape, tuple[_Operand, ...], str]] = {
    "pointwise, two dims in sticks": (
        _same(6, 70),
        (_Operand((6, 70), 0), _Operand((6, 70), 1)),
        "different dims in their sticks",
    ),
    "pointwise, the lanes are a plain dim of a sparse operand": (
        _same(6, 70),
        (_Operand((6, 70), 1), _Operand((6, 70), None), _Operand((6, 70), 1)),
        "plain dim of another",
    ),
    "pointwise, sparse output": (
        _same(6, 70),
        (_Operand((70,), 0, _over((70,), (6, 70), 1)), _Operand((6, 70), None)),
        "plain dim of another",
    ),
    "reduction of an input without the stick": (
        _ROWS,
        (_Operand((6, 70), None), _Operand((6, 1), 0, _over((6, 1), (6, 70), 0, None))),
        "takes its stick dim from its input|plain dim",
    ),
    "product, the first operand's rows in its sticks": (
        _PRODUCT,
        (_Operand((6, 64), 0, _LEFT.access), _RIGHT, _RESULT),
        "another dim in its sticks",
    ),
    "product, the second operand's K in its sticks": (
        _PRODUCT,
        (_LEFT, _Operand((64, 70), 0, _RIGHT.access), _RESULT),
        "another dim in its sticks",
    ),
    "product of a ragged K without the rows": (
        _K70,
        (
            _Operand((6, 70), 1, _over((6, 70), (6, 5, 70), 0, 2)),
            _Operand((70, 5), 1, _over((70, 5), (6, 5, 70), 2, 1)),
            _Operand((6, 5), 1, _over((6, 5), (6, 5, 70), 0, 1)),
        ),
        "not padded to whole sticks",
    ),
    "product, the first operand varies with the columns": (
        KernelShape(Rule.CONTRACTION, (6, 70, 64), (2,)),
        (_Operand((6, 70, 64), 2), _RIGHT, _RESULT),
        "varies with the columns",
    ),
    "restickify to the same dim": (_TURN, (_Operand((64, 128), 1), _Operand((64, 128), 1)), "keeps the same dim"),
    "restickify that broadcasts": (
        _TURN,
        (_Operand((128,), 0, _over((128,), (64, 128), 1)), _Operand((64, 128), 0)),
        "broadcast",
    ),
    "restickify of a window into the sticks": (
        KernelShape(Rule.RESTICKIFY, (70, 128), ()),
        (_Operand((72, 128), 1, _into((72, 128), 0, 0, 70)), _Operand((70, 128), 0)),
        "window on a dim",
    ),
    "restickify of a window on a ragged stick dim": (
        KernelShape(Rule.RESTICKIFY, (64, 70), ()),
        (_Operand((64, 192), 1, _into((64, 192), 1, 0, 70)), _Operand((64, 70), 0)),
        "window on a ragged",
    ),
    "cast of ragged sticks that do not pair up": (
        _RAGGED_CAST,
        (_Operand((6, 70), 1), _Operand((6, 70), 1, None, SINGLE)),
        "needs 4 sticks",
    ),
    "cast of a window of ragged sticks": (
        _RAGGED_CAST,
        (_Operand((6, 192), 1, _into((6, 192), 1, 0, 70)), _Operand((6, 70), 1, None, SINGLE, 2)),
        "reads or writes a window",
    ),
    "sparse cast of one stick": (
        KernelShape(Rule.CAST, (6, 1), ()),
        (_Operand((6, 1), None), _Operand((6, 1), None, None, SINGLE)),
        "sparse cast needs 2",
    ),
    "sparse cast from the second stick": (
        KernelShape(Rule.CAST, (6, 1), ()),
        (_Operand((6, 64), 1, _into((6, 64), 1, 32, 1), SINGLE), _Operand((6, 1), None)),
        "sparse cast needs 2",
    ),
    "store that ends inside a stick": (
        _same(6, 6),
        (_Operand((6, 6), 1), _Operand((6, 80), 1, _into((6, 80), 1, 64, 6))),
        "overwrite the rest",
    ),
    "store of one lane among neighbours": (
        _same(6, 1),
        (_Operand((6, 1), None), _Operand((6, 80), 1, _into((6, 80), 1, 64, 1))),
        "overwrite the rest",
    ),
    "statistics of a dim that is not in the sticks": (
        _STATISTICS,
        (_Operand((6, 70), 0), _Operand((6, 2), 1, _PAIR)),
        "normalized dim is not in the sticks",
    ),
    "statistics in two sticks": (
        _STATISTICS,
        (_Operand((6, 70), 1), _Operand((6, 2), None, _PAIR)),
        "have to share a stick",
    ),
    "seven dims without sticks": (
        _same(*(2,) * 7),
        (_Operand((2,) * 7, None), _Operand((2,) * 7, None)),
        "9 iteration dims exceed the 8",
    ),
    "nine dims": (_same(*(2,) * 9), (_Operand((2,) * 9, 8), _Operand((2,) * 9, 8)), "9 iteration dims exceed the 8"),
    "eight dims of a product": (
        KernelShape(Rule.CONTRACTION, (2, 2, 2, 2, 2, 2, 2, 64), (7,)),
        (
            _Operand((2, 2, 2, 2, 2, 2, 64), 6, _over((2,) * 6 + (64,), (2,) * 7 + (64,), 0, 1, 2, 3, 4, 5, 7)),
            _Operand((64, 2), 1, _over((64, 2), (2,) * 7 + (64,), 7, 6)),
            _Operand((2,) * 7, 6, _over((2,) * 7, (2,) * 7 + (64,), 0, 1, 2, 3, 4, 5, 6)),
        ),
        "8 iteration dims exceed the 7",
    ),
}


@pytest.mark.parametrize("name", _ACCEPTED)
def test_rules_accept(name: str) -> None:
    shape, operands = _ACCEPTED[name]
    form = _form(shape, *operands)
    assert isinstance(form, KernelForm)
    assert len(form.operands) == len(operands)
    for operand, device in zip(operands, form.operands, strict=True):
        access = operand.access or Access.identity(operand.shape)
        layout = canonical_layout(operand.shape, operand.device_format, operand.stick, operand.multiple)
        for index in _indices(shape.extents):
            place = accessed_address(device, form.variables, index)
            assert place == element_address(layout.device, operand.shape, access.coordinate(index))


@pytest.mark.parametrize("name", _REFUSED)
def test_rules_refuse(name: str) -> None:
    shape, operands, text = _REFUSED[name]
    form = _form(shape, *operands)
    assert isinstance(form, Inexpressible)
    assert re.search(text, form.reason)
