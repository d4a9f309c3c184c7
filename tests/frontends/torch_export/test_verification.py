"""``spyrec import --verify``: a right import is ok, a wrong one is found, and the module that is wrong has its name."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch

import spyrec
from spyrec.cli import main
from spyrec.frontends.model_import.imported import ImportedModel
from spyrec.frontends.model_import.source_graph import ReferenceRun
from spyrec.frontends.torch_export.float64 import run_in_float64
from spyrec.frontends.torch_export.program import read_program
from spyrec.import_verification import States, Verification
from spyrec.ir.graph import Graph
from spyrec.model_import import ImportDType, settled

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(3)
    module = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 32)).eval()
    path = tmp_path_factory.mktemp("verification") / "model.pt2"
    with torch.no_grad():
        torch.export.save(torch.export.export(module, (torch.randn(4, 64),)), str(path))
    return path


def _with_relu_for_tanh(model: ImportedModel) -> ImportedModel:
    """What an importer makes that takes one operation for another."""
    nodes = tuple(replace(node, op="relu") if node.op == "tanh" else node for node in model.graph.nodes)
    assert nodes != model.graph.nodes
    return replace(model, graph=replace(model.graph, nodes=nodes))


def test_a_right_import_is_ok(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", str(program), "-o", str(tmp_path / "m"), "--verify", "2", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["verify"]
    assert [row["seed"] for row in rows] == [0, 1]
    for row in rows:
        assert row["ok"]
        assert 0 < row["error"] <= row["tolerance"] < 0.1
        assert row["bound_ratio"] <= 1


def test_the_example_inputs_are_those_of_the_export(program: Path) -> None:
    source, weights = read_program(program, {})
    torch.manual_seed(3)
    module = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 32)).eval()
    example = torch.randn(4, 64)
    wanted = module.double()(example.double()).detach().numpy()
    reference = run_in_float64(program, {})
    assert reference is not None
    assert np.array_equal(reference.inputs["input"], example.double().numpy())
    assert np.abs(reference.outputs[0] - wanted).max() < 1e-12
    (verdict,) = Verification(program, {}, settled(source, weights, "float16")).verdicts(0, bisect=False)
    assert verdict.ok
    assert verdict.seed is None


@dataclass
class _Pair:
    """Two tensors as one input, of a class that a file's examples are not read with."""

    first: torch.Tensor
    second: torch.Tensor


def test_what_a_file_holds_no_examples_of_is_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Model(torch.nn.Module):  # pyright: ignore[reportUntypedBaseClass] -- torch has no types
        def forward(self, pair: _Pair, mask: torch.Tensor, ignored: torch.Tensor) -> torch.Tensor:
            return torch.matmul(pair.first, pair.second) * mask[:, None]

    torch.export.register_dataclass(_Pair, serialized_type_name="tests.verification.Pair")
    path = tmp_path / "model.pt2"
    given = _Pair(torch.randn(4, 64), torch.randn(64, 32)), torch.ones(4, dtype=torch.int64), torch.randn(3)
    torch.export.save(torch.export.export(Model(), given), str(path))
    assert run_in_float64(path, {}) is None
    assert main(["import", str(path), "-o", str(tmp_path / "m"), "--verify", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["verify"]
    assert row["ok"]
    assert row["seed"] == 0
    assert 0 < row["error"] <= row["tolerance"] < 0.1


def test_a_wrong_import_is_found_and_its_module_named(program: Path) -> None:
    source, weights = read_program(program, {})
    wrong = _with_relu_for_tanh(settled(source, weights, "float16"))
    (verdict,) = Verification(program, {}, wrong).verdicts(0, bisect=True)
    assert not verdict.ok
    assert verdict.error > verdict.tolerance
    assert verdict.bound_ratio <= 1  # the device computes the wrong graph rightly
    assert verdict.module == "1"


class _Embedded(torch.nn.Module):  # pyright: ignore[reportUntypedBaseClass] -- torch has no types
    """Rows of a table, of which the host takes a part: a run of its bundle cannot be bisected."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(10, 64)
        self.layers = torch.nn.ModuleList([torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 32)])

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        value = self.table(tokens)
        for layer in self.layers:
            value = layer(value)
        return value


@pytest.mark.parametrize("is_of_device", [False, True])
def test_the_wrong_module_of_a_model_with_tokens_is_named(
    is_of_device: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(3)
    path = tmp_path / "model.pt2"
    with torch.no_grad():
        torch.export.save(torch.export.export(_Embedded().eval(), (torch.arange(8).remainder(10)[None],)), str(path))
    source, weights = read_program(path, {})
    model = settled(source, weights, "float16")

    def miscompiled(graph: Graph) -> spyrec.Bundle:
        """Compile another operation than the graph, which the check reads, says."""
        right = spyrec.compile(graph)
        nodes = tuple(replace(node, op="relu") if node.op == "tanh" else node for node in graph.nodes)
        return replace(spyrec.compile(replace(graph, nodes=nodes)), graph_json=right.graph_json)

    if is_of_device:
        monkeypatch.setattr("spyrec.import_verification.compile_graph", miscompiled)
    else:
        model = _with_relu_for_tanh(model)
    (verdict,) = Verification(path, {}, model).verdicts(0, bisect=True)
    assert not verdict.ok
    assert (verdict.bound_ratio > 1) is is_of_device
    assert verdict.module == "layers.1"


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_mask_that_is_returned_is_ok(dtype: ImportDType, tmp_path: Path) -> None:
    class Masked(torch.nn.Module):  # pyright: ignore[reportUntypedBaseClass] -- torch has no types
        def forward(self, x: torch.Tensor, keep: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            mask = torch.where(keep, 0.0, torch.finfo(torch.float32).min)
            return mask, x + mask  # the second is computed on the device

    torch.manual_seed(3)
    inputs = (torch.randn(4, 16), torch.rand(4, 16) > 0.3)
    torch.export.save(torch.export.export(Masked(), inputs), tmp_path / "model.pt2")
    source, weights = read_program(tmp_path / "model.pt2", {})
    found = settled(source, weights, dtype)
    verdicts = Verification(tmp_path / "model.pt2", {}, found).verdicts(0, bisect=False)
    assert [item.ok for item in verdicts] == [True, True]
    assert verdicts[0].error == 0
    assert 2**-13 < verdicts[1].error < 2**-6  # the mask is not what errors are related to


class _Step(torch.nn.Module):  # pyright: ignore[reportUntypedBaseClass] -- torch has no types
    """A cache of four rows: the rows of the text are written, and the result is of what stands there then."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(64, 64)
        self.register_buffer("cache", torch.zeros(4, 64))

    def forward(self, x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        self.cache.index_copy_(0, places, self.linear(x))
        return torch.tanh(self.cache.sum(0, keepdim=True) + x)


def test_an_entry_goes_on_with_the_state_of_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(5)
    module = _Step().eval()
    examples = {"prefill": (torch.randn(3, 64), torch.arange(3)), "decode": (torch.randn(1, 64), torch.tensor([3]))}
    found: dict[str, Verification] = {}
    for name, example in examples.items():
        with torch.no_grad():
            program = torch.export.export(module, example)
        torch.export.save(program, str(tmp_path / f"{name}.pt2"))
        found[name] = Verification(tmp_path / f"{name}.pt2", {}, settled(*read_program(program, {}), "float16"), name)
    references: list[ReferenceRun] = []
    library = Verification._reference  # pyright: ignore[reportPrivateUsage] -- the library's side of it

    def recorded(self: Verification, given: Mapping[str, np.ndarray]) -> ReferenceRun:
        found = library(self, given)
        assert found is not None
        references.append(found)
        return found

    monkeypatch.setattr(Verification, "_reference", recorded)
    states: States = {}
    rows = [row for item in found.values() for row in item.verdicts(0, bisect=False, states=states)]
    assert [row.state_of for row in rows] == [None, None, "prefill", "prefill"]
    assert all(row.ok and 0 < row.error <= row.tolerance < 0.1 for row in rows)
    assert str(rows[-1]).endswith("example inputs, with the state of prefill")
    with torch.no_grad():
        for name, example in examples.items():
            cache = references[["prefill", "decode"].index(name)].changed["b_cache"]
            module(*example)
            assert np.allclose(cache, module.cache.double().numpy(), atol=1e-6)
    # the same, with a device that begins with the file's zeros, is wrong
    empty = {**references[1].inputs, "b_cache": np.zeros((4, 64))}

    def of_file(self: Verification, given: Mapping[str, np.ndarray]) -> ReferenceRun:
        del self, given
        return replace(references[1], inputs=empty)

    monkeypatch.setattr(Verification, "_reference", of_file)
    assert not any(row.ok for row in found["decode"].verdicts(0, bisect=False))
