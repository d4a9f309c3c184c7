"""Damaged files of every kind end in diagnostics: 2,000 new ones, and those that once did not."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.fuzzing import campaign, trials
from tests.support.fuzzing.readers import READERS, Seed
from tests.support.fuzzing.trials import Case, Laboratory
from tests.support.fuzzing.worker import chosen_readers

CASES = Path(__file__).parent / "cases" / "fuzz"
"""``READER/SEED.what/``: files that stand in place of those of a seed, each as small as it could be made."""

KEPT = sorted(path for path in CASES.glob("*/*") if path.is_dir())


def test_two_thousand_damaged_inputs_are_read_or_refused() -> None:
    found = campaign.run(range(2000), 20261124)
    assert found.finds == []
    assert sum(found.cases.values()) == 2000
    lacking = set[str]() if find_spec("onnx") else {"onnx"}
    assert set(found.cases) == {reader.name for reader in READERS} - lacking
    assert 0 < sum(found.refused.values()) < 2000


@pytest.fixture(scope="module")
def laboratory(tmp_path_factory: pytest.TempPathFactory) -> Laboratory:
    readers = {path.parent.name for path in KEPT}
    return Laboratory(tmp_path_factory.mktemp("fuzzing").resolve(), chosen_readers(sorted({*readers, "mlir"})))


def _seed(laboratory: Laboratory, reader: str, name: str, files: dict[str, bytes]) -> Seed:
    return next(
        item for item in laboratory.seeds[reader] if item.folder.name == name and files.keys() & {*item.damaged}
    )


@pytest.mark.parametrize("kept", KEPT, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_once_was_no_diagnostic_is_one(kept: Path, laboratory: Laboratory) -> None:
    files = {str(path.relative_to(kept)): path.read_bytes() for path in sorted(kept.rglob("*")) if path.is_file()}
    seed = _seed(laboratory, kept.parent.name, kept.name.partition(".")[0], files)
    for command in seed.commands:
        case = Case(kept.parent.name, seed.folder, files, command)
        assert [laboratory.run(case, is_text=is_text).fault for is_text in (False, True)] == ["", ""]


# --- the judge itself ---


@pytest.fixture
def judged(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[Callable[[list[str]], int]], str]]:
    seed = laboratory.seeds["mlir"][0]

    def fault_of(verb: Callable[[list[str]], int]) -> str:
        monkeypatch.setattr(trials, "main", verb)
        command = ("check", "{in}/bundle.mlir", "{out}")
        return laboratory.run(Case("mlir", seed.folder, {"bundle.mlir": b"x"}, command)).fault

    yield fault_of
    monkeypatch.undo()
    assert fault_of_right_verb(laboratory, seed) == ""


def fault_of_right_verb(laboratory: Laboratory, seed: Seed) -> str:
    return laboratory.run(Case("mlir", seed.folder, {}, seed.commands[0])).fault


def _told(text: str, code: int) -> int:
    sys.stderr.write(f"{text}\n")
    return code


def _elsewhere(arguments: list[str]) -> int:
    path = Path(arguments[2]).parents[4] / "elsewhere"
    path.write_text("")
    path.unlink()
    return 0


def _half(arguments: list[str]) -> int:
    Path(arguments[-1]).mkdir()
    return _told('{"severity": "error", "code": "SPY0101", "message": "x"}', 1)


def _busy(_: list[str]) -> int:
    while time.process_time() > 0:
        pass
    return 0


def _raise(_: list[str]) -> int:
    raise LookupError("here")


FAULTS: dict[str, tuple[Callable[[list[str]], int], str]] = {
    "a traceback": (_raise, "raises LookupError: here"),
    "an exit code of a bug": (lambda _: 70, "exit code 70"),
    "a refusal without a word": (lambda _: 1, "exit code 1 without an error"),
    "something else on stderr": (lambda _: _told("SyntaxWarning: x", 0), "prints 'SyntaxWarning: x'"),
    "a code that is none": (
        lambda _: _told('{"severity": "error", "code": "SPY0", "message": "x"}', 1),
        "no code SPY0",
    ),
    "half an output": (_half, "leaves out behind"),
    "a file elsewhere": (_elsewhere, "open "),
    "inputs changed": (lambda words: Path(words[2]).write_text("yy") and 0, "changes its inputs"),
    "a program run": (lambda _: subprocess.run(["true"], check=True).returncode, "subprocess.Popen"),
    "too much time": (_busy, "takes more than"),
    "too much memory": (lambda _: len(bytearray(b"x") * (trials.MOST_BYTES + (1 << 20))) * 0, "holds "),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_seen(
    name: str, judged: Callable[[Callable[[list[str]], int]], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    verb, wanted = FAULTS[name]
    if wanted == "takes more than":
        monkeypatch.setattr(trials, "STOPPED_AFTER_SECONDS", 0.2)
    assert wanted in judged(verb)


BUSY = """
import time
print(0, flush=True)
while True: time.process_time()
"""


def test_a_worker_that_computes_for_ever_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left a core and is silent hangs; who waits for one does not."""
    monkeypatch.setattr(campaign, "_WORKER", (sys.executable, "-c", BUSY))
    monkeypatch.setattr(campaign, "_SILENT_SECONDS", 1.0)
    assert [item.fault for item in campaign.run(range(1), 0).finds] == ["hangs"]


def _starved(_process: int) -> tuple[bool, float]:
    return True, 0.0


def test_a_worker_that_waits_for_a_core_is_let_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        campaign, "_WORKER", (sys.executable, "-c", BUSY.replace("while True", "while time.process_time() < 2"))
    )
    monkeypatch.setattr(campaign, "_SILENT_SECONDS", 1.0)
    monkeypatch.setattr(campaign, "_processor_of", _starved)
    assert [item.fault for item in campaign.run(range(1), 0).finds] == ["ends the process with 0: "]


WORKER = """
import os, sys, time
home, seed, begin, end, step = sys.argv[1:6]
for number in range(int(begin), int(end), int(step)):
    print(number, flush=True)
    if number == 3: os.abort()
    if number == 5: time.sleep(60)
    print('{"number": %d, "reader": "r", "code": 1, "seconds": 0.5}' % number, flush=True)
"""


def test_cases_go_on_behind_one_that_kills_or_stops_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "_WORKER", (sys.executable, "-c", WORKER))
    monkeypatch.setattr(campaign, "_SILENT_SECONDS", 1.0)
    told: list[int] = []
    found = campaign.run(range(9), 0, workers=2, told=lambda find: told.append(find.number))
    assert found.cases == {"r": 7}
    faults = {item.number: item.fault for item in found.finds}
    assert faults == {3: f"ends the process with {-6}: ", 5: "hangs"}
    assert sorted(told) == [3, 5]
