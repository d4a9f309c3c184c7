"""Every op that PyTorch 2.13 tags as core ATen is an op of the catalogue, has one that says the same, or is refused.

``tests/fixtures/core_aten_2_13.txt`` holds the names, overloads dropped, as PyTorch's dispatcher tells them.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from spyrec.diagnostics import Diagnostic, SpyrecError
from spyrec.ir.opdef import catalogue
from spyrec.ir.reader import read_graph_data
from spyrec.ir.refused_ops import OTHER_NAMES, REFUSED_OPS
from tests.support.graph_files import graph_data, node, tensor

CORE = (Path(__file__).parent.parent / "fixtures" / "core_aten_2_13.txt").read_text(encoding="utf-8").split()
PUBLIC = {item.name for item in catalogue().values() if item.is_public}


def diagnostic_of(op: str) -> Diagnostic:
    with pytest.raises(SpyrecError) as caught:
        read_graph_data(graph_data([tensor("x", 4)], [node("y", op, "x")], ["y"]))
    return caught.value.diagnostics[0]


def test_every_core_op_is_computed_or_refused_by_name() -> None:
    assert len(CORE) == 164
    assert sorted(CORE) == CORE
    computed = {name for name in CORE if {name, *OTHER_NAMES.get(name, ())} & PUBLIC}
    assert sorted(set(CORE) - computed - set(REFUSED_OPS)) == []


def test_an_op_is_computed_or_refused_and_never_both() -> None:
    assert not PUBLIC & set(REFUSED_OPS)
    assert not PUBLIC & set(OTHER_NAMES)
    assert not set(OTHER_NAMES) & set(REFUSED_OPS)


@pytest.mark.parametrize("name", sorted(REFUSED_OPS))
def test_a_refused_op_says_why(name: str) -> None:
    found = diagnostic_of(name)
    assert (found.code, found.location and found.location.pointer) == ("SPY0226", "/nodes/0/op")
    assert found.message == f"{name} cannot be computed: {REFUSED_OPS[name]}"
    assert REFUSED_OPS[name][0].islower()


def test_another_name_is_answered_with_the_op_that_says_the_same() -> None:
    found = diagnostic_of("_softmax")
    assert (found.code, found.hint) == ("SPY0118", "here it is softmax")
    assert diagnostic_of("alias").hint == "here it is clone"
    assert diagnostic_of("copy").hint == "here it is to or expand"
    assert diagnostic_of("fold").hint == "here it is col2im"
    assert diagnostic_of("grid_sample").hint == "here it is grid_sampler_2d"


def test_a_name_that_an_op_says_it_goes_by_in_pytorch_is_answered_with_that_op() -> None:
    summaries = {item.name: item.summary for item in catalogue().values() if item.is_public}
    said = [(name, found) for name, text in summaries.items() for found in re.findall(r"torch[\w.]*\.(\w+)", text)]
    assert said
    for name, found in said:
        assert found == name or name in OTHER_NAMES.get(found, ()), (name, found)
