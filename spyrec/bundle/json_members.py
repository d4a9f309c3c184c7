"""The members of a JSON object, each stated once: how a cursor reads it, how it is written, and its schema."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import Any

from spyrec.bundle.json_cursor import LARGEST_INTEGER, MALFORMED, Cursor
from spyrec.dataclass import dataclass
from spyrec.diagnostics.json_reading import JsonValue

Schema = dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Member:
    """One member: ``read`` refuses what it is not; ``otherwise`` stands for it where all is read on all the same.

    ``write``: ``None`` where JSON has the value itself.
    ``schema``: of the member, empty where no schema of its object is published.
    """

    read: Callable[[Cursor], Any]
    write: Callable[[Any], JsonValue] | None = None
    schema: Schema = field(default_factory=dict[str, JsonValue])
    otherwise: object = None


Members = Mapping[str, Member]
"""The members of an object by key, in the order in which they are written, and read."""


def read_members(cursor: Cursor, members: Members) -> dict[str, Any]:
    """Return what the members of an object are, by key; what is missing, or another thing, is refused."""
    return {key: member.read(cursor.member(key)) for key, member in members.items()}


def written(members: Members, values: Iterable[Any]) -> dict[str, JsonValue]:
    """Return an object of these values, which are in the order of the members."""
    return {
        key: value if member.write is None else member.write(value)
        for (key, member), value in zip(members.items(), values, strict=True)
    }


def schema_of(members: Members) -> Schema:
    """Return the schema of an object with these members."""
    return object_schema({key: member.schema for key, member in members.items()})


def object_schema(properties: Mapping[str, JsonValue]) -> Schema:
    """Return the schema of an object in which every one of these keys stands; others may."""
    return {"type": "object", "properties": dict(properties), "required": list(properties)}


def whole_number(most: int = LARGEST_INTEGER) -> Member:
    """Return a member that is an integer from 0 to ``most``."""
    return Member(lambda cursor: cursor.integer(0, most), schema={"type": "integer", "minimum": 0, "maximum": most})


def name_of(longest: int) -> Member:
    """Return a member that is a name of 1 to ``longest`` characters."""

    def read(cursor: Cursor) -> str:
        name = cursor.text()
        if not 0 < len(name) <= longest:
            cursor.refuse(MALFORMED, f"a name of {len(name)} characters, 1 to {longest} are read")
        return name

    return Member(read, schema={"type": "string", "minLength": 1, "maxLength": longest})


TEXT = Member(Cursor.text)
FLAG = Member(Cursor.flag)
