"""What depends on constants alone is computed when a graph is compiled, and is a constant of its programs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import spyrec
from spyrec.ir.parts import HostPart
from spyrec.ir.reader import read_graph_data
from spyrec.passes.base import PipelineOptions
from spyrec.passes.fold_constants import MOST_ELEMENTS, folded_values
from spyrec.passes.parts import split

JsonObject = dict[str, object]
X = np.random.default_rng(0).standard_normal((8, 64)).astype(np.float16)


def node(name: str, op: str, inputs: list[object], **attributes: object) -> JsonObject:
    return {"name": name, "op": op, "inputs": inputs, "attrs": attributes}


def graph(nodes: list[JsonObject], outputs: list[str], **others: object) -> JsonObject:
    inputs = [{"name": "x", "shape": [8, 64], "dtype": "float16"}]
    return {"format": "spyrec.graph/1", "name": "g", "inputs": inputs, "nodes": nodes, "outputs": outputs, **others}


def rotary(*more: JsonObject) -> JsonObject:
    """A table exp(-row column / 64) of position ids and a row of rates, beside an operation on the input."""
    rates = (-np.arange(64) / 64.0).tolist()
    return graph(
        [
            node("position", "arange", [], end=8),
            node("row", "to", ["position"], dtype="float32"),
            node("rows", "unsqueeze", ["row"], dim=1),
            node("angle", "mul", ["rows", "rate"]),
            node("wave", "exp", ["angle"]),
            node("table", "to", ["wave"], dtype="float16"),
            node("y", "mul", ["x", "table"]),
            *more,
        ],
        ["y", *(str(item["name"]) for item in more)],
        constants=[{"name": "rate", "shape": [64], "dtype": "float32", "value": rates}],
    )


def run(data: JsonObject, directory: Path | None = None) -> dict[str, npt.NDArray[np.generic]]:
    bundle = spyrec.compile(data)
    if directory is not None:
        bundle.save(directory)
    found = spyrec.run(bundle if directory is None else directory, {"x": X}, spyrec.RunOptions(check=True))
    assert found.check is not None
    assert all(report.ok for report in found.check.values()), found.check
    return dict(found.outputs)


def test_a_table_of_positions_is_a_constant_of_one_program() -> None:
    bundle = spyrec.compile(rotary())
    assert bundle.manifest.host_steps == ()
    assert [item.name for item in bundle.manifest.arguments] == ["x", "table.folded", "y"]
    assert len(bundle.programs) == 1


def test_the_table_is_right_and_the_check_evaluates_what_the_user_wrote(tmp_path: Path) -> None:
    wanted = X * np.exp(-np.arange(8)[:, None] * np.arange(64) / 64.0)
    for directory in None, tmp_path / "bundle":
        np.testing.assert_allclose(run(rotary(), directory)["y"].astype(float), wanted, rtol=2.0**-8, atol=1e-9)
    assert '"arange"' in (tmp_path / "bundle" / "graph.json").read_text()


def test_tables_are_computed_in_float64_and_rounded_once() -> None:
    values = folded_values(read_graph_data(rotary(), None, Path()))
    np.testing.assert_array_equal(values["table"], np.exp(np.arange(8.0)[:, None] * -(np.arange(64) / 64.0)))


def test_what_the_host_reads_or_the_graph_gives_is_made_by_a_step_too() -> None:
    data = graph(
        [
            node("ones", "ones", [], size=[8, 64], dtype="bool"),
            node("mask", "tril", ["ones"]),
            node("other", "logical_not", ["mask"]),
            node("masked", "where", ["mask", "x", -1.0]),
            node("sums", "cumsum", ["x"], dim=0),
            node("chosen", "where", ["other", "sums", 0.5]),
            node("count", "count_nonzero", ["other"]),
        ],
        ["masked", "chosen", "mask", "count"],
    )
    lower = np.tril(np.ones((8, 64), np.bool_))
    found = run(data)
    np.testing.assert_array_equal(found["mask"], lower)
    np.testing.assert_array_equal(found["count"], np.count_nonzero(~lower))
    np.testing.assert_allclose(found["masked"].astype(float), np.where(lower, X, -1.0), rtol=2.0**-9)
    sums = np.cumsum(X.astype(float), 0)
    np.testing.assert_allclose(found["chosen"].astype(float), np.where(lower, 0.5, sums), rtol=2.0**-8, atol=0.01)


def test_a_graph_of_constants_alone_is_a_step_of_the_host() -> None:
    data = graph([node("p", "arange", [], end=4), node("q", "mul", ["p", "p"])], ["q"])
    assert [type(part) for part in split(read_graph_data(data, None, Path()), PipelineOptions())[1]] == [HostPart]
    assert run(data)["q"].tolist() == [0, 1, 4, 9]


def test_a_table_may_pass_through_integers_that_no_device_holds() -> None:
    data = graph(
        [
            node("p", "arange", [], end=64),
            node("wide", "mul", ["p", 2_000_000_000]),
            node("f", "to", ["wide"], dtype="float32"),
            node("small", "mul", ["f", 2.0**-31]),
            node("h", "to", ["small"], dtype="float16"),
            node("y", "add", ["x", "h"]),
        ],
        ["y"],
    )
    np.testing.assert_allclose(run(data)["y"].astype(float), X + np.arange(64) * 2e9 / 2**31, rtol=2.0**-8, atol=0.01)


@pytest.mark.parametrize("dtype", ["int64", "int32"])
@pytest.mark.parametrize(
    ("number", "divisor", "shown"), [(0.0, 0.0, "nan"), (-1.0, 0.0, "-inf"), (1e30, 1.0, "1e[+]30")]
)
def test_a_constant_that_is_no_integer_is_refused_when_a_graph_is_compiled(
    number: float, divisor: float, shown: str, dtype: str
) -> None:
    nodes = [
        node("p", "full", [], size=[2], fill_value=number, dtype="float32"),
        node("q", "div", ["p", divisor]),
        node("i", "to", ["q"], dtype=dtype),
        node("y", "index_select", ["x", "i"], dim=0),
    ]
    with pytest.raises(spyrec.SpyrecError, match=f'SPY0318.*"i" holds {shown} at'):
        spyrec.compile(graph(nodes, ["y"]))


def test_the_graphs_own_constants_stay_what_they_are() -> None:
    """What the device computes of them is the device's: bundles of such graphs have the bytes that they had."""
    constants = [{"name": "w", "shape": [64], "dtype": "float16", "value": [1.5] * 64}]
    data = graph([node("e", "exp", ["w"]), node("y", "mul", ["x", "e"])], ["y"], constants=constants)
    read = read_graph_data(data, None, Path())
    assert folded_values(read) == {}
    assert split(read, PipelineOptions()) == (read, (read,))


def test_large_values_and_pinned_ones_are_not_folded() -> None:
    size = MOST_ELEMENTS + 1
    large = graph([node("p", "arange", [], end=size), node("q", "mul", ["p", 2])], ["q"])
    assert folded_values(read_graph_data(large, None, Path())) == {}
    pinned = rotary()
    nodes = pinned["nodes"]
    assert isinstance(nodes, list)
    nodes[5]["layout"] = {"dim_order": [0, 1]}
    assert "table" not in folded_values(read_graph_data(pinned, None, Path()))


def test_a_name_that_a_folded_value_would_get_may_be_taken() -> None:
    found = run(rotary(node("table.folded", "neg", ["y"])))
    np.testing.assert_array_equal(found["table.folded"], -found["y"].astype(float))
