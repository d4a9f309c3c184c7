"""Frozen values that are keys of many tables: their hash is computed once for each of them."""

from __future__ import annotations

from typing import TypeVar

Value = TypeVar("Value", bound="RemembersHash")


class RemembersHash:
    """Has room for a hash; :func:`remembers_hash` fills it."""

    __slots__ = ("remembered_hash",)

    remembered_hash: int


def remembers_hash(cls: type[Value]) -> type[Value]:
    """Return a frozen dataclass whose hash, that of all its fields, is computed when it is first asked for.

    A dataclass computes it anew at every look-up, down to the last field of the last value inside.
    """
    computed = cls.__hash__

    def remembered(self: Value) -> int:
        try:
            return self.remembered_hash
        except AttributeError:
            found = computed(self)
            object.__setattr__(self, "remembered_hash", found)  # frozen, and of the value alone
            return found

    cls.__hash__ = remembered
    return cls
