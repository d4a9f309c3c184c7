"""What ``torch.export`` writes of one module in its several ways is imported alike, and computes the same."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportAttributeAccessIssue=false, reportPrivateUsage=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUntypedBaseClass=false
from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

import spyrec
from spyrec.cli import main

pytestmark = pytest.mark.filterwarnings("ignore")

X = torch.linspace(-2, 2, 4 * 6 * 16).reshape(4, 6, 16).sin()


def _module(forward: Callable[..., object]) -> torch.nn.Module:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(5)
            self.first, self.second = torch.nn.Linear(16, 32), torch.nn.Linear(32, 16)

        def forward(self, x: torch.Tensor) -> object:
            return forward(self, x)

    return Model().eval()


def _exported(module: torch.nn.Module, *, strict: bool = False) -> torch.export.ExportedProgram:
    with torch.no_grad():
        return torch.export.export(module, (X,), strict=strict)


def _is_right(
    program: torch.export.ExportedProgram | Path,
    module: torch.nn.Module,
    wanted: object = None,
    tolerance: float = 4e-3,
) -> spyrec.Graph:
    """Import, compile and run a program, and compare each result with ``wanted``, or the module in float64."""
    graph = spyrec.import_program(program).build()
    (name,) = graph.inputs
    result = spyrec.run(spyrec.compile(graph), {name: X.numpy().astype(np.float16)}, spyrec.RunOptions(check=True))
    assert result.check is not None
    assert all(report.ok for report in result.check.values())
    if wanted is None:
        with torch.no_grad():
            wanted = module.double()(X.double())
        module.float()
    parts = wanted if isinstance(wanted, tuple) else (wanted,)
    for output, want in zip(result.outputs.values(), parts, strict=True):
        assert np.abs(output.astype(np.float64) - want.double().numpy()).max() < tolerance * max(1, want.abs().max())
    return graph


def _over_rows(self, x):  # noqa: ANN001, ANN202
    return torch.vmap(lambda row: torch.softmax(self.first(row), -1) * row.sum())(x)


def _over_columns(_, x):  # noqa: ANN001, ANN202
    return torch.vmap(lambda column, other: column @ other.T + 1, in_dims=(1, None))(x, x[:, 0])


def _nested(_, x):  # noqa: ANN001, ANN202
    scores = torch.vmap(torch.vmap(lambda a, b: (a * b).sum(), in_dims=(None, 0)), in_dims=(0, None))(x[0], x[1])
    return scores.log_softmax(-1)


@pytest.mark.parametrize("forward", [_over_rows, _over_columns, _nested])
def test_a_vmap_is_what_it_computes(forward: Callable[..., object], tmp_path: Path) -> None:
    module = _module(forward)
    program = _exported(module)
    torch.export.save(program, tmp_path / "model.pt2")
    with zipfile.ZipFile(tmp_path / "model.pt2") as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("models/model.json")]
        assert b'"torch._functorch.predispatch._add_batch_dim"' in archive.read(name)
    assert [node.op for node in _is_right(program, module).nodes] == [
        node.op for node in _is_right(tmp_path / "model.pt2", module).nodes
    ]


def test_a_vmap_that_ends_before_it_begins_is_no_crash(tmp_path: Path) -> None:
    file, changed = tmp_path / "model.pt2", tmp_path / "changed.pt2"
    torch.export.save(_exported(_module(_over_rows)), file)
    before, after = b"predispatch._vmap_increment_nesting", b"predispatch._jvp_decrement_nesting"
    with zipfile.ZipFile(file) as source, zipfile.ZipFile(changed, "w") as written:
        for name in source.namelist():
            written.writestr(name, source.read(name).replace(before, after))
    with pytest.raises(spyrec.SpyrecError) as raised:
        spyrec.import_program(changed)
    assert [item.code for item in raised.value.diagnostics] == ["SPY0164"]


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("inner", [None, False])
def test_a_region_of_autocast_is_what_it_casts(strict: bool, inner: bool | None) -> None:
    def forward(self, x):  # noqa: ANN001, ANN202
        with torch.autocast("cpu", torch.bfloat16):
            y = torch.nn.functional.gelu(self.first(x))
            with torch.autocast("cpu", torch.bfloat16, enabled=inner is None):
                z = self.second(y if inner is None else y.float())
            return z.float().softmax(-1), y.sum(-1)

    module = _module(forward)
    program = _exported(module, strict=strict)
    held = [node.op for node in spyrec.import_program(program).build().nodes]
    assert held.count("linear") == 2
    assert "to" not in held  # all floats are cast to one dtype
    with torch.no_grad():  # it has rounded to bfloat16 where the device has not
        _is_right(program, module, module(X), 2e-2)


def test_casts_of_autocast_are_in_the_graph_where_dtypes_are_kept() -> None:
    def forward(self, x):  # noqa: ANN001, ANN202
        with torch.autocast("cpu", torch.bfloat16):
            return self.first(x)

    program = _exported(_module(forward), strict=True)
    graph = spyrec.import_program(program, dtype="keep").build()
    assert [graph.type_of(name).dtype.value for name in graph.outputs] == ["bfloat16"]
    before = program.graph_module.code
    spyrec.import_program(program)
    assert program.graph_module.code == before  # the caller's program is not changed


@pytest.mark.parametrize("strict", [False, True])
def test_modes_of_gradients_and_checkpoints_vanish(strict: bool) -> None:
    def forward(self, x):  # noqa: ANN001, ANN202
        with torch.inference_mode():
            y = self.first(x)
        with torch.enable_grad():
            y = y.relu()
        if not strict:  # torch.export refuses it there
            return torch.utils.checkpoint.checkpoint(self.second, y, use_reentrant=False)
        with torch.no_grad():
            return self.second(y)

    module = _module(forward)
    assert [node.op for node in _is_right(_exported(module, strict=strict), module).nodes] == [
        "linear", "relu", "linear",
    ]  # fmt: skip


@pytest.mark.parametrize("predicate", ["constant", "buffer", "sizes", "numbers"])
def test_of_a_cond_one_branch_is_chosen(predicate: str) -> None:
    def forward(self, x):  # noqa: ANN001, ANN202
        found = {
            "constant": lambda: torch.tensor(True),
            "buffer": lambda: self.flag,
            "sizes": lambda: x.shape[0] > 9,
            "numbers": lambda: x.sum(0, keepdim=True).amax().reshape(1) > 9,
        }[predicate]()

        def first(t):  # noqa: ANN001, ANN202
            return torch.cond(t.mean() > 0, lambda u: u * 2, lambda u: u * 3, (t,)), t.sum()

        return torch.cond(found, first, lambda t: (t - 1, t.log().sum() * 0), (self.first(x).abs(),))

    module = _module(forward)
    module.register_buffer("flag", torch.tensor(True))
    _is_right(_exported(module), module)


def test_what_takes_functions_is_refused_by_name() -> None:
    def forward(self, x):  # noqa: ANN001, ANN202
        count = torch.tensor(0)
        return torch._higher_order_ops.while_loop(lambda i, _: i < 3, lambda i, t: (i + 1, t * 2), (count, x))[1]

    with pytest.raises(spyrec.SpyrecError, match="how often it runs depends on numbers") as raised:
        spyrec.import_program(_exported(_module(forward)))
    assert [item.code for item in raised.value.diagnostics] == ["SPY0166"]


def test_a_program_whose_constants_torch_lost_is_refused(tmp_path: Path) -> None:
    program = _exported(_module(lambda _, x: torch.vmap(lambda row: row * 2, out_dims=1)(x)), strict=True)
    with pytest.raises(spyrec.SpyrecError, match="lost the numbers of the constant") as raised:
        spyrec.import_program(program)
    assert [item.code for item in raised.value.diagnostics] == ["SPY0164"]
    torch.export.save(program, tmp_path / "model.pt2")
    with pytest.raises(spyrec.SpyrecError, match="is empty, and its tensor ends at 1536"):
        spyrec.import_program(tmp_path / "model.pt2")


def test_what_torch_does_not_take_apart_is_one_diagnostic() -> None:
    program = _exported(_module(lambda _, x: x + 1))
    next(node for node in program.graph.nodes if node.op == "call_function").args = ()
    with pytest.raises(spyrec.SpyrecError, match="torch does not take the program apart: ") as raised:
        spyrec.import_program(program)
    assert [item.code for item in raised.value.diagnostics] == ["SPY0164"]


def test_a_file_with_autocast_is_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def forward(self, x):  # noqa: ANN001, ANN202
        with torch.autocast("cpu", torch.bfloat16):
            y = self.first(x).float()
        return torch.cond(x.sum() > 0, lambda t: t + 1, lambda t: t - 1, (y,))

    torch.export.save(_exported(_module(forward), strict=True), tmp_path / "model.pt2")
    assert main(["import", str(tmp_path / "model.pt2"), "-o", str(tmp_path / "m"), "--verify"]) == 0
    assert "ok, error" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("LSTM", {"proj_size": 8, "bidirectional": True, "num_layers": 2}),
        ("LSTM", {"bias": False, "batch_first": True}),
    ],
)
def test_recurrent_modules_with_projections_and_without_biases(kind: str, options: dict[str, object]) -> None:
    torch.manual_seed(6)
    recurrent = getattr(torch.nn, kind)(16, 24, **options)

    def forward(self, x):  # noqa: ANN001, ANN202
        found, state = self.recurrent(x[:, :2])
        return (found, *state) if isinstance(state, tuple) else (found, state)

    module = _module(forward)
    module.add_module("recurrent", recurrent)
    _is_right(_exported(module), module)
