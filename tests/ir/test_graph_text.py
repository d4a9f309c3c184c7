"""What of a graph file is taken without pydantic is what pydantic takes, as the same record."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path

import pytest
from pydantic import ValidationError

from spyrec.files.json_values import Unlike
from spyrec.ir.graph_model import GraphModel, as_text
from spyrec.ir.graph_text import GraphText, take_graph
from tests.ir.graphs import everything
from tests.support.fuzzing.mutations import damage

ROOT = Path(__file__).resolve().parent.parent.parent
GRAPHS = sorted((ROOT / "examples").rglob("graph.json"))


def taken(data: object) -> GraphText | None:
    try:
        return take_graph(data)
    except Unlike:
        return None


def checked(data: object) -> GraphText | None:
    try:
        return as_text(GraphModel.model_validate(data))
    except ValidationError:
        return None


@pytest.mark.parametrize("seed", range(8))
def test_damaged_files_are_taken_where_pydantic_takes_them(seed: int) -> None:
    generator = random.Random(seed)
    found: list[bool] = []
    for _ in range(300):
        data = everything()
        data["loops"] = [{"dim": ["A"], "tiles": 2, "body": ["y", {"dim": "B", "tile_size": 64, "body": ["z"]}]}]
        damage(data, generator)
        right = taken(data)
        assert right == checked(data)
        assert repr(right) == repr(checked(data))  # 1 is not True, nor 1.0
        found.append(right is not None)
    assert {True, False} == set(found)


@pytest.mark.parametrize("path", GRAPHS, ids=lambda path: path.parent.name)
def test_graphs_of_the_examples_are_taken(path: Path) -> None:
    data = json.loads(path.read_text(encoding="utf-8"))
    assert taken(data) == checked(data)
    assert taken(data) is not None


class Text(str):
    """No text of JSON."""

    __slots__ = ()


ODD: Mapping[str, object] = {
    "name": Text("x"), "dims": {Text("A"): 1}, "outputs": ("x",), "nodes": ({"name": "x", "op": "exp"},),
    "inputs": [{"name": "x", "shape": [True], "dtype": "float16"}], "loops": [{"dim": [], "body": ["x"]}],
    "$schema": "\ud800", "constants": None, "schema_": "x",
}  # fmt: skip


@pytest.mark.parametrize("key", ODD)
def test_what_is_not_plain_json_is_left_to_pydantic(key: str) -> None:
    assert taken({"format": "spyrec.graph/1", "outputs": ["x"]}) is not None
    assert taken({"format": "spyrec.graph/1", "outputs": ["x"], key: ODD[key]}) is None


def test_loops_within_themselves_are_left_to_pydantic() -> None:
    loop: dict[str, object] = {"dim": "A", "tiles": 2}
    loop["body"] = [loop]
    assert taken({"format": "spyrec.graph/1", "outputs": ["x"], "loops": [loop]}) is None
