"""Pointers (RFC 6901) of all values in JSON data."""

from __future__ import annotations

from spyrec.diagnostics.json_reading import JsonValue


def pointers_of(data: JsonValue, pointer: str = "") -> list[tuple[str, JsonValue]]:
    """Return every value of JSON data with its pointer, the outer ones first."""
    found = [(pointer, data)]
    if isinstance(data, dict):
        for key, value in data.items():
            found += pointers_of(value, f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(data, list):
        for index, value in enumerate(data):
            found += pointers_of(value, f"{pointer}/{index}")
    return found
