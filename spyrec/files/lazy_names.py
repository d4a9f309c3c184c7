"""Modules whose public names are imported when they are first used: importing such a front costs nothing heavy."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def lazy_names(module: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """Return the ``__getattr__`` (PEP 562) of a module: a name is taken from its home and kept in the module.

    ``homes``: the module that defines each public name; a name may be a package of the module itself.
    """

    def get(name: str) -> object:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        found = import_module(home)
        value: object = found if home == f"{module}.{name}" else getattr(found, name)
        setattr(sys.modules[module], name, value)
        return value

    return get
