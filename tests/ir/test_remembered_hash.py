from __future__ import annotations

from dataclasses import dataclass, field, replace

from spyrec.ir.access import Access
from spyrec.ir.remembered_hash import RemembersHash, remembers_hash


class _Counted:
    """Says how often somebody asked for its hash."""

    asked = 0

    def __hash__(self) -> int:
        self.asked += 1
        return 7

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Counted)


@remembers_hash
@dataclass(frozen=True, slots=True)
class _Key(RemembersHash):
    part: _Counted
    number: int
    note: str = field(default="", hash=False)


def test_the_hash_of_a_key_is_computed_once() -> None:
    key = _Key(_Counted(), 3)
    assert {key: 1}[key] == 1
    assert hash(key) == hash(key)
    assert key.part.asked == 1


def test_equal_keys_hash_alike_and_a_changed_one_anew() -> None:
    key = _Key(_Counted(), 3)
    assert hash(key) == hash(_Key(_Counted(), 3))
    assert hash(replace(key, note="not counted")) == hash(key)
    other = replace(key, number=4)
    assert hash(other) == hash(_Key(_Counted(), 4)) != hash(key)
    assert other != key


def test_accesses_are_keys() -> None:
    assert {Access.identity((2, 3)): 1}[Access.identity((2, 3))] == 1
    assert not hasattr(Access.identity((2, 3)), "__dict__")
