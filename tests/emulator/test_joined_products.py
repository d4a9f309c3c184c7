"""Tiles of a product that are done at once leave the bytes of one after the other, or are not done at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

import spyrec
from spyrec.bundle.program_image import read_image
from spyrec.emulator.backend import table_of
from spyrec.emulator.device import EmulatedDevice
from spyrec.emulator.engine import Integers
from spyrec.emulator.operations.matmul import MatmulExecutable
from spyrec.emulator.operations.matmul_steps import JoinedProduct
from spyrec.runtime import ExecutionPlan
from spyrec.runtime.threads import Threads

Halves = npt.NDArray[np.float16]
Level = tuple[str, int]


FROM_MEMORY = spyrec.CompileOptions(lx_planner="none")
"""Operands stay in device memory: staged in the scratchpads they are products of several units."""


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each run of tiles was done at once, in order."""
    found: list[bool] = []
    run = JoinedProduct.run

    def noted(self: JoinedProduct, moved: Integers, threads: Threads) -> bool:
        found.append(run(self, moved, threads))
        return found[-1]

    monkeypatch.setattr(JoinedProduct, "run", noted)
    return found


def product(extents: tuple[int, int, int], levels: Sequence[Level], batch: int = 0) -> dict[str, object]:
    """Return a product of M, K and N in tiles, of so many matrices if any."""
    dims = dict(zip("MKN", extents, strict=True)) | ({"B": batch} if batch else {})
    first = ["B"] if batch else []
    shapes = {"a": [*first, "M", "K"], "b": [*first, "K", "N"]}
    body: list[object] = ["y"]
    for dim, tiles in reversed(levels):
        body = [{"dim": dim, "tiles": tiles, "body": body}]
    return {
        "format": "spyrec.graph/1", "name": "product", "dims": dims, "outputs": ["y"], "loops": body if levels else [],
        "inputs": [{"name": name, "shape": shape, "dtype": "float16"} for name, shape in shapes.items()],
        "nodes": [{"name": "y", "op": "bmm" if batch else "mm", "inputs": ["a", "b"]}],
    }  # fmt: skip


def operands(extents: tuple[int, int, int], batch: int = 0) -> dict[str, Halves]:
    rows, depth, columns = extents
    generator = np.random.default_rng(11)
    first = (batch,) if batch else ()
    shapes = {"a": (*first, rows, depth), "b": (*first, depth, columns)}
    return {name: generator.standard_normal(shape).astype(np.float16) for name, shape in shapes.items()}


def runs(graph: dict[str, object], inputs: dict[str, Halves], attempts: list[bool]) -> tuple[list[bool], bool]:
    """Return whether tiles were done at once, and whether the result is the definition's."""
    bundle = spyrec.compile(graph, FROM_MEMORY)
    attempts.clear()
    found = spyrec.run(bundle, inputs).outputs["y"]
    made = list(attempts)
    expected = spyrec.run(bundle, inputs, spyrec.RunOptions(engine="reference")).outputs["y"]
    return made, found.tobytes() == expected.tobytes()


CASES = [
    ((64, 128, 256), [("M", 2), ("N", 2)], 0),
    ((96, 192, 128), [("M", 3)], 0),
    ((64, 64, 256), [("N", 4), ("M", 2)], 0),
    ((200, 128, 192), [("M", 3)], 0),  # with a remainder
    ((32, 64, 64), [("B", 4)], 4),
    ((32, 64, 128), [("B", 2), ("M", 2)], 4),
]


@pytest.mark.parametrize(("extents", "levels", "batch"), CASES, ids=str)
def test_tiles_done_at_once_have_the_bits_of_the_definition(
    attempts: list[bool], extents: tuple[int, int, int], levels: list[Level], batch: int
) -> None:
    made, is_equal = runs(product(extents, levels, batch), operands(extents, batch), attempts)
    assert made
    assert all(made)
    assert is_equal


def test_tiles_whose_k_is_padded_are_done_one_after_the_other(attempts: list[bool]) -> None:
    extents = 64, 70, 256
    made, is_equal = runs(product(extents, [("M", 2), ("N", 2)]), operands(extents), attempts)
    assert made == [False]
    assert is_equal


def test_a_row_that_is_zero_in_one_tile_of_columns_alone_hides_infinities_there_alone(attempts: list[bool]) -> None:
    extents = 64, 128, 256
    inputs = operands(extents)
    inputs["b"][120, :128] = 0.0
    inputs["a"][:, 120] = np.inf
    graph = product(extents, [("M", 2), ("N", 2)])
    made, is_equal = runs(graph, inputs, attempts)
    assert made == [False]
    assert is_equal
    found = spyrec.run(spyrec.compile(graph), inputs).outputs["y"]
    assert np.isfinite(found[:, :128]).all()
    assert not np.isfinite(found[:, 128:]).any()


def test_tiles_that_store_to_one_place_are_not_done_at_once(attempts: list[bool]) -> None:
    extents = 64, 256, 128
    made, is_equal = runs(product(extents, [("K", 4)]), operands(extents), attempts)
    assert not any(made)
    assert is_equal


def executable_of(graph: dict[str, object]) -> MatmulExecutable:
    """Return the only product of a graph in loops."""
    bundle = spyrec.compile(graph, FROM_MEMORY)
    (job,) = ExecutionPlan(bundle).jobs
    assert job.binary is not None
    image = read_image(job.binary.image_bytes)
    loaded = EmulatedDevice(bundle.manifest.target.cores).load(image.program, image.superdscs, table_of(image))
    (planned,) = loaded.planned.values()
    assert isinstance(planned.executable, MatmulExecutable)
    return planned.executable


def test_rounds_are_joined_only_where_they_store_apart_from_each_other_and_from_what_they_load() -> None:
    executable = executable_of(product((64, 128, 256), [("M", 2)]))
    a, b, c = executable.a, executable.b, executable.c
    cores = np.arange(executable.setting.cores)
    starts = np.zeros((3, len(cores)), np.int64)
    starts[[a, b, c]] = np.array([[1 << 20], [2 << 20], [3 << 20]])
    starts[c] += 1024 * 1024 * (cores + 1)
    moves = np.zeros((2, 3), np.int64)
    assert executable.joined(starts, moves) is None  # both store to one place
    moves[1, c] = 1
    assert executable.joined(starts, moves) is None  # and here they share all but a byte
    moves[1, c] = 1 << 30
    joined = executable.joined(starts, moves)
    assert joined is not None
    for position in (a, b):
        onto = np.zeros(3, np.int64)
        onto[position] = starts[c, 0] - starts[position, 0]
        assert not joined.run(onto, Threads(1))  # before anything is read


def test_a_loaded_model_does_tiles_at_once_wherever_its_arguments_lie(attempts: list[bool]) -> None:
    extents = 64, 128, 256
    graph = product(extents, [("M", 2), ("N", 2)])
    with spyrec.load(spyrec.compile(graph, FROM_MEMORY)) as model:
        for scale in (1.0, 0.5, 2.0):
            inputs = {name: (scale * values).astype(np.float16) for name, values in operands(extents).items()}
            plain = spyrec.run(spyrec.compile({**graph, "loops": list[object]()}), inputs).outputs["y"]
            assert model(**inputs)["y"].tobytes() == plain.tobytes()
    assert attempts == [True] * 3
