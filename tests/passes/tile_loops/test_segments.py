"""Parting of loop groups by the tensors that a program can name: as few parts as possible, each of which fits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spyrec.diagnostics import SpyrecError
from spyrec.ir.kernel import BufferRole, Kernel, KernelBuffer
from spyrec.passes import tile_loops
from spyrec.passes.base import PipelineOptions
from spyrec.passes.tile_loops.levels import Path
from spyrec.passes.tile_loops.segments import part_groups
from tests.support.examples import examples
from tests.support.graphs import JsonObject, graph_data, node, scheduled
from tests.support.random_loops import looped_graph

Kernels = Sequence[Kernel]
Paths = Mapping[str, Path]
Buffers = Mapping[str, KernelBuffer]
Parted = tuple[Kernels, Paths, Buffers, PipelineOptions, frozenset[str]]


def _partings(data: JsonObject, watch: Callable[[Callable[..., object]], None]) -> list[Parted]:
    """Compile a graph and return what its groups were parted from, and where."""
    found: list[Parted] = []

    def watched(kernels: Kernels, paths: Paths, buffers: Buffers, options: PipelineOptions) -> frozenset[str]:
        borders = part_groups(kernels, paths, buffers, options)
        found.append((kernels, paths, dict(buffers), options, borders))
        return borders

    watch(watched)
    scheduled(data)
    return found


def _fits(part: Kernels, others: Kernels, paths: Paths, buffers: Buffers, spare: int) -> bool:
    """Whether a part names at most six tensors, five where some live in its pool; said tensor by tensor."""
    used = {use.buffer for kernel in part for use in kernel.uses}
    elsewhere = {use.buffer for kernel in others for use in kernel.uses}
    named = {name for name in used if buffers[name].role is not BufferRole.INTERMEDIATE or name in elsewhere}
    tiled = [{level.dim for level in paths[kernel.name]} for kernel in part]
    adds_up = any(dims & {kernel.dims[dim] for dim in kernel.reduced} for kernel, dims in zip(part, tiled, strict=True))
    return len(named) + adds_up + spare <= (5 if adds_up or named != used else 6)


def _group_spans(kernels: Kernels, paths: Paths) -> list[tuple[int, int]]:
    cuts = [
        place
        for place in range(1, len(kernels))
        if paths[kernels[place].name][:1] != paths[kernels[place - 1].name][:1]
    ]
    return [(first, end) for first, end in pairwise([0, *cuts, len(kernels)]) if paths[kernels[first].name]]


@examples(25)
@given(seed=st.integers(0, 1 << 40))
def test_groups_are_parted_into_the_fewest_parts_that_fit(seed: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        data, _ = looped_graph(seed, steps=10)
        found = _partings(data, lambda watched: patch.setattr(tile_loops, "part_groups", watched))
    for kernels, paths, buffers, options, borders in found:
        for first, end in _group_spans(kernels, paths):

            def fits(start: int, stop: int, case: tuple[Kernels, Paths, Buffers, int]) -> bool:
                items, levels, tensors, left = case
                others = [*items[:start], *items[stop:]]
                return stop - start == 1 or _fits(items[start:stop], others, levels, tensors, left)

            case = (kernels, paths, buffers, options.spare_arguments)
            cuts = [place for place in range(first + 1, end) if kernels[place].name in borders]
            assert all(fits(start, stop, case) for start, stop in pairwise([first, *cuts, end]))
            fewest = {first: 0}
            for stop in range(first + 1, end + 1):
                fewest[stop] = min(fewest[start] + 1 for start in range(first, stop) if fits(start, stop, case))
            assert len(cuts) + 1 == fewest[end]


def test_a_group_that_is_not_parted_is_refused_with_the_tensors_that_it_names(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs: list[JsonObject] = [{"name": f"x{number}", "shape": ["A", 128], "dtype": "float16"} for number in range(8)]
    nodes = [
        node(f"y{number}", "add", f"y{number - 1}" if number > 1 else "x0", f"x{number}") for number in range(1, 8)
    ]
    loops = [{"dim": "A", "tiles": 2, "body": [str(item["name"]) for item in nodes]}]
    data = graph_data(inputs, nodes, ["y7"], dims={"A": 64}, loops=loops)
    assert len(scheduled(data).programs) == 3  # five tensors each, of three, three and one addition

    def never(*case: object) -> frozenset[str]:
        assert case
        return frozenset()

    monkeypatch.setattr(tile_loops, "part_groups", never)
    with pytest.raises(SpyrecError) as caught:
        scheduled(data)
    found = caught.value.diagnostics[0]
    assert found.code == "SPY0422"
    assert found.notes == ("they are " + ", ".join(f'"{name}"' for name in [*(f"x{i}" for i in range(8)), "y7"]),)


def test_a_long_chain_in_one_loop_is_walked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 120
    nodes = [node(f"n{number}", "neg", f"n{number - 1}" if number else "x") for number in range(count)]
    body = [str(item["name"]) for item in nodes]
    x: JsonObject = {"name": "x", "shape": ["A", 128], "dtype": "float16"}
    data = graph_data([x], nodes, body[-1:], dims={"A": 64}, loops=[{"dim": "A", "tiles": 4, "body": body}])
    looks: list[str] = []
    original = Kernel.uses.fget
    assert original is not None

    def counted(kernel: Kernel) -> object:
        looks.append(kernel.name)
        return original(kernel)

    (case,) = _partings(data, lambda watched: monkeypatch.setattr(tile_loops, "part_groups", watched))
    monkeypatch.setattr(Kernel, "uses", property(counted))
    assert part_groups(*case[:4]) == frozenset()
    assert len(looks) <= 4 * count
