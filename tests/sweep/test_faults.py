"""What dies on the way takes nothing with it: workers and their processes are killed for real, two workers at work."""

from __future__ import annotations

import json
import logging
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import pytest

from spyrec.diagnostics import SpyrecError
from spyrec.sweep.batches import BatchSizes
from spyrec.sweep.clusters import Scheduler, cluster_at
from spyrec.sweep.dask_names import Distributed
from spyrec.sweep.engine import Engine
from spyrec.sweep.tasks import End, Limits, Outcome, Task

DISTRIBUTED = cast("Distributed", import_module("distributed"))
ACT, LOOK = "tests.support.sweep_tasks:act", "tests.support.sweep_tasks:look"
LIMITS = Limits(seconds=120.0, memory_bytes=1 << 30)
"""More seconds than any task here needs, on a machine however busy."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Scheduler]:
    with cluster_at("local", 2) as found:
        yield found


def task(number: int, act: str = "nothing", path: Path | None = None) -> Task:
    payload = {"act": act, "path": None if path is None else str(path)}
    return Task(f"{act}-{number}", ACT, json.dumps(payload).encode())


def run(cluster: Scheduler, tasks: Sequence[Task], limits: Limits = LIMITS) -> tuple[list[Outcome], list[str]]:
    said: list[str] = []
    with Engine(cluster, limits, notice=said.append) as engine:
        return list(engine.run(iter(tasks))), said


def ends(outcomes: Sequence[Outcome]) -> dict[str, End]:
    found = {item.task.key: item.end for item in outcomes}
    assert len(found) == len(outcomes), "one came back twice"
    return found


def test_what_a_case_does_to_its_process_is_its_own_end_and_nobody_elses(cluster: Scheduler) -> None:
    bad = [task(0, "hang"), task(0, "die"), task(0, "eat"), task(0, "raise"), task(0, "no json")]
    good = [task(number) for number in range(20)]
    outcomes, said = run(cluster, [*good[:10], *bad, *good[10:]], Limits(seconds=5.0, memory_bytes=1 << 30))
    found = ends(outcomes)
    assert {key: end for key, end in found.items() if end is not End.DONE} == {
        "hang-0": End.TIMED_OUT,
        "die-0": End.DIED,
        "eat-0": End.OUT_OF_MEMORY,
        "raise-0": End.FAILED,
        "no json-0": End.FAILED,
    }
    assert set(found) == {item.key for item in (*good, *bad)}
    details = {item.task.key: item.detail for item in outcomes}
    assert "SIGKILL" in details["die-0"]
    assert "ValueError: no good" in details["raise-0"]
    assert said == [], "no worker was lost for it"


def test_a_case_that_kills_every_worker_is_in_quarantine_after_two(cluster: Scheduler, tmp_path: Path) -> None:
    good = [task(number) for number in range(12)]
    outcomes, said = run(cluster, [*good[:4], task(0, "kill worker", tmp_path / "starts"), *good[4:]])
    found = ends(outcomes)
    assert found.pop("kill worker-0") is End.QUARANTINED
    assert set(found) == {item.key for item in good}
    assert set(found.values()) == {End.DONE}
    assert (tmp_path / "starts").read_text() == "xx"
    assert [" died with " in line for line in said] == [True, True]


def test_a_result_that_is_lost_with_its_worker_counts_against_no_case(
    cluster: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client is slow: when it comes for the results, whoever had them is dead, twice."""
    answer, killed = cast("Any", Engine)._answer, list[str]()

    def slow(engine: Engine, sent: Any) -> Mapping[str, object]:  # noqa: ANN401 -- a batch on its way
        if len(killed) < 2:
            killed.append(sent.name)
            client = cast("Any", engine)._client
            (worker,) = next(iter(client.who_has([sent.future]).values()))
            os.kill(client.run(os.getpid, workers=[worker])[worker], signal.SIGKILL)
            while worker in client.nthreads():
                time.sleep(0.01)
        return answer(engine, sent)

    monkeypatch.setattr(Engine, "_answer", slow)
    outcomes, said = run(cluster, [task(0)])
    assert ends(outcomes) == {"nothing-0": End.DONE}
    assert len(killed) == 2
    assert said == []


def test_what_a_worker_has_no_room_for_is_run_by_another(cluster: Scheduler, tmp_path: Path) -> None:
    client = cluster.connect()
    while len(client.nthreads()) < 2:  # one that died in another test is on its way
        time.sleep(0.05)
    client.close(timeout=5)
    tasks = [task(number, "full here", tmp_path / "first") for number in range(12)]
    outcomes, said = run(cluster, tasks)
    assert Counter(ends(outcomes).values()) == {End.DONE: 12}
    workers = {cast("Mapping[str, object]", item.result)["worker"] for item in outcomes}
    assert len(workers) == 1
    assert str(workers.pop()) != (tmp_path / "first").read_text()
    assert [line.partition(" cannot run cases: ")[2] for line in said] == ["no space left on device"]


def test_where_no_worker_has_room_the_sweep_says_so_and_keeps_what_it_has(cluster: Scheduler) -> None:
    found: list[Outcome] = []
    with Engine(cluster, LIMITS) as engine, pytest.raises(SpyrecError, match=r"SPY0842.*no space left"):
        found.extend(engine.run([task(0), *(task(number, "full") for number in range(4))]))
    assert ends(found) == {"nothing-0": End.DONE}


def test_a_worker_that_dies_once_takes_no_case_with_it(cluster: Scheduler, tmp_path: Path) -> None:
    tasks = [*(task(number) for number in range(8)), task(0, "kill worker once", tmp_path / "starts")]
    outcomes, said = run(cluster, tasks)
    assert set(ends(outcomes).values()) == {End.DONE}
    assert len(outcomes) == len(tasks)
    assert len(said) == 1


def test_a_worker_that_is_killed_from_outside_takes_no_case_with_it(cluster: Scheduler, tmp_path: Path) -> None:
    go = tmp_path / "go"
    tasks = [task(number, "wait", go) for number in range(6)]

    def kill_one() -> None:
        while not list(tmp_path.glob("go.*")):
            time.sleep(0.01)
        (first, *_) = tmp_path.glob("go.*")
        os.kill(int(first.suffix[1:]), signal.SIGKILL)
        go.touch()

    killer = threading.Thread(target=kill_one)
    killer.start()
    outcomes, said = run(cluster, tasks)
    killer.join()
    assert set(ends(outcomes).values()) == {End.DONE}
    assert len(outcomes) == 6
    assert len(said) == 1


def test_files_go_to_a_worker_once_and_tasks_added_meanwhile_are_run(cluster: Scheduler) -> None:
    asked: list[str] = []

    def files(digest: str) -> dict[str, bytes]:
        asked.append(digest)
        return {"graph.json": b"x" * 3, "weights/w.npy": b"y" * 100_000}

    with Engine(cluster, LIMITS, files=files) as engine:
        engine.add(Task(f"a{number}", LOOK, b'"one"', ("one",)) for number in range(12))
        found: list[Outcome] = []
        for outcome in engine.outcomes():
            found.append(outcome)
            if len(found) == 1:
                engine.add([Task("late", LOOK, b'"one"', ("one",))])
    results = [cast("Mapping[str, Any]", item.result) for item in found]
    assert len(results) == 13
    assert all(set(result["files"]) == {"graph.json", "weights"} for result in results)
    assert all(result["files"]["graph.json"] == 3 for result in results)
    inodes = {(result["worker"], result["inode"]) for result in results}
    assert len(inodes) == len({worker for worker, _ in inodes})
    assert asked == ["one"]


def test_empty_tasks_travel_in_batches(cluster: Scheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    learn = BatchSizes.learn

    def learn_quick(sizes: BatchSizes, tasks: int, _: float) -> None:
        learn(sizes, tasks, tasks * 1e-4)

    monkeypatch.setattr(BatchSizes, "learn", learn_quick)
    with Engine(cluster, LIMITS) as engine:
        outcomes = list(engine.run(task(number) for number in range(600)))
        assert set(ends(outcomes).values()) == {End.DONE}
        assert len(outcomes) == 600
        # ten of 64, before it is known how short they are some of 1, 4 and 16, at the end halves of halves
        assert engine.batches <= 36


class _Rogue:
    """An object that does something when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return Path.touch, (self.path,)


def _rogue(path: Path) -> bytes:
    return cast("bytes", _Rogue(path))


def test_a_result_that_is_a_pickle_is_not_unpickled(cluster: Scheduler, tmp_path: Path) -> None:
    path = tmp_path / "unpickled"
    client = cluster.connect()
    try:
        future = client.submit(_rogue, path, key="rogue", pure=False, retries=0)
        with pytest.raises(TypeError, match="serialize"):
            client.gather([future], errors="raise")
    finally:
        client.close(timeout=5)
    assert not path.exists()
    pickle.loads(pickle.dumps(_Rogue(path)))
    assert path.exists(), "it would have done something"


def test_an_answer_that_is_no_result_ends_the_sweep_with_a_diagnostic(
    cluster: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spyrec.sweep.engine.run_batch", _no_json)
    with Engine(cluster, LIMITS) as engine, pytest.raises(SpyrecError, match="SPY0842"):
        list(engine.run([task(0)]))


def _no_json(*_: object) -> bytes:
    return b"{"


def test_a_worker_of_another_program_is_refused(cluster: Scheduler) -> None:
    with Engine(cluster, LIMITS, program="0" * 64) as engine, pytest.raises(SpyrecError, match="SPY0842"):
        list(engine.run([task(0)]))


def test_nobody_at_the_address_is_one_diagnostic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spyrec.sweep.clusters._CONNECT_SECONDS", 0.5)
    with pytest.raises(SpyrecError) as caught:
        Engine(Scheduler(f"tcp://127.0.0.1:{_free_port()}"), LIMITS)
    assert [item.code for item in caught.value.diagnostics] == ["SPY0841"]


def test_an_encrypted_address_needs_a_certificate() -> None:
    with pytest.raises(SpyrecError, match="SPY0841") as caught:
        Engine(Scheduler("tls://127.0.0.1:1"), LIMITS)
    assert "certificate" in caught.value.diagnostics[0].message


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def _process(module: str, *arguments: str) -> Generator[subprocess.Popen[bytes]]:
    """Run a part of a cluster beside us, as a machine of its own would."""
    root = str(Path(__file__).parents[2])
    command = [sys.executable, "-m", f"distributed.cli.{module}", *arguments, "--no-dashboard"]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": root}
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _scheduler(port: int) -> AbstractContextManager[subprocess.Popen[bytes]]:
    return _process("dask_scheduler", "--host", "127.0.0.1", "--port", str(port))


def _worker(address: str, folder: Path) -> AbstractContextManager[subprocess.Popen[bytes]]:
    return _process("dask_worker", address, "--no-nanny", "--nthreads", "1", "--local-directory", str(folder))


def test_a_scheduler_that_restarts_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("spyrec.sweep.clusters._CONNECT_SECONDS", 30.0)
    port = _free_port()
    address = f"tcp://127.0.0.1:{port}"
    go = tmp_path / "go"
    tasks = [*(task(number) for number in range(6)), *(task(number, "wait", go) for number in range(4))]
    said: list[str] = []
    found: list[Outcome] = []
    cluster = Scheduler(address, patience_seconds=60.0)
    with (
        _scheduler(port) as first,
        _worker(address, tmp_path),
        Engine(cluster, LIMITS, notice=said.append) as engine,
    ):
        outcomes = engine.run(iter(tasks))
        found += [next(outcomes) for _ in range(6)]
        first.kill()
        first.wait()
        go.touch()
        with _scheduler(port), _worker(address, tmp_path):
            found += list(outcomes)
    assert Counter(ends(found).values()) == {End.DONE: 10}
    assert any("the scheduler is lost" in line for line in said)
    assert [item.name for item in caplog.records if item.levelno >= logging.ERROR] == [], (
        "Dask adds no words of its own"
    )
