"""The search for copies: what it finds for one layout and one kernel, it does not look for again for the next."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest

from spyrec.hardware.dtypes import DeviceFormat
from spyrec.ir.access import Access
from spyrec.ir.device_access import Movement
from spyrec.ir.device_layout import BufferLayout
from spyrec.ir.kernel_form import OperandUse, Rule
from spyrec.passes.assign_layouts import realize as module
from spyrec.passes.assign_layouts.realize import Realization, Source, forms_of, realize

FORMAT = DeviceFormat.SEN169_FP16
SHAPES = [(3, 65), (2, 5, 64), (4, 1, 130)]
Asked = Counter[tuple[OperandUse, OperandUse]]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """Count how often it is asked whether one copy can be made, with nothing known at first."""
    found: Asked = Counter()
    right = module.copy_rule

    def counted(read: OperandUse, write: OperandUse) -> Rule | None:
        found[read, write] += 1
        return right(read, write)

    monkeypatch.setattr(module, "copy_rule", counted)
    _forget()
    return found


def _forget() -> None:
    module._copies_of.cache_clear()  # pyright: ignore[reportPrivateUsage]


def _found(shape: tuple[int, ...], first: BufferLayout, wanted: BufferLayout) -> Realization | None:
    """Return the copies from one layout to a kernel that reads another one alone, its dims in reverse."""
    access = Access.identity(shape).permute(tuple(reversed(range(len(shape)))))

    def accept(_: Access, layout: BufferLayout, held: tuple[int, ...], movement: Movement) -> bool:
        assert movement == ()
        return layout == wanted and held == shape

    return realize(Source(shape, FORMAT, first, access), accept)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_copy_is_tried_once_for_all_layouts_of_an_operand_and_all_its_readers(
    shape: tuple[int, ...], asked: Asked
) -> None:
    forms = forms_of(shape, FORMAT)
    for first, wanted in product(forms, forms):
        assert _found(shape, first, wanted) is not None
    assert asked
    assert max(asked.values()) == 1


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_what_is_known_changes_no_copies(shape: tuple[int, ...]) -> None:
    forms = forms_of(shape, FORMAT)
    for first, wanted in product(forms, forms):
        known = _found(shape, first, wanted)
        _forget()
        assert _found(shape, first, wanted) == known
