"""The house's ``dataclass`` makes what the standard library's makes, for every class; only later."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Barrier, Thread
from types import FunctionType
from typing import Any, NamedTuple, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spyrec.dataclass import dataclass

Decorator = Callable[..., Callable[[type], type]]
HOUSE: Decorator = dataclass
STANDARD: Decorator = dataclasses.dataclass
SPYREC = Path(__file__).resolve().parent.parent / "spyrec"
VALUES = st.sampled_from([0, 1, True, "a", float("nan"), (1, 2), None])


class Kind(NamedTuple):
    """How a field is declared: a default of its own, or arguments of ``dataclasses.field``."""

    default: object = dataclasses.MISSING
    options: tuple[tuple[str, object], ...] = ()

    def put(self, name: str, body: dict[str, Any]) -> None:
        body["__annotations__"][name] = "int"
        if self.options:
            chosen: Mapping[str, Any] = dict(self.options)
            body[name] = dataclasses.field(**chosen)
        elif self.default is not dataclasses.MISSING:
            body[name] = self.default


FLAGS = {name: st.booleans() for name in ("init", "repr", "compare", "kw_only")}
OPTIONS = st.fixed_dictionaries({}, optional={**FLAGS, "hash": st.sampled_from([None, True, False])})


@st.composite
def kinds(draw: st.DrawFn) -> Kind:
    if draw(st.booleans()):
        return Kind(draw(st.sampled_from([dataclasses.MISSING, 3, "text"])))
    options: dict[str, object] = dict(draw(OPTIONS))
    match draw(st.integers(0, 2)):
        case 0:
            options["default"] = draw(st.sampled_from([0, "text", (1,)]))
        case 1:
            options["default_factory"] = draw(st.sampled_from([list, dict, lambda: 5]))
        case _:
            pass
    return Kind(options=tuple(options.items()))


CLASS_OPTIONS = st.fixed_dictionaries(
    {}, optional={name: st.booleans() for name in ("init", "repr", "eq", "frozen", "slots", "kw_only")}
)
FIELDS = st.lists(kinds(), max_size=4)


def _said(self: object) -> str:
    return "its own"


def _count(self: Any) -> None:  # noqa: ANN401 -- of whatever class
    self.counted.append(type(self).__name__)


OWN: Mapping[str, object] = {"__repr__": _said, "__eq__": object.__eq__, "__hash__": object.__hash__}
OWN_METHODS = st.lists(st.sampled_from(sorted(OWN)), unique=True, max_size=2)


def build(decorator: Decorator, fields: list[Kind], options: Mapping[str, bool], own: list[str]) -> type | str:
    """Return a class, or what is said why it is none."""
    counted: list[str] = []
    body: dict[str, Any] = {"__doc__": "Some.", "__module__": __name__, "__annotations__": {}, "__qualname__": "Some"}
    body |= {"counted": counted, "__post_init__": _count} | {name: OWN[name] for name in own}
    for index, kind in enumerate(fields):
        kind.put(f"f{index}", body)
    try:
        return decorator(**options)(type("Some", (), body))
    except (TypeError, ValueError) as error:
        return str(error)


def outcome(action: Callable[[], object]) -> object:
    """Return what an action gives, or the kind of its error, and what that says."""
    try:
        return action()
    except (TypeError, AttributeError, ValueError) as error:
        return type(error).__name__, re.sub(r"0x[0-9a-f]+", "", str(error))


def shown(instance: object, cls: type) -> list[object]:
    """Return all that can be seen of an instance, whichever decorator made its class."""
    names = [item.name for item in dataclasses.fields(cls)]
    return [
        outcome(lambda: re.sub(r" object at 0x\w+", "", repr(instance))),
        *(outcome(lambda name=name: repr(getattr(instance, name))) for name in names),
        *(outcome(lambda name=name: setattr(copy.copy(instance), name, 1)) for name in names),
        *(outcome(lambda name=name: delattr(copy.copy(instance), name)) for name in names),
        outcome(lambda: copy.copy(instance) == instance),
        outcome(lambda: instance == "another"),
    ]


def uses(made: type, first: list[object], second: list[object], by_name: Mapping[str, object]) -> list[object]:
    """Return what comes of two instances of a class."""
    cls: Any = made
    one, other = outcome(lambda: cls(*first, **by_name)), outcome(lambda: cls(*second))
    found: list[object] = [shown(item, cls) if isinstance(item, cls) else item for item in (one, other)]
    if isinstance(one, cls) and isinstance(other, cls):
        found.extend([outcome(lambda: one == other), outcome(lambda: one != other), cls.counted])
        found.append(outcome(lambda: hash(one) == hash(copy.copy(one))))
        found.append(outcome(lambda: hash(one) == hash(other)))
        found.append(outcome(lambda: repr(dataclasses.replace(cast("Any", one), **by_name)).partition("0x")[0]))
    return found


@settings(max_examples=500)
@given(FIELDS, CLASS_OPTIONS, OWN_METHODS, st.lists(VALUES, max_size=5), st.lists(VALUES, max_size=5), st.data())
def test_a_class_is_what_the_standard_decorator_makes(
    fields: list[Kind],
    options: Mapping[str, bool],
    own: list[str],
    first: list[object],
    second: list[object],
    data: st.DataObject,
) -> None:
    names = [f"f{index}" for index in range(5)]
    by_name = data.draw(st.dictionaries(st.sampled_from(names), VALUES, max_size=3))
    ours, theirs = build(HOUSE, fields, options, own), build(STANDARD, fields, options, own)
    if isinstance(ours, str) or isinstance(theirs, str):
        assert ours == theirs
        return
    assert str(dataclasses.fields(ours)) == str(dataclasses.fields(theirs))
    assert str(ours.__dataclass_params__) == str(theirs.__dataclass_params__)  # type: ignore[attr-defined]
    assert ours.__match_args__ == theirs.__match_args__  # type: ignore[attr-defined]
    assert getattr(ours, "__slots__", None) == getattr(theirs, "__slots__", None)
    assert (ours.__hash__ is None) == (theirs.__hash__ is None)
    assert uses(ours, first, second, by_name) == uses(theirs, first, second, by_name)
    assert outcome(lambda: str(inspect.signature(ours))) == outcome(lambda: str(inspect.signature(theirs)))


@dataclass(frozen=True, slots=True)
class Point:
    """Two numbers, and what is not compared."""

    x: int
    y: int = 2
    note: list[str] = dataclasses.field(default_factory=list[str], compare=False)


@dataclass(frozen=True, slots=True)
class Solid(Point):
    """Derived."""

    z: int = 3


@dataclass(slots=True, weakref_slot=True)
class Counter:
    """Not frozen."""

    count: int = 0


@pytest.mark.parametrize("is_compared", [True, False])
@pytest.mark.parametrize("is_hashed", [True, False, None])
@pytest.mark.parametrize("is_shown", [True, False])
def test_a_field_counts_where_it_says(is_compared: bool, is_hashed: bool | None, is_shown: bool) -> None:
    options = (("compare", is_compared), ("hash", is_hashed), ("repr", is_shown))
    for decorator in (HOUSE, STANDARD):
        made: Any = build(decorator, [Kind(options=options), Kind()], {"frozen": True, "slots": True}, [])
        one, other = made(1, 2), made(3, 2)
        assert (one == other) is not is_compared
        assert (hash(one) == hash(other)) is not (is_compared if is_hashed is None else is_hashed)
        assert repr(one) == ("Some(f0=1, f1=2)" if is_shown else "Some(f1=2)")


def test_methods_are_written_when_they_are_first_used() -> None:
    @dataclass(frozen=True, slots=True)
    class Fresh:
        """New."""

        x: int

    names = ("__init__", "__eq__", "__hash__")
    assert not any(isinstance(Fresh.__dict__[name], FunctionType) for name in names)
    assert {Fresh(1): 2}[Fresh(1)] == 2
    assert all(isinstance(Fresh.__dict__[name], FunctionType) for name in names)
    assert Fresh.__init__.__qualname__.endswith("Fresh.__init__")
    assert Fresh.__init__.__annotations__ == {"x": "int", "return": None}


@pytest.mark.parametrize("instance", [Point(1), Point(1, 5, ["a"]), Solid(1, 2, z=4)])
def test_instances_are_pickled_copied_and_matched(instance: Point) -> None:
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        loaded = pickle.loads(pickle.dumps(instance, protocol))
        assert loaded == instance
        assert loaded.note == instance.note
    assert copy.deepcopy(instance) == instance
    match instance:
        case Point(x, y):
            assert (x, y) == (instance.x, instance.y)
    assert dataclasses.asdict(instance)["x"] == 1


def test_what_is_derived_from_a_frozen_class_is_frozen_by_the_same_rules() -> None:
    class Loose(Point):
        other: int

    loose = Loose(1)
    loose.other = 3
    for instance in (Solid(1), loose, Point(1)):
        with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'x'"):
            instance.x = 3  # type: ignore[misc]
        with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'x'"):
            del instance.x  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(Point(1), "unknown", 1)  # noqa: B010 -- pyright refuses the other way to write it
    with pytest.raises(TypeError, match="cannot inherit non-frozen dataclass from a frozen one"):
        STANDARD()(type("Thawed", (Point,), {}))
    derived = STANDARD(frozen=True)(type("Frozen", (Point,), {"__annotations__": {"w": int}, "w": 0}))
    assert derived(1, w=4).w == 4
    assert derived(1) != Point(1)


def test_a_method_put_in_the_place_of_a_later_one_stays() -> None:
    @dataclass(frozen=True)
    class Other:
        """Any."""

        x: int

    def seven(_: object) -> int:
        return 7

    later = vars(Other)["__hash__"]
    setattr(Other, "__hash__", seven)  # noqa: B010 -- as above
    assert later.__get__(None, Other)(Other(1)) == hash((1,))
    assert hash(Other(1)) == 7


def test_threads_may_use_a_method_for_the_first_time_at_once() -> None:
    switches = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(20):
            made = HOUSE(frozen=True, slots=True)(type("Shared", (), {"__annotations__": {"x": int}}))
            barrier, found = Barrier(4), list[object]()

            def use(barrier: Barrier = barrier, found: list[object] = found, made: type = made) -> None:
                barrier.wait()
                found.append(made(3))

            threads = [Thread(target=use) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(found) == 4
            assert set(found) == {made(3)}
    finally:
        sys.setswitchinterval(switches)


def test_the_tree_has_one_way_to_make_a_dataclass() -> None:
    pattern = re.compile(r"from dataclasses import [^#\n]*\bdataclass\b|@dataclasses\.dataclass|import dataclass as")
    found = [str(path) for path in SPYREC.rglob("*.py") if pattern.search(path.read_text(encoding="utf-8"))]
    assert found == [str(SPYREC / "dataclass.py")]
