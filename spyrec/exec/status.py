"""The status codes of the execution contract."""

from __future__ import annotations

from enum import IntEnum


class Status(IntEnum):
    """What a call of the contract came to; the values are those of its C header."""

    OK = 0
    INVALID = -1
    NO_VARIANT = -2
    UNBOUND = -3
    CAPTURE = -4
    BACKEND = -5
    OOM = -6
