"""A file that makes a crash of a pass happen again: the graph before the pass as text, behind a head of comments.

The head is JSON in lines that begin with ``//``, so that the file is a text of the IR as it stands.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import TypeVar, cast

from spyrec.dataclass import dataclass
from spyrec.diagnostics import Location, SpyrecError, refuse
from spyrec.diagnostics.json_reading import JsonValue, load_json
from spyrec.hardware.target import PROFILES, Target
from spyrec.ir.text.tokens import NOT_UNDERSTOOD
from spyrec.passes.base import PipelineOptions, TileGroup
from spyrec.passes.driver import PassCrash
from spyrec.passes.pass_options import ChosenPass, pass_named

Record = TypeVar("Record", PipelineOptions, Target)

FORMAT = "spyrec.reproducer/1"
MARK = f"// {FORMAT}"
"""The first line of a reproducer."""

_MOST_HEAD = 1 << 20
_MOST_NUMBER = 1 << 63


@dataclass(frozen=True, slots=True)
class Reproducer:
    """What crashed: the pass, and the options that it was given."""

    chosen: ChosenPass
    options: PipelineOptions


def reproducer_text(crash: PassCrash, command: Sequence[str], version: str) -> str:
    """Return the file for a crash; ``command`` is the command line that led to it, ``version`` that of spyrec."""
    head = {
        "pass": crash.name,
        "error": f"{type(crash.error).__name__}: {crash.error}"[:2000],
        "command": list(command),
        "versions": {"spyrec": version, "python": platform.python_version(), "platform": platform.platform()},
        "options": _options_record(crash.options),
    }
    lines = [MARK, *(f"// {line}" for line in json.dumps(head, indent=1).splitlines())]
    return "\n".join(lines) + "\n" + crash.before.text()


def read_reproducer(text: str, file: str | None) -> Reproducer | None:
    """Return what the head of a text says, ``None`` where it has none.  Errors: SPY0180, SPY0413, SPY01xx."""
    if not text.startswith(MARK + "\n"):
        return None
    head = text[len(MARK) + 1 : _MOST_HEAD].split("\n")
    count = next((number for number, line in enumerate(head) if not line.startswith("// ")), len(head))
    data, _ = load_json("\n".join(line[3:] for line in head[:count]).encode(), file)
    if not isinstance(data, dict) or not isinstance(data.get("pass"), str):
        raise _wrong(file, "the head of a reproducer names a pass")
    options = _options(data.get("options"), file)
    return Reproducer(ChosenPass(pass_named(cast("str", data["pass"]))), options)


def _options_record(options: PipelineOptions) -> dict[str, object]:
    found: dict[str, object] = {item.name: getattr(options, item.name) for item in fields(PipelineOptions)}
    found["target"] = {item.name: getattr(options.target, item.name) for item in fields(Target)}
    found["profile"] = options.profile.name
    found["tile_groups"] = [
        {"dims": sorted([kernel, dim] for kernel, dim in group.dims), "extent": group.extent, "tile": group.tile}
        for group in options.tile_groups
    ]
    return found


def _options(data: JsonValue, file: str | None) -> PipelineOptions:
    if not isinstance(data, dict):
        raise _wrong(file, "the head of a reproducer has options")
    special = {"target", "profile", "tile_groups"}
    plain = _plain(PipelineOptions(), {name: value for name, value in data.items() if name not in special}, file)
    target = _plain(Target(), data.get("target"), file)
    profile = data.get("profile")
    if not isinstance(profile, str) or profile not in PROFILES:
        raise _wrong(file, f"profile is {str(profile)[:80]!r}, one of {', '.join(PROFILES)}")
    groups = tuple(_group(item, file) for item in _list(data.get("tile_groups"), file))
    found = replace(plain, target=target, profile=PROFILES[profile], tile_groups=groups)
    if not 1 <= found.cores <= found.target.cores <= Target().cores:
        raise _wrong(file, f"cores is {found.cores}, of {found.target.cores} of the target")
    return found


def _plain(default: Record, data: JsonValue, file: str | None) -> Record:
    """Return a record with the values of an object, each of the type of the record's own."""
    if not isinstance(data, dict):
        raise _wrong(file, f"the options of a {type(default).__name__} are no object")
    changed: dict[str, object] = {}
    known = {item.name for item in fields(default)}
    for name, value in data.items():
        own: object = getattr(default, name) if name in known else None
        if name not in known or isinstance(value, list | dict) or not _is_like(value, own):
            raise _wrong(file, f'option "{name[:80]}" is {str(value)[:80]!r}')
        changed[name] = value
    return replace(default, **changed)  # pyright: ignore[reportArgumentType] -- each value is like its own


def _is_like(value: float | str | bool | None, own: object) -> bool:
    """Whether a value may stand in the place of an option's own: of the same kind, and a number not below 0."""
    if isinstance(own, bool) or isinstance(value, bool):
        return isinstance(own, bool) and isinstance(value, bool)
    if isinstance(own, str):
        return isinstance(value, str)
    if isinstance(own, float):
        return isinstance(value, int | float) and 0 <= value <= 1
    if own is None or isinstance(own, int):
        return (own is None and value is None) or (isinstance(value, int) and 0 <= value < _MOST_NUMBER)
    return False


def _group(data: JsonValue, file: str | None) -> TileGroup:
    if not isinstance(data, Mapping):
        raise _wrong(file, "a tile group is an object")
    pairs = [_list(pair, file) for pair in _list(data.get("dims"), file)]
    numbers = [data.get("extent"), data.get("tile")]
    named = [(pair[0], pair[1]) for pair in pairs if len(pair) == 2]
    dims = frozenset((name, dim) for name, dim in named if isinstance(name, str) and isinstance(dim, int))
    extent, tile = (number if isinstance(number, int) and number > 0 else 0 for number in numbers)
    if len(dims) != len(pairs) or not extent or not tile:
        raise _wrong(file, "a tile group has pairs of a kernel and a dim, an extent and a tile")
    return TileGroup(dims, extent, tile)


def _list(data: JsonValue, file: str | None) -> list[JsonValue]:
    if not isinstance(data, list):
        raise _wrong(file, "a list is due among the options of a reproducer")
    return data


def _wrong(file: str | None, message: str) -> SpyrecError:
    return refuse(NOT_UNDERSTOOD, message, Location(file, None, 2, 1))
