"""Damaged graphs: a reading ends in a right graph or in diagnostics, never in another exception."""

from __future__ import annotations

import json
import random
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from spyrec.diagnostics import SpyrecError
from spyrec.diagnostics.codes import CODES
from spyrec.hardware.dtypes import DType
from spyrec.ir.attribute_text import attribute_fields, write_attributes
from spyrec.ir.evaluate import evaluate
from spyrec.ir.graph import Graph
from spyrec.ir.opdef import OpDef, catalogue
from spyrec.ir.reader import read_graph, read_graph_data
from spyrec.ir.text import print_ir, read_ir
from spyrec.ir.verify import verify
from spyrec.ir.writer import write_graph
from tests.ir.graphs import everything, write_files
from tests.support.fuzzing.mutations import NUMBERS, Json, damage


def check_refusal(error: SpyrecError, codes: Collection[str] = CODES) -> None:
    assert error.diagnostics
    for item in error.diagnostics:
        assert item.code in codes
        assert item.message
        assert item.render()


@pytest.mark.parametrize("seed", range(6))
def test_a_mutated_graph_gives_diagnostics_or_a_graph_that_verifies(tmp_path: Path, seed: int) -> None:
    home = write_files(tmp_path).parent
    generator = random.Random(seed)
    accepted = 0
    for _ in range(250):
        data = everything()
        damage(data, generator)
        try:
            graph = read_graph_data(data, None, home)
        except SpyrecError as error:
            check_refusal(error)
            continue
        accepted += 1
        assert verify(graph) == []
        text = print_ir(graph)
        again = read_ir(text).graph
        assert print_ir(again) == text
        assert isinstance(again, Graph)
        in_files = {name: again.constants[name] for name, item in graph.constants.items() if item.array is None}
        assert again == replace(graph, constants={**graph.constants, **in_files}), "a text does not say where files lie"
        assert write_graph(graph)
    assert accepted


def test_a_mutated_text_gives_diagnostics_or_a_graph(tmp_path: Path) -> None:
    path = write_files(tmp_path)
    text = json.dumps(everything()).encode()
    generator = random.Random(11)
    accepted = refused = 0
    for _ in range(300):
        start = generator.randrange(len(text))
        junk = bytes(generator.choice(b'{}[]",:\\ue+-0159\x00\xff\n') for _ in range(generator.randrange(3)))
        path.write_bytes(text[:start] + junk + text[start + generator.randrange(4) :])
        try:
            graph = read_graph(path)
        except SpyrecError as error:
            check_refusal(error)
            refused += 1
        else:
            assert verify(graph) == []
            accepted += 1
    assert min(accepted, refused) > 0


SQUARES: list[list[int]] = [[4], [4, 4]]
SHAPES: list[list[int]] = [[], [1], [4], [3, 4], [4, 3], [1, 4], [2, 3, 4], [2, 4, 4], [2, 1, 3, 4]]
DTYPES = ["float16", "float16", "float16", "float32", "bool", "int64"]
ATTRIBUTE_LISTS: list[Json] = [[0], [1], [-1], [4], [12], [0, 1], [1, 0], [2, 0, 1], [3, 4], [-1, 4], [2, 2, 3]]
RARELY_RIGHT = ("narrow", "one_hot", "split_with_sizes", "unflatten", "movedim", "moveaxis")
"""Ops of which few random calls are right: attributes have to agree with each other."""

ATTRIBUTES = [*NUMBERS[:8], 0.5, -2, 4, "none", "float16", "A", *ATTRIBUTE_LISTS]


def call_near_a_sample(op: OpDef, generator: random.Random) -> dict[str, Json]:
    """Return a graph of a call that the op's declaration shows, half of the time with one mistake."""
    types, chosen = generator.choice(op.samples)
    inputs: list[dict[str, Json]] = [
        {"name": f"x{index}", "shape": list(item.shape), "dtype": item.dtype.value}
        for index, item in enumerate(types)
        if item is not None
    ]
    attributes = write_attributes(chosen)
    mistake = generator.randrange(4)
    if mistake == 0 and inputs:
        generator.choice(inputs)["shape"] = list(generator.choice(SHAPES))
    elif mistake == 1 and attributes:
        attributes[generator.choice(list(attributes))] = generator.choice(ATTRIBUTES)
    operands: list[Json] = [None if item is None else f"x{index}" for index, item in enumerate(types)]
    node: dict[str, Json] = {"name": "y", "op": op.name, "inputs": operands, "attrs": attributes}
    return {"format": "spyrec.graph/1", "dims": {"A": 3}, "inputs": [*inputs], "nodes": [node], "outputs": ["y"]}


WRONG_NUMBERS = {"SPY0231", "SPY0232"}
"""What only the numbers of an operand show: an index past the elements, a mask of more places than values."""


@pytest.mark.parametrize("op", [op for op in catalogue().values() if op.is_public], ids=lambda op: op.name)
def test_any_call_of_an_op_is_refused_or_infers_what_its_reference_makes(op: OpDef) -> None:
    generator = random.Random(op.name)
    fields = list(attribute_fields(op.attributes).values())
    accepted = 0
    is_list = op.result_count is None and not op.is_first_enough
    for number in range(1200 if op.name in RARELY_RIGHT or is_list else 150):
        dtype = generator.choice(DTYPES)
        dtypes = [dtype if generator.random() < 0.9 else generator.choice(DTYPES) for _ in range(4)]
        if op.name == "where":
            dtypes[0] = "bool"
        shapes = SQUARES if generator.random() < 0.5 else [generator.choice(SHAPES) for _ in range(2)]
        inputs = [
            {"name": f"x{index}", "shape": generator.choice(shapes), "dtype": item} for index, item in enumerate(dtypes)
        ]
        fewest = sum(not spec.is_optional for spec in op.operands)
        count = generator.randint(fewest, len(op.operands)) + (generator.random() < 0.1)
        operands: list[Json] = [generator.choice(["x0", "x1", "x2", "x3"]) for _ in range(min(count, 4))]
        if op.name == "where" and operands:
            operands[0] = "x0"
        attributes = {
            field.name: generator.choice(ATTRIBUTES if field.annotation is not bool else [*ATTRIBUTES[-2:], False, 0.5])
            for field in fields
            if field.is_required or generator.random() < 0.3
        }
        node: dict[str, Json] = {"name": "y", "op": op.name, "inputs": operands, "attrs": attributes}
        if is_list:
            results: list[Json] = ["y", "y1", "y2"]
            node["outputs"] = results[: generator.randint(1, 3)]
        data = {"format": "spyrec.graph/1", "dims": {"A": 3}, "inputs": inputs, "nodes": [node], "outputs": ["y"]}
        if number % 5 == 0:
            data = call_near_a_sample(op, generator)
        try:
            graph = read_graph_data(data)
        except SpyrecError as error:
            check_refusal(error)
            continue
        accepted += 1
        assert verify(graph) == []
        wanted = graph.type_of("y")
        if wanted.element_count < 10**5:
            numbers = {
                name: np.ones(graph.type_of(name).shape, graph.type_of(name).dtype.carrier) for name in graph.inputs
            }
            try:
                result = evaluate(graph, numbers)["y"]
            except SpyrecError as error:
                check_refusal(error, WRONG_NUMBERS)
                continue
            assert result.shape == wanted.shape
            kind = "b" if wanted.dtype is DType.BOOL else "f" if wanted.dtype.is_float else "i"
            assert result.dtype.kind == kind
    assert accepted
