"""Whether two graphs are the same, what ``==`` leaves out included; origins alone may differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Array = npt.NDArray[np.generic]

_LEFT_OUT = {"origin", "_side", "remembered_hash"}


def difference(one: object, other: object, path: str = "") -> str | None:
    """Return where two graphs differ first, ``None`` where they do not."""
    kinds = (type(one), type(other))
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return _of_arrays(cast("Array", one), cast("Array", other), path)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return _of_mappings(cast("Mapping[object, object]", one), cast("Mapping[object, object]", other), path)
    if kinds[0] is not kinds[1]:
        return f"{path}: {kinds[0]} {kinds[1]}"
    if is_dataclass(kinds[0]):
        return _of_records(cast("DataclassInstance", one), other, path)
    if isinstance(one, tuple | list):
        return _of_lists(cast("list[object]", one), cast("list[object]", other), path)
    return _of_values(cast("object", one), other, path)  # pyright: ignore[reportUnnecessaryCast] -- of a part unknown type


def _of_values(one: object, other: object, path: str) -> str | None:
    """Compare plain values, and the names that an extent was written by."""
    texts = (getattr(one, "text", None), getattr(other, "text", None))
    return None if one == other and texts[0] == texts[1] else f"{path}: {one!r} {other!r}"


def _of_arrays(one: Array, other: Array, path: str) -> str | None:
    is_same = one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    return None if is_same else f"{path}: {one} {other}"


def _of_lists(one: list[object], other: list[object], path: str) -> str | None:
    if len(one) != len(other):
        return f"{path}: {len(one)} {len(other)}"
    return _first([(f"{path}[{index}]", a, b) for index, (a, b) in enumerate(zip(one, other, strict=True))])


def _of_records(one: DataclassInstance, other: object, path: str) -> str | None:
    pairs = [(field.name, getattr(one, field.name), getattr(other, field.name)) for field in fields(one)]
    return _first([(f"{path}.{name}", a, b) for name, a, b in pairs if name not in _LEFT_OUT])


def _of_mappings(one: Mapping[object, object], other: Mapping[object, object], path: str) -> str | None:
    if one.keys() != other.keys():
        return f"{path}: {list(one)} {list(other)}"
    return _first([(f"{path}[{key}]", one[key], other[key]) for key in one])


def _first(pairs: list[tuple[str, object, object]]) -> str | None:
    found = (difference(one, other, path) for path, one, other in pairs)
    return next((item for item in found if item is not None), None)
