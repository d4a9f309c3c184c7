"""Pins as a change of a graph file: everything else of the file stays as its author wrote it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

from spyrec.diagnostics.json_reading import JsonValue
from spyrec.ir.writer import loop_to_json
from spyrec.passes.choices import DivisionPin, LoopPin, OutsidePin, Pin, ValueLayoutPin

Patch = Mapping[str, JsonValue]
"""``work_division`` and ``layout`` by node or value, ``loops``, ``outside_lx``; ``dims`` that are new, and ``axes``:
(value, axis, dim) of what is called so from now on."""

_Item = dict[str, JsonValue]


def patch_of(pins: Iterable[tuple[str, Pin]]) -> Patch:
    """Return the change that pins are; each stands beside what it is about."""
    divisions: _Item = {}
    layouts: _Item = {}
    found: _Item = {}
    outside: list[JsonValue] = []
    for subject, pin in pins:
        match pin:
            case DivisionPin(slices):
                divisions[subject] = dict(slices)
            case ValueLayoutPin(layout):
                lists = {"device_size": layout.device_size, "stride_map": layout.stride_map}
                layouts[subject] = {key: list(items) for key, items in lists.items() if items is not None}
            case LoopPin(loop, extent, names):
                found["loops"] = [loop_to_json(loop)]
                if names:
                    found["dims"] = {loop.dims[0]: extent}
                    found["axes"] = [[value, axis, loop.dims[0]] for value, axis in names]
            case OutsidePin(name):
                outside.append(name)
    for key, items in (("work_division", divisions), ("layout", layouts), ("outside_lx", outside)):
        if items:
            found[key] = items
    return found


def patched(data: Mapping[str, JsonValue], patch: Patch) -> dict[str, JsonValue]:
    """Return a graph's object with the pins of a change in it; the graph was read before and is right."""
    found = dict(data)
    if "dims" in patch:
        found = _with_first(found, "dims", {**_members(found.get("dims")), **_members(patch["dims"])})
    axes: dict[str, dict[int, str]] = {}
    for value, axis, dim in cast("list[tuple[str, int, str]]", patch.get("axes", [])):
        axes.setdefault(value, {})[axis] = dim
    for section in ("inputs", "constants", "nodes"):
        if section in found:
            items = cast("list[_Item]", found[section])
            found[section] = [_patched_item(item, patch, axes) for item in items]
    for key in ("loops", "outside_lx"):
        if key in patch:
            found[key] = [*cast("list[JsonValue]", found.get(key, [])), *cast("list[JsonValue]", patch[key])]
    return found


def _patched_item(item: _Item, patch: Patch, axes: Mapping[str, Mapping[int, str]]) -> _Item:
    """Return an input, constant or node with what is pinned on it."""
    found = dict(item)
    name = str(item["name"])
    results = cast("list[str]", item.get("outputs")) or [name]
    divisions, layouts = _members(patch.get("work_division")), _members(patch.get("layout"))
    if "op" in item and name in divisions:
        found["work_division"] = divisions[name]
    if results[0] in layouts:
        found["layout"] = layouts[results[0]]
    if "op" not in item and name in axes:
        shape = cast("list[JsonValue]", item["shape"])
        found["shape"] = [axes[name].get(axis, entry) for axis, entry in enumerate(shape)]
    return found


def _members(value: JsonValue | None) -> _Item:
    return value if isinstance(value, dict) else {}


def _with_first(data: _Item, key: str, value: JsonValue) -> _Item:
    """Return an object with a member that, where it is new, stands before the inputs that need it."""
    if key in data:
        return {**data, key: value}
    found: _Item = {}
    for name, item in data.items():
        if name == "inputs":
            found[key] = value
        found[name] = item
    return {**found, key: value}
