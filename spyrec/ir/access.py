"""Access maps: which element of a buffer a loop nest touches, as mixed-radix digits of its iteration indices.

An :class:`Access` maps an index over ``extents`` to one coordinate per buffer dim.  A coordinate is
``offset + sum(coefficient * (floor(i[dim] / divisor) % modulus))``: views compose into it without arithmetic on
elements.  What a reshape cannot express so is returned as ``None``, and the caller makes a copy there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from spyrec.dataclass import dataclass
from spyrec.ir.remembered_hash import RemembersHash, remembers_hash


@dataclass(frozen=True, slots=True)
class Term:
    """``coefficient * (floor(i[dim] / divisor) % modulus)``; ``modulus`` is the number of values it takes."""

    coefficient: int
    dim: int
    divisor: int
    modulus: int


@dataclass(frozen=True, slots=True)
class Coordinate:
    """One buffer coordinate: a constant and terms, largest coefficient first."""

    offset: int = 0
    terms: tuple[Term, ...] = ()

    def value(self, index: Sequence[int]) -> int:
        """Return the coordinate at one iteration index."""
        return self.offset + sum(
            term.coefficient * (index[term.dim] // term.divisor % term.modulus) for term in self.terms
        )


def _merged(terms: Sequence[Term]) -> tuple[Term, ...]:
    """Sort terms and fuse neighbours that are adjacent digits of one index.

    ``16*(i//4 % 2) + 4*(i % 4) --> 4*(i % 8)`` where the coefficients agree.
    """
    ordered = sorted((term for term in terms if term.modulus > 1), key=lambda term: (-term.coefficient, term.dim))
    result: list[Term] = []
    for term in ordered:
        if result:
            outer = result[-1]
            if (
                outer.dim == term.dim
                and outer.divisor == term.divisor * term.modulus
                and outer.coefficient == term.coefficient * term.modulus
            ):
                result[-1] = Term(term.coefficient, term.dim, term.divisor, outer.modulus * term.modulus)
                continue
        result.append(term)
    return tuple(result)


@remembers_hash
@dataclass(frozen=True, slots=True)
class Access(RemembersHash):
    """A map from an index over ``extents`` to coordinates of a buffer."""

    extents: tuple[int, ...]
    coordinates: tuple[Coordinate, ...]

    @staticmethod
    def identity(shape: Sequence[int]) -> Access:
        """Return the access whose index is the buffer's own."""
        return _identity(tuple(shape))

    def coordinate(self, index: Sequence[int]) -> tuple[int, ...]:
        """Return the buffer coordinate of one index."""
        return tuple(coordinate.value(index) for coordinate in self.coordinates)

    @property
    def is_identity(self) -> bool:
        """Whether the index is the buffer's own."""
        return self == Access.identity(self.extents)

    def depends_on(self, dim: int) -> bool:
        """Whether any coordinate changes with index ``dim``."""
        return any(term.dim == dim for coordinate in self.coordinates for term in coordinate.terms)

    def over(self, extents: Sequence[int], sources: Sequence[int | None]) -> Access:
        """Re-index: old index ``d`` is new index ``sources[d]``, or 0 where that is ``None``."""
        return _over(self, tuple(extents), tuple(sources))

    def permute(self, order: Sequence[int]) -> Access:
        """``y[i_order[0], ..] = x[i_0, ..]``: new index ``k`` is old index ``order[k]``."""
        sources: list[int | None] = [0] * len(self.extents)
        for new, old in enumerate(order):
            sources[old] = new
        return self.over([self.extents[old] for old in order], sources)

    def expand(self, extents: Sequence[int]) -> Access:
        """Broadcast to ``extents``, aligned at the last dim; dims of extent 1 repeat."""
        shift = len(extents) - len(self.extents)
        sources = [
            dim + shift if self.extents[dim] == extents[dim + shift] and self.extents[dim] > 1 else None
            for dim in range(len(self.extents))
        ]
        return self.over(extents, sources)

    def window(self, dim: int, start: int, extent: int, step: int) -> Access | None:
        """``new index j`` of ``dim`` is old index ``start + j * step``; ``None`` where digits do not separate."""
        coordinates: list[Coordinate] = []
        for coordinate in self.coordinates:
            offset = coordinate.offset
            terms: list[Term] = []
            for term in coordinate.terms:
                if term.dim != dim:
                    terms.append(term)
                    continue
                digit = _digit_of_window(term, start, extent, step)
                if digit is None:
                    return None
                offset += digit[0]
                terms.extend(digit[1])
            coordinates.append(Coordinate(offset, _merged(terms)))
        extents = (*self.extents[:dim], extent, *self.extents[dim + 1 :])
        return Access(extents, tuple(coordinates))

    def reshape(self, shape: Sequence[int]) -> Access | None:
        """Re-index by row-major position; ``None`` where a digit of the old index is no digit of the new one."""
        return _reshaped(self, tuple(shape))


# Layers repeat: kernels that are alike get the very same maps, which tables then know again without comparing them.


@lru_cache(maxsize=1 << 12)
def _identity(shape: tuple[int, ...]) -> Access:
    terms = [(Term(1, dim, 1, size),) if size > 1 else () for dim, size in enumerate(shape)]
    return Access(shape, tuple([Coordinate(0, own) for own in terms]))


@lru_cache(maxsize=1 << 14)
def _over(access: Access, extents: tuple[int, ...], sources: tuple[int | None, ...]) -> Access:
    coordinates: list[Coordinate] = []
    for coordinate in access.coordinates:
        terms: list[Term] = []
        for term in coordinate.terms:
            source = sources[term.dim]
            if source is not None:
                terms.append(Term(term.coefficient, source, term.divisor, term.modulus))
        coordinates.append(Coordinate(coordinate.offset, _merged(terms)))
    return Access(extents, tuple(coordinates))


@lru_cache(maxsize=1 << 14)
def _reshaped(access: Access, shape: tuple[int, ...]) -> Access | None:
    groups = _reshape_groups(access.extents, shape)
    replaced: dict[int, tuple[_Group, int]] = {}
    for group in groups:
        for dim in group.old:
            stride = math.prod(access.extents[other] for other in group.old if other > dim)
            replaced[dim] = (group, stride)
    coordinates: list[Coordinate] = []
    for coordinate in access.coordinates:
        terms: list[Term] = []
        for term in coordinate.terms:
            group, stride = replaced[term.dim]
            digits = _digits_of_flat(term, group, stride, access.extents, shape)
            if digits is None:
                return None
            terms.extend(digits)
        coordinates.append(Coordinate(coordinate.offset, _merged(terms)))
    return Access(shape, tuple(coordinates))


def _digit_of_window(term: Term, start: int, extent: int, step: int) -> tuple[int, list[Term]] | None:
    """Rewrite ``floor((start + j*step)/divisor) % modulus`` as a constant and digits of ``j``."""
    period = term.divisor * term.modulus
    last = start + (extent - 1) * step
    if extent == 1:
        return term.coefficient * (start // term.divisor % term.modulus), []
    if start // period == last // period:  # the window lies in one period: the modulus does not act
        if start // term.divisor == last // term.divisor:
            return term.coefficient * (start // term.divisor % term.modulus), []
        if term.divisor == 1:
            return term.coefficient * (start % term.modulus), [Term(term.coefficient * step, term.dim, 1, extent)]
        if step == 1 and start % term.divisor == 0:
            count = -(-extent // term.divisor)
            base = term.coefficient * (start // term.divisor % term.modulus)
            return base, [Term(term.coefficient, term.dim, term.divisor, count)]
        if step % term.divisor == 0:
            base = term.coefficient * (start // term.divisor % term.modulus)
            return base, [Term(term.coefficient * (step // term.divisor), term.dim, 1, extent)]
    if step == 1 and start % period == 0:
        return 0, [Term(term.coefficient, term.dim, term.divisor, term.modulus)]
    if term.divisor % step == 0 and start % term.divisor == 0 and start % period == 0:
        return 0, [Term(term.coefficient, term.dim, term.divisor // step, term.modulus)]
    if term.divisor == 1 and term.modulus % step == 0 and start % period < step:
        return (
            term.coefficient * (start % period),
            [Term(term.coefficient * step, term.dim, 1, term.modulus // step)],
        )
    return None


@dataclass(frozen=True, slots=True)
class _Group:
    """Neighbouring dims before and after a reshape that hold the same elements."""

    old: tuple[int, ...]
    new: tuple[int, ...]


def _reshape_groups(old: Sequence[int], new: Sequence[int]) -> list[_Group]:
    """Cut a reshape into its smallest independent parts, dims of extent 1 left aside."""
    old_dims = [dim for dim, size in enumerate(old) if size != 1]
    new_dims = [dim for dim, size in enumerate(new) if size != 1]
    groups: list[_Group] = []
    i = j = 0
    while i < len(old_dims) or j < len(new_dims):
        first_i, first_j = i, j
        left, right = old[old_dims[i]], new[new_dims[j]]
        i, j = i + 1, j + 1
        while left != right:
            if left < right:
                left *= old[old_dims[i]]
                i += 1
            else:
                right *= new[new_dims[j]]
                j += 1
        groups.append(_Group(tuple(old_dims[first_i:i]), tuple(new_dims[first_j:j])))
    return groups


def _digits_of_flat(
    term: Term, group: _Group, stride: int, old: Sequence[int], new: Sequence[int]
) -> list[Term] | None:
    """Express a digit of an old index through the new indices of its group.

    The old index is ``floor(F / stride) % size`` of the group's flat position F, so the digit is
    ``floor(F / low) % modulus`` with ``low = stride * divisor``; F itself is a mixed-radix number of the new dims.
    """
    size = old[term.dim]
    is_outermost = term.dim == group.old[0]
    if size % term.divisor != 0 and not is_outermost:
        return None
    modulus = min(term.modulus, -(-size // term.divisor))
    reaches_top = term.divisor * modulus >= size
    if not reaches_top and size % (term.divisor * modulus) != 0 and not is_outermost:
        return None
    low = stride * term.divisor
    total = math.prod(new[dim] for dim in group.new)
    high = total if reaches_top and is_outermost else low * modulus
    terms: list[Term] = []
    position = 1
    for dim in reversed(group.new):
        begin, end = position, position * new[dim]
        position = end
        if end <= low:
            if low % end:
                return None
            continue
        if begin >= high:
            break
        inner, outer = max(begin, low), min(end, high)
        cuts_evenly = inner % begin == 0 and inner % low == 0
        ends_evenly = outer == total or (outer % inner == 0 and end % outer == 0)
        if not (cuts_evenly and ends_evenly):
            return None
        terms.append(Term(term.coefficient * (inner // low), dim, inner // begin, -(-outer // inner)))
    return terms
