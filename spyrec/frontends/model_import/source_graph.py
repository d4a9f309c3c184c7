"""A model as an importer read it: a graph in the model's own dtypes, and what is known of its inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
from spyrec.diagnostics import ModelPlace
from spyrec.hardware.dtypes import DType
from spyrec.ir.graph import Graph

HostArray = npt.NDArray[np.generic]


@dataclass(frozen=True, slots=True)
class SourceInput:
    """An input of the source graph.

    ``kind``: ``user``, or ``parameter``, ``buffer``, ``constant`` with the ``key`` that the model's weights have it
    under.  ``name`` is the value's in the graph, ``program_name`` the program's own.
    """

    name: str
    kind: str
    program_name: str
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """Something of a model that a graph does not have.

    ``kind``: ``op``, ``input`` or ``value``; ``what``: the operation, or the dtype.  ``dtypes``: of its operands.
    ``name``: the program's own name of the operation, where the importer says it.
    """

    kind: str
    what: str
    dtypes: tuple[str, ...]
    place: ModelPlace | None
    reason: str
    hint: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class SourceGraph:
    """A whole model.

    ``graph`` has the weights among its inputs; ``None`` where problems left no output.  ``outputs``: of each output of
    the graph, the program's own name, or the input that it replaces.
    """

    graph: Graph | None
    inputs: tuple[SourceInput, ...]
    problems: tuple[Problem, ...]
    dtypes: Mapping[str, str] = field(default_factory=dict[str, str])
    """Inputs whose dtype a graph does not have, with the dtype that they had."""


@dataclass(frozen=True, slots=True)
class Weight:
    """One tensor of a model's weights: its type, and how to read it.

    ``read`` gives the numbers in the carrier of ``dtype``, or float64; ``storage``: equal for tensors that share their
    memory, which are stored once.  ``release`` lets go of the memory that reading took.
    """

    dtype: DType
    shape: tuple[int, ...]
    read: Callable[[], HostArray]
    storage: object
    release: Callable[[], None] = lambda: None


NARROWED: Mapping[str, str] = {"float64": "float32", "double": "float32"}
"""Dtypes that a graph does not have, and what stands for them."""


def weight_dtype(name: str) -> DType:
    """Return what a weight of PyTorch's dtype ``name`` is in a graph; one that nothing can read counts as bytes."""
    found = NARROWED.get(name, name)
    return DType(found) if found in {item.value for item in DType} else DType.UINT8


Weights = Mapping[str, Weight]
"""The tensors of a model by their keys."""


@dataclass(frozen=True, slots=True)
class ReferenceRun:
    """What a model's own library computes in float64.

    ``inputs`` by the program's names, ``outputs`` in its order, ``changed``: new contents by the input that they
    replace, ``modules``: what each module computes last, by path, as far as the library says.
    """

    inputs: Mapping[str, HostArray]
    outputs: tuple[HostArray, ...]
    changed: Mapping[str, HostArray]
    modules: Mapping[str, HostArray] = field(default_factory=dict[str, HostArray])
