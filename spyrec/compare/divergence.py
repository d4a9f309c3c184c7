"""What ``--bisect`` reports: how many operations were compared, and the first one that its inputs do not explain."""

from __future__ import annotations

import math
from enum import Enum

from spyrec.dataclass import dataclass
from spyrec.diagnostics import Location


class Guilt(Enum):
    """What is wrong with a step."""

    RESULT = "result"
    """The operation stored something else than its inputs explain."""
    OVERWRITTEN = "overwritten"
    """The operation changed a tensor that it has no business with."""
    ROUNDS = "rounds"
    """Its loops do not go round as often as the graph asks."""
    COPY_IN = "copy in"
    """The host's copy of an input or constant does not hold the graph's numbers."""
    COPY_OUT = "copy out"
    """What the host got for an output is not what the last operation on it has stored."""
    GIVEN = "given"
    """Every operation so far is right for its inputs, but a value is not what was given for it."""
    ALTERED = "altered"
    """Every operation is right for its inputs, but the constants are not those the bundle was written with."""


@dataclass(frozen=True, slots=True)
class DivergentOperand:
    """One input of an operation: the buffer, and the memory it lies in (``argument``, ``pool`` or ``lx``)."""

    name: str
    memory: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Element:
    """The worst element: where it lies and what stands there.

    ``index`` is the host's; ``core`` the one that stores the element, ``None`` where no core of the operation does.
    """

    index: tuple[int, ...]
    device_coordinate: tuple[int, ...]
    core: int | None
    got: float
    want: float
    error: float
    bound: float
    bound_ratio: float


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first guilty step.

    ``name`` is the kernel's, ``op`` what it should compute (``opFuncName``), ``found_op`` what the SuperDSC says;
    ``node`` the name of the user's node and ``location`` its place in ``graph.json``; ``provenance`` what the SuperDSC
    says it comes from.  A copy from or to the host has
    no ``file``, ``op`` and ``inputs``.  ``iteration`` is the round of each loop around it, outermost first, from 0.
    """

    guilt: Guilt
    name: str
    file: str | None
    op: str | None
    found_op: str | None
    node: str | None
    location: Location
    tensor: str
    element: Element | None
    failed_elements: int
    element_count: int
    inputs: tuple[DivergentOperand, ...] = ()
    iteration: tuple[int, ...] = ()
    provenance: str | None = None

    def to_json(self) -> dict[str, object]:
        """Return the object of ``spyrec run --json`` under ``bisect.guilty``."""
        place = self.location.resolved()
        element = self.element
        return {
            "guilt": self.guilt.value,
            "name": self.name,
            "file": self.file,
            "iteration": list(self.iteration),
            "op": self.op,
            "found_op": self.found_op,
            "node": self.node,
            "location": {"file": place.file, "pointer": place.pointer, "line": place.line, "column": place.column},
            "provenance": self.provenance,
            "tensor": self.tensor,
            "worst": None if element is None else _element_json(element),
            "failed_elements": self.failed_elements,
            "elements": self.element_count,
            "inputs": [
                {"name": item.name, "memory": item.memory, "dtype": item.dtype, "shape": list(item.shape)}
                for item in self.inputs
            ],
        }


@dataclass(frozen=True, slots=True)
class BisectReport:
    """The verdict: ``compared`` SuperDSCs were held against their references, up to the guilty one.

    ``worst_ratio`` is the largest error over its bound among those that are not guilty, in ``worst_file``.
    ``given``: the values that were held against given numbers, ``None`` where none were given; a value that is stored
    nowhere by its name, as a view, is not among them.
    """

    compared: int
    total: int
    worst_ratio: float
    worst_file: str | None
    divergence: Divergence | None
    given: tuple[str, ...] | None = None

    @property
    def ok(self) -> bool:
        """Whether nothing is guilty."""
        return self.divergence is None

    def to_json(self) -> dict[str, object]:
        """Return the object of ``spyrec run --json`` under ``bisect``."""
        return {
            "ok": self.ok,
            "compared": self.compared,
            "operations": self.total,
            "worst_bound_ratio": json_number(self.worst_ratio),
            "worst_file": self.worst_file,
            "given": None if self.given is None else list(self.given),
            "guilty": None if self.divergence is None else self.divergence.to_json(),
        }


def _element_json(element: Element) -> dict[str, object]:
    return {
        "index": list(element.index),
        "device_coordinate": list(element.device_coordinate),
        "core": element.core,
        "got": json_number(element.got),
        "want": json_number(element.want),
        "error": json_number(element.error),
        "bound": json_number(element.bound),
        "bound_ratio": json_number(element.bound_ratio),
    }


def json_number(value: float) -> float | str:
    """Return a number as JSON has it: one that is not finite is a string."""
    return value if math.isfinite(value) else str(value)
