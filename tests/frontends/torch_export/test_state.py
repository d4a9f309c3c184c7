"""Buffers that a program changes are state of the graph: what a loaded model keeps equals what the module keeps."""

# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportAttributeAccessIssue=false, reportUntypedBaseClass=false
from __future__ import annotations

import copy
import re
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import pytest
import torch

import spyrec
from benchmarks.models.static_cache import LENGTH, exported_decoder, tokens
from spyrec.cli import main
from spyrec.compare.random_roundings import rounding_errors
from spyrec.frontends.torch_export.float64 import run_in_float64

if TYPE_CHECKING:
    from collections.abc import Mapping

    Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]

_ROUNDING = 2.0**-10
"""Half a unit in the last place of DLFloat16."""


class _Stateful(torch.nn.Module):
    """Changes three buffers: rows by index, the whole by a copy, and a slice by an assignment."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(64, 64)
        self.register_buffer("cache", torch.zeros(1, 2, 8, 64))
        self.register_buffer("decayed", torch.zeros(4, 64))
        self.register_buffer("rows", torch.zeros(4, 64), persistent=False)

    def forward(self, x: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        y = self.linear(x)
        self.cache.index_copy_(2, position, y)
        self.decayed.copy_(self.decayed * 0.5 + y[0, 0])
        self.rows[1:2] = y[0, 1]
        return self.cache.sum(2) + self.rows.sum(0)


class _Assigned(torch.nn.Module):
    """Assigns to a part of a buffer, in the way that ``how`` says."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how
        self.register_buffer("cache", torch.zeros(1, 4, 16, 64))

    def forward(self, x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        match self.how:
            case "slice":
                self.cache[:, :, 3:5] = x
            case "narrow":
                self.cache.narrow(2, 3, 2).copy_(x)
            case "select":
                self.cache[:, :, 3] = x[:, :, 0]
            case _:
                self.cache[:, :, at] = x
        return self.cache.sum(2)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("how", ["slice", "narrow", "select", "index"])
def test_what_is_assigned_to_a_part_of_a_buffer_is_written_in_place(how: str) -> None:
    module, x, at = _Assigned(how), torch.arange(512.0).reshape(1, 4, 2, 64) / 64, torch.tensor([-1, 4])
    bundle = spyrec.compile(spyrec.import_program(torch.export.export(module, (x, at))))
    output = bundle.manifest.outputs[0][0]
    given = {"x": x.numpy().astype(np.float16), "at": at.numpy(), "b_cache": np.zeros((1, 4, 16, 64), np.float16)}
    given = {name: array for name, array in given.items() if name in bundle.manifest.inputs}
    with spyrec.load(bundle, spyrec.RunOptions(outputs=(output,))) as model:
        model.run(given)
        result = model.run({name: array for name, array in given.items() if name != "b_cache"})
    np.testing.assert_array_equal(result.outputs[output], module(x, at).numpy())
    (program,) = [step.program for step in bundle.manifest.plan if step.arguments[-1] == "b_cache"]
    (written,) = [item for item in result.stats.ops if item.file.startswith(program)]
    assert written.hbm_write_bytes == 4 * (1 if how == "select" else 2) * 128


@pytest.mark.filterwarnings("ignore")
def test_changed_buffers_are_state_that_a_loaded_model_keeps(tmp_path: Path) -> None:
    torch.manual_seed(5)
    module = _Stateful().eval()
    random = np.random.default_rng(5)
    given = random.standard_normal((4, 1, 2, 1, 64)).astype(np.float16)
    with torch.no_grad():
        program = torch.export.export(module, (torch.zeros(1, 2, 1, 64), torch.tensor([3])))
    torch.export.save(program, str(tmp_path / "stateful.pt2"))
    builder = spyrec.import_program(tmp_path / "stateful.pt2")
    graph = builder.build()
    assert set(graph.updates.values()) == {"b_cache", "b_decayed", "b_rows"}
    assert graph.outputs[0] not in graph.updates
    exact = copy.deepcopy(module).double()
    state: Mapping[str, Array] = {
        name: np.zeros(graph.type_of(name).shape, np.float16) for name in graph.updates.values()
    }
    with spyrec.load(spyrec.compile(builder)) as model:
        for step, x in enumerate(given):
            position = np.asarray([(3 + step) % 8])
            found = model(x=x, position=position, **state)
            state = {}
            with torch.no_grad():
                wanted = exact(torch.from_numpy(x.astype(np.float64)), torch.from_numpy(position)).numpy()
            # sums of at most 12 numbers that a linear of 64 made: a rounding each, of weights, products' sum and result
            assert np.abs(found[graph.outputs[0]] - wanted).max() <= 12 * 4 * _ROUNDING * np.abs(wanted).max()
            for output, name in graph.updates.items():
                buffer = exact.get_buffer(name.removeprefix("b_")).numpy()
                assert np.abs(found[output] - buffer).max() <= 8 * _ROUNDING * np.abs(buffer).max(), name


class _Copied(torch.nn.Module):
    """Buffers whose new content is an output as well, another buffer's, an input, or a buffer's old content."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how
        self.register_buffer("first", torch.zeros(2, 64))
        self.register_buffer("second", torch.zeros(2, 64))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        total = self.first + x
        match self.how:
            case "output":
                self.first.copy_(total)
                self.second.add_(1)
                return total, x * 2, total
            case "both":
                self.first.copy_(total)
                self.second.copy_(total)
                return (total,)
            case "input":
                self.first.copy_(x)
                return (x * 2,)
            case _:
                self.first.copy_(self.second)
                self.second.copy_(total)
                return (x * 2,)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("how", ["output", "both", "input", "handed on"])
def test_outputs_are_those_of_the_program_and_then_each_changed_buffer(how: str) -> None:
    module, random = _Copied(how).eval(), np.random.default_rng(7)
    program = torch.export.export(_Copied(how).eval(), (torch.zeros(2, 64),))
    graph = spyrec.import_program(program).build()
    count = 3 if how == "output" else 1
    specs = program.run_decompositions({}).graph_signature.output_specs
    changed = [spec.target for spec in specs if spec.kind.name == "BUFFER_MUTATION"]
    assert len(graph.outputs) == count + len(changed)
    assert [graph.updates[name] for name in graph.outputs[count:]] == [f"b_{name}" for name in changed]
    state = {f"b_{name}": np.zeros((2, 64), np.float16) for name in changed}
    state = {name: array for name, array in state.items() if name in graph.inputs}
    with spyrec.load(spyrec.compile(graph)) as model:
        for _ in range(3):
            x = random.integers(-8, 8, (2, 64)).astype(np.float16)
            found = model(x=x, **state)
            state = {}
            results = module(torch.from_numpy(x.astype(np.float32)))
            wanted = [*results, *(module.get_buffer(name) for name in changed)]
            for name, expected in zip(graph.outputs, wanted, strict=True):
                np.testing.assert_array_equal(found[name], expected.numpy())


class _Held(torch.nn.Module):
    """A buffer that the module has by another name than the one by which it is used: ``b_inner_cache``, ``held``."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Module()
        self.inner.cache = torch.zeros(4, 64)
        self.register_buffer("held", self.inner.cache)

    def forward(self, x: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        self.inner.cache.index_copy_(0, position, x)
        return self.inner.cache * 2


@pytest.mark.filterwarnings("ignore")
def test_state_has_the_name_that_the_signature_of_the_program_has_for_it(tmp_path: Path) -> None:
    given = torch.ones(1, 64), torch.tensor([2])
    with torch.no_grad():
        program = torch.export.export(_Held().eval(), given, strict=True)
    torch.export.save(program, str(tmp_path / "held.pt2"))
    names = set(program.graph_signature.inputs_to_buffers)
    assert names != set(program.run_decompositions({}).graph_signature.inputs_to_buffers), "the case shows nothing"
    for source in (program, tmp_path / "held.pt2"):
        graph = spyrec.import_program(source).build()
        assert set(graph.updates.values()) == names
        assert set(graph.inputs) == {*names, "x", "position"}
    found = run_in_float64(tmp_path / "held.pt2", {})
    assert found is not None
    assert set(found.changed) == names


@pytest.mark.filterwarnings("ignore")
def test_the_page_says_where_the_first_content_of_buffers_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(6)
    module = _Stateful().eval()
    for buffer in module.buffers():
        buffer.copy_(torch.randn(buffer.shape))
    x, position = torch.randn(1, 2, 1, 64).half(), np.asarray([3])
    with torch.no_grad():
        program = torch.export.export(module, (x.float(), torch.tensor([3])))
    monkeypatch.chdir(tmp_path)
    torch.export.save(program, "model.pt2")
    assert main(["import", "model.pt2", "-o", "model"]) == 0
    page = Path(__file__).parents[3] / "docs" / "import.md"
    section = page.read_text().partition("## State, and several programs")[2].partition("Several programs share")[0]
    blocks = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    assert len(blocks) == 2
    names: dict[str, object] = {"x": x.numpy(), "position": position}
    for block in blocks:
        exec(block, names)
    graph, exact = spyrec.import_program("model.pt2").build(), copy.deepcopy(module).double()
    for call in ("first", "second"):
        found = cast("Mapping[str, Array]", names[call])
        with torch.no_grad():
            wanted = exact(x.double(), torch.from_numpy(position)).numpy()
        assert np.abs(found[graph.outputs[0]] - wanted).max() <= 12 * 4 * _ROUNDING * np.abs(wanted).max(), call
        for output, name in graph.updates.items():
            buffer = exact.get_buffer(name.removeprefix("b_")).numpy()
            assert np.abs(found[output] - buffer).max() <= 8 * _ROUNDING * np.abs(buffer).max(), name
    empty = cast("Mapping[str, Array]", names["empty"])
    types = {name: (array.shape, array.dtype) for name, array in empty.items()}
    assert types == {
        name: (graph.type_of(name).shape, np.dtype(np.float16)) for name in ("b_cache", "b_decayed", "b_rows")
    }
    stored = (tmp_path / "model" / "weights.safetensors").read_bytes()
    assert b"linear.weight" in stored
    assert b"cache" not in stored


@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(find_spec("transformers") is None, reason="transformers is not installed")
def test_prefill_and_decode_of_one_loaded_model_equal_the_prefill_of_the_whole_text(tmp_path: Path) -> None:
    start = 8
    for name, length in (("whole", LENGTH), ("prefill", start), ("decode", 1)):
        exported_decoder(tmp_path / f"{name}.pt2", length)
    given = [f"--entry={name}={tmp_path / name}.pt2" for name in ("prefill", "decode")]
    assert main(["import", *given, "-o", str(tmp_path / "model")]) == 0
    assert main(["compile", str(tmp_path / "model"), "-o", str(tmp_path / "B")]) == 0
    graph = spyrec.import_program(tmp_path / "whole.pt2").build()
    text, (logits, *caches) = tokens(), graph.outputs
    empty = {
        name: np.zeros(graph.type_of(name).shape, graph.type_of(name).dtype.carrier) for name in graph.updates.values()
    }
    whole = {"input_ids": text, "cache_position": np.arange(LENGTH), **empty}
    reference = run_in_float64(tmp_path / "whole.pt2", {"input_ids": text, "cache_position": np.arange(LENGTH)})
    assert reference is not None
    wanted = np.asarray(reference.outputs[0], np.float64)[0]
    bound = 4 * rounding_errors(graph, whole)[logits] * np.abs(wanted).max()
    entries = spyrec.BundleEntries.load(tmp_path / "B")
    tensors = [set(entries.tensors[name].values()) for name in ("prefill", "decode")]
    assert tensors[0] == tensors[1]
    with spyrec.load(entries, spyrec.RunOptions(outputs=(logits,))) as model:
        first = {"input_ids": text[:, :start], "cache_position": np.arange(start), **empty}
        found = model.prefill(**first)[logits]
        assert np.abs(found[0] - wanted[:start]).max() <= bound
        for step in range(start, LENGTH):
            result = model.decode.run({"input_ids": text[:, step : step + 1], "cache_position": np.asarray([step])})
            assert np.abs(result.outputs[logits][0, 0] - wanted[step]).max() <= bound, step
            # the cache does not move: of each layer, rows of two heads of keys and of values are written, and read
            rows = [item for item in result.stats.ops if item.hbm_write_bytes == 2 * 128 and item.op == "identity"]
            assert len(rows) >= len(caches) - 2
            assert result.stats.total.dma_h2d_bytes <= 1024
