"""One case in this process: a pure function of JSON bytes and files, whose result is JSON bytes.

The request is ``{"graph", "changes", "options", "checks", "keep"}``, the result what of a row follows from the case,
the seconds that it took, and where it is kept its bundle.
"""

from __future__ import annotations

import time
import traceback
import zlib
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, cast

import orjson

from spyrec.dataclass import dataclass
from spyrec.diagnostics import Diagnostic, Location, SpyrecError
from spyrec.diagnostics.json_reading import JsonValue, load_json
from spyrec.files.packed_files import pack
from spyrec.options import CompileOptions, HostArray, RunOptions, RunResult
from spyrec.sweep.rows import CRASHED, EMPTY, OK, REFUSED, WRONG
from spyrec.sweep.tasks import lack_of_the_machine

if TYPE_CHECKING:
    from spyrec.bundle.bundle import Bundle

FUNCTION = "spyrec.sweep.case_run:run_case"
FACTS, SECONDS, BUNDLE = "facts", "seconds", "bundle"
_LONGEST_MESSAGE = 2000

Facts = dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class _Made:
    """A graph's object as its file has it, its folder, and numbers for its inputs where a list of calls says which."""

    graph: JsonValue
    folder: Path
    inputs: Mapping[str, HostArray] | None = None


class _NothingToDo(Exception):
    """A call that computes nothing."""


def run_case(request: bytes, held: Path) -> bytes:
    """Compile one case, and run and compare it as far as it is asked for; nothing is raised for what is wrong with it.

    What is raised is a lack of memory or of the machine (see :func:`spyrec.sweep.tasks.lack_of_the_machine`).

    Files of the graph and of the golden bundle stand in ``held``, by the digests that the request has for them.
    """
    case = cast("Mapping[str, JsonValue]", orjson.loads(request))
    run = _CaseRun(case, held)
    facts = _outcome(run)
    found: dict[str, object] = {FACTS: facts, SECONDS: run.seconds}
    if run.bundle is not None and (case["keep"] == "all" or (case["keep"] == "wrong" and facts["status"] != OK)):
        found[BUNDLE] = b64encode(pack(_saved(run.bundle))).decode()
    return orjson.dumps(found)


def _outcome(run: _CaseRun) -> Facts:
    try:
        return run.facts()
    except _NothingToDo:
        return {"status": EMPTY}
    except SpyrecError as error:
        if lack_of_the_machine(error) is not None:
            raise
        return {"status": REFUSED, **_said(error.diagnostics[0]), **run.figures}
    except MemoryError:
        raise
    except Exception as error:
        if lack_of_the_machine(error) is not None:
            raise
        last = traceback.extract_tb(error.__traceback__)[-1]
        message = f"{type(error).__name__}: {str(error)[:_LONGEST_MESSAGE]} ({Path(last.filename).name}:{last.lineno})"
        return {"status": CRASHED, "message": message, **run.figures}


def _said(diagnostic: Diagnostic) -> Facts:
    """Return code and words of what is wrong, with the place in the graph; the file's own path is nobody's matter."""
    place = diagnostic.location
    at = f" at {place.pointer}" if place is not None and place.pointer else ""
    return {"code": diagnostic.code, "message": f"{diagnostic.message}{at}"[:_LONGEST_MESSAGE]}


class _CaseRun:
    """The steps of one case; what they have found stays where a later one fails."""

    def __init__(self, case: Mapping[str, JsonValue], held: Path) -> None:
        self._case = case
        self._held = held
        self._checks = cast("Mapping[str, JsonValue]", case["checks"])
        self.figures: Facts = {}
        self.seconds: dict[str, float] = {}
        self.bundle: Bundle | None = None

    def facts(self) -> Facts:
        """Return what becomes of the case."""
        made = _made(self._case, self._held)
        begin = time.perf_counter()
        bundle = self.bundle = _compiled(made, cast("Mapping[str, JsonValue]", self._case["options"]))
        self.seconds["compile_seconds"] = time.perf_counter() - begin
        self.figures = _planned(bundle)
        wrong = self._run(bundle, made) if self._checks["executes"] else None
        golden = self._golden(bundle) if self._checks["golden"] is not None else None
        wrong = wrong or golden
        return {"status": OK if wrong is None else WRONG, **(wrong or {}), **self.figures}

    def _run(self, bundle: Bundle, made: _Made) -> Facts | None:
        """Execute the bundle; return what is wrong."""
        options = RunOptions(
            check=bool(self._checks["check"]),
            sanitize=str(self._checks["sanitize"]) or None,
            max_executions=cast("int", self._checks["max_executions"]),
        )
        begin = time.perf_counter()
        result = _executed(bundle, made, options, cast("int", self._checks["seed"]))
        self.seconds["run_seconds"] = time.perf_counter() - begin
        self.figures |= _figures(result)
        return _complaint(result)

    def _golden(self, bundle: Bundle) -> Facts | None:
        """Hold the bundle against a golden one; return what is wrong."""
        from spyrec.compare.golden import hold_against_golden

        digest = str(self._checks["golden"])
        if not digest:
            return {"message": "there is no golden bundle of this case"}
        with TemporaryDirectory(prefix="spyrec-golden-") as folder:
            written = Path(folder) / "bundle"
            bundle.save(written)
            outcome = hold_against_golden(written, self._held / digest)
        assert outcome.found is not None, "the golden bundle is there"
        files = sorted({item.file for item in outcome.found.differences})
        self.figures["differences"] = len(files)
        return None if outcome.is_ok else {"message": f"not the golden bundle: {', '.join(files)[:200]}"}


def _made(case: Mapping[str, JsonValue], held: Path) -> _Made:
    graph = cast("Mapping[str, JsonValue]", case["graph"])
    if "call" in graph:
        return _made_of_call(graph)
    if "text" in graph:
        text, folder = str(graph["text"]).encode(), held
    else:
        folder = held / str(graph["group"])
        text = (folder / str(graph["file"])).read_bytes()
    data, _ = load_json(text, str(graph["file"]))
    return _Made(changed(data, cast("Mapping[str, Mapping[str, int]]", case["changes"])), folder)


def _made_of_call(graph: Mapping[str, JsonValue]) -> _Made:
    """Return a call of a model as a graph, and the numbers that it is made with."""
    from spyrec.sweep.model_calls.cases import read_case
    from spyrec.sweep.model_calls.numbers import carried, random_arrays
    from spyrec.sweep.model_calls.scale import scaled
    from spyrec.sweep.model_calls.signatures import UnknownCall, bind, public_name
    from spyrec.sweep.model_calls.translate import completed, computes_nothing, graph_of

    case, _ = read_case(graph["call"], Location("call"))
    try:
        case = scaled(case, cast("int | None", graph["max_elements"]))
        name, bound = public_name(case.op), bind(case)
    except UnknownCall as error:
        raise SpyrecError([Diagnostic("SPY0843", str(error))]) from None
    if computes_nothing(name, bound):
        raise _NothingToDo
    bound = completed(name, bound)
    arrays = random_arrays(name, bound, zlib.crc32(repr(case).encode()))
    return _Made(graph_of(name, bound)[0], Path(), carried(bound, arrays))


def changed(data: JsonValue, changes: Mapping[str, Mapping[str, int]]) -> JsonValue:
    """Return a graph's object with other extents of its dims, and other numbers of tiles in its loops.

    A dim that it has not, or that no loop goes over, is refused by nobody: a grid is for many graphs.
    """
    if not isinstance(data, dict) or not any(changes.values()):
        return data
    dims, tiles = changes.get("dims", {}), changes.get("tiles", {})
    found = dict(data)
    own = found.get("dims")
    if isinstance(own, dict):
        found["dims"] = {name: dims.get(name, extent) for name, extent in own.items()}
    if "loops" in found:
        found["loops"] = _tiled(found["loops"], tiles)
    return found


def _tiled(loops: JsonValue, tiles: Mapping[str, int]) -> JsonValue:
    """Return loops with other numbers of tiles; a loop's leaves are names of nodes."""
    if isinstance(loops, list):
        return [_tiled(item, tiles) for item in loops]
    if not isinstance(loops, dict):
        return loops
    found = {name: _tiled(value, tiles) if name == "body" else value for name, value in loops.items()}
    dim = found.get("dim")
    if isinstance(dim, str) and dim in tiles:
        found = {name: value for name, value in found.items() if name not in ("tiles", "tile_size")}
        found["tiles"] = tiles[dim]
    return found


def _compiled(made: _Made, given: Mapping[str, JsonValue]) -> Bundle:
    from spyrec.front import compile as compile_graph

    if not isinstance(made.graph, dict):
        from spyrec.ir.reader import read_graph_data

        read_graph_data(made.graph, None, made.folder)  # says what is wrong
    return compile_graph(cast("Mapping[str, object]", made.graph), compile_options(given), base_dir=made.folder)


def compile_options(given: Mapping[str, JsonValue]) -> CompileOptions:
    """Return the options of a case; a target stands there by name.  Errors: SPY0771 a target that is none."""
    from spyrec.diagnostics import refuse
    from spyrec.diagnostics.near_names import one_of
    from spyrec.hardware.target import TARGETS

    named = {name: value for name, value in given.items() if name != "target"}
    options = replace(CompileOptions(), **named)  # pyright: ignore[reportArgumentType] -- names and types are Grid's
    target = given.get("target")
    if target is None:
        return options
    if target not in TARGETS:
        raise refuse("SPY0771", f'target is "{target}"', hint=one_of(str(target), TARGETS, "name one of"))
    return replace(options, target=TARGETS[str(target)])


def _planned(bundle: Bundle) -> Facts:
    """Return the figures that the compiler predicts."""
    counts: Facts = {
        "programs": len(bundle.programs),
        "superdscs": sum(len(program.superdscs) for program in bundle.programs),
    }
    figures = bundle.manifest.figures
    if figures is None:
        return counts
    return {
        **counts,
        "figures": "plan",
        "simulated_us": figures.simulated_us,
        "hbm_bytes": figures.hbm_read_bytes + figures.hbm_write_bytes,
        "lower_bound_bytes": figures.lower_bound_bytes,
        "lx_peak_bytes": figures.lx.peak_bytes,
        "flops": figures.flops,
    }


def _executed(bundle: Bundle, made: _Made, options: RunOptions, seed: int) -> RunResult:
    from spyrec.front import opened
    from spyrec.runtime.inputs.random_inputs import random_inputs

    with opened(bundle, options) as found:
        if isinstance(found, RunResult):
            return found
        inputs = random_inputs(found.inputs, seed) if made.inputs is None else dict(made.inputs)
        return found.run(inputs)


def _figures(result: RunResult) -> Facts:
    """Return the figures of a run; an error that is beyond all bounds is none."""
    total = result.stats.total
    found: Facts = {
        "figures": "run",
        "hbm_bytes": total.hbm_read_bytes + total.hbm_write_bytes,
        "lx_peak_bytes": total.lx_peak_bytes,
        "flops": total.flops,
        "findings": len(result.sanitizer),
    }
    if total.simulated_us is not None:
        found["simulated_us"] = total.simulated_us
    for name in ("bound_ratio", "max_abs"):
        values = [float(getattr(report, name)) for report in (result.check or {}).values()]
        if values and max(values) < float("inf"):
            found[name] = max(values)
    return found


def _complaint(result: RunResult) -> Facts | None:
    from spyrec.runtime.findings import diagnostics_of

    if result.sanitizer:
        return _said(diagnostics_of(result.sanitizer)[0])
    failed = [name for name, report in (result.check or {}).items() if not report.ok]
    if not failed:
        return None
    report = (result.check or {})[failed[0]]
    count = f"{report.failed_elements} of {report.element_count} elements"
    return {"message": f'output "{failed[0]}": {count} are farther off than their formats explain'}


def _saved(bundle: Bundle) -> dict[str, bytes]:
    """Return the files of a bundle's directory by their relative paths."""
    with TemporaryDirectory(prefix="spyrec-bundle-") as folder:
        written = Path(folder) / "bundle"
        bundle.save(written)
        paths = sorted(path for path in written.rglob("*") if path.is_file())
        return {path.relative_to(written).as_posix(): path.read_bytes() for path in paths}
