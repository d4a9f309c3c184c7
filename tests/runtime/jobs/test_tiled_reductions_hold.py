"""Reductions, stick strides, dims of one element, results of one element: a launch in tiles is right, or is refused."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spyrec
from spyrec.bundle.bundle import Bundle
from spyrec.bundle.correction_word import WordKind
from spyrec.bundle.manifest import Role
from spyrec.bundle.tile_contract import TileArgument, TileContract, TileLoop
from spyrec.diagnostics import SpyrecError
from spyrec.hardware.dtypes import DType
from spyrec.layout.device_layout import DeviceLayout
from spyrec.runtime import ExecutionPlan, SpyreTensor, explain_launch, launch_kernel
from spyrec.runtime.jobs.job import Job
from spyrec.runtime.launch.plan import Mode
from tests.support.graphs import JsonObject, graph_data, node, tensor

Numbers = npt.NDArray[np.generic]

REFUSALS = {f"SPY0{number}" for number in range(950, 963)}
"""What a launch refuses before anything is enqueued."""


@dataclass(frozen=True)
class Case:
    """A reduction compiled for ``tile``, and launched on ``trips`` times as much."""

    op: str
    tile: tuple[int, ...]
    trips: tuple[int, ...]
    dims: tuple[int, ...]
    dtype: str = "float16"
    keepdim: bool = True
    has_strides: bool = True
    fixed_layouts: bool = True

    @property
    def whole(self) -> tuple[int, ...]:
        """The shape of the launch."""
        return tuple(tile * trips for tile, trips in zip(self.tile, self.trips, strict=True))

    def bundle(self, shape: Sequence[int], *, tiles: bool = True) -> Bundle:
        """The reduction compiled for a shape."""
        made = node("y", self.op, "x", dim=list(self.dims), keepdim=self.keepdim)
        data = graph_data([tensor("x", *shape, dtype=self.dtype)], [made], ["y"])
        options = spyrec.CompileOptions(
            cores=4,
            fixed_io_layouts=self.fixed_layouts,
            tile_reductions=tiles,
            symbolic_strides=tiles and self.has_strides,
        )
        return spyrec.compile(data, options)

    def exact(self, numbers: Numbers) -> npt.NDArray[np.float64]:
        """The result in float64."""
        return getattr(np, self.op)(numbers.astype(np.float64), axis=self.dims, keepdims=self.keepdim)


def launched(bundle: Bundle, numbers: Numbers, shape: tuple[int, ...]) -> Numbers | SpyrecError:
    """Return the result of one launch, or why it is refused; then nothing is enqueued."""
    with spyrec.open_device(cores=4) as device:
        plan = ExecutionPlan(bundle)
        plan.load(device.default_stream)
        tensors = [
            SpyreTensor.to_device(device, numbers),
            SpyreTensor.empty(device, shape, str(numbers.dtype)),
        ]
        device.synchronize()
        found: Numbers | SpyrecError
        try:
            launch_kernel(device.default_stream, plan, tensors)
            found = tensors[1].to_host()
        except SpyrecError as error:
            found = error.with_traceback(None)
            assert device.pending == 0
        for item in tensors:
            item.free()
        plan.unload(device)
    return found


def bounds(case: Case, numbers: Numbers, wanted: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """What rounding may do: the result once, of a sum also each part and each step to it, 9 bits in 16 and 23 in 32."""
    step = 2.0**-9 if case.dtype == "float16" else 2.0**-23
    if case.op != "sum":
        return step * np.abs(wanted)
    reduced = int(np.prod([case.whole[dim] for dim in case.dims]))
    steps = 2 + (reduced if case.dtype == "float32" else reduced / 8)
    return steps * step * case.exact(np.abs(cast("npt.NDArray[np.float32]", numbers))) + 1e-7


MUST_WORK = [
    Case("sum", (2, 3, 64), (2, 1, 2), (0,)),
    Case("sum", (2, 3, 64), (2, 1, 2), (0,), has_strides=False),
    Case("amax", (2, 3, 64), (2, 1, 3), (0,), "float32"),
    Case("sum", (4, 2, 64), (2, 3, 2), (1,), keepdim=False),
    Case("amin", (64, 128), (3, 2), (0,), keepdim=False),
    Case("amax", (128,), (3,), (0,)),
    Case("amax", (128,), (3,), (0,), "float32", keepdim=False),
    Case("sum", (128,), (2,), (0,)),
    Case("sum", (3, 1), (2, 1), (0,)),
    Case("amin", (3, 1), (4, 1), (0,), "float32"),
    Case("sum", (3, 1, 1), (2, 1, 1), (0,), keepdim=False),
    Case("sum", (1, 5, 1), (1, 3, 1), (1,)),
]


def hold(case: Case, numbers: Numbers, found: Numbers | SpyrecError) -> None:
    """Hold a result against NumPy in float64, and against the untiled compile where no sum is reordered."""
    assert not isinstance(found, SpyrecError), found
    wanted = case.exact(numbers)
    assert np.all(np.abs(found.astype(np.float64) - wanted) <= bounds(case, numbers, wanted))
    if case.op != "sum":
        untiled = launched(case.bundle(case.whole, tiles=False), numbers, wanted.shape)
        assert not isinstance(untiled, SpyrecError), untiled
        assert found.tobytes() == untiled.tobytes()


@pytest.mark.parametrize("case", MUST_WORK, ids=str)
def test_a_tiled_reduction_is_that_of_the_whole(case: Case) -> None:
    numbers = np.random.default_rng(3).standard_normal(case.whole).astype(case.dtype)
    hold(case, numbers, launched(case.bundle(case.tile), numbers, case.exact(numbers).shape))


RAGGED = [
    Case("sum", (3, 2, 2), (2, 1, 3), (2,), keepdim=False),
    Case("sum", (2, 65), (2, 3), (0,), keepdim=False),
    Case("sum", (2, 70), (2, 3), (0,), has_strides=False),
    Case("amax", (70, 5), (3, 2), (1,), keepdim=False),
    Case("amin", (5, 70, 2), (2, 1, 2), (0,)),
    Case("sum", (5, 64, 2), (3, 1, 2), (0,)),
]
"""Tiles that end inside a stick: an accumulator has nothing in the padding of its last stick."""


@pytest.mark.parametrize("fixed_layouts", [False, True])
@pytest.mark.parametrize("case", RAGGED, ids=str)
def test_a_reduction_whose_tiles_end_inside_a_stick_is_right_or_refused(case: Case, fixed_layouts: bool) -> None:
    case = replace(case, fixed_layouts=fixed_layouts)
    numbers = np.random.default_rng(5).standard_normal(case.whole).astype(case.dtype)
    found = launched(case.bundle(case.tile), numbers, case.exact(numbers).shape)
    if isinstance(found, SpyrecError):
        assert {item.code for item in found.diagnostics} <= REFUSALS, found
    else:
        hold(case, numbers, found)


def test_a_contract_that_folds_parts_covers_no_padding() -> None:
    contract = Case("sum", (2, 65), (2, 1), (0,), keepdim=False).bundle((2, 65)).manifest.tile_contracts["."]
    assert contract.reduction is not None
    wide = replace(contract.arguments[1], axes=("columns",))
    with pytest.raises(SpyrecError, match="65 elements"):
        replace(contract, loops=(TileLoop("columns", 128), *contract.loops), arguments=(contract.arguments[0], wide))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Reductions of up to three dims, many of one element."""
    rank = draw(st.integers(1, 3))
    tile = (*(draw(st.sampled_from([1, 2, 3])) for _ in range(rank - 1)), draw(st.sampled_from([1, 2, 64, 70, 128])))
    return Case(
        draw(st.sampled_from(["sum", "amax", "amin"])),
        tile,
        tuple(draw(st.integers(1, 3)) for _ in tile),
        tuple(sorted(draw(st.sets(st.integers(0, rank - 1), min_size=1, max_size=2)))),
        draw(st.sampled_from(["float16", "float32"])),
        draw(st.booleans()),
        draw(st.booleans()),
        draw(st.booleans()),
    )


@settings(max_examples=25)
@given(cases())
def test_any_tiled_reduction_is_right_or_refused(case: Case) -> None:
    numbers = np.random.default_rng(4).standard_normal(case.whole).astype(case.dtype)
    found = launched(case.bundle(case.tile), numbers, case.exact(numbers).shape)
    if isinstance(found, SpyrecError):
        assert {item.code for item in found.diagnostics} <= REFUSALS, found
    else:
        hold(case, numbers, found)


STRIDED = MUST_WORK[0]


def test_what_is_promised_strides_has_words_for_them() -> None:
    bundle = STRIDED.bundle(STRIDED.tile)
    plan = ExecutionPlan(bundle)
    (job,) = plan.jobs
    with spyrec.open_device(cores=4) as device:
        tensors = [SpyreTensor.empty(device, shape, "float16") for shape in (STRIDED.whole, (1, 3, 128))]
        (found,) = explain_launch(plan, tensors)
        for item in tensors:
            item.free()
    assert found.tiles is not None
    assert [item.mode for item in found.tiles.body.arguments] == [Mode.STRIDED, Mode.STRIDED]
    publish = job.programs["tiles/main/publish"]
    for program, place in ((job, 1), (publish, 1)):
        assert program.binary is not None
        words = [word for word in program.binary.table.words if word.kind is WordKind.STICK_STRIDE]
        assert [word.dim for word in words if word.index == place] == [0, 1, 2]


def test_a_bundle_whose_program_lacks_the_words_is_refused(tmp_path: Path) -> None:
    """The same bundle without strides has images without words; its manifest is made to promise them."""
    replace(STRIDED, has_strides=False).bundle(STRIDED.tile).save(tmp_path / "out")
    path = tmp_path / "out" / "manifest.json"
    manifest = cast("JsonObject", json.loads(path.read_text()))
    programs = cast("JsonObject", cast("JsonObject", manifest["tile_contract"])["programs"])
    arguments = cast("list[JsonObject]", cast("JsonObject", programs["."])["arguments"])
    arguments[1]["takes_strides"] = True
    path.write_text(json.dumps(manifest))
    with pytest.raises(SpyrecError) as caught:
        Bundle.load(tmp_path / "out")
    assert [item.code for item in caught.value.diagnostics] == ["SPY0972", "SPY0972"]  # the body, and publish


def test_a_job_that_does_not_keep_its_contract_is_refused() -> None:
    (job,) = ExecutionPlan(STRIDED.bundle(STRIDED.tile)).jobs
    (plain,) = ExecutionPlan(replace(STRIDED, has_strides=False).bundle(STRIDED.tile)).jobs
    assert job.binary is not None
    artifact, signature = job.binary.artifact, job.signature
    mixed = {**job.programs, "tiles/main/publish": plain.programs["tiles/main/publish"]}
    with pytest.raises(SpyrecError, match="SPY0972"):
        Job.of_artifact(artifact, "mixed", signature, mixed)
    alone = {name: item for name, item in job.programs.items() if name != "tiles/main/combine"}
    with pytest.raises(SpyrecError, match="SPY0973"):
        Job.of_artifact(artifact, "alone", signature, alone)


def test_strides_without_a_correction_are_a_contradiction() -> None:
    layout = DeviceLayout.default((64, 64), "float16")
    argument = TileArgument("x", Role.OUTPUT, DType.FLOAT16, layout, ("M", None), takes_strides=True)
    with pytest.raises(SpyrecError, match="SPY0963"):
        TileContract("p", (TileLoop("M", 64),), (argument,), needs_correction=False)
