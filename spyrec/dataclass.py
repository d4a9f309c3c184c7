"""The standard library's ``dataclass``, but for the methods, which are written when they are first used.

The standard decorator writes and compiles six methods of each frozen class, of which a process uses one or two: that
was a third of the time of a short run.  Fields, slots and what is refused are the standard library's own doing.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from reprlib import recursive_repr
from types import FunctionType, MemberDescriptorType, MethodType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls: type | None = None, /, **options: bool) -> object:
        """Make a dataclass as :func:`dataclasses.dataclass` does; a class without docstring has its name as one."""
        return _dataclass(cls, options) if cls is not None else lambda found: _dataclass(found, options)


__all__ = ["dataclass"]

_CHOSEN = {"init": True, "repr": True, "eq": True, "frozen": False}
"""Options that decide on methods, with what they are where they are not given."""

_STRUCTURE = {"kw_only", "slots", "weakref_slot"}
"""Options that decide on no method."""


def _dataclass(cls: type, options: Mapping[str, bool]) -> type:
    """Return the class as a dataclass: wholly the standard library's where it is derived from one or needs more."""
    is_derived = any(dataclasses.is_dataclass(base) for base in cls.__mro__[1:])
    needs_more = not options.keys() <= _CHOSEN.keys() | _STRUCTURE or "InitVar" in str(_annotations(cls))
    if is_derived or needs_more:
        return _standard(cls, options)
    if not cls.__doc__:
        cls.__doc__ = cls.__name__  # the standard library would look up a signature, and for that write __init__
    structure = {name: value for name, value in options.items() if name in _STRUCTURE}
    made = _standard(cls, {"init": False, "repr": False, "eq": False, **structure})
    chosen = {name: options.get(name, default) for name, default in _CHOSEN.items()}
    for name, value in chosen.items():
        setattr(getattr(made, "__dataclass_params__"), name, value)  # noqa: B009 -- no checker knows it
    if chosen["init"]:
        _check_order(dataclasses.fields(made))
        _add(made, "__init__", _Later(made, _init))
    if chosen["repr"]:
        _add(made, "__repr__", _repr)
    if chosen["frozen"]:
        _freeze(made)
    if chosen["eq"]:
        _compare(made, is_frozen=chosen["frozen"])
    abc.update_abstractmethods(made)
    return made


def _standard(cls: type, options: Mapping[str, bool]) -> type:
    decorate: Callable[[type], type] = dataclasses.dataclass(**options)  # type: ignore[call-overload]
    return decorate(cls)


def _annotations(cls: type) -> Mapping[str, object]:
    return getattr(cls, "__annotations__", {})


def _add(cls: type, name: str, method: object) -> None:
    """Add a method, unless the class has one of its own."""
    if name not in cls.__dict__:
        setattr(cls, name, method)


class _Later:
    """Stands for a method in a class until somebody asks for it; then the method stands there itself."""

    def __init__(self, cls: type, write: Callable[[type], FunctionType]) -> None:
        self._class = cls
        self._write = write

    def __get__(self, instance: object, owner: type) -> FunctionType | MethodType:
        method = self._write(self._class)
        method.__qualname__ = f"{self._class.__qualname__}.{method.__name__}"
        if self._class.__dict__.get(method.__name__) is self:  # nobody has put another one there
            setattr(self._class, method.__name__, method)
        return method if instance is None else MethodType(method, instance)


def _compiled(cls: type, head: str, body: Sequence[str], values: Mapping[str, object]) -> FunctionType:
    """Return the function of a head and the lines of its body, which may use ``values`` by their names."""
    lines = [f"def make({', '.join(values)}):", f" def {head}:", *(f"  {line}" for line in body), " return method"]
    made: dict[str, Callable[..., FunctionType]] = {}
    text = "\n".join(lines).replace(" return method", f" return {head.partition('(')[0]}")
    exec(text, {"__name__": cls.__module__}, made)  # noqa: S102 -- nothing but names of fields of our own classes
    return made["make"](**values)


# --- what is compared ---


def _compare(cls: type, *, is_frozen: bool) -> None:
    own = cls.__dict__
    has_hash = "__hash__" in own and not (own["__hash__"] is None and "__eq__" in own)
    _add(cls, "__eq__", _Later(cls, _eq))
    if not has_hash:
        setattr(cls, "__hash__", _Later(cls, _hash) if is_frozen else None)  # noqa: B010 -- it is no function yet


def _values(of: str, names: Sequence[str]) -> str:
    return "(" + "".join(f"{of}.{name}," for name in names) + ")"


def _eq(cls: type) -> FunctionType:
    names = [item.name for item in dataclasses.fields(cls) if item.compare]
    same = f"return {_values('self', names)} == {_values('other', names)}"
    body = ["if other.__class__ is self.__class__:", f" {same}", "return NotImplemented"]
    return _compiled(cls, "__eq__(self, other)", body, {})


def _hash(cls: type) -> FunctionType:
    items = dataclasses.fields(cls)
    names = [item.name for item in items if (item.compare if item.hash is None else item.hash)]
    return _compiled(cls, "__hash__(self)", [f"return hash({_values('self', names)})"], {})


# --- what is shown ---


@recursive_repr()
def _repr(self: object) -> str:
    items = dataclasses.fields(self)  # type: ignore[arg-type]  # a method of dataclasses
    shown = ", ".join(f"{item.name}={getattr(self, item.name)!r}" for item in items if item.repr)
    return f"{type(self).__qualname__}({shown})"


# --- what is made ---


class _Factory:
    """Default of a parameter whose field has a factory."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


def _check_order(items: Sequence[dataclasses.Field[object]]) -> None:
    has_default = False
    for item in items:
        if item.init and not item.kw_only:
            if has_default and _is_required(item):
                raise TypeError(f"non-default argument {item.name!r} follows default argument")
            has_default = not _is_required(item)


def _is_required(item: dataclasses.Field[object]) -> bool:
    return item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING


def _init(cls: type) -> FunctionType:
    """Write ``__init__``; fields of a frozen class are set through their slots, which asks no ``__setattr__``."""
    values: dict[str, object] = {"_dataclass_factory": _FACTORY}
    items = dataclasses.fields(cls)
    body = [line for item in items for line in _assignment(cls, item, values)]
    if hasattr(cls, "__post_init__"):
        body.append("_dataclass_self.__post_init__()")
    given = [item for item in items if item.init]
    named = [_parameter(item) for item in given if item.kw_only]
    parameters = [
        "_dataclass_self",
        *(_parameter(item) for item in given if not item.kw_only),
        *(["*", *named] if named else ()),
    ]
    method = _compiled(cls, f"__init__({', '.join(parameters)})", body or ["pass"], values)
    method.__annotations__ = {**{item.name: item.type for item in given}, "return": None}
    return method


def _parameter(item: dataclasses.Field[object]) -> str:
    if _is_required(item):
        return item.name
    return f"{item.name}=" + (
        "_dataclass_factory" if item.default is dataclasses.MISSING else f"_dataclass_default_{item.name}"
    )


def _assignment(cls: type, item: dataclasses.Field[object], values: dict[str, object]) -> Sequence[str]:
    """Return the lines that set a field, and add to ``values`` what they need."""
    name = item.name
    has_default = item.default is not dataclasses.MISSING
    slot = cls.__dict__.get(name)
    is_slot = isinstance(slot, MemberDescriptorType)
    value = name
    if has_default:
        values[f"_dataclass_default_{name}"] = item.default
    if item.default_factory is not dataclasses.MISSING:
        values[f"_dataclass_make_{name}"] = item.default_factory
        value = (
            f"_dataclass_make_{name}() if {name} is _dataclass_factory else {name}"
            if item.init
            else f"_dataclass_make_{name}()"
        )
    elif not item.init:
        if not (has_default and is_slot):
            return []  # the class has the default, or the field has no value yet
        value = f"_dataclass_default_{name}"
    if not cls.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        return [f"_dataclass_self.{name} = {value}"]
    if is_slot:
        values[f"_dataclass_set_{name}"] = slot.__set__
        return [f"_dataclass_set_{name}(_dataclass_self, {value})"]
    values["_dataclass_object"] = object
    return [f"_dataclass_object.__setattr__(_dataclass_self, {name!r}, {value})"]


# --- what is frozen ---


def _freeze(cls: type) -> None:
    """Refuse changes of the fields, and of anything in an instance of the class itself."""
    names = frozenset(item.name for item in dataclasses.fields(cls))

    def set_attribute(self: object, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def delete_attribute(self: object, name: str) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    for name, method in (("__setattr__", set_attribute), ("__delattr__", delete_attribute)):
        if name in cls.__dict__:
            raise TypeError(f"Cannot overwrite attribute {name} in class {cls.__name__}")
        setattr(cls, name, method)
    if "__slots__" in cls.__dict__:
        _add(cls, "__getstate__", _state)
        _add(cls, "__setstate__", _set_state)


def _state(self: object) -> list[object]:
    """Return the values of the fields: what is copied and pickled of a frozen instance."""
    return [getattr(self, item.name) for item in dataclasses.fields(self)]  # type: ignore[arg-type]


def _set_state(self: object, state: Sequence[object]) -> None:
    for item, value in zip(dataclasses.fields(self), state):  # type: ignore[arg-type]
        object.__setattr__(self, item.name, value)
