"""Random graphs compiled for small shapes and run on larger ones: every output within its bound, or a refusal."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import numpy.typing as npt
from hypothesis import given, settings
from hypothesis import strategies as st

import spyrec
from spyrec import CompileOptions, RunOptions
from spyrec.bundle.manifest import Manifest
from spyrec.diagnostics import SpyrecError
from spyrec.runtime.launch.plan import Mode
from tests.support.graphs import JsonObject, graph_data, node, tensor

Arrays = dict[str, npt.NDArray[np.generic]]

REFUSALS = {"SPY0953", "SPY0955", "SPY0957", "SPY0958", "SPY0959", "SPY0960", "SPY0962"}


def random_small_graph(random: Random) -> JsonObject:
    """A graph of two or three operations in a chain, on tensors of rank 2 or 3."""
    rows, columns = random.choice([2, 6, 8, 16]), random.choice([64, 128, 100])
    shape = [random.choice([2, 3]), rows, columns] if random.random() < 0.4 else [rows, columns]
    inputs = [tensor("x", *shape)]
    nodes: list[JsonObject] = []
    last, at = "x", list(shape)
    for number in range(random.randint(1, 3)):
        name = f"n{number}"
        match random.choice(["unary", "add", "row", "matmul", "softmax", "norm", "sum"]):
            case "unary":
                nodes.append(node(name, random.choice(["relu", "sigmoid", "neg", "tanh"]), last))
            case "add":
                inputs.append(tensor(f"y{number}", *at))
                nodes.append(node(name, random.choice(["add", "mul"]), last, f"y{number}"))
            case "row":
                inputs.append(tensor(f"r{number}", at[-1]))
                nodes.append(node(name, "add", last, f"r{number}"))
            case "matmul":
                width = random.choice([64, 128])
                inputs.append(tensor(f"w{number}", at[-1], width))
                nodes.append(node(name, "matmul", last, f"w{number}"))
                at[-1] = width
            case "softmax":
                nodes.append(node(name, "softmax", last, dim=len(at) - 1))
            case "norm":
                inputs.append(tensor(f"g{number}", at[-1]))
                nodes.append(node(name, "rms_norm", last, f"g{number}", normalized_shape=[at[-1]]))
            case _:
                nodes.append(node(name, "sum", last, dim=[len(at) - 1], keepdim=True))
                at[-1] = 1
        last = name
        if at[-1] == 1:
            break
    return graph_data(inputs, nodes, [last])


def larger_inputs(random: Random, manifest: Manifest) -> Arrays:
    """Arrays whose dims are as many tiles, whole ones or not, as one number per loop says."""
    extents: dict[str, int] = {}
    shapes: dict[str, list[int]] = {}
    arguments = {item.name: item for item in manifest.arguments}
    for step in manifest.plan:
        contract = manifest.tile_contracts[step.program]
        for loop in contract.loops:
            whole = loop.tile * random.choice([1, 1, 2, 3])
            left_over = random.randint(0, loop.tile) if random.random() < 0.25 else 0
            extents.setdefault(loop.name, whole + left_over)
        for name, argument in zip(step.arguments, contract.arguments, strict=True):
            shape = shapes.setdefault(name, list(arguments[name].shape or ()))
            for axis, loop in enumerate(argument.axes or ()):
                if loop is not None:
                    shape[axis] = extents[loop]
    rng = np.random.default_rng(random.getrandbits(32))
    return {
        name: rng.uniform(-1, 1, shapes.get(name) or arguments[name].shape).astype(np.float16)
        for name in manifest.inputs
    }


def run_larger(seed: int, seen: Counter[object]) -> None:
    random = Random(seed)
    data = random_small_graph(random)
    bundle = spyrec.compile(
        data, CompileOptions(symbolic_strides=random.random() < 0.4, correction_slots=random.choice([1, 2]))
    )
    inputs = larger_inputs(random, bundle.manifest)
    try:
        result = spyrec.run(bundle, inputs, RunOptions(check=True))
    except SpyrecError as error:
        if error.diagnostics[0].code not in REFUSALS:
            raise
        seen["refused"] += 1
        return
    assert result.is_ok, (data, result.check)
    seen["tiled" if result.tiles else "exact"] += 1
    seen.update(item.mode for plan in result.tiles for item in plan.body.arguments)
    seen.update(loop.remainder for plan in result.tiles for loop in plan.loops)


EXAMPLES = max(2, (settings().max_examples or 0) // 20)  # each of them compiles, and is run and evaluated at large


@settings(max_examples=EXAMPLES, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_runs_in_tiles_are_within_the_bounds_of_the_graph_at_the_larger_shapes(seed: int) -> None:
    run_larger(seed, Counter())


def test_most_random_runs_are_tiled() -> None:
    seen: Counter[object] = Counter()
    for seed in range(8):
        run_larger(seed, seen)
    assert seen["tiled"] >= 4, seen
    assert seen["refused"] <= 1, seen
    assert seen[Mode.SLAB] >= 2, seen
