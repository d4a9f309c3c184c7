"""Programs whose extents a launch gives: NumPy on the elements that there are; what lies behind is left alone."""

from __future__ import annotations

import json
from dataclasses import replace
from math import prod
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from spyrec.bundle.dialects import AUGUST_2026, JUNE_2026
from spyrec.bundle.mlir_parser import parse_program
from spyrec.bundle.mlir_printer import print_program
from spyrec.bundle.superdsc_reader import parse_superdsc
from spyrec.bundle.superdsc_writer import to_bytes
from spyrec.codegen.emit_opspecs import CodegenOptions, emit_opspecs
from spyrec.codegen.opspec import OpSpec, OpSpecFile
from spyrec.codegen.opspec_json import read_opspecs
from spyrec.diagnostics import SpyrecError
from spyrec.hardware import dlfloat
from spyrec.runtime.device import ArgumentTable, TableEntry
from tests.support.both_engines import Launched

Json = dict[str, object]
Doubles = npt.NDArray[np.float64]
OWN = CodegenOptions(dialect=AUGUST_2026)
EXACT = replace(OWN, is_exact=True)
AUGUST = Path(__file__).parent.parent / "fixtures" / "examples_2026_08"


def argument(index: int, rows: int, columns: int, coordinates: tuple[str, str]) -> Json:
    row, column = coordinates
    outer, inner = (f"floor({column}/64)", f"Mod({column}, 64)") if column != "0" else ("0", "0")
    return {
        "is_input": True, "arg_index": index, "device_dtype": "SEN169_FP16",
        "device_size": [columns // 64 if column != "0" else 1, rows, 64],
        "device_coordinates": [outer, row, inner], "allocation": {"hbm": index << 34},
    }  # fmt: skip


def operation(
    op: str, space: dict[str, tuple[int | str, int]], args: list[Json], bounds: dict[str, tuple[int, int]]
) -> Json:
    found: Json = {
        "op": op, "is_reduction": op in {"sum", "batchmatmul"},
        "iteration_space": [
            {"symbol": name, "size": size, "work_division": cut} for name, (size, cut) in space.items()
        ],
        "args": [*args[:-1], args[-1] | {"is_input": False}],
        "symbolic_dim_bounds": {name: {"max": most, "granularity": step} for name, (most, step) in bounds.items()},
    }  # fmt: skip
    return found


def read(*specs: Json) -> OpSpecFile:
    content = {"format": "spyrec.opspec/1", "symbolic_args": True, "unroll_loops": False, "specs": specs}
    return read_opspecs(json.dumps(content))


def chain(rows: int, columns: int, step: int, cut: int = 1) -> OpSpecFile:
    """``sum over the rows of (x + y) * y``, the rows being dynamic: x, y, x + y, the product, its sum."""
    bounds = {"rows": (rows, step)}
    space: dict[str, tuple[int | str, int]] = {"c0": ("rows", 1), "c1": (columns, cut)}
    x, y, total, scaled = (argument(i, rows, columns, ("c0", "c1")) for i in range(4))
    folded: dict[str, tuple[int | str, int]] = {"c0": (columns, cut), "c1": ("rows", 1)}
    source, target = argument(3, rows, columns, ("c1", "c0")), argument(4, 1, columns, ("0", "c0"))
    return read(
        operation("add", space, [x, y, total], bounds),
        operation("mul", space, [total, y, scaled], bounds),
        operation("sum", folded, [source, target], bounds),
    )


def launched(file: OpSpecFile, contents: dict[int, Doubles], values: dict[str, int]) -> Launched:
    emitted = emit_opspecs(file, OWN)
    entries: dict[int, TableEntry] = {}
    for spec in file.specs:
        assert isinstance(spec, OpSpec)
        for item in spec.args:
            index, size = item.arg_index or 0, item.device_size
            entries[index] = TableEntry(f"a{index}", index, size, item.device_dtype, index << 34, 128 * prod(size[:-1]))
    held = {index: device_bytes(found) for index, found in contents.items()}
    table = ArgumentTable(tuple(entries[i] for i in sorted(entries)))
    return Launched(emitted.program, emitted.superdscs, table, held, values)


def device_bytes(values: Doubles) -> npt.NDArray[np.uint8]:
    rows, columns = values.shape
    sticks = values.reshape(rows, columns // 64, 64).transpose(1, 0, 2)
    return np.ascontiguousarray(dlfloat.encode(sticks)).view(np.uint8).reshape(-1)


def host(memory: npt.NDArray[np.uint8], rows: int, columns: int) -> Doubles:
    values = dlfloat.decode(memory.view(np.uint16)).astype(np.float64)
    return values.reshape(columns // 64, rows, 64).transpose(1, 0, 2).reshape(rows, columns)


@pytest.mark.parametrize("size", [64, 128, 192])
def test_a_dynamic_contraction_ends_where_the_size_says(size: int) -> None:
    m, k, n = 3, 192, 64
    bounds = {"depth": (k, 64)}
    args = [argument(0, m, k, ("c0", "c2")), argument(1, k, n, ("c2", "c1")), argument(2, m, n, ("c0", "c1"))]
    file = read(operation("batchmatmul", {"c0": (m, 1), "c1": (n, 1), "c2": ("depth", 1)}, args, bounds))
    generator = np.random.default_rng(size)
    a, b = (dlfloat.decode(dlfloat.encode(generator.standard_normal(shape))).astype(np.float64)
            for shape in ((m, k), (k, n)))  # fmt: skip
    a[:, size:] = np.inf
    case = launched(file, {0: a, 1: b}, {"sym_0_1_base": size})
    case.assert_equal()
    held, _ = case.memory("fast")
    want = a[:, :size] @ b[:size]
    got = host(held["argument 2"], m, n)
    assert np.all(np.abs(got - want) <= 2.0**-9 * np.abs(want) + 1e-5 * (np.abs(a[:, :size]) @ np.abs(b[:size])))


def test_one_program_runs_at_one_size_after_the_other() -> None:
    rows, columns = 8, 64
    x = np.ones((rows, columns))
    for size in (2, 8, 4, 2):
        case = launched(chain(rows, columns, 2), {0: x, 1: x}, {"sym_0_1_base": size})
        held, stats = case.memory("fast")
        assert host(held["argument 4"], 1, columns)[0, 0] == 2 * size
        # each row of 64 elements is read and written once by each of the first two operations
        assert stats.operations[0].hbm_read_bytes == 2 * 128 * size
        assert stats.operations[1].hbm_write_bytes == 128 * size


@pytest.mark.parametrize(
    ("values", "code"),
    [({"sym_0_1_base": 3}, "SPY0708"), ({"sym_0_1_base": 10}, "SPY0708"), ({"sym_0_1_base": 0}, "SPY0708"),
     ({"sym_0_2_base": 2}, "SPY0708")],
)  # fmt: skip
def test_a_size_that_the_program_does_not_take_is_refused(values: dict[str, int], code: str) -> None:
    for engine in ("fast", "reference"):
        with pytest.raises(SpyrecError, match=code):
            launched(chain(8, 64, 2), {}, values).memory(engine)


def test_a_size_that_ends_inside_a_stick_is_refused() -> None:
    args = [argument(i, 2, 128, ("c0", "c1")) for i in range(2)]
    file = read(operation("abs", {"c0": (2, 1), "c1": ("n", 1)}, args, {"n": (128, 32)}))
    launched(file, {}, {"sym_0_1_base": 64}).memory("fast")
    with pytest.raises(SpyrecError, match="SPY0708"):
        launched(file, {}, {"sym_0_1_base": 32}).memory("fast")


def split() -> OpSpecFile:
    path = AUGUST / "add_dynamic_rows_split" / "opspecs.json"
    return read_opspecs(path.read_bytes(), str(path))


def test_a_dynamic_dim_that_cores_share_is_refused_and_written_under_compat_only() -> None:
    with pytest.raises(SpyrecError, match="SPY0547"):
        emit_opspecs(split(), OWN)
    emitted = emit_opspecs(split(), EXACT)
    case = launched(chain(8, 64, 2), {}, {})
    with pytest.raises(SpyrecError, match=r"SPY0547.*Q18"):
        replace(case, program=emitted.program, superdscs=emitted.superdscs).memory("fast")


def test_a_name_that_two_dims_and_two_operations_share_has_one_parameter() -> None:
    args = [argument(i, 64, 64, ("c0", "c1")) for i in range(2)]
    space: dict[str, tuple[int | str, int]] = {"c0": ("n", 1), "c1": ("n", 1)}
    other: dict[str, tuple[int | str, int]] = {"c0": ("m", 1), "c1": ("n", 1)}
    bounds = {"n": (64, 64), "m": (64, 2)}
    emitted = emit_opspecs(read(operation("abs", space, args, bounds), operation("neg", other, args, bounds)), OWN)
    text = print_program(emitted.program)
    assert [name for name in text.split("(")[1].split(")")[0].split("%") if name.startswith("sym")] == [
        "sym_0_1_base: !sdscbundle.input_arg<index, granularity=64, max_value=64>, ",
        "sym_1_1_base: !sdscbundle.input_arg<index, granularity=2, max_value=64>",
    ]
    first, second = emitted.superdscs.values()
    assert [item.symbol_id for item in first.dynamic_dims.values()] == [-1, -1]
    assert [item.symbol_id for item in second.dynamic_dims.values()] == [-4, -5]
    assert parse_program(text) == emitted.program
    for superdsc in (first, second):
        assert parse_superdsc(to_bytes(superdsc)) == superdsc


def test_sizes_without_bounds_or_with_others_are_refused() -> None:
    args = [argument(i, 8, 64, ("c0", "c1")) for i in range(2)]
    space: dict[str, tuple[int | str, int]] = {"c0": ("n", 1), "c1": (64, 1)}
    with pytest.raises(SpyrecError, match="SPY0546"):
        read(operation("abs", space, args, {}))
    two = read(operation("abs", space, args, {"n": (8, 2)}), operation("abs", space, args, {"n": (8, 4)}))
    with pytest.raises(SpyrecError, match="SPY0546"):
        emit_opspecs(two, OWN)
    for wrong in (0, -1, "", "a b", True, 1.5, None):
        with pytest.raises(SpyrecError, match="SPY0503"):
            read(operation("abs", space | {"c1": (wrong, 1)}, args, {"n": (8, 2)}))  # pyright: ignore[reportArgumentType]


def test_older_dialects_and_baked_addresses_have_no_dynamic_sizes() -> None:
    for options in (CodegenOptions(dialect=JUNE_2026), replace(OWN, symbolic_args=False)):
        with pytest.raises(SpyrecError, match="SPY0534"):
            emit_opspecs(chain(8, 64, 2), options)


@pytest.mark.parametrize("change", ["no mapping", "other stage", "positive", "unbound"])
def test_symbols_that_disagree_are_refused(change: str) -> None:
    data = json.loads((AUGUST / "add_dynamic_rows" / "sdsc_0.json").read_bytes())
    inner = data["0_add"]["dscs_"][0]["add"]
    if change == "no mapping":
        del inner["dimToSymbolMapping_"]
    elif change == "other stage":
        inner["dataStageParam_"]["0"]["el_"]["symbolicDimInfo_"]["mb"]["maxSize_"] = 7
    elif change == "positive":
        inner["dimToSymbolMapping_"]["mb"] = [1]
    else:
        inner["dimToSymbolMapping_"] = {"x": [-1]}
    with pytest.raises(SpyrecError, match="SPY0622"):
        parse_superdsc(json.dumps(data))


def several() -> OpSpecFile:
    """Two operations with dynamic dims (a, b) and (b, c, a); the second's tensors have three dims."""
    bounds = {"a": (128, 64), "b": (128, 64), "c": (6, 2)}
    first: dict[str, tuple[int | str, int]] = {"c0": ("a", 1), "c1": ("b", 1)}
    second: dict[str, tuple[int | str, int]] = {"c0": ("b", 1), "c1": ("c", 1), "c2": ("a", 1)}
    flat = [argument(i, 128, 128, ("c0", "c1")) for i in range(2)]
    deep = [
        argument(i, 128, 128, ("c0", "c2"))
        | {"device_size": [6, 2, 128, 64], "device_coordinates": ["c1", "floor(c2/64)", "c0", "Mod(c2, 64)"]}
        for i in (2, 3)
    ]
    two = {name: bounds[name] for name in "ab"}
    return read(operation("abs", first, flat, two), operation("neg", second, deep, bounds))


def test_a_parameter_is_numbered_where_its_name_stands_first_among_all_sizes_of_that_superdsc() -> None:
    """Of ``%sym_N_k_base``: N is the first SuperDSC with the name, k counts inside of it.

    What counts inside of a SuperDSC are its distinct sizes in the order of its iteration space, as their
    ids are handed out; a size that is known from before is one of them.  So "c", the second of three sizes of SuperDSC
    1 and its only new one, is ``sym_1_2``.
    """
    emitted = emit_opspecs(several(), OWN)
    text = print_program(emitted.program)
    names = [item.partition(":")[0] for item in text.split("(")[1].split(")")[0].split("%")[1:]]
    assert [name for name in names if name.startswith("sym")] == ["sym_0_1_base", "sym_0_2_base", "sym_1_2_base"]
    assert "granularity=2, max_value=6" in text.partition("%sym_1_2_base: ")[2].partition(">")[0]
    calls = [line.strip() for line in text.splitlines() if "sdsc_execute" in line]
    assert calls[0].startswith("sdscbundle.sdsc_execute (%sym_0_1, %sym_0_2, %arg_0, %arg_1)")
    assert calls[1].startswith("sdscbundle.sdsc_execute (%sym_0_2, %sym_1_2, %sym_0_1, %arg_2, %arg_3)")
    assert [call.partition('"symbol_ids"=')[2] for call in calls] == ["[-1, -2, -3, -4]}", "[-5, -6, -7, -8, -9]}"]
    sizes = [[(item.name, item.symbol_id) for item in dsc.dynamic_dims.values()] for dsc in emitted.superdscs.values()]
    assert sizes == [[("a", -1), ("b", -2)], [("b", -5), ("c", -6), ("a", -7)]]
    assert parse_program(text) == emitted.program


def test_the_order_of_parameters_is_that_of_first_appearance_and_every_name_has_one() -> None:
    first, second = several().specs
    emitted = emit_opspecs(replace(several(), specs=(second, first, second)), OWN)
    names = [item.name for item in emitted.program.parameters if item.name.startswith("sym")]
    assert names == ["sym_0_1_base", "sym_0_2_base", "sym_0_3_base"]
    executed = [line for line in print_program(emitted.program).splitlines() if "sdsc_execute" in line]
    bound = [line.partition("(")[2].partition(", %arg")[0] for line in executed]
    assert bound == ["%sym_0_1, %sym_0_2, %sym_0_3", "%sym_0_3, %sym_0_1", "%sym_0_1, %sym_0_2, %sym_0_3"]
