"""Random chains of views, applied to an access and, as the oracle, to a NumPy array of element numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from spyrec.ir.access import Access

Numbers = npt.NDArray[np.int64]

_LIMIT = 4096
"""Elements of the largest view."""


@dataclass(frozen=True, slots=True)
class ViewChain:
    """A view of a buffer: which element (row-major number) each index names, and our access to the same."""

    shape: tuple[int, ...]
    numbers: Numbers
    access: Access | None
    steps: tuple[str, ...] = ()


def start(shape: Sequence[int]) -> ViewChain:
    """Return all of a buffer."""
    numbers = np.arange(math.prod(shape), dtype=np.int64).reshape(tuple(shape))
    return ViewChain(tuple(shape), numbers, Access.identity(shape))


def permuted(chain: ViewChain, order: Sequence[int]) -> ViewChain:
    """Reorder the dims."""
    return _then(
        chain, chain.numbers.transpose(tuple(order)), chain.access and chain.access.permute(order), f"permute {order}"
    )


def windowed(chain: ViewChain, dim: int, indices: range) -> ViewChain:
    """Take a range of one dim."""
    cut = (slice(None),) * dim + (slice(indices.start, indices.stop, indices.step),)
    access = chain.access and chain.access.window(dim, indices.start, len(indices), indices.step)
    return _then(chain, chain.numbers[cut], access, f"window {dim} {indices}")


def reshaped(chain: ViewChain, shape: Sequence[int]) -> ViewChain:
    """Re-index by row-major position."""
    return _then(
        chain, chain.numbers.reshape(tuple(shape)), chain.access and chain.access.reshape(shape), f"reshape {shape}"
    )


def expanded(chain: ViewChain, shape: Sequence[int]) -> ViewChain:
    """Broadcast."""
    numbers = np.broadcast_to(chain.numbers, tuple(shape))
    return _then(chain, numbers, chain.access and chain.access.expand(shape), f"expand {shape}")


def _then(chain: ViewChain, numbers: Numbers, access: Access | None, step: str) -> ViewChain:
    return replace(chain, numbers=numbers, access=access, steps=(*chain.steps, step))


def coordinates_of(access: Access) -> list[Numbers]:
    """Return, per buffer dim, the coordinate at every index of the access."""
    index = np.indices(access.extents, dtype=np.int64, sparse=True)
    return [
        np.broadcast_to(
            np.int64(coordinate.offset)
            + sum(
                (term.coefficient * (index[term.dim] // term.divisor % term.modulus) for term in coordinate.terms),
                start=np.int64(0),
            ),
            access.extents,
        )
        for coordinate in access.coordinates
    ]


@st.composite
def factored(draw: st.DrawFn, count: int) -> tuple[int, ...]:
    """Draw a shape of ``count`` elements, now and then with dims of extent 1."""
    dims: list[int] = []
    while count > 1 and len(dims) < 3 and draw(st.integers(0, 3)):
        dims.append(draw(st.sampled_from([size for size in range(2, count + 1) if count % size == 0])))
        count //= dims[-1]
    if count > 1:
        dims.append(count)
    dims = list(draw(st.permutations(dims)))
    if draw(st.integers(0, 3)) == 0:
        dims.insert(draw(st.integers(0, len(dims))), 1)
    return tuple(dims)


@st.composite
def windows(draw: st.DrawFn, extent: int) -> range:
    """Draw a range of a dim that holds at least one index."""
    first = draw(st.integers(0, extent - 1))
    return range(first, draw(st.integers(first + 1, extent)), draw(st.sampled_from((1, 1, 1, 2, 3, 4))))


@st.composite
def view_chains(draw: st.DrawFn, shape: Sequence[int], most: int = 5) -> ViewChain:
    """Draw up to ``most`` views on top of each other; it ends where a view has no access."""
    chain = start(shape)
    for _ in range(draw(st.integers(0, most))):
        chain = draw(_next_views(chain))
        if chain.access is None:
            break
    return chain


@st.composite
def _next_views(draw: st.DrawFn, chain: ViewChain) -> ViewChain:
    rank, shape = chain.numbers.ndim, chain.numbers.shape
    match draw(st.sampled_from("pwre" if rank else "re")):
        case "p":
            return permuted(chain, draw(st.permutations(range(rank))))
        case "w":
            dim = draw(st.integers(0, rank - 1))
            return windowed(chain, dim, draw(windows(shape[dim])))
        case "r":
            return reshaped(chain, draw(factored(chain.numbers.size)))
        case _:
            outer = draw(st.sampled_from(((), (1,), (2,))))
            wide = (*outer, *(draw(st.sampled_from((1, 2, 3))) if size == 1 else size for size in shape))
            return expanded(chain, wide) if math.prod(wide) <= _LIMIT else chain
