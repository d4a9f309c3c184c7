"""What a JSON file adds to a frozen class: its keys, and checks of values.  Written in the metadata of the fields.

Keys and their order are the fields', types are the annotations'; ``json_records`` reads and writes by both.  Nothing
here costs anything to import: the classes are used far from any file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from enum import Enum
from typing import Any

from spyrec.dataclass import dataclass
from spyrec.diagnostics import Diagnostic

_METADATA = "json"

OWN_DEFAULT = object()
"""What an absent key means unless something is said: the default of the field."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """A value that is text in the file: how it is read before its type is checked, and written.

    ``read`` returns what it does not know as it is, or raises ``ValueError`` with the fact.  ``schema``: the JSON
    schema of the text.  ``type``: what the value is checked as then, where that is not the annotation.
    """

    read: Callable[[object], object]
    write: Callable[[Any], object]
    schema: Mapping[str, object]
    type: object = None


RAISES = object()
"""What stands for a value that cannot be read: nothing, all reading ends there."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A value that has another shape in the file: that of ``type`` with its own ``form``, and the way there and back.

    ``None`` stays ``None`` unless ``type`` takes it.
    ``read`` is given what has the right form, and may refuse it with a ``SpyrecError`` that names no place.  It is
    reported in its place, and ``otherwise`` stands for the value while the rest is looked at.
    """

    type: object
    read: Callable[[Any], object]
    write: Callable[[Any], object]
    form: Form | None = None
    otherwise: object = RAISES


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """Checks of one value, and how it is written where that is not plain.  ``None`` within is not checked.

    ``each`` and ``keys``: the same for items of a sequence, for values and keys of a mapping.  ``digits``: a number is
    written with so many decimals.  ``without``: fields of a record that this place in the file does not have, and what
    they are then.  ``second_under``, of a value that is of one class or another: the key under which an object of the
    second stands alone in another, which tells it from the first.

    ``check``: what is wrong with a value that could be read, at locations that begin with it; ``schema``: more members
    of its JSON schema.
    """

    at_least: float | None = None
    at_most: float | None = None
    above: float | None = None
    below: float | None = None
    is_finite: bool = False
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    each: Form | None = None
    keys: Form | None = None
    digits: int | None = None
    parsed: Parsed | None = None
    shape: Shape | None = None
    without: Mapping[str, object] = field(default_factory=dict[str, object])
    second_under: str | None = None
    check: Callable[[Any], Iterable[Diagnostic]] | None = None
    schema: Mapping[str, object] = field(default_factory=dict[str, object])


ANYTHING = Form()


class Presence(Enum):
    """Whether the key of a field stands in a file."""

    REQUIRED = "always written, and refused where it is absent"
    OPTIONAL = "always written; absent, it is the field's default"
    OMITTED = "written where it is not the field's default"
    NEVER = "no file has it"


@dataclass(frozen=True, slots=True)
class Key:
    """One field in a file.

    ``name``: the key, where it is not the field's name.  ``absent``: what an absent key means where the field has no
    default of its own.
    """

    form: Form = ANYTHING
    name: str | None = None
    presence: Presence = Presence.REQUIRED
    absent: object = OWN_DEFAULT


def json(form: Form = ANYTHING, name: str | None = None) -> dict[str, object]:
    """Return the metadata of a field whose key is required, whatever the default of the field."""
    return {_METADATA: Key(form, name)}


def optional(form: Form = ANYTHING, name: str | None = None, *, absent: object = OWN_DEFAULT) -> dict[str, object]:
    """Return the metadata of a field whose key may be absent: the value is then ``absent``, or the field's default."""
    return {_METADATA: Key(form, name, Presence.OPTIONAL, absent)}


def omitted(form: Form = ANYTHING, name: str | None = None, *, absent: object = OWN_DEFAULT) -> dict[str, object]:
    """Return the metadata of a field whose key is absent where the value is ``absent``, or the field's default."""
    return {_METADATA: Key(form, name, Presence.OMITTED, absent)}


NOT_IN_FILE: dict[str, object] = {_METADATA: Key(presence=Presence.NEVER)}
"""The metadata of a field that no file has."""


def key_of(metadata: Mapping[str, object]) -> Key:
    """Return what a field's metadata say of files."""
    found = metadata.get(_METADATA)
    return found if isinstance(found, Key) else Key()


MAX_RANK = 32
MAX_ARGUMENTS = 100_000
MAX_FILES = 1_000_000

NAME = Form(min_length=1, max_length=256, pattern=r"^[^\x00-\x1f]+$")
RELATIVE_PATH = Form(min_length=1, max_length=1024)
COUNT = Form(at_least=0, below=1 << 63)
SIZE = Form(at_least=1, below=1 << 63)
INTEGER = Form(above=-(1 << 63), below=1 << 63)
EXTENTS = Form(max_length=MAX_RANK, each=SIZE)
STRIDES = Form(max_length=MAX_RANK, each=INTEGER)
