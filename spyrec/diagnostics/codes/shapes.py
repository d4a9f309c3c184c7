"""02xx: shapes and dtypes."""

from __future__ import annotations

from spyrec.diagnostics.codes.code import Code

SHAPES: dict[str, Code] = {
    # 02xx
    "SPY0201": Code(
        "shapes do not broadcast",
        "Extents are equal or 1, counted from the last dim, as in PyTorch.",
        hint="reshape, unsqueeze or expand one operand",
    ),
    "SPY0202": Code(
        "dtype without this arithmetic",
        "The device computes on floats; integers can only be moved, bools be compared and selected.",
        hint="convert the operand with to(float16) or to(float32), where its values allow",
    ),
    "SPY0203": Code(
        "dtypes meet",
        "Nothing is cast silently: convert one operand with to(...).",
        hint="convert one operand with to(...)",
    ),
    "SPY0204": Code("dim out of range", "Dims run from -rank to rank - 1.", hint="choose a dim from -rank to rank - 1"),
    "SPY0205": Code(
        "dim named twice",
        "A list of dims names each at most once; permute names each exactly once.",
        hint="name each dim once",
    ),
    "SPY0206": Code(
        "rank that the op does not take",
        "The message names the ranks that it takes.",
        hint="reshape the operand to a rank that the op takes",
    ),
    "SPY0207": Code(
        "operand of another shape",
        "The message names the shape that the op needs there.",
        hint="reshape the operand, or correct its declaration",
    ),
    "SPY0208": Code(
        "sizes that do not fit",
        "Sizes hold as many elements as the operand; one of them may be -1.",
        hint="choose sizes that hold as many elements as the operand",
    ),
    "SPY0209": Code(
        "attribute out of range", "The message names the value and the range.", hint="choose a value in the range shown"
    ),
    "SPY0210": Code(
        "condition that is not bool",
        "where selects by a bool tensor; comparisons make one.",
        hint="make the condition with a comparison, such as ne(x, 0)",
    ),
    "SPY0211": Code(
        "attribute not supported",
        "PyTorch knows this value of the attribute, and the device has nothing for it.",
        hint="choose another value of the attribute, or build it from other ops",
    ),
    "SPY0212": Code(
        "index out of range",
        "A slice or selection must hold at least one element.",
        hint="choose start and end so that an element lies between them",
    ),
    "SPY0213": Code(
        "contraction of unequal extents",
        "The contracted dims of both operands are equal.",
        hint="transpose or reshape an operand so that the contracted dims agree",
    ),
    "SPY0214": Code(
        "format that the op does not take",
        "The device has a list of ops that run on IEEE_FP32; the others need to(float16).",
        hint="convert the operand with to(float16)",
    ),
    "SPY0215": Code(
        "number that does not fit the dtype beside it",
        "A number takes the dtype of the tensors beside it and never widens them.",
        hint="choose a number in the dtype's range, or a wider dtype beside it",
    ),
    "SPY0216": Code(
        "expand that does not fit",
        "Only extents of 1 grow; -1 keeps an extent; new dims stand in front.",
        hint="expand dims of extent 1 only; unsqueeze first for a new dim inside",
    ),
    "SPY0217": Code(
        "tensors that do not join",
        "cat needs equal extents in the other dims, stack equal shapes.",
        hint="make the extents of the other dims agree",
    ),
    "SPY0218": Code(
        "conversion that there is not",
        "Conversions run among float16, bfloat16, float32, bool and the integers.",
        hint="convert by way of float32",
    ),
    "SPY0219": Code(
        "operand that must be a tensor",
        "A number or nothing stands where the op needs a tensor.",
        hint="name a value there: an input, a constant or a node's result",
    ),
    "SPY0220": Code(
        "declared type disagrees",
        "A value's type is not what its node makes: in the text of a graph, or after a pass that went wrong.",
        hint="declare what the operation makes; where a pass did it, please report the bug",
    ),
    "SPY0222": Code(
        "nothing to choose of",
        "The largest or smallest of no elements does not exist; a sum of none is 0, a product 1.",
        hint="fold dims that have elements",
    ),
    "SPY0226": Code(
        "op that cannot be computed",
        "PyTorch has this op, and a compiled graph has no place for it; the message says why.",
        hint="compute it before the graph, or say it with ops whose results have one shape",
    ),
    "SPY0230": Code(
        "operand that is no index",
        "Tensors that name elements are of int32 or int64; a bool mask stands where the message says so.",
        hint="convert the index with to(int64)",
    ),
    "SPY0231": Code(
        "index past the elements",
        "An index of a lookup or of a write names an element of the dim that it runs along.",
        hint="clamp the indices to the extent of the dim",
    ),
    "SPY0232": Code(
        "too few or too many values for a mask",
        "A mask that is known at run alone takes as many values as it has places that are true.",
        hint="give a value for each place, or one for all",
    ),
    "SPY0233": Code(
        "result whose shape depends on numbers",
        "A shape follows from types and attributes; what a mask chooses, from its numbers: they are a constant's.",
        hint="where, masked_fill and masked_scatter keep the shape; a mask that is a constant chooses",
    ),
    "SPY0234": Code(
        "window that fits nowhere",
        "A kernel or a pool, dilated, is no wider than its input with padding.",
        hint="choose a smaller kernel, less dilation or more padding",
    ),
    "SPY0235": Code(
        "channels that do not divide",
        "Groups divide the channels that they part.",
        hint="choose groups that divide the channels",
    ),
}
