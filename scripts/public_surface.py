"""The public surface as text: everything that users of ``spyrec``, ``spyrec.runtime`` and ``spyrec.exec`` can touch.

Written to tests/fixtures/public_surface.txt, where a removal or another signature is a line of a diff.  Beside the
exported classes stand the data that they lead to (by fields, attributes, properties, results of methods) in up to
``DEPTH`` steps: enumerations, dataclasses and named tuples, by name and without their modules: these may move.  What
they lead to that does something, such as an executor, is a name in a line, and free to change.  At last the verbs,
diagnostic codes, error classes, file formats, and the C header.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import hashlib
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TypeGuard, cast

import click

from spyrec.cli import group, verbs
from spyrec.diagnostics.codes import CODES

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("spyrec", "spyrec.runtime", "spyrec.exec")
HEADER = ROOT / "include" / "flashrt" / "exec.h"
DEPTH = 2
TOUCHED = {"Allocation", "HostBuffer", "LaunchArtifacts", "Value"}
"""Classes that do something, and that users are given to work with."""

Class = type[object]


def surface_text() -> str:
    """Return the whole surface as text."""
    return "".join(f"{line}\n" for section in _SECTIONS for line in section())


def _exports() -> Iterator[str]:
    yield "# Names that are imported"
    for package in PACKAGES:
        module = import_module(package)
        for name in sorted(cast("list[str]", module.__all__)):
            yield from _export(f"{package}.{name}", getattr(module, name))


def _export(name: str, value: object) -> Iterator[str]:
    if isinstance(value, ModuleType):
        yield f"{name}: module"
    elif inspect.isclass(value):
        yield f"{name}: class {value.__name__}"
    elif callable(value):
        yield f"{name}{_signature(value)}"
    else:
        yield f"{name} = {value!r}"


def _classes() -> Iterator[str]:
    exported = {
        f"{package}.{name}": value
        for package in PACKAGES
        for name in cast("list[str]", import_module(package).__all__)
        if inspect.isclass(value := getattr(import_module(package), name))
    }
    yield ""
    yield "# Exported classes"
    for name, found in exported.items():
        yield from _described(name, found)
    yield ""
    yield "# Data that they lead to"
    for found in sorted(_data_below(set(exported.values())), key=lambda item: (item.__name__, item.__module__)):
        yield from _described(found.__name__, found)


def _described(name: str, cls: Class) -> Iterator[str]:
    yield ""
    yield f"{_kind_of(cls)} {name}{_bases_of(cls)}"
    yield from sorted({f"    {line}" for line in _members(cls)})


def _data_below(exported: set[Class]) -> set[Class]:
    found, edge = set(exported), exported
    for _ in range(DEPTH):
        edge = {
            cls for item in edge for cls in _leads_to(item) if _kind_of(cls) != "class" or cls.__name__ in TOUCHED
        } - found
        found |= edge
    return found - exported


def _leads_to(cls: Class) -> Iterator[Class]:
    for owner in _owners(cls):
        scope = _scope(owner.__module__)
        for text in _types_given(owner):
            for name in re.findall(r"[A-Za-z_][\w.]*", text):
                value = scope(name)
                if (
                    inspect.isclass(value)
                    and value.__module__.startswith("spyrec")
                    and not value.__name__.startswith("_")
                ):
                    yield value


def _types_given(owner: Class) -> Iterator[str]:
    """Return the texts of the types that an instance of a class gives to its user."""
    for name, value in _own_members(owner):
        found = _unwrapped(value)
        if inspect.isfunction(found):
            yield str(found.__annotations__.get("return", ""))
        elif name in inspect.get_annotations(owner):
            yield str(inspect.get_annotations(owner)[name])
    yield from (text for _, text in _attributes_set(owner))
    yield from (str(text) for name, text in inspect.get_annotations(owner).items() if not name.startswith("_"))


def _owners(cls: Class) -> list[Class]:
    """Return a class and those of its bases that are spyrec's."""
    return [base for base in cls.__mro__ if base.__module__.startswith("spyrec")]


def _kind_of(cls: Class) -> str:
    if issubclass(cls, enum.Enum):
        return "enumeration"
    if issubclass(cls, tuple):
        return "named tuple"
    return "dataclass" if dataclasses.is_dataclass(cls) else "class"


def _bases_of(cls: Class) -> str:
    bases = ", ".join(base.__name__ for base in cls.__bases__ if base not in (object, enum.Enum, tuple))
    return f"({bases})" if bases else ""


def _members(cls: Class) -> Iterator[str]:
    """Return a line per public attribute and method, inherited ones too, and how instances are made."""
    if issubclass(cls, enum.Enum):
        yield from (f"{item.name} = {item.value!r}" for item in cls)
    elif not getattr(cls, "_is_protocol", False):
        yield f"__init__{_signature(cls)}"
    seen: set[str] = set()
    for owner in _owners(cls):
        for name, text in inspect.get_annotations(owner).items():
            if _is_shown(name, seen):
                yield f"{name}: {_plain(str(text))}"
        for name, text in _attributes_set(owner):
            if _is_shown(name, seen):
                yield f"{name}: {text}"
        for name, value in _own_members(owner):
            if not (issubclass(cls, enum.Enum) and name in cls.__members__) and _is_shown(name, seen):
                yield _member(name, value)


_SHOWN_MAGIC = {
    *("__enter__", "__exit__", "__call__", "__len__", "__iter__", "__getitem__", "__contains__"),
    *("__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__truediv__", "__rtruediv__"),
    *("__matmul__", "__pow__", "__neg__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"),
}


def _is_shown(name: str, seen: set[str]) -> bool:
    if name in seen or (name.startswith("_") and name not in _SHOWN_MAGIC):
        return False
    seen.add(name)
    return True


def _own_members(owner: Class) -> Iterator[tuple[str, object]]:
    """Return what a class defines itself, apart from its slots and from what a dataclass adds."""
    for name, value in vars(owner).items():
        magic: object = (
            getattr(owner, name) if name.startswith("__") else None
        )  # what a dataclass adds, it adds when asked
        is_added = magic is not None and "return" not in getattr(magic, "__annotations__", {"return": None})
        if not inspect.ismemberdescriptor(value) and not is_added:
            yield name, value


def _member(name: str, value: object) -> str:
    found = _unwrapped(value)
    if isinstance(value, property):
        result = found.__annotations__.get("return", "?") if inspect.isfunction(found) else "?"
        return f"{name} -> {result}  (property)"
    if not inspect.isfunction(found):
        return f"{name} = {type(value).__name__}"
    kind = type(value).__name__ if hasattr(value, "__func__") else ""
    return f"{name}{_signature(found)}{f'  ({kind})' if kind else ''}"


def _unwrapped(value: object) -> object:
    if isinstance(value, property):
        return inspect.unwrap(value.fget) if value.fget is not None else None
    value = cast("object", getattr(value, "__func__", value))  # of a static method or one of the class
    return inspect.unwrap(value) if inspect.isfunction(value) else value


def _signature(value: Callable[..., object]) -> str:
    """Return a signature as it is written, without quotes around types and places of objects in memory."""
    try:
        text = str(inspect.signature(value))
    except ValueError:
        return "(...)"
    return _plain(re.sub(r"(->|:) '([^']*)'", r"\1 \2", text))


def _plain(text: str) -> str:
    """Return the text of a type or a signature without what says where something lies."""
    text = re.sub(r"ForwardRef\('([^']*)'\)", r"\1", text)
    text = re.sub(r" at 0x[0-9a-f]+", "", text)
    return re.sub(r"\bspyrec(\.\w+)*\.(?=[A-Z])", "", text)


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(inspect.getsource(sys.modules[module]))


@cache
def _scope(module: str) -> Callable[[str], object]:
    """Return how a module's annotations are read: its names, and those that it imports for them alone."""
    homes: dict[str, str] = {}
    for item in ast.walk(_tree(module)):
        if isinstance(item, ast.ImportFrom) and item.module is not None and item.module.startswith("spyrec"):
            homes.update({alias.asname or alias.name: f"{item.module}:{alias.name}" for alias in item.names})

    def found(name: str) -> object:
        value: object = vars(sys.modules[module]).get(name)
        if value is None and name in homes:
            home, _, member = homes[name].partition(":")
            value = getattr(import_module(home), member, None)
        return value

    return found


def _attributes_set(owner: Class) -> Iterator[tuple[str, str]]:
    """Return the public attributes that ``__init__`` sets, with their types as far as they are written there."""
    init = vars(owner).get("__init__")
    if not inspect.isfunction(init) or dataclasses.is_dataclass(owner) or init.__name__ != "__init__":
        return
    function = ast.parse(textwrap.dedent(inspect.getsource(init))).body[0]
    assert isinstance(function, ast.FunctionDef)
    annotations = {arg.arg: ast.unparse(arg.annotation) for arg in _parameters(function) if arg.annotation is not None}
    for statement in ast.walk(function):
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for target in targets:
                if _is_attribute_of_self(target):
                    yield target.attr, _type_of(statement, annotations)


def _parameters(function: ast.FunctionDef) -> list[ast.arg]:
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]


def _is_attribute_of_self(target: ast.expr) -> TypeGuard[ast.Attribute]:
    if not isinstance(target, ast.Attribute) or not isinstance(target.value, ast.Name):
        return False
    return target.value.id == "self" and not target.attr.startswith("_")


def _type_of(statement: ast.Assign | ast.AnnAssign, annotations: dict[str, str]) -> str:
    if isinstance(statement, ast.AnnAssign):
        return ast.unparse(statement.annotation)
    match statement.value:
        case ast.Name(id=name):
            return annotations.get(name, "?")
        case ast.Call(func=ast.Name(id=name)) if name[:1].isupper():
            return name
        case _:
            return "?"


def _verbs() -> Iterator[str]:
    yield ""
    yield "# Verbs of the command line"
    context = click.Context(group)
    yield from _options("spyrec", group)
    for verb in verbs():
        command = group.get_command(context, verb)
        assert command is not None
        yield from _options(f"spyrec {verb}", command)


def _options(name: str, command: click.Command) -> Iterator[str]:
    yield ""
    yield name
    for parameter in command.params:
        names = "/".join((*parameter.opts, *parameter.secondary_opts))
        facts = [str(parameter.type) if isinstance(parameter.type, click.IntRange) else parameter.type.name]
        if isinstance(parameter.type, click.Choice):
            facts = ["|".join(map(str, cast("click.Choice[str]", parameter.type).choices))]
        if isinstance(parameter, click.Option) and parameter.is_flag:
            facts = ["flag"]
        facts += [word for word, holds in (("required", parameter.required), ("many", parameter.multiple)) if holds]
        if isinstance(parameter.default, str | int | float) and not isinstance(parameter.default, bool):
            facts.append(f"default {parameter.default}")
        yield f"    {names}: {', '.join(facts)}"


def _codes() -> Iterator[str]:
    yield ""
    yield "# Diagnostic codes"
    for number, code in sorted(CODES.items()):
        rule = f" (rule {code.rule})" if code.rule is not None else ""
        yield f"{number} {code.title}{rule}"


def _errors() -> Iterator[str]:
    """Classes of errors by name, wherever they stand."""
    yield ""
    yield "# Error classes"
    bases: dict[str, list[str]] = {}
    codes: dict[str, str] = {}
    for path in sorted((ROOT / "spyrec").rglob("*.py")):
        for item in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(item, ast.ClassDef) and not item.name.startswith("_"):
                bases.setdefault(item.name, []).extend(ast.unparse(base) for base in item.bases)
                codes.update((item.name, found) for found in re.findall(r"\n +code = '(SPY\d+)'", ast.unparse(item)))
    found = {"SpyrecError"}
    while more := {name for name, above in bases.items() if found.intersection(above)} - found:
        found |= more
    yield from (f"{name}({', '.join(bases[name])}) {codes.get(name, '')}".rstrip() for name in sorted(found))


def _formats() -> Iterator[str]:
    """Names of file formats, wherever they stand."""
    yield ""
    yield "# File formats"
    texts = (path.read_text(encoding="utf-8") for path in _files("spyrec/**/*.py", "schemas/*.json"))
    yield from sorted({found for text in texts for found in re.findall(r'"(spyrec\.[a-z_.-]+/\d+)"', text)})


def _files(*patterns: str) -> Iterable[Path]:
    return (path for pattern in patterns for path in sorted(ROOT.glob(pattern)))


def _header() -> Iterator[str]:
    yield ""
    yield "# The C header: its hash, and what it declares"
    text = HEADER.read_text(encoding="utf-8")
    yield f"include/flashrt/exec.h {hashlib.sha256(text.encode()).hexdigest()}"
    yield from sorted(set(re.findall(r"\bfrt_\w+(?=\s*\()", text)))


_SECTIONS: tuple[Callable[[], Iterator[str]], ...] = (_exports, _classes, _verbs, _codes, _errors, _formats, _header)


if __name__ == "__main__":
    print(surface_text(), end="")
