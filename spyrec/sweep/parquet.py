"""Rows as a Parquet file: a column for each of a row's, options as JSON text, what a row has not as null."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from importlib import import_module
from importlib.util import find_spec
from io import BytesIO
from typing import Protocol, cast

import orjson

from spyrec.diagnostics import refuse
from spyrec.sweep.rows import Row

_TYPES = {"str": "string", "int": "int64", "float": "float64"}


class _Arrow(Protocol):
    """What is used of pyarrow, which has no types of its own."""

    def schema(self, columns: Sequence[tuple[str, object]]) -> object:
        """Return names and types of columns."""
        ...

    def table(self, columns: Mapping[str, Sequence[object]], schema: object) -> object:
        """Return a table."""
        ...

    def type_for_alias(self, name: str) -> object:
        """Return a type by name."""
        ...


class _Parquet(Protocol):
    """The module that writes files."""

    def write_table(self, table: object, where: BytesIO, compression: str) -> None:
        """Write a table."""
        ...


def require_arrow() -> None:
    """Refuse to begin what could not be written.  Errors: SPY0840 pyarrow is not installed."""
    if find_spec("pyarrow") is None:
        raise refuse("SPY0840", "a Parquet file is written with pyarrow, which is not installed")


def parquet_of(rows: Sequence[Row]) -> bytes:
    """Return rows as the bytes of a Parquet file, the same for the same rows."""
    require_arrow()
    arrow = cast("_Arrow", import_module("pyarrow"))
    columns: dict[str, Sequence[object]] = {}
    types: list[tuple[str, object]] = []
    for item in fields(Row):
        kind = str(item.type).removesuffix(" | None")
        values: list[object] = [getattr(row, item.name) for row in rows]
        if kind not in _TYPES:
            values = [orjson.dumps(value).decode() for value in values]
        columns[item.name] = values
        types.append((item.name, arrow.type_for_alias(_TYPES.get(kind, "string"))))
    target = BytesIO()
    table = arrow.table(columns, schema=arrow.schema(types))
    cast("_Parquet", import_module("pyarrow.parquet")).write_table(table, target, compression="zstd")
    return target.getvalue()
