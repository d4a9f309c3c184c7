"""Whoever catches a refusal raises it again, or stands in a list here with what makes sure that nobody misses it.

A search that goes on where something was refused asks a function that returns the reason.  Were it to catch, it would
also catch what nobody foresaw, and the user would get another plan instead of the message.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import spyrec

ROOT = Path(spyrec.__file__).parent
ROOMS = (
    *("hardware", "layout", "device_ops", "bundle", "ir", "passes", "runtime", "emulator", "codegen", "frontends"),
    *("compare", "exec", "contracts"),
)
"""All but the command line, the front and the readers under them, which say what was refused."""


COLLECTED = "reported with what else is wrong"
AS_ATTRIBUTE = "reported at its place in the graph, with what else is wrong there"
KEPT = "kept, and raised in the thread that waits"
AS_STATUS = "nothing may be raised into a caller that is not Python: the status says it"

SILENT = {
    "bundle/bundle_reader.py _read_artifact": "an image of another program is made anew of the files that are there",
    "bundle/bundle_reader.py are_constants_altered": "the answer itself: what else is wrong is refused by the reader",
    "bundle/conversion_checks.py check_copy": COLLECTED,
    "bundle/conversion_checks.py check_layouts": COLLECTED,
    "bundle/json_cursor.py attempt": COLLECTED,
    "bundle/packed_bundle.py packed_programs": "a damaged entry of the cache shares no program: all are made",
    "bundle/packed_bundle.py unpacked_bundle": "a damaged entry of the cache is no entry: the graph is compiled",
    "bundle/paths.py BundleFiles.verify_all": COLLECTED,
    "bundle/scheduled_reader.py _require_sense": "refused again, at its place in the file",
    "codegen/emit_opspecs.py ProgramLowering._operation": COLLECTED,
    "compare/bundle_diff.py _found": "said in place of the words; places are compared all the same",
    "compare/semantic_diff.py _reading": "files that are left out are told by name; all others are raised again",
    "compare/core_shares.py host_layout": "an argument without a layout has no host indices, and `check` refuses it",
    "compare/bundle_listing.py _program": "a damaged program is compared as text",
    "compare/diff.py _diff_file": "what can be said of a damaged file is that its bytes differ",
    "compare/diff.py _hash_of": "a damaged manifest is a difference of its own",
    "compare/validate_path.py _load_on_device": COLLECTED,
    "emulator/backend.py EmulatorBackend.duration_ns": "a simulated time alone: the program is refused when it runs",
    "emulator/device.py EmulatedDevice._run_watched": "a monitor ended the run, and its findings say why",
    "emulator/device.py EmulatedDevice.load": COLLECTED,
    "emulator/predicted_launch.py predicted_launch": COLLECTED,
    "emulator/rules/schedules.py check_file": COLLECTED,
    "exec/cabi/__main__.py main": "printed, and the exit code says so",
    "exec/cabi/entry.py Boundary.wrapped.call": AS_STATUS,
    "exec/context.py Context.destroy": "its owner had the chance to ask",
    "exec/flat_calls.py answers_handle.call": AS_STATUS,
    "exec/flat_calls.py answers_status.call": AS_STATUS,
    "exec/plan.py Plan.sync": "the first one is raised when all streams were waited for",
    "ir/declarations.py Declarations._read_data": AS_ATTRIBUTE,
    "ir/declarations.py Declarations._read_inline": AS_ATTRIBUTE,
    "ir/declarations.py Declarations._read_type": AS_ATTRIBUTE,
    "compare/propagation.py _of_corners": "operands that are off may name nothing: their bound is infinite",
    "frontends/onnx/lower.py OnnxLowering._lower": COLLECTED,
    "frontends/onnx/model.py _written_out": "what is not written out stays, and is told with the other problems",
    "frontends/onnx/lower.py _evaluated": "the node goes to the graph, which says what is wrong with it",
    "frontends/torch_export/float64_reader.py _samples": "examples of classes are not read: the inputs are drawn",
    "frontends/torch_export/lower.py Lowering._declare": COLLECTED,
    "frontends/torch_export/lower.py Lowering._lower": COLLECTED,
    "ir/host_ops.py _HostRun._with_stand_ins": "kept, and raised where the number reaches an output",
    "ir/form.py read_form": "the models of the form read the file again, and report all that is wrong",
    "ir/op_places.py _places_of": "a dtype that the op refuses is none that the page lists",
    "ir/inference.py infer": "the answer itself, around the rules of one op alone",
    "ir/node_reader.py NodeReader._read_attributes": AS_ATTRIBUTE,
    "ir/node_reader.py NodeReader._with_positions": AS_ATTRIBUTE,
    "ir/text/read_graph.py GraphReader._check": "refused at its place in the text, as what the op says is",
    "ir/text/read_kernels.py KernelReader._with_forms": "refused at its place, as a kernel without a form is",
    "passes/chosen_passes.py _breach": "the answer itself: a text of a stranger breaks a rule",
    "passes/assign_layouts/layout_candidates.py _made": "the answer itself, around the constructor of a layout alone",
    "runtime/bundle_run.py BundleRun._reason": "given a place, and raised by the caller",
    "runtime/findings.py _with_element": "a finding is reported, and the table of its argument refused when it is used",
    "runtime/streams/device_thread.py _Task.execute": KEPT,
    "runtime/streams/effects.py Effects.execute": KEPT,
    "runtime/streams/stream.py launch_waits": "the stream has the error, and keeps it",
    "runtime/streams/worker_threads.py WorkerThreads.serve": KEPT,
}
"""Who catches and does not raise, in these rooms, and what becomes of what was caught."""


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ast.dump(node)


def _is_builtin_error(name: str) -> bool:
    found = getattr(builtins, name, None)
    return isinstance(found, type) and issubclass(found, BaseException)


@cache
def own_errors() -> frozenset[str]:
    """Every class of the package that can be raised, whatever it is derived from."""
    bases: dict[str, set[str]] = {}
    for file in ROOT.rglob("*.py"):
        source = file.read_text(encoding="utf-8")
        for name, of in re.findall(r"^\s*class (\w+)\(([^)]*)\)", source, re.MULTILINE):
            bases.setdefault(name, set()).update(re.findall(r"\w+", of))
    found: set[str] = set()
    while True:
        more = {name for name, of in bases.items() if any(base in found or _is_builtin_error(base) for base in of)}
        if more <= found:
            return frozenset(found)
        found |= more


def _takes_refusals(caught: ast.expr | None) -> bool:
    """Whether what an ``except`` names, or the lack of a name, covers an error of ours."""
    if caught is None:
        return True
    if isinstance(caught, ast.Tuple):
        return any(map(_takes_refusals, caught.elts))
    name = _name(caught)
    # a constant may be a tuple of any of them
    return name in own_errors() or name in {"Exception", "BaseException"} or name.isupper()


def _raises(handler: ast.ExceptHandler) -> bool:
    """Whether every way through a handler ends in a ``raise``."""
    leaves = (ast.Return, ast.Continue, ast.Break, ast.Yield)
    return isinstance(handler.body[-1], ast.Raise) and not any(isinstance(node, leaves) for node in ast.walk(handler))


def _is_silent(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and _name(node.func) == "suppress":
        return any(map(_takes_refusals, node.args))
    return isinstance(node, ast.ExceptHandler) and _takes_refusals(node.type) and not _raises(node)


def silent_places(source: str) -> Iterator[str]:
    """Yield the function or method around each place that catches a refusal and does not raise it again."""
    if "except" not in source and "suppress" not in source:
        return
    pending: list[tuple[ast.AST, str]] = [(ast.parse(source), "")]
    while pending:
        node, around = pending.pop()
        if _is_silent(node):
            yield around
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            around = f"{around}.{node.name}".removeprefix(".")
        pending.extend((child, around) for child in ast.iter_child_nodes(node))


def test_no_search_goes_by_what_it_caught() -> None:
    found = [
        f"{file.relative_to(ROOT).as_posix()} {place}"
        for room in ROOMS
        for file in sorted((ROOT / room).rglob("*.py"))
        for place in silent_places(file.read_text(encoding="utf-8"))
    ]
    assert set(found) == set(SILENT)
    assert len(found) == len(SILENT), "one place of a function is justified, and not two"


@pytest.mark.parametrize(
    "caught",
    [
        "except SpyrecError:\n            continue",
        "except (ValueError, RuntimeFault) as error:\n            print(error)",
        "except diagnostics.SpyrecError:\n            return None",
        "except OpError:\n            if item:\n                return None\n            raise",
        "except TileNotExpressible:\n            pass",
        "except Exception:\n            pass",
        "except REFUSALS:\n            pass",
        "except:\n            pass",
    ],
)
def test_a_planted_search_is_found(caught: str) -> None:
    source = f"def search():\n    for item in range(3):\n        try:\n            work(item)\n        {caught}\n"
    assert list(silent_places(source)) == ["search"]


def test_a_planted_suppression_is_found() -> None:
    source = "class Plan:\n    def search(self):\n        with contextlib.suppress(SpyrecError):\n            work()\n"
    assert list(silent_places(source)) == ["Plan.search"]


@pytest.mark.parametrize(
    "caught",
    [
        "except SpyrecError as error:\n        raise refuse(code, str(error)) from error",
        "except SpyrecError:\n        undo()\n        raise",
        "except ValueError:\n        pass",
    ],
)
def test_what_is_raised_again_or_is_no_refusal_may_be_caught(caught: str) -> None:
    assert not list(silent_places(f"def read():\n    try:\n        work()\n    {caught}\n"))
