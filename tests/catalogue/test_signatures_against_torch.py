"""Names, arguments and defaults of the ops against PyTorch's own: its schemas, and its functions of Python.

Whatever PyTorch's function takes an op takes by the same name, with the same value where it is left away, or the page
of ops says that it is refused.  Collected only where torch is importable (``tests/conftest.py``).
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from spyrec.diagnostics.json_reading import JsonValue
from spyrec.ir.attribute_text import attribute_fields, write_value
from spyrec.ir.op_docs import public_ops
from spyrec.ir.opdef import OpDef
from spyrec.ir.refused_ops import PLACEMENT_ARGUMENTS, REFUSED_ARGUMENTS
from tests.ir.test_core_aten import CORE

# typed as Any: the project's type check runs without torch
torch: Any = import_module("torch")

REQUIRED = object()
"""What a parameter without a default is left away as."""

Overload = dict[str, object]
"""One signature: what each parameter is where it is left away."""

OTHER_NAMES = {"col2im": "fold", "logsigmoid": "log_sigmoid"}
"""What PyTorch calls the function, or the schema, where the op has the name of the other."""

OUR_OWN = {
    ("_grouped_mm", "mat_a"): "operands have places; torch.nn.functional.grouped_mm names them so",
    ("_grouped_mm", "mat_b"): "the same",
    ("avg_pool1d", "divisor_override"): "of two and three dims alone in PyTorch, and refused here",
    ("einsum", "operands"): "torch.einsum's name; the schema calls them tensors",
}
"""Names that PyTorch's signature has not."""

OTHER_DEFAULTS = {
    ("arange", "end"): "PyTorch's arange(5) calls its first number so",
    ("dropout", "p"): "nothing is dropped: a graph is of inference, and says so",
    ("dropout", "training"): "the same",
    **dict.fromkeys(
        [(name, "dtype") for name in ("empty", "eye", "linspace", "ones", "scalar_tensor", "zeros")],
        "torch.get_default_dtype(), which is float32",
    ),
    ("full", "dtype"): "float16, as docs/graph_format.md says",
    ("pow", "exponent"): "a number in this place is an attribute, a tensor an operand",
    ("to", "dtype"): "without one there is nothing to convert to",
    **dict.fromkeys(
        [(name, "unbiased") for name in ("std", "std_mean", "var", "var_mean")], "true, unless correction is given"
    ),
}
"""What is left away as something else, and why."""

LEFT_OUT = {
    ("_grouped_mm", "input"): "mat_a",
    ("_grouped_mm", "mat2"): "mat_b",
    ("dropout", "train"): "training, in the schema",
    ("einsum", "path"): "in which order sums are taken",
    ("einsum", "tensors"): "operands",
    ("index_put", "values"): "the last of the indices",
    ("embedding", "indices"): "input, in the function",
    ("embedding_bag", "indices"): "the same",
    ("expand", "implicit"): "set by PyTorch itself",
    ("layer_norm", "cudnn_enable"): "which library computes",
    **{(f"max_pool{dims}d_with_indices", "return_indices"): "they are returned" for dims in (1, 2, 3)},
    ("scatter", "value"): "a number as src",
    ("split", "split_sizes"): "a list as split_size",
    ("to", "other"): "type_as",
    **{("unfold", name): "of torch.nn.functional.unfold" for name in ("dilation", "kernel_size", "padding", "stride")},
}
"""Parameters that change no number, and other names of operands."""


def overloads(name: str) -> Iterator[Overload]:
    """Yield the signatures that PyTorch has for an op, without those that write into a given tensor."""
    names = [name, OTHER_NAMES.get(name, f"{name}_with_indices")]
    for schema in (item for entry in names for item in torch._C._jit_get_schemas_for_operator(f"aten::{entry}")):
        # scripts have operators of Python under the same names
        is_of_script = "Tensor" not in str(schema) or {item.name for item in schema.arguments} & {"a", "el", "reverse"}
        if is_of_script or "Dimname" in str(schema) or any(item.is_out for item in schema.arguments):
            continue
        yield {
            "input" if item.name == "self" else item.name: item.default_value if item.has_default_value() else REQUIRED
            for item in schema.arguments
        }
    for spelled in names:
        try:
            parameters = inspect.signature(getattr(torch.nn.functional, spelled)).parameters.values()
        except (AttributeError, TypeError, ValueError):  # no such function, or it is compiled
            continue
        yield {
            item.name: REQUIRED if item.default is item.empty else item.default
            for item in parameters
            if not item.name.startswith("_") and item.kind not in (item.VAR_POSITIONAL, item.VAR_KEYWORD)
        }


def own(definition: OpDef) -> Overload:
    return {
        field.name: REQUIRED if field.is_required else write_value(field.default)
        for field in attribute_fields(definition.attributes).values()
    }


def same(ours: object, theirs: object) -> bool:
    """Whether two defaults mean the same: one number is that number for every dim, an empty list says nothing."""
    return plain(ours) == plain(theirs)


def plain(value: Any) -> JsonValue | object:  # noqa: ANN401 -- any default of torch's
    if isinstance(value, list | tuple):
        items: list[object] = list(value)  # pyright: ignore[reportUnknownArgumentType]
        return plain(items[0]) if items and len(set(map(str, items))) == 1 else (items or None)
    return value


OPS = list(public_ops())


@pytest.mark.parametrize("definition", OPS, ids=lambda item: item.name)
def test_names_and_defaults_are_pytorchs(definition: OpDef) -> None:
    name, found = definition.name, list(overloads(definition.name))
    assert found
    theirs = {parameter for overload in found for parameter in overload}
    ours = own(definition)
    operands = [spec.name for spec in definition.operands]
    named = {item for item in (*operands, *ours) if (name, item) not in OUR_OWN}
    assert named <= theirs
    for attribute, value in ours.items():
        if (name, attribute) in OTHER_DEFAULTS or attribute not in theirs:
            continue
        if value is not REQUIRED and any(attribute not in overload for overload in found):
            continue  # left away, it is another signature that is meant
        defaults = [overload[attribute] for overload in found if attribute in overload]
        assert any(same(value, item) for item in defaults), (attribute, value, defaults)


@pytest.mark.parametrize("definition", OPS, ids=lambda item: item.name)
def test_what_pytorch_takes_besides_is_refused_by_name(definition: OpDef) -> None:
    name = definition.name
    known = {*(spec.name for spec in definition.operands), *own(definition), *PLACEMENT_ARGUMENTS}
    known |= {entry.partition("=")[0] for entry in REFUSED_ARGUMENTS.get(name, ())}
    known |= {parameter for op, parameter in LEFT_OUT if op == name}
    unsaid = {parameter for overload in overloads(name) for parameter in overload} - known
    assert unsaid == set()


def test_no_exception_is_left_over() -> None:
    """What these tables excuse is there."""
    by_name = {definition.name: definition for definition in OPS}
    for name, parameter in (*OUR_OWN, *OTHER_DEFAULTS):
        definition = by_name[name]
        assert parameter in {*(spec.name for spec in definition.operands), *own(definition)}
    for name, parameter in LEFT_OUT:
        assert parameter in {item for overload in overloads(name) for item in overload}


def test_core_aten_ops_are_those_that_pytorch_tags() -> None:
    """The committed list, which ``tests/ir/test_core_aten.py`` holds the catalogue against, is PyTorch's."""
    tagged: set[str] = set()
    for entry in torch._C._dispatch_get_all_op_names():
        namespace, _, rest = entry.partition("::")
        if namespace != "aten":
            continue
        name, _, overload = rest.partition(".")
        packet = getattr(torch.ops.aten, name)
        function = getattr(packet, overload or "default")
        if torch.Tag.core in function.tags:
            tagged.add(name)
    assert tagged == set(CORE)
