"""Packing problems for tests and benchmarks: random ones, and those written down in ``tests/fixtures``."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict, cast

from spyrec.passes.solvers.scratchpad_packing import PackingBuffer

CASES_FILE = Path(__file__).parent.parent / "fixtures" / "packing_cases.json"


@dataclass(frozen=True, slots=True)
class PackingCase:
    """A written problem.

    ``least_cost``: the value that stays out of the memory in the best packing, as CP-SAT proves it.  ``known``: offsets
    that known algorithms give.
    """

    name: str
    limit: int
    alignment: int
    buffers: tuple[PackingBuffer, ...]
    least_cost: int
    known: tuple[tuple[int | None, ...], ...]


class _BufferJson(TypedDict):
    name: str
    size: int
    uses: list[int]
    parents: list[str]
    value: int


class _CaseJson(TypedDict):
    name: str
    limit: int
    alignment: int
    least_cost: int
    known: list[list[int | None]]
    buffers: list[_BufferJson]


def packing_cases() -> Iterator[PackingCase]:
    """Yield the written cases; ``uses`` are the operations that touch a buffer, each of which its value counts once."""
    for case in cast("list[_CaseJson]", json.loads(CASES_FILE.read_text(encoding="utf-8"))):
        names = [buffer["name"] for buffer in case["buffers"]]
        buffers = tuple(
            PackingBuffer(
                buffer["size"],
                min(buffer["uses"]),
                max(buffer["uses"]),
                tuple(names.index(parent) for parent in buffer["parents"]),
                buffer["value"],
            )
            for buffer in case["buffers"]
        )
        known = tuple(tuple(offsets) for offsets in case["known"])
        yield PackingCase(case["name"], case["limit"], case["alignment"], buffers, case["least_cost"], known)


def small_problem(seed: int) -> tuple[list[PackingBuffer], int]:
    """Return 4 to 14 buffers and a limit that leaves some of them out, most of the time."""
    draw = random.Random(seed)
    steps = draw.randint(3, 10)
    buffers: list[PackingBuffer] = []
    for _ in range(draw.randint(4, 14)):
        first = draw.randrange(steps)
        last = min(steps - 1, first + draw.randrange(5))
        sticks = draw.randint(1, 8)
        size = 128 * sticks - draw.randrange(100)
        parents = tuple(
            index
            for index, buffer in enumerate(buffers)
            if buffer.last == first and size <= buffer.size and draw.random() < 0.6
        )
        buffers.append(PackingBuffer(size, first, last, parents, 128 * sticks * draw.randint(1, 4)))
    return buffers, draw.randint(6, 16) * 128


def hard_problem(seed: int, count: int = 200) -> list[PackingBuffer]:
    """Return buffers of six sizes, of which each meets about forty others: what the sorted orders pack 3 % too high."""
    draw = random.Random(seed)
    buffers: list[PackingBuffer] = []
    for _ in range(count):
        first = draw.randrange(100)
        size = draw.choice((1, 3, 5, 7, 11, 13)) * 16384
        buffers.append(PackingBuffer(size, first, min(99, first + draw.randrange(1, 20))))
    return buffers


def dense_problem(seed: int, count: int = 200) -> list[PackingBuffer]:
    """Return buffers of any size, of which each meets about seventy others."""
    draw = random.Random(seed)
    buffers: list[PackingBuffer] = []
    for _ in range(count):
        first = draw.randrange(200)
        buffers.append(PackingBuffer(draw.randrange(1, 2000) * 128, first, min(199, first + draw.randrange(1, 80))))
    return buffers
