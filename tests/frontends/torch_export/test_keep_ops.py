"""Operations that are kept whole on demand: one node of the graph, whatever they could be taken apart into."""

# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportAttributeAccessIssue=false, reportUntypedBaseClass=false
# pyright: reportOperatorIssue=false, reportUnknownLambdaType=false, reportCallIssue=false
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import spyrec
from spyrec.cli import main

_LIBRARY = torch.library.Library("keptlib", "DEF")
_LIBRARY.define("norm(Tensor x, int[] normalized_shape, Tensor? w=None, float? eps=None) -> Tensor")


def _norm(
    x: torch.Tensor, normalized_shape: list[int], w: torch.Tensor | None = None, eps: float | None = None
) -> torch.Tensor:
    del normalized_shape
    y = x / torch.sqrt((x * x).mean(-1, keepdim=True) + (eps or 0.0))
    return y if w is None else y * w


_LIBRARY.impl("norm", _norm, "CompositeImplicitAutograd")
_LIBRARY.define("gate(Tensor values) -> Tensor")
_LIBRARY.impl("gate", lambda values: values * torch.sigmoid(values), "CompositeImplicitAutograd")


class _Normed(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.linspace(0.5, 1.5, 64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.keptlib.gate(torch.ops.keptlib.norm(x, [64], self.weight, 1e-5))


def _program() -> torch.export.ExportedProgram:
    with torch.no_grad():
        return torch.export.export(_Normed().eval(), (torch.ones(4, 64),), strict=False)


def _ops(*keep: str) -> list[str]:
    return [node.op for node in spyrec.import_program(_program(), keep_ops=keep).build().nodes]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["keptlib::norm", "torch.ops.keptlib.norm.default", "keptlib.norm"])
def test_a_custom_operation_is_the_op_that_it_is_said_to_be(name: str) -> None:
    assert {"sigmoid", "mul"} <= set(_ops())
    assert _ops(f"{name}=rms_norm", "keptlib::gate=silu") == ["rms_norm", "silu"]
    x = np.random.default_rng(3).standard_normal((4, 64)).astype(np.float16)
    builder = spyrec.import_program(_program(), keep_ops=[f"{name}=rms_norm", "keptlib::gate=silu"])
    found = next(iter(spyrec.run(spyrec.compile(builder), {"x": x}).outputs.values()))
    wanted = _Normed().double()(torch.from_numpy(x.astype(np.float64))).detach().numpy()
    assert np.abs(found - wanted).max() <= 8 * 2.0**-10 * np.abs(wanted).max()


@pytest.mark.filterwarnings("ignore")
def test_what_a_graph_cannot_hold_is_refused_with_what_to_do() -> None:
    for name, words in (
        ("keptlib::gate", "there is no op 'gate'"),
        ("keptlib::norm=rmsnorm", "keptlib::norm=rms_norm says which op it is"),
        ("keptlib::other=silu", "does not call it"),
        ("gelu", "does not call it"),
        ("norm=", "there is no op ''"),
        ("keptlib::norm=native_group_norm", "there is no op 'native_group_norm'"),
    ):
        with pytest.raises(spyrec.SpyrecError, match=words) as raised:
            _ops(name)
        assert [item.code for item in raised.value.diagnostics] == ["SPY0167"], name


@pytest.mark.filterwarnings("ignore")
def test_the_command_line_keeps_what_a_file_calls(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with torch.no_grad():
        program = torch.export.export(
            torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.SiLU()), (torch.ones(4, 64),)
        )
    torch.export.save(program, str(tmp_path / "model.pt2"))
    given = ["import", str(tmp_path / "model.pt2"), "-o", str(tmp_path / "model")]
    assert main([*given, "--keep-op", "group_norm"]) == 1
    assert "SPY0167" in capsys.readouterr().err
    assert not (tmp_path / "model").exists()
    assert main([*given, "--keep-op", "aten.silu", "--keep-op", "linear"]) == 0
