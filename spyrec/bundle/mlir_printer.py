"""Program to text: ``bundle.mlir`` in the custom form torch-spyre writes, and in MLIR's generic form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

from spyrec.bundle.program import (
    Add,
    AffineApply,
    AffineMap,
    ArgumentExtract,
    Constant,
    DeviceMemoryAllocate,
    For,
    InputArgument,
    Program,
    SdscExecute,
    Statement,
)

FUNCTION_NAME = "sdsc_bundle"


def print_program(program: Program) -> str:
    """Return ``bundle.mlir``: TABs, one statement a line, one trailing newline."""
    parameters = ", ".join(f"%{item.name}: {argument_type(item)}" for item in program.parameters)
    lines = [
        *(f"#{item.name} = {_affine_map(item)}" for item in program.maps),
        "module {",
        f"\tfunc.func @{FUNCTION_NAME}({parameters}) {{",
        *_custom_lines(program.body, {item.name: argument_type(item) for item in program.parameters}, 2),
        "\t\treturn",
        "\t}",
        "}",
        "",
    ]
    return "\n".join(lines)


def print_generic(program: Program) -> str:
    """Return the same module in MLIR's generic form, as :data:`spyrec.bundle.mlir_dialect.SDSCBUNDLE` defines it."""
    by_name = {item.name: _generic_type(item) for item in program.parameters}
    types = ", ".join(_generic_type(item) for item in program.parameters)
    block = ", ".join(f"%{item.name}: {_generic_type(item)}" for item in program.parameters)
    lines = [
        *(f"#{item.name} = {_affine_map(item)}" for item in program.maps),
        '"builtin.module"() ({',
        f'\t"func.func"() <{{function_type = ({types}) -> (), sym_name = "{FUNCTION_NAME}"}}> ({{',
        *([f"\t^bb0({block}):"] if block else []),
        *_generic_lines(program.body, by_name, 2),
        '\t\t"func.return"() : () -> ()',
        "\t}) : () -> ()",
        "}) : () -> ()",
        "",
    ]
    return "\n".join(lines)


def argument_type(argument: InputArgument) -> str:
    """Return the MLIR type of a function parameter."""
    limits = (("granularity", argument.granularity), ("max_value", argument.max_value))
    shown = "".join(f", {name}={value}" for name, value in limits if value is not None)
    return f"!sdscbundle.input_arg<index{shown}>"


def _generic_type(argument: InputArgument) -> str:
    limits = (("granularity", argument.granularity), ("max_value", argument.max_value))
    shown = ", ".join(f"{name} = {value} : index" for name, value in limits if value is not None)
    if not shown:
        return "!sdscbundle.input_arg<index>"
    return f"!sdscbundle.limited_input_arg<index, {{{shown}}}>"


def quoted(text: str) -> str:
    """Return a string literal of MLIR: quotes, backslashes and control characters as two hex digits."""
    escaped = "".join(f"\\{ord(c):02X}" if c in '"\\' or ord(c) < 0x20 or ord(c) == 0x7F else c for c in text)
    return f'"{escaped}"'


def _affine_map(item: AffineMap) -> str:
    dims = ", ".join(f"d{index}" for index in range(len(item.coefficients)))
    terms = "".join(f" + {factor}*d{index}" for index, factor in enumerate(item.coefficients))
    return f"affine_map<({dims})[s0] -> (s0{terms})>"


def _values(names: Sequence[str]) -> str:
    return ", ".join(f"%{name}" for name in names)


def _custom_lines(body: Sequence[Statement], types: dict[str, str], depth: int) -> Iterator[str]:
    indent = "\t" * depth
    for statement in body:
        if isinstance(statement, For):
            bounds = f"%{statement.lower} to %{statement.upper} step %{statement.step}"
            yield f"{indent}scf.for %{statement.induction} = {bounds} {{"
            yield from _custom_lines(statement.body, types, depth + 1)
            yield f"{indent}}}"
        else:
            yield indent + _custom(statement, types)


def _custom(
    statement: Add | AffineApply | ArgumentExtract | Constant | DeviceMemoryAllocate | SdscExecute,
    types: dict[str, str],
) -> str:
    match statement:
        case ArgumentExtract(result, argument):
            conversion = f"{types.get(argument, '!sdscbundle.input_arg<index>')} -> index"
            return f"%{result} = sdscbundle.input_arg_extract value from %{argument} : {conversion}"
        case Constant(result, value):
            return f"%{result} = arith.constant {value} : index"
        case Add(result, left, right):
            return f"%{result} = arith.addi %{left}, %{right} : index"
        case AffineApply(result, map_name, dims, symbol):
            return f"%{result} = affine.apply #{map_name}({_values(dims)})[%{symbol}]"
        case DeviceMemoryAllocate(result, size_bytes):
            return f"%{result} = sdscbundle.device_mem_allocate {size_bytes} bytes : index"
        case SdscExecute(filename, operands, symbol_ids):
            ids = "" if symbol_ids is None else f', "symbol_ids"=[{", ".join(map(str, symbol_ids))}]'
            return f"sdscbundle.sdsc_execute ({_values(operands)}) {{sdsc_filename={quoted(filename)}{ids}}}"
        case _:
            assert_never(statement)


def _generic_lines(body: Sequence[Statement], types: dict[str, str], depth: int) -> Iterator[str]:
    indent = "\t" * depth
    for statement in body:
        if isinstance(statement, For):
            yield f'{indent}"scf.for"({_values((statement.lower, statement.upper, statement.step))}) ({{'
            yield f"{indent}^bb0(%{statement.induction}: index):"
            yield from _generic_lines(statement.body, types, depth + 1)
            yield f'{indent}\t"scf.yield"() : () -> ()'
            yield f"{indent}}}) : (index, index, index) -> ()"
        else:
            yield indent + _generic(statement, types)


def _indices(count: int) -> str:
    return f"({', '.join(['index'] * count)})"


def _generic_ids(symbol_ids: tuple[int, ...] | None) -> str:
    if symbol_ids is None:
        return "unit"
    return f"array<i64: {', '.join(map(str, symbol_ids))}>" if symbol_ids else "array<i64>"


def _generic(
    statement: Add | AffineApply | ArgumentExtract | Constant | DeviceMemoryAllocate | SdscExecute,
    types: dict[str, str],
) -> str:
    match statement:
        case ArgumentExtract(result, argument):
            source = types.get(argument, "!sdscbundle.input_arg<index>")
            call = f'"sdscbundle.input_arg_extract"(%{argument}) {{part = "value"}}'
            return f"%{result} = {call} : ({source}) -> index"
        case Constant(result, value):
            return f'%{result} = "arith.constant"() <{{value = {value} : index}}> : () -> index'
        case Add(result, left, right):
            flags = "<{overflowFlags = #arith.overflow<none>}>"
            return f'%{result} = "arith.addi"(%{left}, %{right}) {flags} : (index, index) -> index'
        case AffineApply(result, map_name, dims, symbol):
            operands = (*dims, symbol)
            call = f'"affine.apply"({_values(operands)}) <{{map = #{map_name}}}>'
            return f"%{result} = {call} : {_indices(len(operands))} -> index"
        case DeviceMemoryAllocate(result, size_bytes):
            return f'%{result} = "sdscbundle.device_mem_allocate"() {{size_bytes = {size_bytes} : index}} : () -> index'
        case SdscExecute(filename, operands, symbol_ids):
            attributes = f"{{sdsc_filename = {quoted(filename)}, symbol_ids = {_generic_ids(symbol_ids)}}}"
            return f'"sdscbundle.sdsc_execute"({_values(operands)}) {attributes} : {_indices(len(operands))} -> ()'
        case _:
            assert_never(statement)
