"""Every operation, on random layouts, splits, windows and broadcasts, against the slow oracle."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest

from spyrec.bundle.superdsc import Indirection, SuperDsc
from spyrec.bundle.superdsc_writer import to_json
from spyrec.device_ops import DEVICE_OPERATIONS, SHUFFLE, names_of
from spyrec.device_ops.record import Family
from spyrec.diagnostics import SpyrecError
from spyrec.emulator.device import EmulatedDevice
from spyrec.hardware import dlfloat
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.runtime.device import ArgumentTable, TableEntry
from spyrec.runtime.findings import RuleDiagnostic
from tests.emulator import oracle
from tests.emulator.builders import DL16, FP32, Operation, Tensor, program_of, superdsc_of, table_of

Generator = np.random.Generator
FP8 = DeviceFormat.SEN143_FP8
INDEX = DeviceFormat.SENUINT32
ONE, TWO, EIGHT, MINUS_TWO = 15872, 16384, 17408, 49152
POSITIVE_DOMAIN = {"log", "sqrt", "rsqrt"}


def divisors(extent: int, unit: int, most: int) -> list[int]:
    return [n for n in (1, 2, 3, 4, 5, 8, 16, 32) if n <= most and extent % n == 0 and (extent // n) % unit == 0]


def random_dims(generator: Generator, names: Sequence[str], stick: str, unit: int) -> dict[str, tuple[int, int]]:
    dims: dict[str, tuple[int, int]] = {}
    cores = 32
    for name in names:
        extent = int(generator.choice([unit, 2 * unit, 3 * unit] if name == stick else [1, 3, 5, 8, 12]))
        slices = int(generator.choice(divisors(extent, unit if name == stick else 1, cores)))
        cores //= slices
        dims[name] = (extent, slices)
    return dims


def shuffled(generator: Generator, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(name) for name in generator.permutation(list(names)))


def random_scale(generator: Generator, names: Sequence[str], stick: str) -> dict[str, int]:
    return {name: int(generator.choice([1, 1, -2 if name == stick else -1])) for name in names}


def random_window(
    generator: Generator, dims: dict[str, tuple[int, int]], stick: str, unit: int
) -> tuple[dict[str, int], dict[str, int]]:
    if generator.random() < 0.6:
        return {}, {}
    dim = str(generator.choice(list(dims)))
    step = unit if dim == stick else 1
    gap = step * int(generator.integers(1, 4))
    return {dim: gap}, {dim: step * int(generator.integers(0, gap // step + 1))}


def pointwise(op: str, generator: Generator, data_format: DeviceFormat = DL16) -> Operation:
    unit = data_format.elements_per_stick or 0
    names = ("mb", "x", "out")[3 - int(generator.integers(1, 4)) :]
    stick = str(generator.choice(names))
    dims = random_dims(generator, names, stick, unit)
    tensors: list[Tensor] = []
    for _ in range(DEVICE_OPERATIONS[op].inputs):
        scale = random_scale(generator, names, stick)
        gap, first = random_window(generator, dims, stick, unit)
        gap = {dim: size for dim, size in gap.items() if scale[dim] == 1}
        tensors.append(Tensor(shuffled(generator, names), stick, scale, data_format, gap, first))
    gap, first = random_window(generator, dims, stick, unit)
    tensors.append(Tensor(shuffled(generator, names), stick, {}, data_format, gap, first))
    constants = {
        "clip": {"clipMin": MINUS_TWO, "clipMax": ONE},
        "softplus": {"softplusBeta": TWO, "softplusThresh": ONE},
    }.get(op, {})
    masks: dict[str, tuple[tuple[int, int], ...]] = {}
    if DEVICE_OPERATIONS[op].padding_mask is not None and generator.random() < 0.8:
        last = dims[stick][0]
        masks = {stick: ((last - 20, 20),)}
        if generator.random() < 0.3:  # a range across sticks and cores, and one of a dim without sticks
            masks = {
                names[0]: ((0, 1),),
                names[-1]: ((dims[names[-1]][0] - 1, 1),),
                stick: ((3, last // 2), (last - 1, 1)),
            }
        constants = {**constants, "samv-maskvalue": 0xFFFF if generator.random() < 0.8 else TWO}
    return Operation(op, dims, tensors, constants, masks)


def reduction(op: str, generator: Generator, data_format: DeviceFormat = DL16) -> Operation:
    unit = data_format.elements_per_stick or 0
    names = ("mb", "x", "out")
    stick = str(generator.choice(names))
    dims = random_dims(generator, names, stick, unit)
    if op == "exx2" or (not op.endswith("nonstick")):
        folded = [stick]
    else:
        folded = [str(generator.choice([name for name in names if name != stick]))]
    source = Tensor(shuffled(generator, names), stick, {}, data_format)
    result = Tensor(shuffled(generator, names), stick, {dim: -2 if dim == stick else -1 for dim in folded}, data_format)
    constants = {"mean": {"scaling_factor": 11264}, "meannonstick": {"scaling_factor": 11264}}.get(op, {})
    if op == "exx2":
        constants = {"exx2scale": 11264, "useZeroMean": 0}
    masks: dict[str, tuple[tuple[int, int], ...]] = {}
    if folded == [stick] and generator.random() < 0.5:
        extent = dims[stick][0]
        masks = {stick: ((extent - 20, 20),)}
        value = {"max": 0xFFFF, "min": 0x7FFF, "prod": ONE}.get(op, 0)
        constants = {**constants, "samv-maskvalue": value}
    return Operation(op, dims, (source, result), constants, masks)


def matmul(op: str, generator: Generator) -> Operation:
    narrow = FP8 if op.endswith("fp8") else DL16
    unit = narrow.elements_per_stick or 0
    rows = int(generator.choice([1, 5, 16, 24]))
    batches = int(generator.choice([1, 3, 4]))
    columns, depth = (unit * int(generator.choice([1, 2, 3])) for _ in range(2))
    dims = {
        "x": (batches, int(generator.choice(divisors(batches, 1, 4)))),
        "mb": (rows, int(generator.choice(divisors(rows, 1, 4)))),
        "out": (columns, int(generator.choice(divisors(columns, unit, 2)))),
        "in": (depth, int(generator.choice(divisors(depth, unit, 3)))),
    }
    shared = generator.random() < 0.3
    is_packed = narrow is FP8 and bool(generator.random() < 0.7)
    a = Tensor(shuffled(generator, ("x", "mb", "in")), "in", {}, narrow, is_interleaved=is_packed)
    order = shuffled(generator, ("in", "out") if shared else ("x", "in", "out"))
    b = Tensor(order, "out", {}, narrow, pairs="in" if is_packed else None)
    return Operation(op, dims, (a, b, Tensor(shuffled(generator, ("x", "mb", "out")), "out")), unit="pt")


def restickify(_op: str, generator: Generator) -> Operation:
    names = ("mb", "x", "out")
    rows, columns = (int(generator.choice([64, 128, 192])) for _ in range(2))
    dims = {"mb": (rows, 1), "x": (3, int(generator.choice([1, 3]))), "out": (columns, 1)}
    dims["mb"] = (rows, int(generator.choice(divisors(rows, 64, 4))))
    source = Tensor(shuffled(generator, names), "out")
    return Operation("ReStickifyOpHBM", dims, (source, Tensor(shuffled(generator, names), "mb")))


def cast(op: str, generator: Generator) -> Operation:
    source, target = {
        "dl16tofp32": (DL16, FP32),
        "fp32todl16": (FP32, DL16),
        "fp8todl16": (FP8, DL16),
        "qfp8ch": (DL16, FP8),
    }[op]
    dims = random_dims(generator, ("mb", "out"), "out", 128)
    order = shuffled(generator, ("mb", "out"))
    return Operation(op, dims, (Tensor(order, "out", {}, source), Tensor(order, "out", {}, target)))


def pack(op: str, generator: Generator) -> Operation:
    dims = random_dims(generator, ("mb", "out"), "out", 128)
    rows = 2 * int(generator.choice([1, 3, 8]))
    dims["mb"] = (rows, int(generator.choice(divisors(rows, 2, 4))))
    order = shuffled(generator, ("mb", "out"))
    return Operation(op, dims, (Tensor(order, "out"), Tensor(order, "out", {}, FP8, pairs="mb")))


def layernormscale(_op: str, generator: Generator) -> Operation:
    dims = {"out": (12, int(generator.choice([1, 3, 4]))), "x": (64, 1)}
    source = Tensor(("out", "x"), "x", {"x": -2})
    return Operation("layernormscale", dims, (source, Tensor(("out", "x"), "x")), {"eps": ONE})


def topk(op: str, generator: Generator) -> Operation:
    taken, slices = [(3, 1), (3, 3), (4, 2), (1, 1)][int(generator.integers(4))]
    dims = {"mb": (64, 1), "k": (taken, slices), "n": (int(generator.choice([5, 40])), 1)}
    result = DeviceFormat.IEEE_INT32 if op == "topkindex" else DL16
    if taken == 1 and generator.random() < 0.5:  # one element needs no dim of its own
        del dims["k"]
        return Operation(op, dims, (Tensor(("mb", "n"), "mb"), Tensor(("mb",), "mb", {}, result)))
    return Operation(op, dims, (Tensor(("mb", "n"), "mb"), Tensor(("k", "mb"), "mb", {}, result)))


BUILDERS: dict[Family, Callable[[str, Generator], Operation]] = {
    Family.UNARY: pointwise,
    Family.POINTWISE: pointwise,
    Family.IDENTITY: pointwise,
    Family.RESTICKIFY: restickify,
    Family.CAST: cast,
    Family.PACK: pack,
    Family.REDUCTION: reduction,
    Family.NORM_STATISTICS: reduction,
    Family.NORM_SCALE: layernormscale,
    Family.MATMUL: matmul,
    Family.TOP: topk,
}


def random_bytes(
    generator: Generator, data_format: DeviceFormat, count: int, *, positive: bool
) -> npt.NDArray[np.uint8]:
    values = generator.standard_normal(count) * 2
    # Ties between equal values matter to comparisons and to topk.
    values = np.where(generator.random(count) < 0.2, np.round(values), values)
    if data_format is FP8:
        return generator.integers(0, 0x7F, count).astype(np.uint8) | (generator.integers(0, 2, count) << 7).astype(
            np.uint8
        )
    return np.ascontiguousarray(oracle.encode(data_format.name, np.abs(values) + 0.01 if positive else values)).view(
        np.uint8
    )


def execute_both(
    operation: Operation, data: dict[int, npt.NDArray[np.uint8]], rows: int | None = None
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """The output's bytes as the emulator and as the oracle leave them; both begin with the same bytes."""
    superdsc, table = superdsc_of(operation), table_of(operation)
    device = EmulatedDevice()
    loaded = device.load(program_of(), {"sdsc_0.json": superdsc}, table)
    addresses = [device.allocate(entry.size_bytes) for entry in table.entries]
    for index, values in data.items():
        device.memory(addresses[index], len(values))[:] = values
    device.launch(loaded, addresses, None)
    last = len(addresses) - 1
    regions: dict[object, npt.NDArray[np.uint8]] = {index: values.copy() for index, values in data.items()}
    machine = oracle.Machine(regions, {entry.arg_index: entry.baked_base for entry in table.entries})
    oracle.Execution(machine, to_json(superdsc), {}, rows).run()
    return device.memory(addresses[last], table.entries[last].size_bytes), regions[last]


def allowed_places(operation: Operation) -> int:
    """How far stored patterns may stand apart: only where a float32 sum or a second rounding stands in between."""
    family = DEVICE_OPERATIONS[operation.op].family
    if family in {Family.IDENTITY, Family.RESTICKIFY, Family.TOP} or (
        family is Family.CAST and operation.op != "qfp8ch"
    ):
        return 0
    return 1


# operations that slide a window have an oracle of their own, conformance/test_windows.py
@pytest.mark.parametrize("op", sorted(DEVICE_OPERATIONS.keys() - names_of(Family.WINDOW) - {SHUFFLE}))
def test_operation_agrees_with_the_oracle_on_random_layouts(op: str) -> None:
    for seed in range(6):
        generator = np.random.default_rng(seed)
        data_format = (
            FP32 if seed == 5 and DEVICE_OPERATIONS[op].family is Family.POINTWISE and op != "where3" else DL16
        )
        build = BUILDERS[DEVICE_OPERATIONS[op].family]
        operation = pointwise(op, generator, data_format) if data_format is FP32 else build(op, generator)
        data = {
            entry.arg_index: random_bytes(
                generator,
                entry.device_dtype,
                math.prod(entry.device_size),
                positive=op in POSITIVE_DOMAIN,
            )
            for entry in table_of(operation).entries
        }
        got, want = execute_both(operation, data)
        word = {1: np.int8, 2: np.int16, 4: np.int32}[
            128 // (operation.tensors[-1].data_format.elements_per_stick or 1)
        ]
        ulps = np.abs(got.view(word).astype(np.int64) - want.view(word).astype(np.int64))
        if DEVICE_OPERATIONS[op].family is Family.MATMUL:
            # Sums that cancel lose places: judge them by the size of their terms instead.
            near = np.abs(
                oracle.decode("SEN169_FP16", got.view(np.uint16)) - oracle.decode("SEN169_FP16", want.view(np.uint16))
            )
            size = np.abs(oracle.decode("SEN169_FP16", want.view(np.uint16)))
            assert np.all(near <= 2.0**-9 * size + 2e-4 * (400.0 if op.endswith("fp8") else 1.0)), (op, seed)
        else:
            assert ulps.max() <= allowed_places(operation), (op, seed, int(ulps.argmax()))


def gather_operation(slices: tuple[int, int], rows_inner: bool) -> Operation:
    dims = {"mb": (64, slices[0]), "out": (128, slices[1])}
    value_order = ("mb", "out") if rows_inner else ("out", "mb")
    return Operation(
        "identity",
        dims,
        (
            Tensor(("mb",), "mb", {}, INDEX, indirection=Indirection.INDEX),
            Tensor(value_order, "out", indirection=Indirection.VALUE),
            Tensor(("mb", "out"), "out"),
        ),
    )


@pytest.mark.parametrize("slices", [(1, 1), (4, 2)])
@pytest.mark.parametrize("rows_inner", [True, False])
def test_gather_takes_the_rows_that_the_index_names(slices: tuple[int, int], rows_inner: bool) -> None:
    operation = gather_operation(slices, rows_inner)
    generator = np.random.default_rng(3)
    data = {1: random_bytes(generator, DL16, 64 * 128, positive=False), 2: np.zeros(64 * 128 * 2, np.uint8)}
    index = np.zeros(64, np.uint32)
    index[:] = generator.integers(0, 64, 64)
    data[0] = index.view(np.uint8)
    got, want = execute_both(operation, data, rows=64)
    np.testing.assert_array_equal(got, want)


@dataclass(frozen=True)
class TableGather:
    """A gather of table rows by a two-dimensional index: the index's order, the table's form, slices of x, mb, out."""

    index_order: tuple[str, str]
    rows_inner: bool
    padding: int
    slices: tuple[int, int, int]
    width: int

    ROWS = 300
    X, MB = 4, 64

    @property
    def operation(self) -> Operation:
        """Dims x and mb of the index, out of the table's row."""
        rows = self.index_order
        return Operation(
            "identity",
            dict(zip(("x", "mb", "out"), zip((self.X, self.MB, self.width), self.slices))),
            (
                Tensor(self.index_order, "mb", {}, INDEX, indirection=Indirection.INDEX),
                Tensor((*rows, "out") if self.rows_inner else ("out", *rows), "out", indirection=Indirection.VALUE),
                Tensor(("x", "out", "mb"), "out"),
            ),
        )

    @property
    def columns(self) -> int:
        """Stick columns of the table."""
        return self.width // 64

    def superdsc(self) -> SuperDsc:
        """The SuperDSC, in which each core's start in the table is that of its slice of out."""
        superdsc = superdsc_of(self.operation)
        step = self.columns // self.slices[2] * (self.ROWS if self.rows_inner else 1) * 128
        starts = tuple((1 << 34) + of_core["out"] * step for of_core in superdsc.core_work_slices)
        operands = list(superdsc.operands)
        operands[1] = replace(operands[1], start_addresses=starts)
        return replace(superdsc, operands=tuple(operands))

    def table(self) -> ArgumentTable:
        """The argument table: the gathered tensor has its own rows, behind axes of size 1."""
        entries = list(table_of(self.operation).entries)
        axes = (self.columns, self.ROWS) if self.rows_inner else (self.ROWS, self.columns)
        size = (*(1,) * self.padding, *axes, 64)
        entries[1] = replace(entries[1], device_size=size, size_bytes=128 * self.columns * self.ROWS)
        return ArgumentTable(tuple(entries))


@pytest.mark.parametrize("index_order", [("x", "mb"), ("mb", "x")])
@pytest.mark.parametrize("rows_inner", [True, False])
@pytest.mark.parametrize(
    ("padding", "slices", "width"), [(0, (1, 1, 1), 256), (1, (4, 1, 1), 128), (2, (2, 2, 2), 128), (0, (1, 2, 4), 256)]
)
def test_a_two_dimensional_index_takes_whole_rows_of_a_table_of_several_sticks(
    index_order: tuple[str, str], rows_inner: bool, padding: int, slices: tuple[int, int, int], width: int
) -> None:
    case = TableGather(index_order, rows_inner, padding, slices, width)
    device, table = EmulatedDevice(), case.table()
    loaded = device.load(program_of(), {"sdsc_0.json": case.superdsc()}, table)
    addresses = [device.allocate(entry.size_bytes) for entry in table.entries]
    generator = np.random.default_rng(7)
    picked = generator.integers(0, case.ROWS, (case.X, case.MB))
    rows = generator.integers(0, 1 << 15, (case.ROWS, width)).astype(np.uint16)
    # Device forms, outermost axis first: sticks of the index along mb, of the table along its width.
    sticks = picked.reshape(case.X, case.MB // 32, 32)
    index = sticks.transpose(1, 0, 2) if index_order == ("x", "mb") else sticks
    columns = rows.reshape(case.ROWS, case.columns, 64)
    stored = columns.transpose(1, 0, 2) if rows_inner else columns
    device.memory(addresses[0], table.entries[0].size_bytes).view(np.uint32)[:] = index.reshape(-1)
    device.memory(addresses[1], table.entries[1].size_bytes).view(np.uint16)[:] = stored.reshape(-1)
    stats = device.launch(loaded, addresses, None).operations[0]

    result = device.memory(addresses[2], table.entries[2].size_bytes).view(np.uint16)
    want = rows[picked].reshape(case.X, case.MB, case.columns, 64).transpose(1, 2, 0, 3)
    np.testing.assert_array_equal(result.reshape(want.shape), want)
    x_slices, mb_slices, out_slices = slices
    x, mb = case.X // x_slices, case.MB // mb_slices
    blocks = [picked[i * x : (i + 1) * x, j * mb : (j + 1) * mb] for i in range(x_slices) for j in range(mb_slices)]
    per_core = sum(x * mb // 32 + len(np.unique(block)) * case.columns // out_slices for block in blocks)
    assert stats.hbm_read_bytes == 128 * (picked.size // 32 + len(np.unique(picked)) * case.columns)
    assert stats.hbm_core_read_bytes == 128 * out_slices * per_core
    assert stats.hbm_write_bytes == 2 * want.size


def test_a_table_whose_columns_contradict_the_file_is_refused() -> None:
    case = TableGather(("x", "mb"), True, 0, (1, 1, 1), 128)
    table = case.table()
    wrong = replace(table.entries[1], device_size=(4, 300, 64), size_bytes=128 * 4 * 300)
    with pytest.raises(SpyrecError) as error:
        EmulatedDevice().load(
            program_of(),
            {"sdsc_0.json": case.superdsc()},
            replace(table, entries=(table.entries[0], wrong, table.entries[2])),
        )
    assert error.value.diagnostics[0].code == "SPY0716"


@pytest.mark.parametrize("inputs", [3, 4])
def test_a_layer_norm_without_weight_or_bias_is_the_one_with_weight_one_and_bias_zero(inputs: int) -> None:
    for seed in range(4):
        generator = np.random.default_rng(seed)
        full = pointwise("layernormnorm", generator)
        entries = table_of(full).entries
        data = {
            entry.arg_index: random_bytes(generator, DL16, math.prod(entry.device_size), positive=False)
            for entry in entries[:-1]
        }
        for absent, value in ((3, ONE), (4, 0)):
            if absent >= inputs:
                data[absent].view(np.uint16)[:] = value
        short = replace(full, tensors=(*full.tensors[:inputs], full.tensors[5]))
        want = execute(full, {**data, 5: np.zeros(entries[5].size_bytes, np.uint8)}).copy()
        given = {position: values for position, values in data.items() if position < inputs}
        got = execute(short, {**given, inputs: np.zeros(entries[5].size_bytes, np.uint8)})
        np.testing.assert_array_equal(got, want)


def test_a_layer_norm_of_two_or_six_inputs_is_refused() -> None:
    rows = Tensor(("mb", "out"), "out")
    for inputs in (2, 6):
        operation = Operation("layernormnorm", {"mb": (8, 1), "out": (64, 1)}, (rows,) * (inputs + 1))
        with pytest.raises(SpyrecError) as error:
            EmulatedDevice().load(program_of(), {"sdsc_0.json": superdsc_of(operation)}, table_of(operation))
        assert error.value.diagnostics[0].code == "SPY0724"


def test_matmul_rows_do_not_depend_on_where_they_stand_or_how_the_work_is_split() -> None:
    generator = np.random.default_rng(1)
    results: list[npt.NDArray[np.uint8]] = []
    a, b = (random_bytes(generator, DL16, count, positive=False) for count in (24 * 192, 192 * 384))
    for rows, columns in ((1, 1), (8, 1), (3, 2), (24, 6)):
        dims = {"mb": (24, rows), "out": (384, columns), "in": (192, 1)}
        if rows * columns > 32:
            dims["out"] = (384, 1)
        tensors = (Tensor(("mb", "in"), "in"), Tensor(("in", "out"), "out"), Tensor(("mb", "out"), "out"))
        operation = Operation("matmul", dims, tensors, unit="pt")
        results.append(execute(operation, {0: a, 1: b}))
    for one, other in pairwise(results):
        np.testing.assert_array_equal(one, other)
    # One row alone: the same bits as inside the whole.
    alone = Operation(
        "matmul",
        {"mb": (1, 1), "out": (384, 1), "in": (192, 1)},
        (Tensor(("mb", "in"), "in"), Tensor(("in", "out"), "out"), Tensor(("mb", "out"), "out")),
        unit="pt",
    )
    row = a.view(np.uint16).reshape(3, 24, 64)[:, 17, :].copy()
    single = execute(alone, {0: row.view(np.uint8).reshape(-1), 1: b})
    np.testing.assert_array_equal(
        single.view(np.uint16).reshape(6, 64), results[0].view(np.uint16).reshape(6, 24, 64)[:, 17]
    )


def execute(
    operation: Operation, data: dict[int, npt.NDArray[np.uint8]], numerics: str = "dl16"
) -> npt.NDArray[np.uint8]:
    device = EmulatedDevice(numerics=numerics)
    table = table_of(operation)
    loaded = device.load(program_of(), {"sdsc_0.json": superdsc_of(operation)}, table)
    addresses = [device.allocate(entry.size_bytes) for entry in table.entries]
    for index, values in data.items():
        device.memory(addresses[index], table.entries[index].size_bytes)[:] = values
    device.launch(loaded, addresses, None)
    return device.memory(addresses[-1], table.entries[-1].size_bytes)


def test_garbage_in_the_padding_of_k_meets_zero_rows_of_b_and_contributes_nothing() -> None:
    dims = {"mb": (8, 2), "out": (64, 1), "in": (128, 2)}
    tensors = (Tensor(("mb", "in"), "in"), Tensor(("in", "out"), "out"), Tensor(("mb", "out"), "out"))
    operation = Operation("matmul", dims, tensors, unit="pt")
    generator = np.random.default_rng(0)
    a, b = (random_bytes(generator, DL16, count, positive=False) for count in (8 * 128, 128 * 64))
    b.view(np.uint16).reshape(128, 64)[100:] = 0
    a.view(np.uint16).reshape(2, 8, 64)[1, :, 36:] = 0
    clean = execute(operation, {0: a, 1: b}).copy()
    a.view(np.uint16).reshape(2, 8, 64)[1, :, 36:] = 0x7FFF
    np.testing.assert_array_equal(execute(operation, {0: a, 1: b}), clean)
    # Outside the last K stick an infinity is the user's: it must show.
    a.view(np.uint16).reshape(2, 8, 64)[0, 3, 5] = 0x7FFF
    b.view(np.uint16).reshape(128, 64)[5] = 0
    poisoned = execute(operation, {0: a, 1: b}).view(np.uint16).reshape(8, 64)
    assert np.all(poisoned[3] == dlfloat.MERGED_INFINITY)


@pytest.mark.parametrize("numerics", ["ieee", "f32"])
def test_other_numerics_store_their_own_format(numerics: str) -> None:
    carrier = {"ieee": np.float16, "f32": np.float32}[numerics]
    generator = np.random.default_rng(2)
    dims = {"mb": (8, 4), "out": (128, 2)}
    tensors = [Tensor(("mb", "out"), "out") for _ in range(3)]
    x, y = (generator.standard_normal(8 * 128).astype(carrier) for _ in range(2))
    product = Operation("mul", dims, tensors)
    out = execute(product, {0: x.view(np.uint8), 1: y.view(np.uint8)}, numerics)
    np.testing.assert_array_equal(out.view(carrier), (x * y).astype(carrier))
    exponential = Operation("exp", dims, tensors[1:])
    out = execute(exponential, {0: x.view(np.uint8)}, numerics)
    np.testing.assert_array_equal(out.view(carrier), np.exp(x.astype(np.float64)).astype(carrier))
    matrix = Operation(
        "matmul",
        {"mb": (16, 2), "out": (64, 1), "in": (64, 1)},
        (Tensor(("mb", "in"), "in"), Tensor(("in", "out"), "out"), Tensor(("mb", "out"), "out")),
        unit="pt",
    )
    a, b = (generator.standard_normal((n, 64)).astype(carrier) for n in (16, 64))
    out = execute(matrix, {0: a.view(np.uint8).reshape(-1), 1: b.view(np.uint8).reshape(-1)}, numerics)
    want = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(
        out.view(carrier).reshape(16, 64), want, rtol=1e-3, atol=1e-2 if numerics == "ieee" else 1e-4
    )
    folded = Operation(
        "sum",
        {"mb": (8, 4), "out": (128, 2)},
        (Tensor(("mb", "out"), "out"), Tensor(("mb", "out"), "out", {"out": -2})),
    )
    out = execute(folded, {0: x.view(np.uint8)}, numerics).view(carrier).reshape(8, 64)[:, 0]
    want = x.reshape(2, 8, 64).astype(np.float64).sum(axis=(0, 2))
    np.testing.assert_allclose(out, want, rtol=2e-3 if numerics == "ieee" else 1e-6, atol=1e-6)


@pytest.mark.parametrize("shape", [(106, 200), (64, 100), (10, 64)])
def test_restickify_moves_the_valid_extents_only(shape: tuple[int, int]) -> None:
    rows, columns = shape
    padded = {"mb": (-(-rows // 64) * 64, 1), "out": (-(-columns // 64) * 64, 1)}
    short = {"mb": padded["mb"][0] - rows, "out": padded["out"][0] - columns}
    # Each ragged dim is the stick of one side (whole sticks there) and a plain dim of the other (a short gap there).
    source = Tensor(("mb", "out"), "out", gap={"mb": short["mb"]} if short["mb"] else {})
    target = Tensor(("out", "mb"), "mb", gap={"out": short["out"]} if short["out"] else {})
    operation = Operation("ReStickifyOpHBM", padded, (source, target))
    sizes = ((padded["out"][0] // 64, rows, 64), (padded["mb"][0] // 64, columns, 64))
    entries = tuple(TableEntry(f"t{i}", i, size, DL16, i << 34, 2 * math.prod(size)) for i, size in enumerate(sizes))
    values = np.random.default_rng(0).integers(0, 1 << 15, sizes[0]).astype(np.uint16)
    device = EmulatedDevice()
    loaded = device.load(program_of(), {"sdsc_0.json": superdsc_of(operation)}, ArgumentTable(entries))
    addresses = [device.allocate(entry.size_bytes) for entry in entries]
    device.memory(addresses[0], entries[0].size_bytes)[:] = values.view(np.uint8).reshape(-1)
    device.launch(loaded, addresses, None)
    host = values.transpose(1, 0, 2).reshape(rows, -1)[:, :columns]
    moved = device.memory(addresses[1], entries[1].size_bytes).view(np.uint16).reshape(sizes[1])
    np.testing.assert_array_equal(moved.transpose(0, 2, 1).reshape(-1, columns)[:rows], host)
    # Lanes past the valid rows were not stored.
    assert np.all(moved.transpose(0, 2, 1).reshape(-1, columns)[rows:] == 0x7FFF)


def test_a_ragged_cast_takes_its_extents_from_the_argument_table() -> None:
    # Width 200: N is 256, the fp32 side has 7 sticks where the file says 8 (A5), with the column not outermost.
    dims = {"x": (3, 1), "mb": (4, 1), "out": (256, 1)}
    order = ("mb", "out", "x")
    operation = Operation("dl16tofp32", dims, (Tensor(order, "out"), Tensor(order, "out", {}, FP32)))
    sizes = ((3, 4, 4, 64), (3, 7, 4, 32))
    formats = (DL16, FP32)
    entries = tuple(
        TableEntry(f"t{i}", i, size, formats[i], i << 34, 128 * math.prod(size[:-1])) for i, size in enumerate(sizes)
    )
    values = np.random.default_rng(0).standard_normal(sizes[0])
    device = EmulatedDevice()
    loaded = device.load(program_of(), {"sdsc_0.json": superdsc_of(operation)}, ArgumentTable(entries))
    addresses = [device.allocate(entry.size_bytes) for entry in entries]
    device.memory(addresses[0], entries[0].size_bytes)[:] = dlfloat.encode(values).view(np.uint8).reshape(-1)
    device.launch(loaded, addresses, None)
    stored = device.memory(addresses[1], entries[1].size_bytes).view(np.float32).reshape(sizes[1])
    want = dlfloat.decode(dlfloat.encode(values)).transpose(0, 2, 1, 3).reshape(3, 4, 256)[..., :224]
    np.testing.assert_array_equal(stored.transpose(0, 2, 1, 3).reshape(3, 4, 224), want)


def test_gather_refuses_a_row_past_the_table_and_counts_the_rows_it_read() -> None:
    operation = gather_operation((4, 2), True)
    device = EmulatedDevice()
    table = table_of(operation)
    loaded = device.load(program_of(), {"sdsc_0.json": superdsc_of(operation)}, table)
    addresses = [device.allocate(entry.size_bytes) for entry in table.entries]
    index = device.memory(addresses[0], table.entries[0].size_bytes).view(np.uint32)
    index[:] = np.arange(64) % 3
    stats = device.launch(loaded, addresses, None).operations[0]
    # 2 sticks of index, 3 rows of 2 sticks; each of 8 cores reads one stick of index and 3 rows of one stick.
    assert (stats.hbm_read_bytes, stats.hbm_core_read_bytes) == (128 * (2 + 6), 128 * 8 * (1 + 3))
    before = device.memory(addresses[2], table.entries[2].size_bytes).copy()
    index[40] = 64
    with pytest.raises(SpyrecError) as error:
        device.launch(loaded, addresses, None)
    (found,) = error.value.diagnostics
    assert found.code == "SPY0706"
    assert "index [40] of the operation, on core" in found.message
    assert "is row 64; the table has 64 rows" in found.message
    assert isinstance(found, RuleDiagnostic)
    assert (found.place.tensor, found.place.address) == ("arg0", addresses[0] + 40 * 4)
    assert found.place.device_coordinate == (40 // 32, 40 % 32)
    np.testing.assert_array_equal(device.memory(addresses[2], table.entries[2].size_bytes), before)


@pytest.mark.parametrize("seed", range(8))
def test_counters_are_the_sticks_that_the_oracle_touches(seed: int) -> None:
    generator = np.random.default_rng(100 + seed)
    build = (pointwise, reduction, matmul, restickify)[seed % 4]
    operation = build(("add", "max", "matmul", "ReStickifyOpHBM")[seed % 4], generator)
    superdsc, table = superdsc_of(operation), table_of(operation)
    device = EmulatedDevice()
    loaded = device.load(program_of(), {"sdsc_0.json": superdsc}, table)
    stats = device.launch(loaded, [device.allocate(entry.size_bytes) for entry in table.entries], None).operations[0]
    execution = oracle.Execution(oracle.Machine({}, {}), to_json(superdsc), {})
    at = execution.box()
    core_sticks = [
        {int(a) // 128 for position in execution.inputs for a in execution.where(position, core, at)}
        for core in execution.slices
    ]
    written = {int(a) // 128 for core in execution.slices for a in execution.where(execution.out, core, at)}
    assert stats.hbm_read_bytes == 128 * len(set[int]().union(*core_sticks))
    assert stats.hbm_core_read_bytes == 128 * sum(len(sticks) for sticks in core_sticks)
    assert stats.hbm_write_bytes == 128 * len(written)
