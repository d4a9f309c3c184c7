from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spyrec.diagnostics import SpyrecError
from spyrec.hardware.cost import cost_of
from spyrec.hardware.target import PROFILES, Target
from spyrec.ir.device_access import DeviceAccess, VariablePart
from spyrec.ir.evaluate import evaluate
from spyrec.ir.kernel import Kernel, KernelGraph
from spyrec.ir.kernel_form import KernelForm, Rule
from spyrec.passes.base import PipelineOptions
from spyrec.passes.device_graph import device_graph
from spyrec.passes.divide_work.division_candidates import candidates
from spyrec.passes.planning.record import record_of
from tests.support.examples import examples
from tests.support.graphs import after, graph_data, node, only_diagnostic, read, tensor
from tests.support.kernel_interpreter import interpret
from tests.support.random_graphs import random_graph


def _lanes(form: KernelForm, index: int) -> int:
    """Lanes of the widest stick that a variable lies in, 1 for a plain variable."""
    return max((operand.lane_extent for operand in form.operands if operand.lane == index), default=1)


def _is_even(form: KernelForm, division: Sequence[int]) -> bool:
    """Whether every slice has as many elements, or whole sticks, as every other."""
    return all(
        -(-variable.size // _lanes(form, index)) % slices == 0
        for index, (variable, slices) in enumerate(zip(form.variables, division, strict=True))
    )


def _touched_bytes(form: KernelForm, operand: DeviceAccess, division: Sequence[int]) -> int:
    """Return the largest distance, in bytes, between two sticks of one operand that one core touches."""
    widest = 0
    for core in itertools.product(*map(range, division)):
        low = high = 0
        for dim in operand.dims[:-1]:
            first, last = 0, 0
            if dim.variable is not None:
                size, slices = form.variables[dim.variable].size, division[dim.variable]
                count = size if dim.part is VariablePart.WHOLE else -(-size // operand.lane_extent)
                share = -(-count // slices)
                first = core[dim.variable] * share
                last = min(first + share, count) - 1
            low, high = low * dim.extent + first, high * dim.extent + last
        widest = max(widest, high - low + 1)
    return widest * 128


def _assert_divided(graph: KernelGraph, kernel: Kernel, options: PipelineOptions) -> None:
    form, division = graph.form_of(kernel), kernel.division
    assert isinstance(form, KernelForm)
    assert division is not None
    assert len(division) == len(form.variables)
    assert _is_even(form, division), (kernel.name, form.variables, division)
    assert math.prod(division) <= options.cores
    for operand in form.operands:
        assert _touched_bytes(form, operand, division) <= options.target.span_limit_bytes


@examples(50)
@given(st.integers(0, 1 << 30), st.sampled_from((1, 2, 5, 6, 32)))
def test_slices_of_random_graphs_are_even_whole_sticks_within_the_cores(seed: int, cores: int) -> None:
    options = PipelineOptions(cores=cores)
    graph = after("divide-work", read(random_graph(seed)[0]), options)
    for kernel in graph.kernels:
        _assert_divided(graph, kernel, options)


def _legal(form: KernelForm, cores: int) -> Iterator[tuple[int, ...]]:
    choices = [range(1, min(variable.size, cores) + 1) for variable in form.variables]
    for division in itertools.product(*choices):
        if math.prod(division) <= cores and _is_even(form, division):
            yield division


@examples(25)
@given(st.integers(0, 1 << 30), st.sampled_from((3, 8, 32)), st.sampled_from(sorted(PROFILES)))
def test_no_even_division_is_cheaper(seed: int, cores: int, profile: str) -> None:
    options = PipelineOptions(cores=cores, profile=PROFILES[profile])
    graph = after("assign-layouts", read(random_graph(seed, 4)[0]), options)
    for kernel in graph.kernels:
        if kernel.rule is Rule.RESTICKIFY:
            continue  # keeps ragged sticks whole
        best = candidates(graph, kernel, options)[0]
        form = graph.form_of(kernel)
        assert isinstance(form, KernelForm)
        times = [
            cost_of(record_of(graph, kernel, frozenset(), division), options.profile).total_us
            for division in _legal(form, cores)
        ]
        assert best.cost_us == pytest.approx(min(times), abs=1e-6), kernel.name


@pytest.mark.parametrize(
    ("nodes", "cores"),
    [
        ([node("y", "add", "a", "a")], 32),
        ([node("y", "softmax", "a", dim=-1)], 32),
        ([node("y", "sum", "a", dim=[0], keepdim=True)], 32),
        ([node("y", "matmul", "a", "b")], 32),
        ([node("t", "t", "a"), node("y", "matmul", "t", "a")], 32),
        ([node("s", "slice", "a", dim=0, start=0, end=1), node("y", "matmul", "s", "b")], 32),
        ([node("s", "slice", "a", dim=0, start=0, end=31), node("y", "neg", "s")], 31),
    ],
)
def test_ordinary_shapes_keep_the_cores_busy(nodes: list[dict[str, object]], cores: int) -> None:
    data = graph_data([tensor("a", 256, 1024), tensor("b", 1024, 2048)], nodes, ["y"])
    graph = after("divide-work", read(data))
    computing = [kernel for kernel in graph.kernels if kernel.rule is not Rule.RESTICKIFY]
    assert {math.prod(kernel.division or ()) for kernel in computing} == {cores}


def test_a_sum_is_divided_only_where_the_dims_of_the_result_are_too_small() -> None:
    def division_of(rows: int, inner: int, columns: int) -> tuple[int, ...]:
        data = graph_data(
            [tensor("a", rows, inner), tensor("b", inner, columns)], [node("y", "matmul", "a", "b")], ["y"]
        )
        (kernel,) = after("divide-work", read(data)).kernels
        assert kernel.division is not None
        return kernel.division

    assert division_of(2048, 512, 2048)[-1] == 1
    assert division_of(4, 4096, 64)[-1] > 1


def test_a_small_span_limit_forces_outer_slices() -> None:
    options = PipelineOptions(target=Target(span_limit_bytes=1 << 14))
    data = graph_data([tensor("a", 64, 16, 64), tensor("b", 64, 16, 64)], [node("y", "add", "a", "b")], ["y"])
    graph = after("divide-work", read(data), options)
    assert [kernel.op for kernel in graph.kernels] == ["add"]
    (division,) = (kernel.division for kernel in graph.kernels)
    # an operand has 64 * 16 sticks, a core may span 128 of them
    assert division is not None
    assert math.prod(division) >= 8
    for kernel in graph.kernels:
        _assert_divided(graph, kernel, options)


@examples(30)
@given(st.integers(0, 1 << 30), st.sampled_from((1, 2, 7)), st.sampled_from((1 << 11, 1 << 13)))
def test_kernels_cut_for_the_span_limit_keep_it_and_what_they_mean(seed: int, cores: int, limit: int) -> None:
    options = PipelineOptions(cores=cores, target=Target(span_limit_bytes=limit))
    data, arrays = random_graph(seed, 4)
    graph = read(data)
    codes: set[str] = set()
    kernels: KernelGraph | None = None
    try:
        kernels = after("divide-work", graph, options)
    except SpyrecError as error:
        codes = {item.code for item in error.diagnostics}
    if kernels is None:
        assert codes == {"SPY0403"}
        return
    for kernel in kernels.kernels:
        _assert_divided(kernels, kernel, options)
    lowered = device_graph(graph)
    found = interpret(kernels, lowered, arrays)
    for name, values in evaluate(lowered, arrays).items():
        np.testing.assert_allclose(found[name].astype(np.float64), values.astype(np.float64), rtol=1e-9, atol=1e-9)


def test_a_large_prime_is_cut_into_a_nearly_even_part_and_a_rest() -> None:
    prime = (1 << 22) - 3
    data = graph_data([tensor("a", prime, 64)], [node("y", "neg", "a")], ["y"])
    graph = after("divide-work", read(data))
    assert sorted(kernel.extents[0] for kernel in graph.kernels) == [29, prime - 29]
    for kernel in graph.kernels:
        _assert_divided(graph, kernel, PipelineOptions())


@pytest.mark.parametrize(
    ("options", "shape", "written"),
    [
        (PipelineOptions(target=Target(span_limit_bytes=127)), (1, 64), node("y", "neg", "a")),
        (PipelineOptions(cores=1), (1 << 22, 64), node("y", "sum", "a", dim=[0])),
    ],
)
def test_an_operand_that_no_division_brings_under_the_span_limit_is_refused(
    options: PipelineOptions, shape: tuple[int, ...], written: dict[str, object]
) -> None:
    data = graph_data([tensor("a", *shape)], [written], ["y"])
    with pytest.raises(SpyrecError) as caught:
        after("divide-work", read(data), options)
    found = only_diagnostic(caught.value)
    assert (found.code, found.location and found.location.pointer) == ("SPY0403", "/nodes/0")
    assert str(options.target.span_limit_bytes) in found.message
    assert len(found.notes) == 2
