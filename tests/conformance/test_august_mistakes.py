"""Files as torch-spyre wrote them in August 2026 where it was wrong: reproduced with ``--compat``, mended without.

The expected numbers are worked out by hand from its rules: device sizes by the place of a dim, no room checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from spyrec.bundle.dialects import AUGUST_2026, JUNE_2026
from spyrec.bundle.superdsc import SuperDsc
from spyrec.codegen.emit_opspecs import CodegenOptions, EmittedProgram, emit_opspecs
from spyrec.codegen.expression import parse_expression
from spyrec.codegen.opspec import (
    AllocationKind,
    ArgumentAllocation,
    IterationDim,
    OpSpec,
    OpSpecFile,
    OwnedSlices,
    TensorArgument,
)
from spyrec.diagnostics import SpyrecError
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.hardware.target import SEGMENT_BYTES

HALF, SINGLE, FP8 = DeviceFormat.SEN169_FP16, DeviceFormat.IEEE_FP32, DeviceFormat.SEN143_FP8
INTEGER = DeviceFormat.IEEE_INT32
EXACT = CodegenOptions(dialect=AUGUST_2026, is_exact=True)


def operand(
    index: int, data_format: DeviceFormat, size: Sequence[int], coordinates: Sequence[str], *, lx: int | None = None
) -> TensorArgument:
    """Return an input; ``lx``: where it lies there."""
    place = ArgumentAllocation(AllocationKind.HBM, index * SEGMENT_BYTES)
    if lx is not None:
        place = ArgumentAllocation(AllocationKind.LX, lx)
    found = tuple(parse_expression(text) for text in coordinates)
    return TensorArgument(True, index if lx is None else -1, data_format, tuple(size), found, place)


def stored(argument: TensorArgument) -> TensorArgument:
    return replace(argument, is_input=False)


def spec(op: str, space: Sequence[tuple[str, int, int]], *arguments: TensorArgument) -> OpSpec:
    return OpSpec(op, False, tuple(IterationDim(*item) for item in space), arguments)


def emitted(item: OpSpec, options: CodegenOptions = EXACT) -> EmittedProgram:
    return emit_opspecs(OpSpecFile(symbolic_args=True, unroll_loops=False, specs=(item,)), options)


def only(item: OpSpec) -> SuperDsc:
    (superdsc,) = emitted(item).superdscs.values()
    return superdsc


def refused_otherwise(item: OpSpec, code: str) -> None:
    """Check that what is reproduced is not what spyrec writes by itself, nor what it writes in the form of June."""
    for options in (CodegenOptions(dialect=AUGUST_2026), CodegenOptions(dialect=JUNE_2026, is_exact=True)):
        with pytest.raises(SpyrecError, match=code):
            emitted(item, options)


ROWS = ("floor(c1/64)", "c0", "Mod(c1, 64)")
SINGLES = ("floor(c1/32)", "c0", "Mod(c1, 32)")


def test_a_window_in_lx_begins_where_its_buffer_does() -> None:
    """Q12: the offset of 32 rows and a stick is dropped; the gap is there."""
    window = operand(0, HALF, (4, 128, 64), ("floor(c1/64) + 1", "c0 + 32", "Mod(c1, 64)"), lx=4096)
    item = spec("identity", [("c0", 64, 1), ("c1", 128, 1)], window, stored(operand(1, HALF, (2, 64, 64), ROWS)))
    source = only(item).operands[0]
    assert source.start_addresses == (4096,)
    assert source.back_gap == {"mb": 64, "out": 128}
    (mended,) = emitted(item, CodegenOptions(dialect=AUGUST_2026)).superdscs.values()
    assert mended.operands[0].start_addresses == (4096 + 128 * (128 + 32),)


def test_an_operand_in_lx_has_gaps_along_divided_dims() -> None:
    held = operand(0, HALF, (2, 128, 64), ROWS, lx=0)
    item = spec("add", [("c0", 64, 4), ("c1", 128, 1)], operand(0, HALF, (2, 64, 64), ROWS), held,
                stored(operand(1, HALF, (2, 64, 64), ROWS)))  # fmt: skip
    assert only(item).operands[1].back_gap == {"mb": 64}
    refused_otherwise(item, "SPY0518")


def test_ragged_casts_leave_their_buffer() -> None:
    """Q14: 200 elements are 7 sticks of 32, and 256 are iterated."""
    item = spec("dl16tofp32", [("c0", 64, 1), ("c1", 200, 1)], operand(0, HALF, (4, 64, 64), ROWS),
                stored(operand(1, SINGLE, (7, 64, 32), SINGLES)))  # fmt: skip
    superdsc = only(item)
    assert dict(superdsc.iteration) == {"mb": 64, "out": 256}
    assert all(not own.back_gap for own in superdsc.operands)
    refused_otherwise(item, "SPY0516")


def test_a_core_begins_inside_of_a_stick() -> None:
    """Q15: the span of five sticks of 64 rows, halved: 20,480 bytes, which is no whole number of columns of sticks."""
    item = spec("add", [("c0", 64, 1), ("c1", 320, 2)], *(operand(at, HALF, (5, 64, 64), ROWS) for at in (0, 1)),
                stored(operand(2, HALF, (5, 64, 64), ROWS)))  # fmt: skip
    text = [str(line) for line in emitted(item).program.body]
    assert sum("20480" in line for line in text) >= 3
    refused_otherwise(item, "SPY0512")


def test_ragged_8_bit_operands_without_an_arrangement_are_rounded_up() -> None:
    item = spec(
        "batchmatmulfp8", [("c0", 64, 1), ("c1", 100, 1), ("c2", 200, 1)],
        operand(0, FP8, (2, 64, 128), ("floor(c2/128)", "c0", "Mod(c2, 128)")),
        operand(1, FP8, (1, 200, 128), ("floor(c1/128)", "c2", "Mod(c1, 128)")),
        stored(operand(2, HALF, (2, 64, 64), ROWS)),
    )  # fmt: skip
    assert dict(only(item).iteration) == {"mb": 64, "out": 128, "in": 256}
    with pytest.raises(SpyrecError, match="SPY0516"):
        emitted(item, CodegenOptions(dialect=AUGUST_2026))


def test_a_gathered_table_has_gaps_by_the_places_of_its_dims() -> None:
    """The columns of sticks stand where the walk meets the second dim of the index: 8 beside 4 entries."""
    item = spec(
        "identity", [("c0", 4, 1), ("c1", 4, 1), ("c2", 512, 1)],
        replace(operand(0, INTEGER, (1, 4, 32), ("floor(c1/32)", "c0", "Mod(c1, 32)")), name="ix"),
        operand(1, HALF, (8, 500, 64), ("floor(c2/64)", "IndirectAccess(ix)", "Mod(c2, 64)")),
        stored(operand(2, HALF, (4, 8, 4, 64), ("c1", "floor(c2/64)", "c0", "Mod(c2, 64)"))),
    )  # fmt: skip
    assert only(item).operands[1].back_gap == {"x": 4}
    (mended,) = emitted(item, CodegenOptions(dialect=AUGUST_2026)).superdscs.values()
    assert mended.operands[1].back_gap == {}


def test_operands_of_two_formats_meet_in_a_comparison() -> None:
    item = spec("greaterthan", [("c0", 64, 4), ("c1", 128, 1)],
                *(operand(at, SINGLE, (4, 64, 32), SINGLES) for at in (0, 1)),
                stored(operand(2, HALF, (2, 64, 64), ROWS)))  # fmt: skip
    assert [own.data_format for own in only(item).operands] == [SINGLE, SINGLE, HALF]
    with pytest.raises(SpyrecError, match="SPY0531"):
        emitted(item, CodegenOptions(dialect=AUGUST_2026))


def test_slices_of_a_shuffle_need_not_divide_its_extents() -> None:
    """Six rows among four cores: one each, and nobody has the rest."""
    core = parse_expression("core_id")
    of_rows, of_columns = (OwnedSlices({name: 4}, {name: core}) for name in ("c0", "c1"))
    item = spec(
        "identity", [("c0", 6, 1), ("c1", 256, 4)],
        replace(operand(0, HALF, (4, 6, 64), ROWS, lx=0), work_division=of_rows),
        stored(replace(operand(1, HALF, (4, 6, 64), ROWS, lx=65536), work_division=of_columns)),
    )  # fmt: skip
    source = only(item).operands[0]
    assert source.distribution is not None
    assert source.distribution.folds["mb"][0].alpha == 1
    with pytest.raises(SpyrecError, match="SPY0543"):
        emitted(item, CodegenOptions(dialect=AUGUST_2026))
