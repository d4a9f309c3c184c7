"""Which operations of PyTorch a graph has, and under which names: derived from the catalogue, beside a few aliases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from spyrec.frontends.model_import.keep_ops import kept_ops
from spyrec.frontends.torch_export.rewrites import REWRITES
from spyrec.ir.opdef import catalogue

VANISHING = frozenset({
    "_assert_async", "_assert_scalar", "_assert_tensor_metadata", "_functional_assert_async",
    "_functional_assert_scalar", "_functional_sym_constrain_range", "_log_api_usage_once",
    "sym_constrain_range", "sym_constrain_range_for_size",
})  # fmt: skip
"""Operations that check or announce something and make no value."""

SIZES = frozenset({
    "sym_float", "sym_ite", "sym_max", "sym_min", "sym_not", "sym_numel", "sym_size", "sym_storage_offset",
    "sym_stride",
})  # fmt: skip
"""Operations on sizes: the program's sizes are known without them."""

IDENTITIES = frozenset({
    "alias", "alias_copy", "clone", "contiguous", "detach", "detach_copy", "lift", "lift_fresh",
    "lift_fresh_copy", "view_of",
})  # fmt: skip
"""Operations whose result is their operand: memory formats and aliases mean nothing in a graph."""

ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "__and__": "bitwise_and",
        "__lshift__": "bitwise_left_shift",
        "__or__": "bitwise_or",
        "__rshift__": "bitwise_right_shift",
        "__xor__": "bitwise_xor",
        "_adaptive_avg_pool2d": "adaptive_avg_pool2d",
        "_adaptive_avg_pool3d": "adaptive_avg_pool3d",
        "_conj": "clone",
        "_reshape_alias": "reshape",
        "_unsafe_index": "index",
        "_unsafe_view": "view",
        "log_sigmoid": "logsigmoid",
        "special_expm1": "expm1",
        "special_logsumexp": "logsumexp",
        "special_softmax": "softmax",
        "split_with_sizes": "split",
        "split_with_sizes_copy": "split",
        "unsafe_chunk": "chunk",
        "unsafe_split": "split",
        "unsafe_split_with_sizes": "split",
        "view_copy": "view",
    }
)
"""Operations that are one of a graph's by another name, with the same arguments."""


def is_kept(name: str) -> bool:
    """Whether an operation of PyTorch is kept whole, by its name without namespace and overload."""
    return name in {*VANISHING, *SIZES, *IDENTITIES, *REWRITES} or public_name(name) is not None


def public_name(name: str) -> str | None:
    """Return the op of a graph that an operation is, ``None`` where it is none."""
    found = ALIASES.get(name, name)
    definition = catalogue().get(found)
    return found if definition is not None and definition.is_public else None


def kept_operations(names: Iterable[str]) -> dict[str, str]:
    """Return the operations of a program that are kept whole on demand: by ``namespace.name``, the op of a graph.

    ``names`` as PyTorch writes them: ``mylib::norm``, ``torch.ops.mylib.norm.default``, ``silu`` of ``aten``; where an
    op is called otherwise, ``mylib::norm=rms_norm``.  Errors: SPY0167.
    """
    ops = [name for name, definition in catalogue().items() if definition.is_public]

    def op_of(operation: str, name: str) -> str | None:
        return name if operation == f"aten.{name}" and is_kept(name) else public_name(name)

    return kept_ops(names, qualified, op_of, ops)


def qualified(name: str) -> str:
    """Return an operation's ``namespace.name``, without its overload."""
    parts = name.removeprefix("torch.ops.").replace("::", ".").split(".")
    return ".".join(parts[:2] if len(parts) > 1 else ["aten", *parts])
