"""What torch would execute of a program's JSON while it reads it: texts of sizes, and names of what is called.

torch hands a size to ``sympify``, which is Python's ``eval``, finds a node's target by ``getattr`` from ``torch`` and
calls it, and keeps guards as code.  So these texts are read here first: what is no size and no operation is refused.
"""

from __future__ import annotations

import ast
import re

from spyrec.diagnostics.json_reading import JsonValue

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

_PART = r"[A-Za-z_][A-Za-z0-9_]*"
_OPERATION = re.compile(
    rf"torch\.ops\.({_PART})\.({_PART})\.({_PART})"
    rf"|torch\.ops\.higher_order\.({_PART})"
    r"|torch\.(sym_[a-z_]+|_sym_[a-z]+)"
    r"|_operator\.(add|and_|eq|floordiv|ge|getitem|gt|invert|le|lshift|lt|mod|mul|ne|neg|not_|or_|pos|pow|rshift|sub|"
    r"truediv|xor)"
    r"|math\.(ceil|floor|trunc|sqrt|pow|fabs|log2|exp|sin|cos|tan|asin|acos|atan|sinh|cosh|tanh)",
    re.ASCII,
)
"""Operations of the dispatcher, and arithmetic on sizes."""

_OPERATOR_METHOD = re.compile("__i?(and|or|xor|lshift|rshift)__")
"""Names of operations that begin with two underscores; other such names are Python's own."""

_KEPT_METADATA = ("nn_module_stack", "stack_trace")


class NotInertError(ValueError):
    """A text of a program that torch would execute, and that is neither a size nor an operation."""


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


def _refuse_no_operation(target: str) -> None:
    found = _OPERATION.fullmatch(target)
    names = () if found is None else tuple(filter(None, found.groups()))
    if found is None or any(name.startswith("__") and _OPERATOR_METHOD.fullmatch(name) is None for name in names):
        raise NotInertError(f'"{target:.80}" is no operation')


def _refuse_no_size(text: JsonValue) -> None:
    if not isinstance(text, str) or len(text) > _MOST_CHARACTERS:
        raise NotInertError("a size is a text, of at most 10,000 characters")
    try:
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
