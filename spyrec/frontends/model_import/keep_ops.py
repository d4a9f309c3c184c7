"""``--keep-op``: operations of a program that are one op of the graph, whatever they could be taken apart into."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Mapping

from spyrec.diagnostics import refuse

NOT_KEPT = "SPY0167"
"""Code of an operation that is to be kept and cannot be."""


def kept_ops(
    names: Iterable[str], key: Callable[[str], str], op_of: Callable[[str, str], str | None], ops: Collection[str]
) -> dict[str, str]:
    """Return what is to be kept: by a program's name of an operation, the op that it is one of.

    ``names``: operations, ``NAME`` or ``NAME=OP``, without the latter an op of the same name.  ``key``: a name as
    programs have it.  ``op_of``: the op that a name is to stand for in a program's operation, ``None`` where there is
    none; ``ops``: all of them.
    Errors: SPY0167 there is no such op.
    """
    found: dict[str, str] = {}
    for text in names:
        name, equals, wanted = text.partition("=")
        own = key(name)
        plain = wanted if equals else own.rpartition(".")[2]
        op = op_of(own, plain) if plain else None
        if op is None:
            close = difflib.get_close_matches(plain.removeprefix("native_"), ops, n=1)
            hint = f"{name}={close[0] if close else 'OP'} says which op it is; `spyrec ops` lists them"
            fact = f"{text[:120]!r} cannot be kept: there is no op {plain[:80]!r} that it could be"
            raise refuse(NOT_KEPT, fact, hint=hint)
        found[own] = op
    return found


def refuse_uncalled(kept: Mapping[str, str], called: Collection[str]) -> None:
    """Refuse to keep what a program does not call.  Errors: SPY0167."""
    absent = sorted(kept.keys() - called)
    if absent:
        close = difflib.get_close_matches(absent[0], called, n=1)
        hint = (
            f"did you mean {close[0]}?" if close else "export without decompositions of your own, and name it as there"
        )
        raise refuse(NOT_KEPT, f'"{absent[0][:120]}" cannot be kept: the program does not call it', hint=hint)
