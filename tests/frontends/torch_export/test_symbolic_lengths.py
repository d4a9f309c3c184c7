"""Programs whose lengths stay symbolic: one bundle, and at every length the numbers of the program of that length."""

# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportAttributeAccessIssue=false, reportUntypedBaseClass=false
# pyright: reportUnknownParameterType=false, reportIndexIssue=false, reportArgumentType=false
# pyright: reportOperatorIssue=false, reportCallIssue=false
from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import spyrec
from spyrec import RunOptions
from spyrec.cli import main
from spyrec.diagnostics import SpyrecError

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")
"""torch copies what it has deprecated."""

_HEADS, _WIDTH = 2, 64
_FILE = Path(__file__).name


class _Layer(nn.Module):
    """A layer of attention and a feed-forward, of an encoder or of a decoder with rotary positions."""

    def __init__(self, is_causal: bool) -> None:
        super().__init__()
        self.is_causal = is_causal
        self.embedding = nn.Embedding(50, _WIDTH)
        self.norm = nn.RMSNorm(_WIDTH) if is_causal else nn.LayerNorm(_WIDTH)
        self.projections = nn.ModuleList(nn.Linear(_WIDTH, _WIDTH) for _ in range(4))
        self.up, self.down = nn.Linear(_WIDTH, 2 * _WIDTH), nn.Linear(2 * _WIDTH, _WIDTH)
        self.register_buffer("positions", torch.arange(256)[None])

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        batch, length = tokens.shape
        x = self.embedding(tokens)
        h = self.norm(x)
        q, k, v = (linear(h).view(batch, length, _HEADS, -1).transpose(1, 2) for linear in list(self.projections)[:3])
        allowed = mask[:, None, None, :].bool()
        if self.is_causal:
            places = torch.arange(length)
            allowed = allowed & (places[None, :] <= places[:, None])
            q, k = self._turned(q, length), self._turned(k, length)
        scores = q @ k.transpose(2, 3) * 0.18
        weights = torch.softmax(scores.masked_fill(~allowed, torch.finfo(scores.dtype).min), dim=-1)
        x = x + self.projections[3]((weights @ v).transpose(1, 2).reshape(batch, length, _WIDTH))
        return x + self.down(nn.functional.gelu(self.up(x)))

    def _turned(self, x: torch.Tensor, length: int) -> torch.Tensor:
        half = x.shape[-1] // 2
        angles = self.positions[0, :length, None] * 0.5 ** torch.arange(half)
        cosines, sines = angles.cos().repeat(1, 2), angles.sin().repeat(1, 2)
        return x * cosines + torch.cat([-x[..., half:], x[..., :half]], -1) * sines


def _exported(module: nn.Module, least: int = 2, most: int = 130) -> torch.export.ExportedProgram:
    length = torch.export.Dim("S", min=least, max=most)
    example = (torch.ones(1, 64, dtype=torch.int64), torch.ones(1, 64, dtype=torch.int64))
    with torch.no_grad():
        return torch.export.export(module.eval(), example, dynamic_shapes=({1: length}, {1: length}))


def _inputs(length: int, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed * 1000 + length)
    tokens = rng.integers(0, 50, (1, length))
    return {"tokens": tokens, "mask": (np.arange(length) <= rng.integers(0, length))[None].astype(np.int64)}


@pytest.mark.parametrize("is_causal", [False, True])
def test_one_bundle_gives_the_bits_of_the_program_of_each_length(is_causal: bool) -> None:
    torch.manual_seed(0)
    module = _Layer(is_causal)
    program = _exported(module)
    bundle = spyrec.compile(spyrec.import_program(program))
    assert {name: (dim.minimum, dim.maximum) for name, dim in bundle.manifest.symbolic_dims.items()} == {"S": (2, 130)}
    rng = random.Random(7)
    with spyrec.load(bundle) as model:
        for length in (2, 130, rng.randrange(3, 130)):
            inputs = _inputs(length)
            static = spyrec.compile(spyrec.import_program(program, dims={"S": length}))
            (expected,) = spyrec.run(static, inputs).outputs.values()
            (found,) = model(**inputs).values()
            np.testing.assert_array_equal(found, expected, str(length))
            with torch.no_grad():
                exact = module(torch.from_numpy(inputs["tokens"]), torch.from_numpy(inputs["mask"]))
            np.testing.assert_allclose(found.astype(np.float64), exact.numpy(), atol=0.03)
    assert spyrec.run(bundle, _inputs(77), RunOptions(check=True)).is_ok


@pytest.mark.filterwarnings("ignore:# The axis name", "ignore::DeprecationWarning")
@pytest.mark.parametrize("is_causal", [False, True])
def test_an_onnx_model_of_torch_keeps_its_length_open(is_causal: bool) -> None:
    pytest.importorskip("onnxscript")
    torch.manual_seed(0)
    example = (torch.ones(1, 64, dtype=torch.int64), torch.ones(1, 64, dtype=torch.int64))
    length = torch.export.Dim("S", min=2, max=130)
    shapes = ({1: length}, {1: length})
    with torch.no_grad():
        written = torch.onnx.export(
            _Layer(is_causal).eval(), example, dynamo=True, dynamic_shapes=shapes, verbose=False
        )
    assert written is not None
    model = written.model_proto
    with spyrec.load(spyrec.compile(spyrec.import_onnx(model, dims={"S": "2:130"}))) as loaded:
        for length in (2, 77):
            static = spyrec.compile(spyrec.import_onnx(model, dims={"S": length}))
            (expected,) = spyrec.run(static, _inputs(length)).outputs.values()
            (found,) = loaded(**_inputs(length)).values()
            np.testing.assert_array_equal(found, expected, str(length))


def test_a_file_has_lost_the_name_and_takes_the_users(tmp_path: Path) -> None:
    torch.manual_seed(0)
    torch.export.save(_exported(_Layer(is_causal=False)), tmp_path / "layer.pt2")
    graph = spyrec.import_program(tmp_path / "layer.pt2", dims={"length": "64:128:64"}).build()
    (dim,) = graph.symbolic_dims.items()
    assert dim == (
        "length",
        spyrec.import_program(_exported(_Layer(False)), dims={"S": "64:128:64"}).build().symbolic_dims["S"],
    )
    assert graph.values["tokens"].dims == (None, "length")


@pytest.mark.parametrize(
    ("dims", "text"),
    [
        ({"S": "1:128"}, "was exported for"),
        ({"S": "2:131"}, "was exported for"),
        ({"S": "2:"}, "is neither"),
        ({"S": "65:127:64"}, "no extent"),
        ({"S": 0}, "the least is 1"),
    ],
)
def test_extents_that_the_program_does_not_have_are_refused(dims: dict[str, int | str], text: str) -> None:
    with pytest.raises(SpyrecError, match=text) as caught:
        spyrec.import_program(_exported(_Layer(is_causal=False)), dims=dims)
    assert [item.code for item in caught.value.diagnostics] == ["SPY0168"]


def test_multiples_are_those_of_the_exporter() -> None:
    blocks = torch.export.Dim("blocks", min=2, max=4)
    with torch.no_grad():
        program = torch.export.export(nn.Linear(64, 64), (torch.ones(64, 64),), dynamic_shapes=({0: 32 * blocks},))
    graph = spyrec.import_program(program).build()
    ((_, dim),) = graph.symbolic_dims.items()
    assert (dim.minimum, dim.maximum, dim.multiple_of) == (64, 128, 32)


class _Mean(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, _WIDTH)

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return (self.embedding(tokens) * mask[..., None]).mean(1)


class _Count(nn.Module):
    def forward(self, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return (tokens * mask).to(torch.float32).sum(1) / tokens.shape[1]


def test_what_cannot_be_symbolic_names_operation_dim_place_and_remedy() -> None:
    with pytest.raises(SpyrecError) as caught:
        spyrec.compile(spyrec.import_program(_exported(_Mean())))
    text = str(caught.value)
    assert "SPY0425" in text
    assert all(word in text for word in ('mean divides by the extent of the symbolic dim "S"', _FILE, "--dim S=N"))
    with pytest.raises(SpyrecError) as caught:
        spyrec.import_program(_exported(_Count()))
    text = str(caught.value)
    assert "SPY0166" in text
    assert all(word in text for word in ("aten.div.Tensor", "the number S", _FILE, "--dim S=N"))
    for module in (_Mean(), _Count()):
        assert spyrec.compile(spyrec.import_program(_exported(module), dims={"S": 64})).manifest.symbolic_dims == {}


class _Rows(nn.Module):
    """A layer over merged rows, as GPT-2's; ``bias_of_rows`` adds a number of its own to each."""

    def __init__(self, bias_of_rows: bool = False) -> None:
        super().__init__()
        self.bias_of_rows = bias_of_rows
        self.weight, self.bias = nn.Parameter(torch.randn(32, 24)), nn.Parameter(torch.randn(24))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = x.reshape(-1, 32)
        bias = rows[:, :24] if self.bias_of_rows else self.bias
        return torch.addmm(bias, rows, self.weight).view(*x.shape[:-1], 24).relu()


class _Heads(nn.Module):
    def __init__(self, is_batch_first: bool) -> None:
        super().__init__()
        self.heads = nn.MultiheadAttention(32, 4, batch_first=is_batch_first)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.heads(x, x, x, need_weights=False)[0]


@pytest.mark.parametrize(
    ("make", "axis"),
    [(lambda: _Heads(True), 1), (lambda: _Heads(False), 0), (_Rows, 1)],
    ids=["heads, batch first", "heads", "rows"],
)
def test_layers_over_merged_rows_leave_the_length_open(make: Callable[[], nn.Module], axis: int) -> None:
    torch.manual_seed(9)
    module = make().eval()
    length = torch.export.Dim("S", min=2, max=64)
    with torch.no_grad():
        given = torch.randn(2, 8, 32).transpose(0, 1 - axis).contiguous()
        program = torch.export.export(module, (given,), dynamic_shapes=({axis: length},), strict=False)
    bundle = spyrec.compile(spyrec.import_program(program))
    for extent in (3, 64):
        x = torch.randn(2, extent, 32).transpose(0, 1 - axis).contiguous()
        result = spyrec.run(bundle, {"x": x.numpy().astype(np.float16)}, RunOptions(check=True))
        assert result.check is not None
        assert all(report.ok for report in result.check.values())
        (found,) = result.outputs.values()
        with torch.no_grad():
            wanted = module.double()(x.double()).numpy()
        module.float()
        assert found.shape == wanted.shape
        assert np.abs(found - wanted).max() < 6e-3 * np.abs(wanted).max()


def test_rows_that_have_numbers_of_their_own_stay_merged_and_are_refused() -> None:
    length = torch.export.Dim("S", min=2, max=64)
    program = torch.export.export(
        _Rows(bias_of_rows=True), (torch.randn(2, 8, 32),), dynamic_shapes=({1: length},), strict=False
    )
    with pytest.raises(SpyrecError, match=r"axis 0 of its result has 2\*S elements"):
        spyrec.import_program(program)


def test_a_program_whose_lengths_stay_open_is_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """At the extents of the example, which are not the largest."""
    length = torch.export.Dim("S", min=2, max=32)
    given = torch.randint(0, 50, (1, 7)), torch.ones(1, 7, dtype=torch.int64)
    program = torch.export.export(_Layer(True).eval(), given, dynamic_shapes=({1: length}, {1: length}))
    torch.export.save(program, str(tmp_path / "layer.pt2"))
    assert main(["import", str(tmp_path / "layer.pt2"), "-o", str(tmp_path / "m"), "--verify"]) == 0
    assert ": ok, error 0.0" in capsys.readouterr().out


def test_a_dim_without_a_largest_extent_is_told_and_bounded(tmp_path: Path) -> None:
    batch = {0: torch.export.Dim.DYNAMIC}
    program = torch.export.export(nn.Linear(16, 4), (torch.randn(3, 16),), dynamic_shapes=(batch,))
    torch.export.save(program, str(tmp_path / "linear.pt2"))
    with pytest.raises(SpyrecError, match="states no largest extent"):
        spyrec.import_program(tmp_path / "linear.pt2")
    graph = spyrec.import_program(tmp_path / "linear.pt2", dims={"B": "2:64"}).build()
    assert graph.symbolic_dims["B"].largest == 64


class _Cut(nn.Module):
    def forward(self, x: torch.Tensor, count: int) -> torch.Tensor:
        return x[:, :count]


class _Scaled(nn.Module):
    def forward(self, x: torch.Tensor, count: int) -> torch.Tensor:
        return x * count


@pytest.mark.parametrize("module", [_Cut(), _Scaled()], ids=["a size", "a factor"])
def test_a_number_that_each_run_is_given_is_refused(module: nn.Module) -> None:
    """As a size, it was taken for its largest, as though an input's axis had it."""
    given = (None, torch.export.Dim.DYNAMIC)
    program = torch.export.export(module, (torch.randn(2, 8), 3), dynamic_shapes=given)
    with pytest.raises(SpyrecError, match="SPY0166") as error:
        spyrec.import_program(program)
    assert error.value.diagnostics[0].hint == "export the program with that number known, or give it as a tensor"
