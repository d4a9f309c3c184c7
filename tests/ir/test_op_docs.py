"""What the page of ops says of where an op is computed and what it refuses, against the compiler itself."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from spyrec.diagnostics import SpyrecError
from spyrec.ir.attribute_text import attribute_fields, write_value
from spyrec.ir.op_docs import details, docs_page, op_record, places_text, roundings_text
from spyrec.ir.op_places import CLASSES, HOST, places
from spyrec.ir.opdef import Array, Centre, OpKind, Roundings, catalogue
from spyrec.ir.reader import read_graph_data
from spyrec.ir.refused_ops import REFUSED_ARGUMENTS, REFUSED_OPS
from spyrec.ir.samples import f16
from tests.support.graph_files import graph_data, node, tensor

PUBLIC = [item for item in catalogue().values() if item.is_public]


def test_places_are_what_is_known_of_some_ops() -> None:
    wanted = {"16-bit": ("`add`",), "float32": ("`add`",), "int": (HOST,), "bool": (HOST,)}
    assert places(catalogue()["add"]) == wanted
    assert places_text(catalogue()["reshape"]) == "16-bit, float32, int, bool: view"
    assert places(catalogue()["softmax"])["16-bit"] == ("decomposed",)
    assert set(places(catalogue()["cumsum"]).values()) == {(HOST,)}


@pytest.mark.parametrize("definition", PUBLIC, ids=lambda item: item.name)
def test_every_op_has_a_place_for_each_dtype_of_its_samples(definition: object) -> None:
    item = next(item for item in PUBLIC if item is definition)
    found = places(item)
    known = {dtype for dtypes in CLASSES.values() for dtype in dtypes}
    takes = {operand.dtype for types, _ in item.samples for operand in types if operand is not None}
    assert found or item.kind is OpKind.CREATION or not takes <= known
    if any(sample[0][:1] == (f16(3, 5),) for sample in item.samples):
        assert "16-bit" in found
    assert set(found) <= set(CLASSES)
    assert "where      " in details(item)


def test_every_op_and_every_refusal_stands_on_the_page() -> None:
    rows = [line for line in docs_page().splitlines() if line.startswith("| `")]
    assert all(sum(row.startswith(f"| `{item.name}(") for row in rows) == 1 for item in PUBLIC)
    assert all(f"| `{name}` | {reason} |" in rows for name, reason in REFUSED_OPS.items())


ARGUMENTS = [(op, text) for op, texts in REFUSED_ARGUMENTS.items() for text in texts]


@pytest.mark.parametrize(("op", "text"), ARGUMENTS)
def test_an_argument_that_the_page_calls_refused_is_refused(op: str, text: str) -> None:
    if op not in catalogue():
        pytest.skip("no such op")
    definition = catalogue()[op]
    types, sample = definition.samples[0]
    name, _, value = text.partition("=")
    if name not in attribute_fields(definition.attributes):
        inputs = [tensor(f"x{index}", *item.shape, dtype=item.dtype.value) for index, item in enumerate(types) if item]
        call = node("y", op, *(str(item["name"]) for item in inputs), **{name: 1})
        with pytest.raises(SpyrecError) as caught:
            read_graph_data(graph_data(inputs, [call], ["y"]))
        assert "SPY0121" in {item.code for item in caught.value.diagnostics}
        return
    given = json.loads(value or ("2" if name == "divisor_override" else "0.5"))
    inputs = [tensor(f"x{index}", *item.shape, dtype=item.dtype.value) for index, item in enumerate(types) if item]
    fields = attribute_fields(definition.attributes)
    required = {key: write_value(getattr(sample, key)) for key, field in fields.items() if field.is_required}
    call = node("y", op, *(str(item["name"]) for item in inputs), **{**required, name: given})
    with pytest.raises(SpyrecError) as caught:
        read_graph_data(graph_data(inputs, [call], ["y"]))
    location = caught.value.diagnostics[0].location
    assert location is not None
    assert (location.pointer or "").startswith(f"/nodes/0/attrs/{name}")


def _first_of_all(operands: Sequence[Array | None], _: object) -> Array:
    assert operands[0] is not None
    return operands[0]


def _nothing(x: Array, _: object) -> npt.NDArray[np.float64]:
    return np.zeros(x.shape, np.float64)


def test_all_that_an_op_states_of_its_roundings_is_told() -> None:
    """A field of :class:`Roundings` that the text leaves out would be a silent allowance of ``--check``."""
    abs_op = catalogue()["abs"]
    stated: dict[str, Any] = {
        "result": 3.0,
        "operands": 2.0,
        "centre": Centre("the mean", _nothing),
        "gated": _first_of_all,
    }
    assert stated.keys() == {field.name for field in fields(Roundings)}
    plain = replace(abs_op, roundings=Roundings(1.0))
    for name, value in stated.items():
        other = replace(abs_op, roundings=replace(Roundings(1.0), **{name: value}))
        assert roundings_text(other) != roundings_text(plain), name
        assert op_record(other)["roundings"] != op_record(plain)["roundings"], name


def test_the_page_names_the_gate_of_each_op_that_has_one() -> None:
    gated = {item.name for item in catalogue().values() if item.roundings is not None and item.roundings.gated}
    assert {"silu", "mish", "glu"} <= gated
    rows = {row.split("`")[1].split("(")[0]: row for row in docs_page().splitlines() if row.startswith("| `")}
    assert {name for name, row in rows.items() if "of a gate below" in row} == {
        item for item in gated if catalogue()[item].is_public
    }
