"""Pareto fronts: the cases of a graph that no other case of it beats in time, traffic and scratchpad at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spyrec.sweep.rows import Row

AXES = ("simulated_us", "hbm_bytes", "lx_peak_bytes")
"""What is better the smaller it is."""

Figures = tuple[float, float, float]


def figures_of(row: Row) -> Figures | None:
    """Return a row's figures in the order of :data:`AXES`; ``None`` where it lacks one, or something is wrong."""
    if not row.is_good or row.simulated_us is None or row.hbm_bytes is None or row.lx_peak_bytes is None:
        return None
    return row.simulated_us, row.hbm_bytes, row.lx_peak_bytes


def by_graph(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Return rows by graph, in the order in which graphs come first; of several seeds the first that has figures."""
    found: dict[str, dict[tuple[tuple[str, str], ...], Row]] = {}
    for row in rows:
        options = tuple(row.options.items())
        known = found.setdefault(row.graph, {})
        if options not in known or (figures_of(known[options]) is None and figures_of(row) is not None):
            known[options] = row
    return {graph: list(rows.values()) for graph, rows in found.items()}


def front(rows: Sequence[Row]) -> list[Row]:
    """Return the rows that no other beats: none is as good in everything and better in something.

    Of rows with the same figures the first stands for all.  They come by time, then traffic.
    """
    first: dict[Figures, Row] = {}
    for row in rows:
        figures = figures_of(row)
        if figures is not None:
            first.setdefault(figures, row)
    kept: dict[Figures, Row] = {}
    for figures in sorted(first):  # who beats another comes before it
        if not any(all(mine <= theirs for mine, theirs in zip(other, figures)) for other in kept):
            kept[figures] = first[figures]
    return list(kept.values())
