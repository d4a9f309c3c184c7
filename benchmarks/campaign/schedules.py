"""Cases that are random programs over several streams: what they compute is what one step after the other computes.

A program is executed as it is, or captured and replayed, under a random schedule; its races are those of brute force.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import cast

import numpy as np

from benchmarks.campaign.verdicts import Case, Verdict, WrongResultError, verdict_of
from spyrec.diagnostics.json_reading import JsonValue
from tests.support.spyre_devices import opened
from tests.support.stream_programs import Execution, Program, Step, random_program

_PLAIN = ("fifo", "rr", "lifo", "adversarial")


def make(seed: int) -> Case:
    """Return the steps of a program, its schedule, and how it is executed."""
    random = Random(seed)  # noqa: S311 -- no secret
    program = random_program(seed, random.randint(4, 24))
    form = random.choice(("streams", "streams", "blocking", "replay", "replay twice", "races"))
    if form == "races":
        edges = program.edges()
        program = program.without(random.sample(edges, min(len(edges), random.randint(0, 3))))
    schedule = random.choice((f"random:{seed}", f"random:{seed}", random.choice(_PLAIN)))
    options: dict[str, JsonValue] = {"look_ahead": random.choice((1, 4, 8))} if random.random() < 0.4 else {}
    return {"steps": _steps_json(program), "schedule": schedule, "form": form, "options": options}


def _steps_json(program: Program) -> JsonValue:
    rows = [
        [item.kind, item.stream, item.source, item.target, item.count, item.value, sorted(item.waits)]
        for item in program.steps
    ]
    return cast("JsonValue", rows)


def program_of(case: Case) -> Program:
    """Return the program of a case."""
    rows = cast("list[tuple[str, int, int, int, int, int, list[int]]]", case["steps"])
    return Program(tuple(Step(*row[:6], frozenset(row[6])) for row in rows))


def trial(case: Case) -> Verdict:
    """Execute a program and hold memory, what its copies to the host saw, and the races found against its oracle."""
    return verdict_of(lambda: _hold(case))


def _hold(case: Case) -> None:
    program, form = program_of(case), str(case["form"])
    options = dict(cast("dict[str, object]", case["options"]))
    if form == "blocking":
        options["is_blocking"] = True
    with opened(str(case["schedule"]), finds_races=True, **options) as device:
        execution = Execution(device, program)
        rounds = 1
        if form.startswith("replay"):
            rounds = 2 if form == "replay twice" else 1
            _replayed(execution, rounds)
        else:
            execution.enqueue()
        device.synchronize()
        _hold_races(device.findings, program)
        if not program.races():
            _hold_memory(execution, Program(program.steps * rounds))


def _replayed(execution: Execution, rounds: int) -> None:
    main, *others = execution.streams
    main.begin_capture()
    try:
        for stream in others:
            stream.wait_stream(main)
        execution.enqueue()
        for stream in others:
            main.wait_stream(stream)
    finally:  # a capture that stays open would have all later cases of this process refused
        blocks = main.end_capture().blocks
    for _ in range(rounds):
        main.enqueue(blocks)


def _hold_races(findings: tuple[object, ...], program: Program) -> None:
    if bool(findings) != bool(program.races()):
        raise WrongResultError("races", f"{len(findings)} races were found, there are {len(program.races())}")


def _hold_memory(execution: Execution, sequence: Program) -> None:
    memory, seen = sequence.expected()
    if not np.array_equal(execution.memory(), memory):
        raise WrongResultError("schedule", "memory is not what one step after the other leaves")
    last = seen[len(seen) - len(execution.seen) :]
    if not all(np.array_equal(one, other) for one, other in zip(execution.seen, last, strict=True)):
        raise WrongResultError("schedule", "a copy to the host saw what is not there")


def smaller(case: Case) -> Iterator[Case]:
    """Yield programs without some of the steps, or executed more plainly."""
    program = program_of(case)
    count = len(program.steps)
    length = count // 2
    while length:
        for first in range(0, count, length):
            kept = _without_steps(program, range(first, min(first + length, count)))
            yield {**case, "steps": _steps_json(kept)}
        length //= 2
    if case["options"]:
        yield {**case, "options": {}}
    if case["form"] not in ("streams", "races"):
        yield {**case, "form": "streams"}
    if case["schedule"] != "fifo":
        yield {**case, "schedule": "fifo"}
    for place, step in enumerate(program.steps):
        for number in sorted(step.waits):
            if not program.without([(number, place)]).races():
                yield {**case, "steps": _steps_json(program.without([(number, place)]))}


def _without_steps(program: Program, gone: range) -> Program:
    """Return a program without steps; who waited for one of them waits for what that one waited for."""
    before = program.ordered_before()
    numbers = {old: new for new, old in enumerate(n for n in range(len(program.steps)) if n not in gone)}
    steps: list[Step] = []
    for number, step in enumerate(program.steps):
        if number in gone:
            continue
        waits = set(step.waits)
        if waits & set(gone) or any(other in before[number] for other in gone):
            waits = {item for item in before[number] if program.steps[item].stream != step.stream}
        fields = (step.kind, step.stream, step.source, step.target, step.count, step.value)
        steps.append(Step(*fields, frozenset(numbers[item] for item in waits if item not in gone)))
    return Program(tuple(steps))


def size(case: Case) -> tuple[int, ...]:
    """Return steps, options, waits."""
    program = program_of(case)
    plain = (case["form"] not in ("streams", "races")) + (case["schedule"] != "fifo") + bool(case["options"])
    return len(program.steps), plain, len(program.edges())


def parts(case: Case) -> list[str]:
    """Return how it is executed: which steps a schedule goes wrong with says nothing of the cause."""
    return ["races" if case["form"] == "races" else "streams"]
