"""``torch.compile(model, backend="spyrec")`` computes what torch does, and says what it left to torch."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false, reportAttributeAccessIssue=false
# pyright: reportUntypedBaseClass=false, reportOperatorIssue=false, reportIndexIssue=false
# pyright: reportReturnType=false, reportCallIssue=false
from __future__ import annotations

import tomllib
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import spyrec
from spyrec import torch_backend
from spyrec.runtime.device import Backend
from spyrec.runtime.streams import effects
from spyrec.runtime.streams.control_block import HostToDevice

ROOT = Path(spyrec.__file__).parent.parent
HALF = 2.0**-9
"""One unit in the last place of DLFloat16 at 1."""

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


@pytest.fixture(autouse=True)
def counted_anew() -> Iterator[None]:
    torch.manual_seed(7)
    torch.compiler.reset()
    torch_backend.reset()
    with torch.no_grad():
        yield


def on_device(model: object, **options: object) -> object:
    return torch.compile(model, backend=torch_backend.backend, options=options)


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.BatchNorm1d(32), nn.Linear(32, 8)).eval()


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.parts, self.out = nn.LayerNorm(32), nn.Linear(32, 96), nn.Linear(32, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = self.parts(self.norm(x)).view(2, 8, 3, 4, 8).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return x + self.out(mixed.transpose(1, 2).reshape(2, 8, 32))


def test_the_entry_point_is_the_backend() -> None:
    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    assert points["torch_dynamo_backends"] == {"spyrec": "spyrec.torch_backend:backend"}


@pytest.mark.skipif(
    "spyrec" not in entry_points(group="torch_dynamo_backends").names, reason="spyrec is read from a checkout"
)
def test_torch_finds_it_by_name_where_it_is_installed() -> None:
    x = torch.randn(3, 16)
    found = torch.compile(mlp(), backend="spyrec", options={"dtype": "float16", "fallback": False})(x)
    assert found.shape == (3, 8)
    assert torch_backend.report().programs == 1


@pytest.mark.parametrize(("model", "shape"), [(mlp(), (3, 16)), (Attention(), (2, 8, 32))])
def test_a_model_computes_what_torch_does(model: nn.Module, shape: tuple[int, ...]) -> None:
    x = torch.randn(shape)
    found = on_device(model, fallback=False)(x)
    wanted = model.double()(x.double())
    assert found.dtype is torch.float32
    assert (found - wanted).abs().max() <= 8 * HALF * wanted.abs().max()
    assert torch_backend.report().programs == 1


@pytest.mark.parametrize(("is_norm_first", "activation", "mask"), [(False, "relu", "padding"), (True, "gelu", "rows")])
def test_a_layer_that_is_one_operation_is_taken_apart(is_norm_first: bool, activation: str, mask: str) -> None:
    layer = nn.TransformerEncoderLayer(32, 4, 64, activation=activation, batch_first=True, norm_first=is_norm_first)
    for parameter in layer.eval().parameters():
        nn.init.normal_(parameter, std=0.2)
    given = {
        "padding": {"src_key_padding_mask": torch.arange(8)[None].expand(2, 8) > 5},
        "rows": {"src_mask": torch.ones(8, 8).triu(1).bool()},
    }[mask]
    x = torch.randn(2, 8, 32)
    wanted = layer(x, **given)
    found = on_device(layer, fallback=False, dtype="keep")(x, **given)
    assert (found - wanted).abs().max() <= 1e-5 * wanted.abs().max()


def test_threads_whose_first_calls_coincide_each_get_their_result() -> None:
    """torch.export is not made for two threads: without a lock, some of such calls failed inside of dynamo."""
    model = nn.Linear(16, 16).eval()
    compiled = on_device(model, fallback=False, dtype="keep")

    def worst_of(number: int) -> float:
        with torch.no_grad():
            given = [torch.full((4, 16), float(number + step)) for step in range(3)]
            return max(float((compiled(x) - model(x)).abs().max()) for x in given)

    with ThreadPoolExecutor(4) as pool:
        assert max(pool.map(worst_of, range(4))) <= 1e-5
    assert torch_backend.report().calls == 12


def test_tied_weights_compute_in_inference_mode() -> None:
    first = nn.Linear(8, 8)
    model = nn.Sequential(first, nn.Tanh(), first)
    x = torch.randn(2, 8)
    compiled = on_device(model, fallback=False)
    with torch.inference_mode():
        found = [compiled(x) for _ in range(2)]
    assert all((item - model(x)).abs().max() <= 8 * HALF for item in found)
    assert torch_backend.report().programs == 1


def test_weights_are_uploaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[int] = []

    def counted(backend: Backend, action: HostToDevice) -> None:
        copied.append(action.destination.size_bytes)
        copy_in(backend, action)

    copy_in = effects.copy_in
    monkeypatch.setattr(effects, "copy_in", counted)
    compiled = on_device(nn.Linear(256, 256, bias=False), fallback=False)
    sizes = []
    for _ in range(3):
        copied.clear()
        compiled(torch.randn(64, 256))
        sizes.append(sum(copied))
    assert sizes[0] - sizes[1] >= 256 * 256 * 2
    assert 64 * 256 * 2 <= sizes[1] == sizes[2] < 256 * 256 * 2
    report = torch_backend.report()
    assert (report.programs, report.calls) == (1, 3)


def test_a_weight_that_changes_changes_the_result() -> None:
    model = nn.Linear(8, 4, bias=False)
    compiled = on_device(model, fallback=False)
    x = torch.ones(2, 8)
    for number in range(4):
        model.weight.fill_(number)
        assert torch.equal(compiled(x), torch.full((2, 4), 8.0 * number))
    assert torch_backend.report().programs == 3, "made anew twice, and the weight is an input then"


@pytest.mark.parametrize("order", ["rows", "columns"])
@pytest.mark.parametrize(
    "write",
    [
        lambda weight: weight.data.fill_(0.25),
        lambda weight: weight.data.copy_(weight.flip(0)),
        lambda weight: weight.detach().numpy().__setitem__((5, 3), 3.0),
    ],
)
def test_a_weight_that_changes_behind_the_counter_of_torch_changes_the_result(
    write: Callable[[torch.Tensor], object], order: str
) -> None:
    model = nn.Linear(8, 8, bias=False)
    model.weight = nn.Parameter(torch.arange(64.0).reshape(8, 8))
    if order == "columns":
        model.weight.data = model.weight.data.t()
    compiled = on_device(model, fallback=False)
    x = torch.eye(8)
    assert torch.equal(compiled(x), model.weight.t())
    version = model.weight._version
    write(model.weight)
    assert model.weight._version == version
    assert torch.equal(compiled(x), model.weight.t())
    compiled(x)
    assert torch_backend.report().programs == 2, "made anew once"


def test_what_a_graph_lacks_is_computed_by_torch_and_named() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.special.bessel_j0(x * 2) + 1

    x, name = torch.randn(4, 4), "aten.special_bessel_j0.default"
    compiled = on_device(function)
    with pytest.warns(UserWarning, match=rf"torch computes {name}"):
        compiled(x)
    torch.testing.assert_close(compiled(x), function(x), rtol=0, atol=8 * HALF)
    report = torch_backend.report()
    assert report.fallbacks == {name: 1}
    assert "no op" in report.reasons[name]
    assert (report.programs, report.calls) == (2, 4), "before and behind it"


@pytest.mark.filterwarnings("ignore:torch computes")
def test_pieces_have_weights_and_change_buffers() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 2)
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls.add_(1)
            return self.last(torch.special.bessel_j0(self.first(x)) * self.calls)

    model, x = Model(), torch.randn(3, 4)
    compiled = on_device(model)
    counts: list[int] = []
    for calls in (1, 2):
        found = compiled(x)
        counts.append(torch_backend.report().programs)
        assert model.calls == calls
        wanted = model.last(torch.special.bessel_j0(model.first(x)) * calls)
        assert (found - wanted).abs().max() <= 16 * HALF * wanted.abs().max()
    assert counts[0] == counts[1], "a buffer that the program changes is an input of its pieces"
    model.last.weight.mul_(2)
    changed = compiled(x)
    wanted = model.last(torch.special.bessel_j0(model.first(x)) * 3)
    assert (changed - wanted).abs().max() <= 16 * HALF * wanted.abs().max()
    assert torch_backend.report().programs == counts[1] + 1, "the piece with that weight alone"


@pytest.mark.filterwarnings("ignore:torch computes")
def test_operations_with_effects_are_left_to_torch() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.inv(x * 2 + torch.eye(4)) + 1

    x = torch.randn(4, 4) * 0.1
    torch.testing.assert_close(on_device(function)(x), function(x), rtol=0, atol=16 * HALF)
    assert "aten.linalg_inv_ex.default" in torch_backend.report().fallbacks
    with pytest.raises(RuntimeError, match="singular"):
        on_device(function)(-0.5 * torch.eye(4))


def test_without_fallback_it_is_refused() -> None:
    with pytest.raises(spyrec.SpyrecError) as caught:
        on_device(lambda x: torch.special.bessel_j0(x) * torch.lgamma(x), fallback=False)(torch.ones(4))
    assert [item.code for item in caught.value.diagnostics] == ["SPY0166", "SPY0166"]
    assert ["bessel_j0" in item.message for item in caught.value.diagnostics] == [True, False]
    assert torch_backend.report().fallbacks == {}


def test_a_call_that_the_device_refuses_is_computed_by_torch() -> None:
    def function(x: torch.Tensor, total: torch.Tensor) -> torch.Tensor:
        total.add_(1)
        return x * 100003

    compiled, total = on_device(function), torch.zeros(2)
    small, large = torch.tensor([3, -7]), torch.tensor([136041, 1])
    assert torch.equal(compiled(small, total), small * 100003)
    with pytest.warns(UserWarning, match="torch computes a call with SPY0318: .* holds 13604508123"):
        assert torch.equal(compiled(large, total), large * 100003)
    for x in (small, large):
        assert torch.equal(compiled(x, total), x * 100003)
    assert total.tolist() == [4, 4], "changed once by each call"
    report = torch_backend.report()
    assert report.fallbacks == {"a call with SPY0318": 2}
    assert "13604508123" in report.reasons["a call with SPY0318"]
    assert (report.programs, report.calls) == (1, 2)
    with pytest.raises(spyrec.SpyrecError) as caught:
        on_device(function, fallback=False)(large, total)
    assert [item.code for item in caught.value.diagnostics] == ["SPY0318"]
    assert total.tolist() == [4, 4]


@pytest.mark.parametrize(
    ("inputs", "weight", "clamped"), [([1e6, 2, -7e4], 1, 2), ([1.0, 2.0, 3.0], 1e6, 3), ([9e4] * 3, -1e6, 6)]
)
def test_numbers_that_are_clamped_are_counted_in_a_warning(inputs: list[float], weight: float, clamped: int) -> None:
    model, x = nn.PReLU(3), torch.tensor([inputs])
    model.weight.fill_(weight)
    compiled = on_device(model, fallback=False)
    with pytest.warns(UserWarning, match=rf'{clamped} numbers .* became its largest: .*"keep"'):
        compiled(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        compiled(x)
        kept = on_device(model, dtype="keep", fallback=False)(x)
        on_device(lambda x: x + 1, fallback=False)(torch.tensor([65504.0, torch.inf, torch.nan]))
    assert torch.equal(kept, model(x))


def test_gradients_are_left_to_torch() -> None:
    model = mlp()
    with torch.enable_grad(), pytest.warns(UserWarning, match="gradients"):
        on_device(model)(torch.randn(3, 16)).sum().backward()
    assert model[0].weight.grad is not None
    assert torch_backend.report().programs == 0
    with torch.enable_grad(), pytest.raises(spyrec.SpyrecError, match="gradients"):
        on_device(model, fallback=False)(torch.randn(3, 16))


def test_mutation_of_inputs_and_buffers_arrives() -> None:
    class Count(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("total", torch.zeros(4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.total.add_(x)
            x.mul_(2)
            return self.total + x

    model = Count()
    compiled = on_device(model, fallback=False)
    total = torch.zeros(4)
    for _ in range(3):
        x = torch.arange(4.0)
        given = x.clone()
        found = compiled(given)
        total += x
        assert torch.equal(given, 2 * x)
        assert torch.equal(model.total, total)
        assert torch.equal(found, total + 2 * x)
    assert torch_backend.report().programs == 1


def test_shapes_numbers_and_dtypes_have_programs_of_their_own() -> None:
    def function(x: torch.Tensor, n: int) -> tuple[torch.Tensor, int, torch.Tensor]:
        return x[:, :n] * n, x.shape[0], x > 0

    compiled = on_device(function, fallback=False)
    calls = [(3, 2, torch.float32), (3, 2, torch.int64), (4, 3, torch.bfloat16), (3, 2, torch.float32)]
    for rows, n, dtype in calls:
        x = torch.arange(-4, 4 * rows - 4).reshape(rows, 4).to(dtype)
        found, wanted = compiled(x, n), function(x, n)
        assert found[1] == wanted[1]
        for index in (0, 2):
            assert found[index].dtype is wanted[index].dtype
            assert torch.equal(found[index], wanted[index])
    assert torch_backend.report().programs == 3


def test_an_output_that_is_an_input_or_twice_the_same_is_returned() -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = x + 1
        return x.clone(), y, y

    found = on_device(function, fallback=False)(torch.ones(3))
    assert [item.tolist() for item in found] == [[1] * 3, [2] * 3, [2] * 3]


@pytest.mark.parametrize(
    ("function", "x"),
    [
        (lambda x: (x * 2).t(), torch.randn(4, 6)),
        (lambda x: ((x * 2)[:, 1:3], (x + 1).unfold(1, 3, 1)), torch.randn(4, 6)),
        (lambda x: (x.t(), x + 1), torch.randn(4, 6)),
        (lambda x: x * 2, torch.randn(6, 4).t()),
        (lambda x: x + 1, torch.randn(6, 1).expand(6, 4)),
        (lambda x: (x * 2)[:, :1].expand(4, 5), torch.randn(4, 6)),
        (lambda x: (x * 2).t(), torch.randn(0, 7)),
        (lambda x: (x * 2).sum(), torch.randn(2, 3, 5).permute(2, 0, 1)),
        (lambda x: x.relu(), torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)),
        (lambda x: (torch.special.bessel_j0(x * 2).t() + 1).t(), torch.randn(4, 6)),
    ],
)
@pytest.mark.filterwarnings("ignore:torch computes")
def test_results_have_the_strides_that_torch_promises(
    function: Callable[[torch.Tensor], torch.Tensor | tuple[torch.Tensor, ...]], x: torch.Tensor
) -> None:
    found, wanted = (
        result if isinstance(result, tuple) else (result,) for result in (on_device(function)(x), function(x))
    )
    for item, exact in zip(found, wanted, strict=True):
        assert (item.shape, item.stride()) == (exact.shape, exact.stride())
        torch.testing.assert_close(item, exact, rtol=4 * HALF, atol=4 * HALF)


def _written_views(a: torch.Tensor) -> tuple[torch.Tensor, ...]:
    part = a[1:3]
    part.mul_(3)
    return part, a.t(), a.flatten(), a[0], a.add_(1)


def _views_of_a_result(a: torch.Tensor) -> tuple[torch.Tensor, ...]:
    made = a * 2
    return made[1:], made.t(), made, made.flatten()[3:7], a + 1


def _views_beside_torch(a: torch.Tensor) -> tuple[torch.Tensor, ...]:
    made = torch.special.i0(a)  # torch computes it
    a.add_(1)
    return made, made.t(), a[:2], a.clone()


@pytest.mark.filterwarnings("ignore:torch computes")
@pytest.mark.parametrize("function", [_written_views, _views_of_a_result, _views_beside_torch])
def test_views_share_memory_as_in_eager_mode(function: Callable[[torch.Tensor], tuple[torch.Tensor, ...]]) -> None:
    compiled: Any = on_device(function)
    for first in (0, 1):  # the second call has another place in its memory
        given = torch.randn(5, 16)
        mine, exact = given.clone()[first : first + 4], given.clone()[first : first + 4]
        found: list[Any] = [mine, *compiled(mine)]
        wanted: list[Any] = [exact, *function(exact)]
        for items in (found, wanted):  # each is written to, and what shares its memory changes with it
            for number, item in enumerate(items):
                item[..., 1:2].add_(number)
        for item, want in zip(found, wanted, strict=True):
            assert item.stride() == want.stride()
            assert (item - want).abs().max() <= 16 * HALF * max(1, want.abs().max())
        is_same = [[one is other for other in wanted] for one in wanted]
        assert [[one is other for other in found] for one in found] == is_same
    assert torch_backend.report().programs == 1


def test_strides_are_those_of_the_call() -> None:
    module = torch.fx.symbolic_trace(lambda x: x * 2)
    compiled = torch_backend.backend(module, [], options={"fallback": False})
    for x in (torch.ones(3, 4), torch.ones(4, 3).t(), torch.ones(3, 4)):
        assert compiled(x).stride() == x.stride()
    assert torch_backend.report().programs == 2


def test_dtype_keep_computes_in_float32() -> None:
    x = torch.tensor([1.0 + 2**-20])
    assert torch.equal(on_device(lambda x: x * 3, dtype="keep", fallback=False)(x), x * 3)
    assert not torch.equal(on_device(lambda x: x * 5, fallback=False)(x), x * 5)


@pytest.mark.parametrize("options", [{"dtype": "float8"}, {"fallback": 1}, {"fall_back": False}])
def test_an_unknown_option_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(spyrec.SpyrecError) as caught:
        torch_backend.backend(torch.fx.symbolic_trace(nn.ReLU()), [], options=options)
    assert [item.code for item in caught.value.diagnostics] == ["SPY0771"]


class _Normed(nn.Module):
    """A norm whose epsilon is a number of the module, and a number of the call."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(16, 8)
        self.epsilon = 1e-5

    def forward(self, x: torch.Tensor, factor: float) -> torch.Tensor:
        return nn.functional.layer_norm(self.linear(x), (8,), eps=self.epsilon) * factor


def test_open_lengths_have_a_program_each_and_none_twice() -> None:
    """With ``dynamic=True`` dynamo makes tensors of Python's floats, on whose numbers torch does not export a graph."""
    torch.manual_seed(3)
    module = _Normed()
    compiled = torch.compile(module, backend=torch_backend.backend, dynamic=True, options={"fallback": False})
    with torch.no_grad():
        for length in (3, 5, 7, 3, 5, 7, 4):
            x = torch.randn(length, 16)
            torch.testing.assert_close(compiled(x, 0.5), module(x, 0.5), atol=2e-2, rtol=0)
        report = torch_backend.report()
        assert (report.programs, report.calls, dict(report.fallbacks)) == (4, 7, {})
        torch.testing.assert_close(compiled(x, 2.5), module(x, 2.5), atol=5e-2, rtol=0)
    assert torch_backend.report().programs == 5
