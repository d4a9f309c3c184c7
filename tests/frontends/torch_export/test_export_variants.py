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
    program: torch.export.ExportedProgram | Path, module: torch.nn.Module, tolerance: float = 4e-3
) -> spyrec.Graph:
    """Import, compile and run a program, and compare each result with the module in float64."""
    graph = spyrec.import_program(program).build()
    (name,) = graph.inputs
    result = spyrec.run(spyrec.compile(graph), {name: X.numpy().astype(np.float16)}, spyrec.RunOptions(check=True))
    assert result.check is not None
    assert all(report.ok for report in result.check.values())
    with torch.no_grad():
        found = module.double()(X.double())
    module.float()
    wanted = found if isinstance(found, tuple) else (found,)
    for output, want in zip(result.outputs.values(), wanted, strict=True):
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
