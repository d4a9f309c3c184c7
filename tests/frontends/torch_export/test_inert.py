"""What torch would execute of a program's JSON is a size or an operation, or the program is refused."""

from __future__ import annotations

import pytest

from spyrec.diagnostics.json_reading import JsonValue
from spyrec.frontends.torch_export.inert import NotInertError, inert

SIZE = "Symbol('s27', positive=True, integer=True)"


@pytest.mark.parametrize(
    "text",
    [
        SIZE,
        f"Add(Mul(Integer(2), {SIZE}), Integer(-1))",
        f"Max(Integer(1), TruncToInt(Mul(Float('0.5', precision=53), ToFloat({SIZE}))))",
        "Symbol('u0', integer=True)",
        "s0",
        "GreaterThan(Symbol('u0', integer=True), Integer(0))",
    ],
)
def test_sizes_pass(text: str) -> None:
    program: JsonValue = {"sizes": [{"as_expr": {"expr_str": text, "hint": {"as_int": 4}}}]}
    assert inert(program) == program


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('id')",
        'Add(\'__import__("os").system("id")\', Integer(1))',
        "Symbol('__import__(\"os\").getcwd()')",
        "Symbol('s0', positive='x')",
        "Float('__import__(\"os\")')",
        "(lambda: 0)()",
        "[x for x in ()]",
        "Integer.__class__",
        "open('f')",
        "os",
        "s0 if s0 else s1",
        "f'{s0}'",
        "9" * 20_000,
        "(" * 5_000,
        "",
        7,
    ],
)
def test_no_other_text_is_evaluated(text: str | int) -> None:
    with pytest.raises(NotInertError):
        inert({"nodes": [{"outputs": [{"as_sym_int": {"as_expr": {"expr_str": text}}}]}]})


@pytest.mark.parametrize(
    "target",
    [
        "torch.ops.aten.add.Tensor",
        "torch.ops.aten.__and__.Scalar",
        "torch.ops.aten._softmax.default",
        "torch.ops.higher_order.cond",
        "torch.ops._quantized.linear_dynamic.default",
        "torch._functorch.predispatch._add_batch_dim",
        "torch.sym_float",
        "_operator.floordiv",
        "math.trunc",
    ],
)
def test_operations_pass(target: str) -> None:
    program: JsonValue = {"nodes": [{"target": target, "inputs": [{"arg": {"as_operator": target}}]}]}
    assert inert(program) == program


@pytest.mark.parametrize(
    "target",
    [
        "os.system",
        "torch.os.system",
        "torch.load",
        "torch.hub.load",
        "torch.ops.load_library",
        "torch.ops.aten.__class__.mro",
        "torch.ops.__dict__.clear.x",
        "torch.ops.aten.add.__call__",
        "_operator.methodcaller",
        "_operator.attrgetter",
        "math.__loader__.load_module",
        "math.sqrt",
        "torch.sym_fresh_size",
        "torch._functorch.predispatch.torch",
        "torch._functorch.predispatch._add_batch_dim.__globals__",
        "torch._functorch.predispatch.lazy_load_decompositions.__class__",
        "torch._functorch.predispatch",
        "torch._functorch.pyfunctorch.torch",
        "torch.ops.mine.norm.default",
        "torch.ops.aten.from_file.default",
        "#extension:f",
        "",
    ],
)
@pytest.mark.parametrize("key", ["target", "as_operator"])
def test_nothing_else_is_called(target: str, key: str) -> None:
    with pytest.raises(NotInertError):
        inert({"graph": {"nodes": [{key: target}]}})


def test_objects_of_classes_are_refused() -> None:
    with pytest.raises(NotInertError):
        inert({"inputs": [{"arg": {"as_custom_obj": {"name": "x", "class_fqn": "a.B"}}}]})


def test_guards_and_what_nobody_reads_are_left_out() -> None:
    metadata: dict[str, JsonValue] = {
        "stack_trace": "File",
        "nn_module_stack": "a,b,c",
        "source_fn_stack": "add,torch.os.system",
        "custom": "{}",
    }
    program: JsonValue = {"guards_code": ["exit()"], "nodes": [{"metadata": metadata}]}
    kept: dict[str, JsonValue] = {"stack_trace": "File", "nn_module_stack": "a,b,c"}
    assert inert(program) == {"guards_code": [], "nodes": [{"metadata": kept}]}
