"""The signature that a builder's method has for an op, from the op's declaration; also as text for type checkers."""

from __future__ import annotations

import types
from collections.abc import Iterator
from inspect import Parameter, Signature
from typing import Literal, Union, cast, get_args, get_origin

from spyrec.dataclass import dataclass
from spyrec.hardware.dtypes import DType
from spyrec.ir.attribute_text import attribute_fields
from spyrec.ir.attributes import Spelling
from spyrec.ir.opdef import OpDef, OperandSpec, catalogue

_SPELLINGS = {
    Spelling.DIMS: "int | Sequence[int]",
    Spelling.SIZE: "Extent",
    Spelling.SIZES: "Extent | Sequence[Extent]",
    Spelling.FACTORS: "float | Sequence[float]",
}
_REQUESTS = (
    ("name", "str | None"),
    ("outputs", "Sequence[str] | None"),
    ("layout", "Layout | None"),
    ("work_division", "WorkDivision | None"),
)
_HEADER = '''\
"""The ops of the catalogue as methods: what type checkers and editors know of ``op_methods.py``.

Generated from the op declarations by scripts/generated_files.py; `make cases` writes it again.
"""

# ruff: noqa: A002, D403, PYI021 -- the names are PyTorch's, the docstrings are for editors and are the catalogue's

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from spyrec.frontends.arguments import DTypeLike, Layout, WorkDivision
from spyrec.frontends.dim import Extent
from spyrec.frontends.value import Number, Value
from spyrec.ir.opdef import OpDef

def op_method(definition: OpDef) -> Callable[..., object]: ...

class OpMethods:
    """Every public op of the catalogue as a method."""

    def record_op(self, definition: OpDef, operands: Sequence[object], arguments: Mapping[str, object]) -> object: ...
'''


@dataclass(frozen=True, slots=True)
class OpParameter:
    """One parameter: its name, its annotation as text, its default where it has one, and whether by keyword only."""

    name: str
    annotation: str
    is_keyword: bool
    has_default: bool = False
    default: object = None


def op_signature(definition: OpDef) -> Signature:
    """Return the signature of an op's method, ``self`` first."""
    kinds = {True: Parameter.KEYWORD_ONLY, False: Parameter.POSITIONAL_OR_KEYWORD}
    parameters = [Parameter("self", Parameter.POSITIONAL_ONLY)]
    for item in _parameters(definition):
        default = item.default if item.has_default else Parameter.empty
        parameters.append(Parameter(item.name, kinds[item.is_keyword], default=default, annotation=item.annotation))
    return Signature(parameters, return_annotation=_result(definition))


def stub_text() -> str:
    """Return ``op_methods.pyi``."""
    return _HEADER.rstrip() + "".join(_method_text(item) for item in catalogue().values() if item.is_public)


def _parameters(definition: OpDef) -> Iterator[OpParameter]:
    for spec in definition.operands:
        text = _operand_text(spec, accepts_number=spec.accepts_number or spec.name in definition.number_attributes)
        has_default = spec.is_optional and not spec.is_variadic
        yield OpParameter(spec.name, text, is_keyword=False, has_default=has_default)
    by_keyword = len(definition.operands) > 1
    names = {spec.name for spec in definition.operands}
    fields = [field for name, field in attribute_fields(definition.attributes).items() if name not in names]
    # those without a default first: only by keyword may they follow others
    for field in sorted(fields, key=lambda item: not item.is_required) if by_keyword else fields:
        text = annotation_text(field.annotation)
        yield OpParameter(field.name, text, by_keyword, not field.is_required, field.default)
    for name, text in _REQUESTS:
        yield OpParameter(name, text, is_keyword=True, has_default=True)


def _operand_text(spec: OperandSpec, *, accepts_number: bool) -> str:
    text = "Value | Number" if accepts_number else "Value"
    text = f"{text} | None" if spec.is_optional else text
    return f"Sequence[{text}]" if spec.is_variadic else text


def _result(definition: OpDef) -> str:
    if definition.result_count is None:
        return "Value | tuple[Value, ...]" if definition.is_first_enough else "tuple[Value, ...]"
    return "Value" if definition.result_count == 1 else f"tuple[{', '.join(['Value'] * definition.result_count)}]"


def annotation_text(annotation: object) -> str:
    """Return what a caller may give for an attribute, as Python writes types."""
    if get_origin(annotation) in (Union, types.UnionType):
        members = cast("tuple[object, ...]", get_args(annotation))
        texts = ["None" if item is type(None) else annotation_text(item) for item in members]
        return " | ".join(text for text in dict.fromkeys(texts) if text != "int" or "float" not in texts)
    if get_origin(annotation) is Literal:
        return f"Literal[{', '.join(map(_literal, get_args(annotation)))}]"
    spelling = next((item for item in get_args(annotation) if isinstance(item, Spelling)), None)
    if spelling is not None:
        return _SPELLINGS[spelling]
    return "DTypeLike" if annotation is DType else cast("type", annotation).__name__


def _literal(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _method_text(definition: OpDef) -> str:
    lines = ["self"]
    is_keyword = False
    for item in _parameters(definition):
        if item.is_keyword and not is_keyword:
            lines.append("*")
            is_keyword = True
        default = f" = {_default_text(item.default)}" if item.has_default else ""
        lines.append(f"{item.name}: {item.annotation}{default}")
    joined = "".join(f"        {line},\n" for line in lines)
    return (
        f'\n    def {definition.name}(\n{joined}    ) -> {_result(definition)}:\n        """{definition.summary}"""\n'
    )


def _default_text(value: object) -> str:
    return _literal(value.value if isinstance(value, DType) else value)
