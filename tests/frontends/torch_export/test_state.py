"""Buffers that a program changes are state of the graph: what a loaded model keeps equals what the module keeps."""

# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportAttributeAccessIssue=false, reportUntypedBaseClass=false
from __future__ import annotations

import copy
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

import spyrec
from benchmarks.models.static_cache import LENGTH, exported_decoder, tokens
from spyrec.compare.random_roundings import rounding_errors

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


@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(find_spec("transformers") is None, reason="transformers is not installed")
def test_decode_with_a_static_cache_equals_the_prefill_of_the_whole_text(tmp_path: Path) -> None:
    prefill = spyrec.import_program(exported_decoder(tmp_path / "prefill.pt2", LENGTH))
    decode = spyrec.import_program(exported_decoder(tmp_path / "decode.pt2", 1))
    text = tokens()
    graph = prefill.build()
    assert graph.updates.keys() == set(graph.outputs[1:])
    assert set(decode.build().updates.values()) == set(graph.updates.values())
    empty = {
        name: np.zeros(graph.type_of(name).shape, graph.type_of(name).dtype.carrier) for name in graph.updates.values()
    }
    whole = {"input_ids": text, "cache_position": np.arange(LENGTH), **empty}
    logits = graph.outputs[0]
    wanted = spyrec.run(spyrec.compile(prefill), whole).outputs[logits][0].astype(np.float64)
    bound = 4 * rounding_errors(graph, whole)[logits] * np.abs(wanted).max()
    state: Mapping[str, Array] = empty
    with spyrec.load(spyrec.compile(decode)) as model:
        for step in range(LENGTH):
            given = {"input_ids": text[:, step : step + 1], "cache_position": np.asarray([step]), **state}
            found = model(**given)[decode.build().outputs[0]]
            state = {}
            assert np.abs(found[0, 0] - wanted[step]).max() <= bound, step
