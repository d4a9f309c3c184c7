"""Operations of other libraries in a file are told before torch reads it, all at once, with their places."""

# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportAttributeAccessIssue=false, reportUntypedBaseClass=false
# pyright: reportOperatorIssue=false, reportUnknownLambdaType=false, reportPrivateUsage=false, reportCallIssue=false
# pyright: reportUnknownParameterType=false
from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import torch

import spyrec
from spyrec.cli import main
from spyrec.diagnostics.json_reading import JsonValue
from spyrec.frontends.torch_export.archive import read_archive
from spyrec.frontends.torch_export.foreign_operations import foreign_operations
from spyrec.frontends.torch_export.inert import FUNCTIONS, NAMESPACES, NESTING

_LIBRARY = torch.library.Library("foreignlib", "DEF")
_LIBRARY.define("gate(Tensor values) -> Tensor")
_LIBRARY.impl("gate", lambda values: values * torch.sigmoid(values), "CompositeImplicitAutograd")
_LIBRARY.define("opaque(Tensor[] values) -> Tensor")
_LIBRARY.impl("opaque", lambda values: values[0] * 2, "CompositeExplicitAutograd")


class _Gated(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(64, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.foreignlib.gate(self.linear(x))


class _Model(torch.nn.Module):
    def __init__(self, *, is_opaque: bool) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(_Gated() for _ in range(2))
        self.is_opaque = is_opaque

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return torch.ops.foreignlib.opaque([x, x.long()]) if self.is_opaque else x


def _program(module: torch.nn.Module) -> torch.export.ExportedProgram:
    with torch.no_grad():
        return torch.export.export(module.eval(), (torch.ones(4, 64),), strict=False)


def _calling(target: str, argument: dict[str, JsonValue] | None = None) -> JsonValue:
    """Return a program of one node."""
    node: dict[str, JsonValue] = {"target": target, "inputs": [{"name": "", "arg": argument}], "metadata": {}}
    return {"graph_module": {"graph": {"nodes": [node], "tensor_values": {}}}}


@pytest.mark.filterwarnings("ignore")
def test_all_are_told_at_once_with_count_dtypes_module_line_and_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "model.pt2"
    torch.export.save(_program(_Model(is_opaque=True)), file)
    assert main(["import", str(file), "--list-unsupported", "--json"]) == 1
    gate, opaque = json.loads(capsys.readouterr().out)["unsupported"]
    lines = {text: number for number, text in enumerate(Path(__file__).read_text().splitlines(), 1)}
    line = lines["        return torch.ops.foreignlib.gate(self.linear(x))"]
    assert gate["what"].startswith('foreignlib.gate.default: torch does not have "foreignlib"')
    assert gate["notes"][0] == "2 times, operands: float32"
    for note, module in zip(gate["notes"][1:], ("layers.0", "layers.1"), strict=True):
        assert note.startswith(f"in {module}, ")
        assert f"test_foreign_operations.py:{line}, foreignlib.gate.default" in note
    assert "program.run_decompositions()" in gate["hint"]
    assert 'keep_ops=["foreignlib::gate=OP"]' in gate["hint"]
    assert opaque["what"].startswith("foreignlib.opaque.default: ")
    assert opaque["notes"][0] == "operands: float32, int64"
    assert main(["import", str(file), "--list-unsupported"]) == 1
    assert "hint: save program.run_decompositions()" in capsys.readouterr().out
    assert main(["import", str(file), "-o", str(tmp_path / "model"), "--keep-op", "foreignlib::gate=silu"]) == 1
    assert capsys.readouterr().err.count("SPY0166") == 2
    assert not (tmp_path / "model").exists()


@pytest.mark.filterwarnings("ignore")
def test_what_the_hint_says_helps(tmp_path: Path) -> None:
    program = _program(_Model(is_opaque=False))
    torch.export.save(program.run_decompositions(), tmp_path / "model.pt2")
    ops = [node.op for node in spyrec.import_program(tmp_path / "model.pt2").build().nodes]
    assert ops.count("sigmoid") == 2
    ops = [node.op for node in spyrec.import_program(program, keep_ops=["foreignlib::gate=silu"]).build().nodes]
    assert ops.count("silu") == 2


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "target",
    ["torch.os.mkdir", "os.mkdir", "_operator.methodcaller", "math.os.mkdir", "#mkdir",
     "torch._functorch.predispatch.torch", "torch._functorch.predispatch.annotations", "torch._functorch.vmap.vmap"],
)  # fmt: skip
def test_a_program_calls_no_function_of_python(target: str, tmp_path: Path) -> None:
    file, changed = tmp_path / "model.pt2", tmp_path / "changed.pt2"
    torch.export.save(_program(torch.nn.ReLU()), file)
    with zipfile.ZipFile(file) as source, zipfile.ZipFile(changed, "w") as written:
        for name in source.namelist():
            content = source.read(name)
            if name.endswith("models/model.json"):
                assert content.count(b'"torch.ops.aten.relu.default"') == 1
                content = content.replace(b"torch.ops.aten.relu.default", target.encode())
            written.writestr(name, content)
    with pytest.raises(spyrec.SpyrecError, match="it is no operation of PyTorch") as raised:
        spyrec.import_program(changed)
    assert [item.code for item in raised.value.diagnostics] == ["SPY0166"]


def test_arguments_and_inner_graphs_are_held_against_the_same_list() -> None:
    wrap = "torch.ops.higher_order.wrap"
    node: dict[str, JsonValue] = {"target": "torch.ops.other.f.default", "inputs": []}
    inner: dict[str, JsonValue] = {"as_graph": {"name": "inner", "graph": {"nodes": [node]}}}
    operator: dict[str, JsonValue] = {"as_operator": "torch.os.mkdir"}
    nested: dict[str, JsonValue] = {"as_nested": [{"as_operator": "torch.ops.mylib.f.default"}]}
    for argument, what in (
        (operator, "torch.os.mkdir"),
        (nested, "mylib.f.default"),
        (inner, "other.f.default"),
    ):
        assert [item.what for item in foreign_operations(_calling(wrap, argument))] == [what]
    for target in ("aten.save.default", "aten.from_file.default"):
        (found,) = foreign_operations(_calling(f"torch.ops.{target}"))
        assert "opens a file" in found.reason
    for target in ("torch.ops.aten.__class__", "torch.ops.aten.add.__globals__", "torch.ops.load_library"):
        assert foreign_operations(_calling(target)), target
    for target in ("torch.ops.aten.__and__.Tensor", "torch.ops.aten._to_copy.default", wrap, "_operator.add"):
        assert not foreign_operations(_calling(target)), target
    odd: list[JsonValue] = [None, [], {"graph_module": {"graph": {"nodes": [1, {"target": 2, "inputs": 3}]}}}]
    for program in odd:
        assert foreign_operations(program) == ()


@pytest.mark.filterwarnings("ignore")
def test_what_torch_itself_writes_is_not_foreign(tmp_path: Path) -> None:
    class Everything(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
                y = torch.vmap(lambda row: row * 2 + x.shape[0] ** 2)(x)
            y = torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (y,))
            return y, x.new_ones(x.shape[0] * 2 + 1)

    length = torch.export.Dim("S", min=4, max=64)
    program = torch.export.export(Everything(), (torch.ones(8, 64),), dynamic_shapes=({0: length},), strict=False)
    torch.export.save(program, tmp_path / "model.pt2")
    archive = read_archive(tmp_path / "model.pt2")
    text = json.dumps(archive.program)
    assert all(name in text for name in ("torch.ops.higher_order.cond", "as_graph", "_operator.mul"))
    assert foreign_operations(archive.program) == ()


def test_the_lists_are_those_of_torch() -> None:
    """In a process of its own: other tests register libraries."""
    code = (
        "import torch, torch.export; from torch._export.serde.serialize import _SYM_OPS\n"
        "print(*{item.name.partition('::')[0] for item in torch._C._jit_get_all_schemas()})\n"
        "print(*{f'{item.__module__}.{item.__name__}' for item in _SYM_OPS})\n"
        "from torch._functorch import predispatch\n"
        "print(*{f'{item.__module__}.{item.__name__}' for item in vars(predispatch).values()"
        " if getattr(item, '__module__', '') == predispatch.__name__})"
    )
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    namespaces, functions, nesting = (set(line.split()) for line in found.stdout.splitlines())
    assert namespaces | {"higher_order"} == NAMESPACES
    assert functions <= FUNCTIONS
    assert nesting == NESTING
