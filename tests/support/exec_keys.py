"""Shape keys of named fields: what a caller makes of the contract's one number; no part of the contract."""

from __future__ import annotations

from collections.abc import Mapping

from spyrec.exec import KEY_INHERIT


def pack_key(fields: Mapping[str, tuple[int, int]]) -> int:
    """The number with each field's value in as many bits as it says, the first one lowest."""
    key, at = 0, 0
    for name, (value, bits) in fields.items():
        if not 0 <= value < 1 << bits:
            raise ValueError(f"{name} is {value}, which has no room in {bits} bits")
        key |= value << at
        at += bits
    if at > 64 or key == KEY_INHERIT:
        raise ValueError("a key has 64 bits, and is not all ones")
    return key
