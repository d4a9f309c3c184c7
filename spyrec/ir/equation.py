"""The equation of ``einsum``: letters for dims, an ellipsis for those that have none."""

from __future__ import annotations

import re
from collections.abc import Sequence

from spyrec.dataclass import dataclass
from spyrec.ir.opdef import OpError
from spyrec.ir.shapes import Shape, broadcast

Labels = tuple[str | int, ...]
"""A dim's letter, or, of an ellipsis, its number counted from the last: 0, 1, ..."""

_TERM = re.compile(r"[A-Za-z]*(\.\.\.)?[A-Za-z]*")
_MAX_OPERANDS = 16
_MAX_LABELS = 52
"""Letters there are."""


@dataclass(frozen=True, slots=True)
class Equation:
    """The labels of each operand's dims and of the result's, and the extent that each label has."""

    operands: tuple[Labels, ...]
    result: Labels
    extents: dict[str | int, int]

    @property
    def shape(self) -> Shape:
        """The shape of the result."""
        return tuple(self.extents[label] for label in self.result)


def _wrong(message: str, operand: int | None = None) -> OpError:
    attribute = "equation" if operand is None else None
    return OpError("SPY0209", message, hint="as in ij,jk->ik", operand=operand, attribute=attribute)


def _labels(term: str, rank: int | None, wide: int, operand: int | None = None) -> Labels:
    """Return the labels of a term; ``wide``: the dims of an ellipsis where ``rank`` does not say."""
    if _TERM.fullmatch(term) is None:
        raise _wrong(f'"{term[:40]}" is no term of an equation: letters, and at most one ellipsis')
    letters = term.replace("...", "")
    count = wide if rank is None else rank - len(letters)
    if count < 0 or ("..." not in term and rank is not None and count):
        raise _wrong(f'"{term[:40]}" names {len(letters)} dims of a tensor of rank {rank}', operand)
    if "..." not in term:
        return tuple(letters)
    before, after = term.split("...")
    return (*before, *range(count - 1, -1, -1), *after)


def parse(text: str, shapes: Sequence[Shape]) -> Equation:
    """Return what an equation says of operands of these shapes; without an arrow, as PyTorch: single letters sorted.

    Errors: SPY0209 an equation that says nothing of them, SPY0201 a letter of two extents.
    """
    left, arrow, right = text.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(shapes) or len(terms) > _MAX_OPERANDS:
        raise _wrong(f"the equation has {len(terms)} terms, and there are {len(shapes)} operands")
    operands = tuple(_labels(term, len(shape), 0, n) for n, (term, shape) in enumerate(zip(terms, shapes)))
    extents: dict[str | int, int] = {}
    for number, (labels, shape) in enumerate(zip(operands, shapes)):
        for label, extent in zip(labels, shape):
            own = {one for other, one in zip(labels, shape) if other == label}
            if len(own) > 1:
                message = f'"{label}" names dims of extents {min(own)} and {max(own)} of one tensor'
                raise OpError("SPY0201", message, hint="a diagonal has one extent", operand=number)
            pair = [(number, (extents.get(label, 1),)), (number, (extent,))]
            extents[label] = broadcast(pair, f'extents of "{label}"')[0]
    if len(extents) > _MAX_LABELS:
        raise _wrong(f"the equation names {len(extents)} dims, the limit is {_MAX_LABELS}")
    dims = sorted((label for label in extents if isinstance(label, int)), reverse=True)
    if arrow:
        result = _labels(right, None, len(dims))
    else:
        uses = [label for labels in operands for label in labels]
        result = (*dims, *sorted(str(label) for label in extents if isinstance(label, str) and uses.count(label) == 1))
    unknown = [label for label in result if label not in extents]
    if unknown or len(set(result)) != len(result):
        raise _wrong(f'the result "{right[:40]}" names a letter twice, or one that no operand has')
    return Equation(operands, result, extents)
