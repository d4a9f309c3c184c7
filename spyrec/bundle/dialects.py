"""Dialects of SuperDSC: what the writers of a date put into a bundle, as data.

A dialect is a record; whoever writes, reads or lowers asks it, and nobody asks for its name.  The next dialect is one
more record here, with its cases under ``tests/fixtures`` (``CONTRIBUTING.md`` shows it as a diff).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from spyrec.dataclass import dataclass


@dataclass(frozen=True, slots=True, repr=False)
class Dialect:
    """What files of a date look like, and how the code generator of that date divides and addresses.

    The form of ``sdsc_N.json``.  ``has_debug_handles``: ``debug_handle_`` is the first key of every SuperDSC.
    ``has_stage_details``: both data stages end with six keys of details.  ``has_own_size_order``: ``maxDimSizes_``
    stands in the order of the operand's own dims, not in that of its label.

    The lowering.  ``has_windows``: symbols for the start of a window and for what lies behind it, an id for each
    argument, parameters in ascending order (else a symbol for every distinct address, parameters in order of use).
    ``advances``: what an operand moves by in a loop is said by its own ``tile_advance`` (else by the loop's symbols).
    ``least_contracted_rank``: dims from which on a product counts the divided dim that it contracts first.
    ``masks_pointwise``: operations that fold nothing mask padded dims too, where their record has a mask.
    ``gathers_on_one_core``: operations with an index tensor are not divided.  ``scatters``: outputs are written through
    index tensors too.  ``adds_unit_dims``: an index without a symbol, or without one along its sticks, and the one
    element of a top-k have a dim of size 1.  ``sizes_index_dims``: ``maxDimSizes_`` of a table has the extents of the
    index (else 1 where they are smaller than those of the table).
    ``has_shuffles``: a copy in LX between two divisions is a shuffle.
    ``interleaves_fp8``: the first operand of an 8-bit product states the order inside its sticks.
    ``has_dynamic_sizes``: extents may be parameters of the program.
    ``compares_singles``: comparisons take float32, too.
    ``reproduces_mistakes``: under ``--compat`` operands lie where upstream counts them and formats meet as they do
    there, Q12 to Q15 included; without it these are mended under ``--compat`` too.
    """

    name: str
    has_debug_handles: bool
    has_stage_details: bool
    has_own_size_order: bool
    has_windows: bool
    advances: bool
    least_contracted_rank: int
    masks_pointwise: bool
    gathers_on_one_core: bool
    scatters: bool
    adds_unit_dims: bool
    sizes_index_dims: bool
    has_shuffles: bool
    interleaves_fp8: bool
    has_dynamic_sizes: bool
    compares_singles: bool
    reproduces_mistakes: bool

    def __repr__(self) -> str:
        return f"<Dialect {self.name}>"


JUNE_2026 = Dialect(
    name="2026-06",
    has_debug_handles=False,
    has_stage_details=False,
    has_own_size_order=False,
    has_windows=False,
    advances=False,
    least_contracted_rank=3,
    masks_pointwise=False,
    gathers_on_one_core=False,
    scatters=False,
    adds_unit_dims=False,
    sizes_index_dims=False,
    has_shuffles=False,
    interleaves_fp8=False,
    has_dynamic_sizes=False,
    compares_singles=False,
    reproduces_mistakes=False,
)

AUGUST_2026 = Dialect(
    name="2026-08",
    has_debug_handles=True,
    has_stage_details=True,
    has_own_size_order=True,
    has_windows=True,
    advances=True,
    least_contracted_rank=1,
    masks_pointwise=True,
    gathers_on_one_core=True,
    scatters=True,
    adds_unit_dims=True,
    sizes_index_dims=True,
    has_shuffles=True,
    interleaves_fp8=True,
    has_dynamic_sizes=True,
    compares_singles=True,
    reproduces_mistakes=True,
)

DIALECTS: Mapping[str, Dialect] = MappingProxyType({item.name: item for item in (JUNE_2026, AUGUST_2026)})
"""All dialects by name, the newest last."""

NEWEST = AUGUST_2026
"""What ``--compat torch-spyre`` means."""

_WRITER = "torch-spyre"

COMPATIBLE = (_WRITER, *(f"{_WRITER}@{name}" for name in DIALECTS))
"""What ``--compat`` takes: a writer, and the date of its sources."""


def dialect_of(compatible_with: str | None) -> Dialect | None:
    """Return the dialect of a value of ``--compat``; ``None`` for none."""
    if compatible_with is None:
        return None
    _, _, name = compatible_with.partition("@")
    return DIALECTS[name] if name else NEWEST
