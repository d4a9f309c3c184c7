"""What torch would execute of a program's JSON while it reads it: texts of sizes, and names of what is called.

torch hands a size to ``sympify``, which is Python's ``eval``, finds a node's target by ``getattr`` from ``torch`` and
calls it, and keeps guards as code.  So these texts are read here first: what is no size and no operation is refused.
The list of operations is also that by which ``foreign_operations.py`` tells all the others of a file at once.
"""

from __future__ import annotations

import ast
import re

from spyrec.diagnostics.json_reading import JsonValue
from spyrec.files.python_text import unremarked

_MOST_CHARACTERS = 10_000

_FUNCTIONS = frozenset({
    "Add", "And", "BitwiseFn_bitwise_and", "BitwiseFn_bitwise_or", "BitwiseFn_bitwise_xor", "CeilDiv",
    "CeilToInt", "CleanDiv", "Equality", "FloatPow", "FloatTrueDiv", "Float", "FloorDiv", "FloorToInt",
    "GreaterThan", "Identity", "Integer", "IntTrueDiv", "LShift", "LessThan", "Max", "Min", "Mod",
    "ModularIndexing", "Mul", "Not", "Or", "Pow", "PowByNatural", "PythonMod", "RShift", "Rational",
    "RoundDecimal", "RoundToInt", "StrictGreaterThan", "StrictLessThan", "Symbol", "ToFloat", "TruncToFloat",
    "TruncToInt", "Unequality", "Where", "ceiling", "floor",
})  # fmt: skip
"""What torch writes sizes with (``sympy.srepr``): SymPy's nodes and torch's own."""

_TEXTS = {"Symbol": re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII), "Float": re.compile(r"-?[0-9.]+(e[+-]?[0-9]+)?")}
"""The functions whose first operand is a text, and what that may be."""

_CONSTANTS = frozenset({"true", "false", "oo", "int_oo"})

NAMESPACES = frozenset({
    "_c10d_functional", "_c10d_functional_autograd", "_dtensor", "_inductor_test", "_native", "_quantized", "_test",
    "aten", "c10d", "c10d_functional", "debug_mode_ops", "debugprims", "export", "flex_lib", "fsdp", "higher_order",
    "inductor", "inductor_prims", "mkl", "mkldnn", "mkldnn_prepacked", "onednn", "onnx", "onnx_symbolic", "prim",
    "prims", "profiler", "quantization", "quantized", "rngprims", "sparse", "static_runtime", "streams", "symm_mem",
})  # fmt: skip
"""Namespaces of operations that torch registers itself; what of them a graph has, is told once torch has read them."""

FUNCTIONS = frozenset({
    "_operator.add", "_operator.and_", "_operator.eq", "_operator.floordiv", "_operator.ge", "_operator.getitem",
    "_operator.gt", "_operator.le", "_operator.lshift", "_operator.lt", "_operator.mod", "_operator.mul",
    "_operator.ne", "_operator.neg", "_operator.or_", "_operator.pos", "_operator.pow", "_operator.rshift",
    "_operator.sub", "_operator.truediv", "math.trunc", "torch._sym_sqrt", "torch.sym_float", "torch.sym_int",
    "torch.sym_ite", "torch.sym_max", "torch.sym_min", "torch.sym_not", "torch.sym_sqrt",
})  # fmt: skip
"""Functions of sizes that torch.export writes by their Python names (its ``_SYM_OPS``)."""

NESTING = frozenset(f"torch._functorch.predispatch.{name}" for name in (
    "_add_batch_dim", "_enter_dual_level", "_exit_dual_level", "_jvp_decrement_nesting", "_jvp_increment_nesting",
    "_make_dual", "_remove_batch_dim", "_unpack_dual", "_unwrap_for_grad", "_vmap_decrement_nesting",
    "_vmap_increment_nesting", "lazy_load_decompositions",
))  # fmt: skip
"""What torch.export writes of ``torch.vmap`` and its kind, all of it; torch's decompositions leave none of them."""

_OF_FILES = frozenset({"aten.from_file", "aten.save", "debugprims.load_tensor"})
"""Operations of torch that open files: a program may not have torch do so."""

_NAME = r"_?[A-Za-z0-9][A-Za-z0-9_]*"
_OPERATION = re.compile(rf"torch\.ops\.({_NAME})\.({_NAME}|__i?(?:and|or|xor|lshift|rshift)__)(?:\.{_NAME})?", re.ASCII)
"""Operations of the dispatcher; other names that begin with two underscores are Python's own."""

_KEPT_METADATA = ("nn_module_stack", "stack_trace")


class NotInertError(ValueError):
    """A text of a program that torch would execute, and that is neither a size nor an operation that torch has."""


def inert(program: JsonValue) -> JsonValue:
    """Return a program without guards and without the metadata that nobody reads here.

    Errors: :class:`NotInertError`.
    """
    if isinstance(program, list):
        return [inert(item) for item in program]
    if not isinstance(program, dict):
        return program
    found: dict[str, JsonValue] = {}
    for key, value in program.items():
        if key == "expr_str":
            _refuse_no_size(value)
        elif key in ("target", "as_operator") and isinstance(value, str):
            _refuse_no_operation(value)
        elif key == "as_custom_obj":
            raise NotInertError(f'"{key}" names an object of a class')
        if key == "guards_code":
            found[key] = []
        elif key == "metadata" and isinstance(value, dict):
            found[key] = {name: value[name] for name in _KEPT_METADATA if name in value}
        else:
            found[key] = inert(value)
    return found


def why_foreign(operation: str) -> tuple[str, str] | None:
    """Return why torch alone cannot be asked for an operation, and what to do; ``None`` where it can be.

    The one list of what a program may call: torch looks a name up from its own modules, of which ``torch.os.system``
    is an attribute, too.
    """
    if operation in FUNCTIONS or operation in NESTING:
        return None
    match = _OPERATION.fullmatch(operation)
    if match is None:
        return "it is no operation of PyTorch", "export the module again with torch.export.export and save it"
    namespace, name = match[1], match[2]
    if f"{namespace}.{name}" in _OF_FILES:
        return "it opens a file, which a program may not", "give the module the numbers as a buffer"
    if namespace in NAMESPACES:
        return None
    reason = f'torch does not have "{namespace}", whose library a file does not bring along'
    hint = (
        f"save program.run_decompositions() where the library takes it apart; or import the program from memory, with "
        f'keep_ops=["{namespace}::{name}=OP"] if it is one op of a graph; or write it with PyTorch\'s functions'
    )
    return reason, hint


def _refuse_no_operation(target: str) -> None:
    why = why_foreign(target)
    if why is not None:
        raise NotInertError(f'"{target:.80}": {why[0]}')


def _refuse_no_size(text: JsonValue) -> None:
    if not isinstance(text, str) or len(text) > _MOST_CHARACTERS:
        raise NotInertError("a size is a text, of at most 10,000 characters")
    try:
        with unremarked():
            is_size = _is_size(ast.parse(text, mode="eval").body)
    except (MemoryError, RecursionError, SyntaxError, ValueError):
        is_size = False
    if not is_size:
        raise NotInertError(f"{text!r:.80} is no size")


def _is_size(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float)
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.USub) and _is_size(node.operand)
    if isinstance(node, ast.Name):
        return node.id in _CONSTANTS or re.fullmatch(r"[suz][0-9]+", node.id) is not None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id not in _FUNCTIONS:
        return False
    operands, pattern = node.args, _TEXTS.get(node.func.id)
    if pattern is not None and operands and isinstance(operands[0], ast.Constant):
        if not isinstance(operands[0].value, str) or pattern.fullmatch(operands[0].value) is None:
            return False
        operands = operands[1:]
    settings = all(
        isinstance(item.value, ast.Constant) and not isinstance(item.value.value, str) for item in node.keywords
    )
    return settings and all(_is_size(item) for item in operands)
