"""``aten._transformer_encoder_layer_fwd``: a whole layer of ``nn.TransformerEncoder`` in inference.

PyTorch has no decomposition of it; this one is of operations that a graph has.
"""

# PyTorch's functions of tensors are not in the stubs that the project has of it
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportAttributeAccessIssue=false, reportOperatorIssue=false

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    Tensors = tuple[torch.Tensor, torch.Tensor]


def encoder_layer(  # noqa: PLR0913 -- the operation's own arguments, in its order
    src: torch.Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: torch.Tensor,
    qkv_bias: torch.Tensor,
    proj_weight: torch.Tensor,
    proj_bias: torch.Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: torch.Tensor,
    norm_bias_1: torch.Tensor,
    norm_weight_2: torch.Tensor,
    norm_bias_2: torch.Tensor,
    ffn_weight_1: torch.Tensor,
    ffn_bias_1: torch.Tensor,
    ffn_weight_2: torch.Tensor,
    ffn_bias_2: torch.Tensor,
    mask: torch.Tensor | None = None,
    mask_type: int | None = None,
) -> torch.Tensor:
    """Attention and two products around a function, each with a norm before it or behind its sum.

    ``src``: ``[batch, length, embed_dim]``.  ``mask``: what is not attended to, of the form that ``mask_type`` says.
    """
    from torch.nn import functional

    allowed = None if mask is None else _allowed(mask, mask_type)

    def first_norm(value: torch.Tensor) -> torch.Tensor:
        return functional.layer_norm(value, (embed_dim,), norm_weight_1, norm_bias_1, eps)

    def second_norm(value: torch.Tensor) -> torch.Tensor:
        return functional.layer_norm(value, (embed_dim,), norm_weight_2, norm_bias_2, eps)

    def attended(value: torch.Tensor) -> torch.Tensor:
        parts = functional.linear(value, qkv_weight, qkv_bias).chunk(3, dim=-1)
        query, key, content = (part.unflatten(-1, (num_heads, -1)).transpose(1, 2) for part in parts)
        found = functional.scaled_dot_product_attention(query, key, content, allowed)
        return functional.linear(found.transpose(1, 2).flatten(2), proj_weight, proj_bias)

    def transformed(value: torch.Tensor) -> torch.Tensor:
        wide = functional.linear(value, ffn_weight_1, ffn_bias_1)
        wide = functional.gelu(wide) if use_gelu else functional.relu(wide)
        return functional.linear(wide, ffn_weight_2, ffn_bias_2)

    if norm_first:
        value = src + attended(first_norm(src))
        return value + transformed(second_norm(value))
    value = first_norm(src + attended(src))
    return second_norm(value + transformed(value))


def _allowed(mask: torch.Tensor, mask_type: int | None) -> torch.Tensor:
    """Return where a mask lets a row look, ``[batch, heads, rows, columns]`` or what broadcasts to it.

    Type 0 is a mask of rows and columns, 1 one of columns per batch, anything else one of all four.  A number that is
    not zero is a column that is not seen, as PyTorch's kernel has it.
    """
    import torch

    allowed = mask.to(torch.bool).logical_not()
    return allowed[:, None, None, :] if mask_type == 1 else allowed


def decompositions() -> dict[object, Callable[..., torch.Tensor]]:
    """Return decompositions that PyTorch does not have, by its operations."""
    import torch

    return {torch.ops.aten._transformer_encoder_layer_fwd.default: encoder_layer}  # noqa: SLF001 -- PyTorch's own name
