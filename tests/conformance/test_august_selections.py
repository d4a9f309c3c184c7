"""August's bundles with an index, a top-k or a masked exp, as they stand in their files: both engines, and NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from spyrec.bundle.mlir_parser import parse_program
from spyrec.bundle.superdsc_reader import parse_superdsc
from spyrec.codegen.expression import parse_expression
from spyrec.codegen.opspec import OpSpec, TensorArgument
from spyrec.codegen.opspec_json import read_opspecs
from spyrec.diagnostics import SpyrecError
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.runtime.device import ArgumentTable, TableEntry
from tests.conformance.op_runner import Operand, Places, decoded, encoded, places
from tests.support.both_engines import Launched, differing

FIXTURES = Path(__file__).parent.parent / "fixtures"
AUGUST = FIXTURES / "examples_2026_08"
Doubles = npt.NDArray[np.float64]
Evaluate = Callable[[list[Doubles]], Doubles]


def exponential(given: list[Doubles]) -> Doubles:
    return np.exp(given[0])


def row(given: list[Doubles]) -> Doubles:
    index, table, _ = given
    return table[:, int(index)]


def rows(given: list[Doubles]) -> Doubles:
    index, table, _ = given
    return table[:, index.astype(int)].T


def scattered(given: list[Doubles]) -> Doubles:
    index, source, before = given
    after = before.copy()
    for place, number in enumerate(index.astype(int)):
        after[:, number] = source[place]
    return after


def largest(given: list[Doubles]) -> Doubles:
    return given[0].max(axis=1)


def eight_largest(given: list[Doubles]) -> Doubles:
    return -np.sort(-given[0], axis=1)[:, :8].T


CASES: dict[str, Evaluate] = {
    "exp_masked": exponential,
    "gather_one_row": row,
    "gather_rows_split": rows,
    "indirect_gather_1d": rows,
    "scatter_rows": scattered,
    "topk_k1": largest,
    "topk_k8_split": eight_largest,
}


def operation_of(case: str) -> OpSpec:
    own = AUGUST / case / "opspecs.json"
    path = own if own.exists() else FIXTURES / "examples" / case / "opspecs.json"
    (spec,) = read_opspecs(path.read_bytes(), str(path)).specs
    assert isinstance(spec, OpSpec)
    return spec


def elements(spec: OpSpec, argument: TensorArgument) -> tuple[Places, list[int]]:
    """Return the device coordinates of an operand's elements, and the shape of these, by symbols in order of names."""
    sizes = {dim.symbol: dim.size for dim in spec.iteration_space}
    sizes["r"] = next((size for item, size in zip(argument.device_coordinates, argument.device_size, strict=True)
                       if item.indirect_names), 0)  # fmt: skip
    coordinates = [parse_expression("r") if item.indirect_names else item for item in argument.device_coordinates]
    symbols = tuple(sorted({symbol for item in coordinates for symbol in item.symbols}))
    return places(Operand(symbols, (), None), coordinates, sizes), [sizes[symbol] for symbol in symbols]


def entries_of(spec: OpSpec) -> tuple[TableEntry, ...]:
    sizes = [128 * math.prod(item.device_size[:-1]) for item in spec.args]
    return tuple(
        TableEntry(f"t{at}", at, item.device_size, item.device_dtype, item.allocation.start_bytes, size)
        for at, (item, size) in enumerate(zip(spec.args, sizes, strict=True))
    )


def words_of(memory: npt.NDArray[np.uint8], argument: TensorArgument) -> npt.NDArray[np.unsignedinteger]:
    return memory.view(f"u{128 // argument.device_size[-1]}").reshape(argument.device_size)


@pytest.mark.parametrize("case", sorted(CASES))
def test_a_bundle_as_it_stands_gives_what_numpy_gives(case: str) -> None:
    spec, generator = operation_of(case), np.random.default_rng(5)
    files = {path.name: parse_superdsc(path.read_bytes()) for path in (AUGUST / case).glob("sdsc_*.json")}
    program = parse_program((AUGUST / case / "bundle.mlir").read_text())
    entries = entries_of(spec)
    given: list[Doubles] = []
    contents: dict[int, npt.NDArray[np.uint8]] = {}
    for number, argument in enumerate(spec.args):
        where, shape = elements(spec, argument)
        is_index = argument.device_dtype is DeviceFormat.IEEE_INT32
        # every row that the index names is there, and some stand twice
        values = np.asarray(generator.integers(0, 100, shape) if is_index else generator.integers(-48, 49, shape) / 16)
        given.append(values.astype(np.float64))
        contents[number] = np.full(entries[number].size_bytes, 0x7F, np.uint8)
        words_of(contents[number], argument)[where] = encoded(given[-1].reshape(-1), argument.device_dtype)
    launched = Launched(program, files, ArgumentTable(entries), contents)
    fast, stats = launched.memory("fast")
    defined, other_stats = launched.memory("reference")
    assert differing(fast, defined) == {}
    assert stats == other_stats
    last = spec.args[-1]
    where, shape = elements(spec, last)
    words = words_of(fast[f"argument {len(entries) - 1}"], last)
    got = decoded(words[where], last.device_dtype).reshape(shape)
    np.testing.assert_allclose(got, CASES[case](given), rtol=2.0**-10 if case == "exp_masked" else 0.0)
    if case == "exp_masked":  # what is behind the 200 columns is exp of minus infinity
        assert not words[3, :, 8:].any()


def test_a_row_that_stands_twice_is_the_later_one() -> None:
    superdsc = parse_superdsc((AUGUST / "scatter_rows" / "sdsc_0.json").read_bytes())
    spec = operation_of("scatter_rows")
    entries = entries_of(spec)
    program = parse_program((AUGUST / "scatter_rows" / "bundle.mlir").read_text())
    source = np.repeat(np.arange(32, dtype=np.uint16), 64)
    contents = {0: np.full(32, 7, np.int32).view(np.uint8), 1: source.view(np.uint8), 2: np.zeros(128 * 128, np.uint8)}
    launched = Launched(program, {"sdsc_0.json": superdsc}, ArgumentTable(entries), contents)
    for engine in ("fast", "reference"):
        held, stats = launched.memory(engine)
        after = held["argument 2"].view(np.uint16).reshape(128, 64)
        assert (after[7] == 31).all()
        assert not np.delete(after, 7, axis=0).any()
        assert stats.operations[0].hbm_write_bytes == 128  # one stick, stored 32 times


def test_a_scatter_that_cores_share_is_refused() -> None:
    superdsc = parse_superdsc((AUGUST / "scatter_rows" / "sdsc_0.json").read_bytes())
    halves = tuple({"mb": half, "out": 0} for half in (0, 1))
    operands = tuple(replace(item, start_addresses=item.start_addresses * 2) for item in superdsc.operands)
    shared = replace(superdsc, core_ids=(0, 1), work_slices={"mb": 2, "out": 1}, core_extent={"mb": 16, "out": 64},
                     core_work_slices=halves, operands=operands)  # fmt: skip
    spec = operation_of("scatter_rows")
    entries = entries_of(spec)
    program = parse_program((AUGUST / "scatter_rows" / "bundle.mlir").read_text())
    with pytest.raises(SpyrecError) as refused:
        Launched(program, {"sdsc_0.json": shared}, ArgumentTable(entries), {}).memory("fast")
    assert "SPY0717" in {item.code for item in refused.value.diagnostics}
