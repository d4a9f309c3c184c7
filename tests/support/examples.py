"""How many examples a property gets."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

_ORDINARY = 100
"""``max_examples`` of the default profile of hypothesis; `tests/conftest.py` has a profile with ten times that."""


def seeds(count: int) -> range:
    """Return the first ``count`` seeds, ten times as many in the larger profile."""
    return range(count * _factor())


def _factor() -> int:
    return max(1, settings().max_examples // _ORDINARY)


def examples(count: int) -> settings:
    """Return settings for ``count`` examples, the same in every run; a larger profile tries more and other ones."""
    factor = _factor()
    return settings(
        max_examples=count * factor,
        derandomize=factor == 1,
        database=None,
        deadline=None,
        suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much),
    )
