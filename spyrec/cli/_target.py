"""``--target NAME|FILE``: a device model by name, or from a JSON file of format ``spyrec.target/1``."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import click

from spyrec.diagnostics import Location, SpyrecError, refuse
from spyrec.diagnostics.near_names import one_of
from spyrec.hardware.target import TARGETS, Target

_FLAGS = ("limits_symbolic_arguments", "has_windows")
_NO_NUMBERS = frozenset({"lx_reserved_fraction", *_FLAGS})
_FORMAT = "spyrec.target/1"
_LONGEST_BYTES = 1 << 20
_LARGEST_FIGURE = 1 << 48
"""256 TiB: addresses and sums of sizes are numbers of 64 bits."""


def resolve_target(name_or_file: str) -> Target:
    """Return the target of that name, or the one a file describes.

    Neither is a usage error.  Errors: SPY0774 a file that describes no target, SPY01xx one that is no JSON.

    The file is ``{"format": "spyrec.target/1", "name": .., "cores": .., "lx_bytes": .., "span_limit_bytes": ..}``;
    a figure (a field of ``Target``) that is left out is that of ``spyre``.
    """
    if name_or_file in TARGETS:
        return TARGETS[name_or_file]
    path = Path(name_or_file)
    if not path.is_file():
        known = one_of(name_or_file, TARGETS, "name one of")
        message = f'there is no target "{name_or_file}": {known}, or a target file'
        raise click.BadParameter(message, param_hint="--target")
    return _read(path)


def _read(path: Path) -> Target:
    from spyrec.diagnostics.json_reading import load_json
    from spyrec.files.reading import read_at_most

    text = read_at_most(path, _LONGEST_BYTES)
    if text is None:
        raise _wrong(Location(str(path)), f"a target file has at most {_LONGEST_BYTES} bytes")
    data, source = load_json(text, str(path))
    place = Location(str(path), "", source=source)
    if not isinstance(data, dict) or data.get("format") != _FORMAT:
        raise _wrong(place, f'a target file is an object with "format": "{_FORMAT}"')
    known = {item.name for item in fields(Target)}
    for key in sorted(data.keys() - known - {"format"}):
        hint = one_of(key, ["format", *(item.name for item in fields(Target))], "the keys are")
        raise refuse("SPY0774", f'unknown key "{key}"', place.child(key), hint=hint)
    name = data.get("name", path.stem)
    if not isinstance(name, str):
        raise _wrong(place.child("name"), "the name is not a string")
    figures = {key: _figure(key, data[key], place) for key in data.keys() & (known - {"name", *_NO_NUMBERS})}
    if not 1 <= figures.get("cores", 1) <= Target().cores:
        raise _wrong(place.child("cores"), f"cores is {figures['cores']}, it must be 1 to {Target().cores}")
    fraction = data.get("lx_reserved_fraction", Target().lx_reserved_fraction)
    if isinstance(fraction, bool) or not isinstance(fraction, int | float) or not 0 <= fraction <= 1:
        raise _wrong(place.child("lx_reserved_fraction"), f"lx_reserved_fraction is {fraction!r}, it must be 0 to 1")
    flags = {key: data[key] for key in _FLAGS if key in data}
    for key, flag in flags.items():
        if not isinstance(flag, bool):
            raise _wrong(place.child(key), f"{key} is {flag!r}, it must be true or false")
    known_figures = Target(name, lx_reserved_fraction=fraction)
    return replace(known_figures, **figures, **flags)


def _figure(key: str, value: object, place: Location) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise _wrong(place.child(key), f"{key} is {value!r}, it must be a positive integer")
    if value > _LARGEST_FIGURE:
        raise _wrong(place.child(key), f"{key} is {value}, it must be at most {_LARGEST_FIGURE}")
    return value


def _wrong(place: Location, message: str) -> SpyrecError:
    keys = ", ".join(item.name for item in fields(Target))
    return refuse("SPY0774", message, place, hint=f"the keys are format, {keys}")
