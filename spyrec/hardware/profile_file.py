"""A timing profile as a file: ``spyrec.profile/1``, the figures of the default profile with values of its own.

``{"format": "spyrec.profile/1", "name": .., "source": .., "figures": {"streams.square": 0.2}, "uncertainty": {}}``.
A figure that is left out is the default profile's.  ``uncertainty`` is by class of operations, as a share of the time.
"""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from spyrec.diagnostics import Location, SpyrecError, refuse
from spyrec.diagnostics.json_reading import JsonValue, load_json
from spyrec.files.file_kinds import PROFILE_FORMAT as FORMAT
from spyrec.files.reading import read_at_most
from spyrec.hardware.cost import OperationClass
from spyrec.hardware.target import DEFAULT_PROFILE, PROFILES, Figure, TargetProfile, Trust

LIMITS = {
    "memory_bytes_per_us": 204_800.0,
    "core_memory_bytes_per_us": 192_000.0,
    "matmul_macs_per_us": 1_536_000.0,
    "overlap": 1.0,
    "streams.half_share": 1.0,
}
"""What a figure is at most: the stated peaks of the device, and shares."""

_GROUPS = ("reduction", "streams", "matmul")
_FLAT = (
    "memory_bytes_per_us", "core_memory_bytes_per_us", "turnaround_bytes", "overlap", "matmul_macs_per_us",
    "vector_bytes_per_us", "restickify_bytes_per_us", "outer_reduction_bytes_per_us",
)  # fmt: skip
_FIXED = frozenset({"streams.most_pieces", "matmul.six_sticks", "reduction.share_by_cores"})
_LEAST = {"_per_us": 1.0, "half_share": 1e-3, "reduction.floor": 1e-3, "reduction.decay_rows": 1e-3}
"""Ends of the names of figures that something is divided by, and their least: times are counted in 64 bits."""

_KEYS = ("format", "name", "source", "figures", "uncertainty")
_MOST_BYTES = 1 << 20
_LARGEST_FIGURE = 1e9
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}")


def figure_names() -> tuple[str, ...]:
    """Return the figures that a fit moves and a file states, those of a group as ``group.figure``."""
    grouped = (f"{group}.{item.name}" for group in _GROUPS for item in fields(getattr(DEFAULT_PROFILE, group)))
    return tuple(name for name in (*_FLAT, *grouped) if name not in _FIXED)


def figure_of(profile: TargetProfile, name: str) -> float:
    """Return a figure by the name that :func:`figure_names` gives it."""
    group, _, field = name.rpartition(".")
    return float(getattr(getattr(profile, group) if group else profile, field))


def with_figures(profile: TargetProfile, figures: Mapping[str, float], source: str) -> TargetProfile:
    """Return a profile with other figures, by the names of :func:`figure_names`."""
    grouped: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    for name, value in figures.items():
        group, _, field = name.rpartition(".")
        grouped[group][field] = Figure(value, source, Trust.FITTED)
    flat = grouped.pop("", {})
    terms = {group: replace(getattr(profile, group), **changed) for group, changed in grouped.items()}
    return replace(profile, **flat, **terms)


def profile_to_json(profile: TargetProfile) -> str:
    """Return the text of a profile's file."""
    figures = {name: figure_of(profile, name) for name in figure_names()}
    uncertainty = {limit: float(share) for limit, share in profile.uncertainty}
    source = profile.memory_bytes_per_us.source
    record = {"format": FORMAT, "name": profile.name, "source": source, "figures": figures, "uncertainty": uncertainty}
    return json.dumps(record, indent=1) + "\n"


def read_profile(path: Path) -> TargetProfile:
    """Return the profile of a file; errors SPY0791 with the place, SPY01xx for what is no JSON."""
    content = read_at_most(path, _MOST_BYTES)
    if content is None:
        raise _wrong(Location(str(path)), f"a profile file has at most {_MOST_BYTES} bytes")
    data, text = load_json(content, str(path))
    place = Location(str(path), "", source=text)
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise _wrong(place, f'a profile file is an object with "format": "{FORMAT}"')
    unknown = next((key for key in data if key not in _KEYS), None)
    if unknown is not None:
        raise _wrong(place.child(unknown), f'unknown key "{unknown}"')
    name, source = data.get("name"), data.get("source", str(path.name))
    if not isinstance(name, str):
        raise _wrong(place.child("name"), "the name is not a string")
    checked_name(name, place.child("name"))
    if not isinstance(source, str) or not source or len(source) > 256:
        raise _wrong(place.child("source"), "the source is 1 to 256 characters")
    known = figure_names()
    figures = _numbers(data.get("figures", {}), known, LIMITS, place.child("figures"))
    limits = {item.value: 1e3 for item in OperationClass}
    uncertainty = _numbers(data.get("uncertainty", {}), tuple(limits), limits, place.child("uncertainty"))
    shares = tuple((limit, Figure(share, source, Trust.FITTED)) for limit, share in uncertainty.items())
    return replace(with_figures(DEFAULT_PROFILE, figures, source), name=name, uncertainty=shares)


def checked_name(name: str, place: Location | None = None) -> str:
    """Return a name that a profile of a file may have; errors SPY0791."""
    if _NAME.fullmatch(name) is None or name in PROFILES:
        message = f'the name "{name[:80]}" is not 1 to 64 letters, digits, _ . @ -, or a known profile has it'
        raise refuse("SPY0791", message, place, hint="give it another name")
    return name


def _numbers(
    members: JsonValue, known: tuple[str, ...], limits: Mapping[str, float], place: Location
) -> dict[str, float]:
    if not isinstance(members, dict):
        raise _wrong(place, "it must be an object")
    found: dict[str, float] = {}
    for key, value in members.items():
        if key not in known:
            raise _wrong(place.child(key), f'unknown figure "{key}"')
        most = limits.get(key, _LARGEST_FIGURE)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise _wrong(place.child(key), f"{key} is {value!r}, it must be a number")
        least = next((least for end, least in _LEAST.items() if key.endswith(end)), 0.0)
        if not least <= value <= most:
            raise _wrong(place.child(key), f"{key} is {value!r}, it must be at least {least:g} and at most {most:g}")
        found[key] = float(value)
    return found


def _wrong(place: Location, message: str) -> SpyrecError:
    return refuse("SPY0791", message, place)
