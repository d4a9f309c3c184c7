"""Why: the ways that the planner weighed cost what comes out when the graph asks for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import spyrec
from spyrec.ir.kernel import KernelGraph
from spyrec.passes.base import PipelineOptions
from spyrec.report.model import Choice, Considered, Report
from tests.report.bundles import LOOPED, report_on
from tests.support.graphs import graph_data, node, scheduled, tensor

SUMS = graph_data(
    [tensor("x", 64, 128), tensor("y", 64, 128)],
    [node("a", "add", "x", "y"), node("b", "exp", "a"), node("c", "sum", "b", dim=[1])],
    ["c"],
)
PRODUCTS = graph_data(
    [tensor("x", 64, 256), tensor("v", 256, 192), tensor("w", 192, 128)],
    [node("p", "mm", "x", "v"), node("q", "relu", "p"), node("r", "mm", "q", "w")],
    ["r"],
)
TURNED = graph_data(
    [tensor("x", 128, 128), tensor("y", 128, 128)],
    [node("t", "t", "x"), node("a", "add", "t", "y"), node("b", "mul", "x", "y"), node("e", "exp", "a")],
    ["b", "e"],
)
CHAIN = graph_data(
    [tensor(f"x{number}", 64, 64 * (1 + number % 3)) for number in range(8)],
    [
        node("a", "sum", "x0", dim=[1]),
        *(node(f"s{number}", "sum", f"x{number}", dim=[1]) for number in range(1, 8)),
        node("t1", "add", "a", "s1"),
        *(node(f"t{number}", "add", f"t{number - 1}", f"s{number}") for number in range(2, 8)),
    ],
    ["t7"],
)
MEMORY_ONLY = spyrec.CompileOptions(lx_planner="none")
BAKED = spyrec.CompileOptions(symbolic_args=False)


def with_pin(data: dict[str, Any], name: str, **pin: object) -> dict[str, Any]:
    """The graph with a pin on a node or an input."""

    def pinned(items: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{**item, **pin} if item["name"] == name else item for item in items]

    return {**data, "inputs": pinned(data["inputs"]), "nodes": pinned(data["nodes"])}


def others(choice: Choice) -> list[Considered]:
    return [item for item in choice.considered if not item.is_chosen]


def of_kind(report: Report, *kinds: str) -> list[Choice]:
    return [item for item in report.decisions if item.kind in kinds]


def node_of(choice: Choice) -> str:
    return choice.subject.partition(".")[0]


def divided(data: dict[str, Any], choice: Choice, text: str) -> dict[str, Any]:
    """The graph with a division pinned: the result's dims come first, then what is folded."""
    slices = list(map(int, text.split("x")))
    op = next(item["op"] for item in data["nodes"] if item["name"] == node_of(choice))
    rank = 1 if op == "sum" else 2
    keys = [f"out.{place}" for place in range(rank)] + [f"reduce.{place}" for place in range(len(slices) - rank)]
    return with_pin(data, node_of(choice), work_division=dict(zip(keys, slices, strict=True)))


@pytest.mark.parametrize("data", [SUMS, PRODUCTS], ids=["sums", "products"])
def test_a_division_costs_what_it_costs_pinned(data: dict[str, Any], tmp_path: Path) -> None:
    choices = of_kind(report_on(data, tmp_path / "b", MEMORY_ONLY), "division")
    assert {node_of(item) for item in choices} == {item["name"] for item in data["nodes"]}
    for choice in choices:
        assert sum(item.is_chosen for item in choice.considered) == 1
        for way in choice.considered:
            assert way.us is not None
            figures = spyrec.compile(divided(data, choice, way.text), MEMORY_ONLY).manifest.figures
            assert figures is not None
            own = next(item for item in figures.operations if item.output == choice.subject)
            assert way.bytes_ == own.hbm_read_bytes + own.hbm_write_bytes, (choice.subject, way.text)
            reads_pool = choice.subject not in ("a", "p")  # which only programs know: what they read of it takes longer
            assert way.us == pytest.approx(own.simulated_us, abs=2e-6) or (reads_pool and way.us < own.simulated_us)


@pytest.mark.parametrize("data", [SUMS, PRODUCTS, TURNED], ids=["sums", "products", "turned"])
def test_the_next_best_division_costs_the_model_what_a_compilation_with_it_does(
    data: dict[str, Any], tmp_path: Path
) -> None:
    bundle = spyrec.compile(data)
    choices = [item for item in of_kind(report_on(data, tmp_path / "b"), "division") if item.alternative is not None]
    assert choices
    tried = 0
    for choice in choices:
        if choice.subject not in {item["name"] for item in data["nodes"]}:
            continue  # a copy, which nobody can pin
        assert choice.alternative is not None
        other = spyrec.compile(divided(data, choice, choice.alternative)).manifest.figures
        own = bundle.manifest.figures
        assert own is not None
        assert other is not None
        assert choice.saved_us == pytest.approx(other.simulated_us - own.simulated_us, abs=1e-5)
        moved = [item.hbm_read_bytes + item.hbm_write_bytes for item in (own, other)]
        assert choice.saved_bytes == moved[1] - moved[0]
        tried += 1
    assert tried


@pytest.mark.parametrize("data", [PRODUCTS, TURNED], ids=["products", "turned"])
def test_a_layout_costs_what_it_costs_pinned(data: dict[str, Any], tmp_path: Path) -> None:
    choices = of_kind(report_on(data, tmp_path / "b"), "layout")
    inputs = {item["name"] for item in data["inputs"]}
    assert inputs & {item.subject for item in choices}
    tried = 0
    for choice in choices:
        for way in choice.considered:
            stick = way.text.partition(",")[0].removeprefix("sticks of dim ")
            if choice.subject not in inputs or not stick.isdecimal() or way.bytes_ is None:
                continue
            order = [dim for dim in range(2) if dim != int(stick)] + [int(stick)]
            pinned = with_pin(data, choice.subject, layout={"dim_order": order})
            kernels = scheduled(pinned, PipelineOptions())
            assert kernels.layout_cost is not None
            assert kernels.layout_cost.cost_bytes == way.bytes_, (choice.subject, way.text)
            tried += 1
    assert tried >= len(inputs)
    costs = [item.bytes_ for choice in choices for item in others(choice) if item.bytes_ is not None]
    assert max(costs) > 0


def test_a_copy_says_what_the_other_layouts_of_its_source_cost(tmp_path: Path) -> None:
    copies = of_kind(report_on(TURNED, tmp_path / "b"), "copy")
    assert copies
    assert all(len(item.considered) > 1 for item in copies)
    chosen = next(item for item in copies[0].considered if item.is_chosen)
    assert all((item.bytes_ or 0) >= (chosen.bytes_ or 0) > 0 for item in others(copies[0]) if item.bytes_ is not None)


def test_a_tensor_in_the_scratchpads_saves_what_a_plan_without_them_takes(tmp_path: Path) -> None:
    data = graph_data(
        [tensor(name, 256, 512) for name in "abc"], [node("y", "add", "a", "b"), node("z", "mul", "y", "c")], ["z"]
    )
    (choice,) = of_kind(report_on(data, tmp_path / "b"), "resident")
    own, plain = (spyrec.compile(data, options).manifest.figures for options in (None, MEMORY_ONLY))
    assert own is not None
    assert plain is not None
    here, there = choice.considered
    assert here.is_chosen
    assert there.us == pytest.approx(plain.simulated_us, abs=1e-5)
    assert here.us == pytest.approx(own.simulated_us, abs=1e-5)
    assert choice.saved_us == pytest.approx(plain.simulated_us - own.simulated_us, abs=1e-5)
    assert (there.bytes_ or 0) - (here.bytes_ or 0) == choice.saved_bytes == 2 * 2 * 256 * 512


def test_loops_that_the_graph_asks_for_are_held_against_none(tmp_path: Path) -> None:
    choices = of_kind(report_on(LOOPED, tmp_path / "b"), "tiling")
    assert [item.subject for item in choices] == ["A", "B"]
    plain = spyrec.compile({**LOOPED, "loops": []}, spyrec.CompileOptions(auto_tile=False)).manifest.figures
    assert plain is not None
    for choice in choices:
        (other,) = others(choice)
        assert other.us == pytest.approx(plain.simulated_us, abs=1e-5)
        assert other.bytes_ == plain.hbm_read_bytes + plain.hbm_write_bytes


def test_programs_could_end_elsewhere_at_the_cost_of_trying_all(tmp_path: Path) -> None:
    report = report_on(CHAIN, tmp_path / "b", BAKED)
    kernels = scheduled(CHAIN, PipelineOptions(symbolic_args=False))
    cuts = {program.first_kernel: program.end_kernel for program in kernels.programs}
    assert len(cuts) > 2
    choices = of_kind(report, "program")
    assert len(choices) == len(cuts) - 1
    graph = scheduled(CHAIN, PipelineOptions(symbolic_args=False, lx_planner="none"))
    for choice, (first, end) in zip(choices, list(cuts_of(graph))[:-1], strict=True):
        chosen = next(item for item in choice.considered if item.is_chosen)
        assert chosen.text == f'behind "{graph.kernels[end - 1].output.buffer}"'
        assert len(choice.considered) > 1
        for way in choice.considered:
            ending = next(
                number for number, kernel in enumerate(graph.kernels) if f'"{kernel.output.buffer}"' in way.text
            )
            best = min((1 + after[0], own + after[1]) for own, after in tried(graph, first, ending + 1))
            assert (way.programs, way.bytes_) == best


def cuts_of(graph: KernelGraph) -> Iterator[tuple[int, int]]:
    return ((program.first_kernel, program.end_kernel) for program in graph.programs)


def tried(graph: KernelGraph, first: int, end: int) -> Iterator[tuple[int, tuple[int, int]]]:
    """Every way to go on behind a program that ends at ``end``: its own bytes, and (programs, bytes) of the rest."""
    own = shared_bytes(graph, first, end)
    if own is not None:
        yield own, best_from(graph, end, {})


def best_from(graph: KernelGraph, first: int, known: dict[int, tuple[int, int]]) -> tuple[int, int]:
    """The fewest programs, then bytes, of the kernels from ``first`` on, by trying every end."""
    if first == len(graph.kernels):
        return 0, 0
    if first not in known:
        ways: list[tuple[int, int]] = []
        for end in range(first + 1, len(graph.kernels) + 1):
            own = shared_bytes(graph, first, end)
            if own is not None:
                after = best_from(graph, end, known)
                ways.append((1 + after[0], own + after[1]))
        known[first] = min(ways)
    return known[first]


def shared_bytes(graph: KernelGraph, first: int, end: int) -> int | None:
    """The bytes of intermediates that kernels share with others; ``None`` where they need too many arguments."""
    inside = {use.buffer for kernel in graph.kernels[first:end] for use in kernel.uses}
    outside = {use.buffer for kernel in (*graph.kernels[:first], *graph.kernels[end:]) for use in kernel.uses}
    passing = {name for name in inside if graph.buffers[name].role.name == "INTERMEDIATE"}
    arguments = (inside - passing) | (passing & outside)
    if len(arguments) > (6 if arguments == inside else 5):
        return None
    return sum(graph.buffers[name].placed.size_bytes for name in passing & outside)


def test_every_kind_of_decision_has_ways_that_lost(tmp_path: Path) -> None:
    reports = [
        report_on(TURNED, tmp_path / "t"),
        report_on(LOOPED, tmp_path / "l"),
        report_on(CHAIN, tmp_path / "c", BAKED),
    ]
    weighed = {item.kind for report in reports for item in report.decisions if len(item.considered) > 1}
    assert weighed >= {"division", "layout", "copy", "resident", "tiling", "program"}
