"""Checks of arguments that calls of the contract share."""

from __future__ import annotations

from spyrec.dataclass import dataclass
from spyrec.exec.errors import InvalidCall
from spyrec.runtime.argument_kinds import Unfit, Whole, as_integer, of, shown

KEY_INHERIT = (1 << 64) - 1
"""The shape key of a plan's node that takes the key given to ``execute`` (seed 003)."""


SIZE = Whole(0, (1 << 64) - 1)
"""The kind of sizes, offsets and addresses: unsigned numbers of 64 bits."""


@dataclass(frozen=True, slots=True)
class StreamOrId:
    """The kind of a stream of the runtime, or of its id."""

    def read(self, value: object) -> object:
        """Return it."""
        number = as_integer(value)
        if number is not None:
            return number
        try:
            return of("SpyreStream").read(value)
        except Unfit:
            raise Unfit("no stream and the id of none") from None


def require_key(key: object) -> None:
    """Refuse what is no shape key; errors SPY0931."""
    number = as_integer(key)
    if number is None or not 0 <= number <= KEY_INHERIT:
        raise InvalidCall(f"{shown(key)} is no shape key: keys are unsigned numbers of 64 bits")


def require_own_key(key: int) -> None:
    """Refuse what no variant can have; errors SPY0931."""
    require_key(key)
    if key == KEY_INHERIT:
        raise InvalidCall("the key of all ones is no variant's: in a plan it stands for the key given to execute")


def require_size(value: int, name: str) -> None:
    """Refuse what is no size of 64 bits; errors SPY0931."""
    if not 0 <= value < 1 << 64:
        raise InvalidCall(f"{name} is {value}, no unsigned number of 64 bits")


def require_name(name: str) -> None:
    """Refuse an empty name; errors SPY0931."""
    if not name:
        raise InvalidCall("an empty name")
