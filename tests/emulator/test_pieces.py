"""A box computed in pieces: every byte as if it were computed at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

from spyrec.emulator.device import EmulatedDevice
from spyrec.emulator.engine import Setting
from spyrec.emulator.operations import reduction as reduction_plan
from spyrec.emulator.operations import top as top_plan
from spyrec.emulator.operations.pieces import BoxPiece, pieces_of
from spyrec.hardware.dtypes import DeviceFormat
from tests.emulator.builders import DL16, Operation, Tensor, program_of, superdsc_of, table_of

FOLDS = ("sum", "max", "min", "mean", "sumnonstick", "maxnonstick", "minnonstick", "meannonstick", "exx2")
COMBINED, APART = {"mb": 2, "x": 2, "out": 2}, {"mb": 3, "x": 1, "out": 1}


def fold(op: str, slices: dict[str, int], *, is_masked: bool = False) -> Operation:
    """Two kept dims; along the third one the cores share results where it is sliced."""
    extents = {"mb": 6, "x": 10, "out": 256}
    folded = "x" if op.endswith("nonstick") else "out"
    constants: dict[str, int] = {"scaling_factor": 11264} if op.startswith("mean") else {}
    if op == "exx2":
        constants = {"exx2scale": 11264, "useZeroMean": 0}
    if is_masked:
        constants["samv-maskvalue"] = 0xFFFF if op.startswith("max") else 0
    masks = {folded: ((extents[folded] - 3, 3),)} if is_masked else {}
    result = Tensor(("mb", "out", "x"), "out", {folded: -1 if folded == "x" else -2})
    dims = {dim: (extent, slices[dim]) for dim, extent in extents.items()}
    return Operation(op, dims, (Tensor(("x", "out", "mb"), "out"), result), constants, masks)


def top(op: str) -> Operation:
    dims = {"x": (4, 2), "mb": (256, 2), "k": (3, 1), "n": (40, 1)}
    result = DL16 if op == "topkvalue" else DeviceFormat.IEEE_INT32
    return Operation(op, dims, (Tensor(("mb", "n", "x"), "mb"), Tensor(("k", "x", "mb"), "mb", {}, result)))


def executed(operation: Operation, numerics: str = "dl16") -> bytes:
    """The output's bytes; the input holds the patterns of few values, so that some are equal, and any pattern."""
    device, table = EmulatedDevice(numerics=numerics), table_of(operation)
    loaded = device.load(program_of(), {"sdsc_0.json": superdsc_of(operation)}, table)
    source, target = (device.allocate(entry.size_bytes) for entry in table.entries)
    words: npt.NDArray[np.uint16] = device.memory(source, table.entries[0].size_bytes).view(np.uint16)
    generator = np.random.default_rng(3)
    values = generator.integers(0x3D00, 0x3D20, len(words)) | generator.integers(0, 2, len(words)) << 15
    words[:] = np.where(generator.random(len(words)) < 0.002, generator.integers(0, 1 << 16, len(words)), values)
    device.memory(target, table.entries[1].size_bytes)[:] = 0xA5
    device.launch(loaded, [source, target], None)
    return device.memory(target, table.entries[1].size_bytes).tobytes()


def assert_same_in_pieces(monkeypatch: pytest.MonkeyPatch, operation: Operation, numerics: str = "dl16") -> None:
    counts: list[int] = []

    def counted(setting: Setting, dims: Sequence[str], most_points: int) -> list[BoxPiece]:
        pieces = pieces_of(setting, dims, most_points)
        counts.append(len(pieces))
        return pieces

    for module in (reduction_plan, top_plan):
        monkeypatch.setattr(module, "pieces_of", counted)
    whole = executed(operation, numerics)
    for bound in (1, 48 * 8 * 150):
        for module in (reduction_plan, top_plan):
            monkeypatch.setattr(module, "_TEMPORARY_BYTES", bound)
        assert executed(operation, numerics) == whole
    assert counts[0] == 1
    assert counts[1] > 1


@pytest.mark.parametrize("slices", [COMBINED, APART], ids=["combined", "apart"])
@pytest.mark.parametrize("op", FOLDS)
def test_a_fold_in_pieces_gives_the_bytes_of_the_whole(
    monkeypatch: pytest.MonkeyPatch, op: str, slices: dict[str, int]
) -> None:
    assert_same_in_pieces(monkeypatch, fold(op, slices))


@pytest.mark.parametrize("op", ["sum", "max", "min", "mean", "sumnonstick", "maxnonstick"])
def test_a_masked_fold_in_pieces_gives_the_bytes_of_the_whole(monkeypatch: pytest.MonkeyPatch, op: str) -> None:
    assert_same_in_pieces(monkeypatch, fold(op, COMBINED, is_masked=True))


@pytest.mark.parametrize("op", ["sum", "sumnonstick"])
def test_a_fold_of_wider_elements_in_pieces_gives_the_bytes_of_the_whole(
    monkeypatch: pytest.MonkeyPatch, op: str
) -> None:
    assert_same_in_pieces(monkeypatch, fold(op, COMBINED), "f32")


@pytest.mark.parametrize("op", ["topkvalue", "topkindex"])
def test_rows_sorted_in_pieces_give_the_bytes_of_the_whole(monkeypatch: pytest.MonkeyPatch, op: str) -> None:
    assert_same_in_pieces(monkeypatch, top(op))
