"""Cases that NNSmith generates: models of torch's, exported by torch, imported, compiled, run and held against torch.

NNSmith and torch are in an environment of their own (``scripts/nnsmith_environment.py``); a process there makes models
for as long as this one lives.  A failure keeps model and numbers, so that it is tried again without that environment.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import IO, cast

import numpy as np
import numpy.typing as npt

import spyrec
from benchmarks.campaign.verdicts import INVALID, Case, Verdict, WrongResultError, verdict_of
from spyrec import RunOptions
from spyrec.compare.random_roundings import relative_error, rounding_errors
from spyrec.diagnostics import SpyrecError
from spyrec.diagnostics.json_reading import JsonValue
from spyrec.ir.evaluate import evaluate
from spyrec.ir.graph import Graph
from spyrec.ir.reader import read_graph_data

ROOT = Path(__file__).resolve().parent.parent.parent
PYTHON = ROOT / ".cache" / "nnsmith" / "bin" / "python"

Array = npt.NDArray[np.generic]
Answer = Mapping[str, JsonValue]

SAFETY = 4.0
"""Of the largest of eight runs with random roundings, as for the models of ``benchmarks/models``."""

_SAME = 2.0**-9
"""Largest difference of two float64 computations of one model: the imported one's numbers in the text are float16's."""

_NUDGE = 2.0**-40
"""How far inputs are moved to see whether a result stands at a step: two orders of a sum in float64 differ by less."""

_MOST_WINDOW = 4
_STEPS = ("floor", "ceil", "round", "trunc", "sign", "eq", "ne", "lt", "le", "gt", "ge", "argmax", "argmin", "topk")
"""Operations of a graph whose results jump: a few random roundings do not say what others do."""


def is_there() -> bool:
    """Return whether NNSmith's environment is."""
    return PYTHON.exists()


def make(seed: int) -> Case:
    """Return the seed: the model is made where it is tried."""
    return {"seed": seed}


@cache
def _maker() -> subprocess.Popen[str]:
    """Return the process that makes models; it ends when this one closes its pipe by ending."""
    return subprocess.Popen(  # noqa: S603 -- our own module
        [str(PYTHON), "-m", "benchmarks.campaign.nnsmith_models"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=ROOT,
    )


def _answer(case: Case) -> Answer:
    """Return what NNSmith's environment says of a case; a kept one is imported anew where there is one."""
    if "model" in case and not is_there():
        return case
    maker = _maker()
    request = {name: case[name] for name in ("seed", "window") if name in case and "model" not in case}
    kept = {"model": case["model"]} if "model" in case else {}
    cast("IO[str]", maker.stdin).write(json.dumps({**request, **kept}) + "\n")
    cast("IO[str]", maker.stdin).flush()
    answer = cast("Answer", json.loads(cast("IO[str]", maker.stdout).readline()))
    return {**case, **answer} if kept else answer


def seal(case: Case) -> Case:
    """Return a case with its model, its graph and its numbers."""
    answer = _answer(case)
    return case if "none" in answer else {**case, **answer}


def trial(case: Case) -> Verdict:
    """Import, compile, run; hold the graph against torch in float64, and the run against both."""
    answer = _answer(case)
    if "none" in answer:
        return Verdict(INVALID, "no model", "", str(answer["none"]))
    if "graph" not in answer:
        return Verdict.from_json(cast("Answer", answer["import"]))
    return verdict_of(lambda: _hold(answer))


def _array(data: JsonValue) -> Array:
    item = cast("Mapping[str, JsonValue]", data)
    numbers = cast("list[float | str]", item["data"])
    return np.asarray(numbers, str(item["dtype"])).reshape(cast("list[int]", item["shape"]))


def _hold(answer: Answer) -> None:
    data = cast("Mapping[str, object]", answer["graph"])
    try:
        graph = read_graph_data(cast("JsonValue", data))
    except SpyrecError as error:  # what the import has written is a graph
        raise WrongResultError("written", error.diagnostics[0].message) from None
    arrays = {name: _array(item) for name, item in cast("Mapping[str, JsonValue]", answer["inputs"]).items()}
    given = {name: _as_given(arrays[name], graph, name) for name in graph.inputs}
    wanted = [_array(item) for item in cast("list[JsonValue]", answer["outputs"])]
    exact = evaluate(graph, given)
    steps = any(node.op.startswith(_STEPS) for node in graph.nodes)
    for name, right in zip(graph.outputs, wanted, strict=False):
        error = relative_error(exact[name], right)
        if error > _SAME and not (steps and _is_at_step(graph, given, name, right)):
            raise WrongResultError("import", f'output "{name}" is off torch by {error:.2g} before any rounding')
    result = spyrec.run(spyrec.compile(data), given, RunOptions(check=True))
    for name, report in (result.check or {}).items():
        if not report.ok:
            count = f"{report.failed_elements} of {report.element_count} elements"
            raise WrongResultError("bound", f'output "{name}": {count} are farther off than their formats explain')
    if not steps:
        _hold_distance(graph, given, result.outputs, wanted)


def _is_at_step(graph: Graph, given: Mapping[str, Array], name: str, right: Array) -> bool:
    """Return whether inputs in whose last places of float64 one could differ give torch's numbers, too."""
    for factor in (1.0 - _NUDGE, 1.0 + _NUDGE):
        moved = {item: _nudged(array, factor) for item, array in given.items()}
        if relative_error(evaluate(graph, moved)[name], right) <= _SAME:
            return True
    return False


def _nudged(array: Array, factor: float) -> Array:
    return array.astype(np.float64) * factor if array.dtype.kind == "f" else array


def _as_given(array: Array, graph: Graph, name: str) -> Array:
    dtype = graph.type_of(name).dtype
    return array.astype(dtype.carrier) if dtype.is_float else array


def _hold_distance(graph: Graph, given: Mapping[str, Array], found: Mapping[str, Array], wanted: list[Array]) -> None:
    allowed = rounding_errors(graph, given)
    for name, right in zip(graph.outputs, wanted, strict=False):
        error = relative_error(found[name], right)
        if error > SAFETY * allowed[name]:
            said = f'output "{name}" is off torch by {error:.2g} of {SAFETY * allowed[name]:.2g}'
            raise WrongResultError("torch", said)


def smaller(case: Case) -> Iterator[Case]:
    """Yield models of a few neighbouring nodes, the fewest first."""
    if "window" in case:
        seed, (first, end) = case["seed"], cast("tuple[int, int]", case["window"])
    else:
        answer = _answer(case)
        seed, first, end = answer.get("seed", 0), 0, len(cast("list[JsonValue]", answer.get("nodes", [])))
    for length in range(1, min(end - first, _MOST_WINDOW + 1)):
        for at in range(first, end - length + 1):
            yield {"seed": seed, "window": [at, at + length]}


def size(case: Case) -> tuple[int, ...]:
    """Return the number of nodes, of a whole model more than of any window."""
    if "window" not in case:
        return (1 << 20,)
    first, end = cast("tuple[int, int]", case["window"])
    return (end - first,)


def parts(case: Case) -> list[str]:
    """Return the operations of torch's."""
    return sorted({str(name) for name in cast("list[JsonValue]", _answer(case).get("nodes", []))})
