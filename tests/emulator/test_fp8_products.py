"""Products of 8-bit floats: where packed elements lie, and which operands are refused."""

from __future__ import annotations

import json
from dataclasses import replace
from math import prod

import numpy as np
import numpy.typing as npt
import pytest

from spyrec.bundle.dialects import AUGUST_2026
from spyrec.codegen.emit_opspecs import CodegenOptions, emit_opspecs
from spyrec.codegen.opspec import OpSpec, OpSpecFile
from spyrec.codegen.opspec_json import read_opspecs
from spyrec.diagnostics import SpyrecError
from spyrec.hardware import dlfloat
from spyrec.runtime.device import ArgumentTable, TableEntry
from tests.support.both_engines import Launched
from tests.support.kinds.eight_bits import rounded

Json = dict[str, object]
Doubles = npt.NDArray[np.float64]


def argument(index: int, shape: tuple[int, int], symbols: tuple[str, str], kind: str, arrangement: str = "") -> Json:
    """An operand of two dims in default layout; ``kind``: its format."""
    lanes = 64 if kind == "SEN169_FP16" else 128
    (rows, columns), (row, column) = shape, symbols
    found: Json = {
        "is_input": True, "arg_index": index, "device_dtype": kind,
        "device_size": [-(-columns // lanes), rows, lanes],
        "device_coordinates": [f"floor({column}/{lanes})", row, f"Mod({column}, {lanes})"],
        "allocation": {"hbm": index << 34},
    }  # fmt: skip
    return found | ({"element_arrangement": arrangement} if arrangement else {})


def operation(op: str, sizes: dict[str, tuple[int, int]], args: list[Json], *, folds: bool = False) -> Json:
    space = [{"symbol": name, "size": size, "work_division": cut} for name, (size, cut) in sizes.items()]
    return {
        "op": op,
        "is_reduction": folds,
        "iteration_space": space,
        "args": [*args[:-1], args[-1] | {"is_input": False}],
    }


def read(specs: list[Json]) -> OpSpecFile:
    return read_opspecs(
        json.dumps({"format": "spyrec.opspec/1", "symbolic_args": True, "unroll_loops": False, "specs": specs})
    )


HALF, EIGHT = "SEN169_FP16", "SEN143_FP8"


def chain(m: int, k: int, n: int, cuts: tuple[int, int, int] = (1, 1, 1)) -> OpSpecFile:
    """``x @ w`` in 8 bits: arguments x, w, x in 8 bits, w in 8 bits, the product."""
    of_m, of_k, of_n = cuts
    x8 = argument(2, (m, k), ("c0", "c1"), EIGHT, "QFP8CH")
    w8 = argument(3, (k, n), ("c0", "c1"), EIGHT, "QFP8WT")
    product = [
        argument(2, (m, k), ("c0", "c2"), EIGHT, "QFP8CH"), argument(3, (k, n), ("c2", "c1"), EIGHT, "QFP8WT"),
        argument(4, (m, n), ("c0", "c1"), HALF),
    ]  # fmt: skip
    return read(
        [
            operation("qfp8ch", {"c0": (m, of_m), "c1": (k, 1)}, [argument(0, (m, k), ("c0", "c1"), HALF), x8]),
            operation("qfp8wt", {"c0": (k, of_k), "c1": (n, of_n)}, [argument(1, (k, n), ("c0", "c1"), HALF), w8]),
            operation("batchmatmulfp8", {"c0": (m, of_m), "c1": (n, of_n), "c2": (k, of_k)}, product, folds=True),
        ]
    )


OWN = CodegenOptions(dialect=AUGUST_2026)
EXACT = replace(OWN, is_exact=True)


def launched(file: OpSpecFile, contents: dict[int, Doubles]) -> Launched:
    emitted = emit_opspecs(file, OWN)
    entries: dict[int, TableEntry] = {}
    for spec in file.specs:
        assert isinstance(spec, OpSpec)
        for item in spec.args:
            index, size = item.arg_index or 0, item.device_size
            entry = TableEntry(f"a{index}", index, size, item.device_dtype, index << 34, 128 * prod(size[:-1]))
            entries[index] = entry
    held = {index: device_bytes(values) for index, values in contents.items()}
    return Launched(emitted.program, emitted.superdscs, ArgumentTable(tuple(entries[i] for i in sorted(entries))), held)


def device_bytes(values: Doubles) -> npt.NDArray[np.uint8]:
    """DLFloat16 in default layout: sticks of 64 columns, one column of sticks after the other."""
    rows, columns = values.shape
    sticks = values.reshape(rows, columns // 64, 64).transpose(1, 0, 2)
    return np.ascontiguousarray(dlfloat.encode(sticks)).view(np.uint8).reshape(-1)


def test_weights_lie_in_pairs_of_rows_element_by_element() -> None:
    k, n = 128, 256
    weights = np.arange(k * n, dtype=np.float64).reshape(k, n) % 448
    held, _ = launched(chain(1, k, n), {0: np.zeros((1, k)), 1: weights}).memory("fast")
    sticks = held["argument 3"].reshape(n // 128, k, 128)
    values = np.where(sticks >> 3 == 0, sticks / 512, (1 + (sticks & 7) / 8) * 2.0 ** ((sticks >> 3).astype(int) - 7))
    for row, column in ((0, 0), (1, 0), (0, 1), (6, 63), (7, 64), (5, 127), (127, 130)):
        at = values[column // 128, row // 2 * 2 + column % 128 // 64, 2 * (column % 64) + row % 2]
        assert at == rounded(weights)[row, column]


@pytest.mark.parametrize("op", ["qfp8ch", "batchmatmulfp8"])
def test_the_halves_of_a_stick_alternate_every_eight_elements(op: str) -> None:
    k = 256
    x = np.arange(k, dtype=np.float64)[None, :] % 127
    held, _ = launched(chain(1, k, 128), {0: np.zeros((1, k)) + x, 1: np.eye(k, 128)}).memory("fast")
    if op == "qfp8ch":
        stick = held["argument 2"][:128]
        order = [*range(8), *range(64, 72), *range(8, 16), *range(72, 80)]
        values = (1 + (stick & 7) / 8) * 2.0 ** ((stick >> 3).astype(int) - 7)
        assert values[1:32].tolist() == rounded(x)[0, order].tolist()[1:]
    else:
        got = dlfloat.decode(held["argument 4"].view(np.uint16))
        assert got.tolist() == rounded(x)[0, :128].tolist()


def test_ragged_weights_are_written_as_upstream_has_them_and_refused_else() -> None:
    args = [argument(0, (200, 100), ("c0", "c1"), HALF), argument(1, (200, 100), ("c0", "c1"), EIGHT, "QFP8WT")]
    file = read([operation("qfp8wt", {"c0": (200, 4), "c1": (100, 1)}, args)])
    superdsc = emit_opspecs(file, EXACT).superdscs["sdsc_0.json"]
    assert dict(superdsc.iteration) == {"mb": 256, "out": 128}
    assert all(not operand.back_gap for operand in superdsc.operands)
    assert [line for line in str(emit_opspecs(file, EXACT).program).split() if "6400" in line]  # 50 rows of 128 bytes
    with pytest.raises(SpyrecError, match="SPY0516"):
        emit_opspecs(file, OWN)


def planted(change: str) -> OpSpecFile:
    m, k, n = 2, 128, 128
    x = argument(0, (m, k), ("c0", "c2"), EIGHT, "QFP8CH")
    w = argument(1, (k, n), ("c2", "c1"), EIGHT, "QFP8WT")
    args = [x, w, argument(2, (m, n), ("c0", "c1"), HALF)]
    if change == "first operand":
        args[0] = x | {"element_arrangement": "QFP8WT"}
        return read([operation("batchmatmulfp8", {"c0": (m, 1), "c1": (n, 1), "c2": (k, 1)}, args, folds=True)])
    if change == "stick elsewhere":
        source = argument(0, (k, n), ("c0", "c1"), HALF)
        return read(
            [
                operation(
                    "qfp8wt", {"c0": (k, 1), "c1": (n, 1)}, [source, argument(1, (n, k), ("c1", "c0"), EIGHT, "QFP8WT")]
                )
            ]
        )
    source, target = (
        argument(i, (6, n), ("c0", "c1"), kind, to) for i, kind, to in ((0, HALF, ""), (1, EIGHT, "QFP8WT"))
    )
    return read([operation("qfp8wt", {"c0": (6, 2), "c1": (n, 1)}, [source, target])])


@pytest.mark.parametrize(
    ("change", "code"),
    [("first operand", "SPY0545"), ("stick elsewhere", "SPY0545"), ("ragged pairs", "SPY0516")],
)
def test_pairs_of_the_wrong_dims_are_refused(change: str, code: str) -> None:
    with pytest.raises(SpyrecError, match=code):
        emit_opspecs(planted(change), OWN)


@pytest.mark.parametrize(("change", "code"), [("first operand", "SPY0724"), ("stick elsewhere", "SPY0724")])
def test_files_with_pairs_of_the_wrong_dims_are_not_executed(change: str, code: str) -> None:
    file = planted(change)
    emitted = emit_opspecs(file, EXACT)
    good = launched(chain(1, 128, 128), {})
    with pytest.raises(SpyrecError, match=code):
        replace(good, program=emitted.program, superdscs=emitted.superdscs).memory("fast")


def test_formats_of_the_operands_are_those_of_the_table() -> None:
    file = read(
        [
            operation(
                "qfp8wt",
                {"c0": (128, 1), "c1": (128, 1)},
                [argument(0, (128, 128), ("c0", "c1"), HALF), argument(1, (128, 128), ("c0", "c1"), HALF)],
            )
        ]
    )
    with pytest.raises(SpyrecError, match="SPY0531"):
        emit_opspecs(file, OWN)


def laid_out(index: int, axes: str, lanes_of: str, sizes: dict[str, int], kind: str, arrangement: str = "") -> Json:
    """An operand whose device axes count these symbols, outermost first; its sticks run along ``lanes_of``."""
    lanes = 64 if kind == HALF else 128
    found: Json = {
        "is_input": True, "arg_index": index, "device_dtype": kind,
        "device_size": [*(sizes[axis] // (lanes if axis == lanes_of else 1) for axis in axes), lanes],
        "device_coordinates": [*(f"floor({axis}/{lanes})" if axis == lanes_of else axis for axis in axes),
                               f"Mod({lanes_of}, {lanes})"],
        "allocation": {"hbm": index << 34},
    }  # fmt: skip
    return found | ({"element_arrangement": arrangement} if arrangement else {})


def in_layout(values: Doubles, symbols: str, axes: str, lanes_of: str) -> Doubles:
    """Return elements in the order of the device, sticks of 64."""
    at = symbols.index(lanes_of)
    shape = [*values.shape[:at], values.shape[at] // 64, 64, *values.shape[at + 1 :]]
    place = {symbol: number + (number > at) for number, symbol in enumerate(symbols)}
    return values.reshape(shape).transpose([*(place[axis] for axis in axes), at + 1]).reshape(-1)


SIZES = {"b": 2, "m": 4, "k": 256, "n": 256}


def batched(axes: tuple[str, str, str], cuts: dict[str, int]) -> OpSpecFile:
    """``x[b, m, k] @ w[b, k, n]`` in 8 bits, operands in these device orders; weights may have no b."""
    of_x, of_w, of_y = axes
    x8, w8 = laid_out(2, of_x, "k", SIZES, EIGHT, "QFP8CH"), laid_out(3, of_w, "n", SIZES, EIGHT, "QFP8WT")
    undivided = {symbol: (size, 1) for symbol, size in SIZES.items()}
    divided = {symbol: (size, cuts.get(symbol, 1)) for symbol, size in SIZES.items()}
    return read(
        [
            operation(
                "qfp8ch", {symbol: undivided[symbol] for symbol in "bmk"}, [laid_out(0, of_x, "k", SIZES, HALF), x8]
            ),
            operation(
                "qfp8wt",
                {symbol: undivided[symbol] for symbol in "bkn" if symbol in of_w},
                [laid_out(1, of_w, "n", SIZES, HALF), w8],
            ),
            operation(
                "batchmatmulfp8",
                {symbol: divided[symbol] for symbol in "bmnk"},
                [x8, w8, laid_out(4, of_y, "n", SIZES, HALF)],
                folds=True,
            ),
        ]
    )


@pytest.mark.parametrize("of_w", ["knb", "nkb", "kbn", "nk", "kn"])
@pytest.mark.parametrize(("of_x", "of_y"), [("mkb", "mnb"), ("bkm", "bnm")])
@pytest.mark.parametrize(
    "cuts",
    [{}, {"b": 2}, {"m": 2, "n": 2}, {"k": 2}, {"b": 2, "n": 2, "k": 2}],
    ids=lambda cuts: "".join(cuts) or "one",
)
def test_weights_of_a_batch_and_shared_ones(of_w: str, of_x: str, of_y: str, cuts: dict[str, int]) -> None:
    """``knb``: weights [b, k, n] in default layout."""
    generator = np.random.default_rng(3)
    symbols = "".join(symbol for symbol in "bkn" if symbol in of_w)
    x, w = (dlfloat.decode(dlfloat.encode(generator.standard_normal([SIZES[s] for s in own]))).astype(np.float64)
            for own in ("bmk", symbols))  # fmt: skip
    case = launched(batched((of_x, of_w, of_y), cuts), {})
    given = {0: in_layout(x, "bmk", of_x, "k"), 1: in_layout(w, symbols, of_w, "n")}
    case = replace(case, contents={at: dlfloat.encode(values).view(np.uint8) for at, values in given.items()})
    case.assert_equal()
    got = dlfloat.decode(case.memory("fast")[0]["argument 4"].view(np.uint16)).astype(np.float64)
    want, most = (np.einsum(f"bmk,{symbols}->bmn", f(rounded(x)), f(rounded(w))) for f in (np.asarray, np.abs))
    want, most = (in_layout(values, "bmn", of_y, "n") for values in (want, most))
    assert np.all(np.abs(got - want) <= 2.0**-9 * np.abs(want) + 1e-5 * most)


@pytest.mark.parametrize("of_w", ["bnk", "bkn", "nbk"])
def test_pairs_along_the_batch_are_refused(of_w: str) -> None:
    """Rows of a pair are those of the outermost dim beside the sticks': which it is, packing weights does not say."""
    with pytest.raises(SpyrecError, match=r"SPY0545|SPY0516"):
        emit_opspecs(batched(("mkb", of_w, "mnb"), {}), OWN)


def test_what_torch_spyre_says_of_weights_of_a_batch_is_not_executed() -> None:
    """Its sticks of weights [b, k, n] in default layout run along the rows."""
    emitted = emit_opspecs(batched(("mkb", "knb", "mnb"), {}), EXACT)
    case = replace(
        launched(batched(("mkb", "knb", "mnb"), {}), {}), superdscs=emitted.superdscs, program=emitted.program
    )
    assert case.is_refused()
