"""SuperDSCs with several DSCs: cores with unequal work, against NumPy, and what goes wrong between the DSCs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spyrec.bundle.program import (
    Add,
    AffineApply,
    AffineMap,
    ArgumentExtract,
    Constant,
    For,
    InputArgument,
    Program,
    SdscExecute,
    Statement,
)
from spyrec.bundle.superdsc import SuperDsc
from spyrec.bundle.superdsc_reader import parse_superdsc
from spyrec.bundle.superdsc_writer import to_bytes
from spyrec.diagnostics import DiagnosticSink, SpyrecError
from spyrec.hardware import dlfloat
from tests.emulator.builders import Operation, Tensor, program_of, superdsc_of, table_of
from tests.emulator.test_shuffles import values_in as places_of
from tests.support.both_engines import Launched
from tests.support.unequal import SHARE, WHOLE, WINDOW, Shares, divided, shared, with_dsc, with_schedule

Doubles = npt.NDArray[np.float64]
Bytes = npt.NDArray[np.uint8]

EXAMPLES = max(2, (settings().max_examples or 0) // 5)  # each is three programs, executed by both engines
ROWS = ("rows", "cols")
MATRIX = Tensor(("rows", "cols"), "cols")
"""A matrix in columns of sticks: rows innermost."""


def on_device(values: Doubles) -> Bytes:
    """Return a matrix ``[rows, columns]`` as MATRIX has it, padding lanes 0."""
    rows, columns = values.shape
    padded = np.zeros((rows, -(-columns // 64) * 64), np.float32)
    padded[:, :columns] = values
    sticks = padded.reshape(rows, -1, 64).transpose(1, 0, 2)
    return dlfloat.encode(np.ascontiguousarray(sticks).reshape(-1)).view(np.uint8)


def on_host(memory: Bytes, shape: tuple[int, int]) -> Doubles:
    """Return the matrix that MATRIX has in memory."""
    rows, columns = shape
    sticks = dlfloat.decode(memory.view(np.uint16)).reshape(-1, rows, 64)
    return sticks.transpose(1, 0, 2).reshape(rows, -1)[:, :columns].astype(np.float64)


def numbers(seed: int, *shape: int) -> Doubles:
    """Return small integers, of which sums and products are exact."""
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(np.float64)


def launch(operation: Operation, superdsc: SuperDsc, inputs: Sequence[Doubles]) -> Launched:
    contents = {index: on_device(values) for index, values in enumerate(inputs)}
    return Launched(program_of(), {"sdsc_0.json": superdsc}, table_of(operation), contents)


def result(launched: Launched, argument: int, shape: tuple[int, int]) -> Doubles:
    """Return what both engines leave in an argument."""
    launched.assert_equal()
    return on_host(launched.memory("fast")[0][f"argument {argument}"], shape)


def through_file(superdsc: SuperDsc) -> SuperDsc:
    """Return what a file of it says: the same, without a word."""
    sink = DiagnosticSink()
    found = parse_superdsc(to_bytes(superdsc), None, sink)
    assert found == superdsc
    assert to_bytes(found) == to_bytes(superdsc)
    assert sink.diagnostics == []
    return found


def add(rows: int, columns: int) -> Operation:
    return Operation("add", {"rows": (rows, 1), "cols": (columns, 1)}, (MATRIX, MATRIX, MATRIX))


DIVISIONS: list[Shares] = [
    {"rows": (3, 2, 2)},
    {"rows": (2, 3, 2)},
    {"rows": (5, 1, 1)},
    {"cols": (64, 128)},
    {"rows": (3, 4), "cols": (128, 64)},
    {"rows": (1, 1, 1, 2, 2)},
]


@pytest.mark.parametrize("form", [WHOLE, WINDOW, SHARE])
@pytest.mark.parametrize("shares", DIVISIONS)
def test_a_sum_of_rows_that_do_not_divide(shares: Shares, form: str) -> None:
    operation, (x, y) = add(7, 192), (numbers(seed, 7, 192) for seed in (0, 1))
    superdsc = through_file(divided(superdsc_of(operation), shares, form))
    assert len(superdsc.dscs) > 1
    assert np.array_equal(result(launch(operation, superdsc, (x, y)), 2, (7, 192)), x + y)


@pytest.mark.parametrize("numerics", ["ieee", "f32"])
def test_other_numerics(numerics: str) -> None:
    operation = add(7, 192)
    superdsc = divided(superdsc_of(operation), {"rows": (3, 2, 2)})
    launch(operation, superdsc, (numbers(0, 7, 192), numbers(1, 7, 192))).assert_equal(numerics)


@pytest.mark.parametrize("order", [(2, 0, 1), (9, 31, 4)])
def test_any_cores_in_any_order(order: Sequence[int]) -> None:
    operation, (x, y) = add(7, 192), (numbers(seed, 7, 192) for seed in (0, 1))
    superdsc = through_file(divided(superdsc_of(operation), {"rows": (3, 2, 2)}, WHOLE, order))
    assert np.array_equal(result(launch(operation, superdsc, (x, y)), 2, (7, 192)), x + y)


PRODUCT = Operation(
    "batchmatmul",
    {"m": (7, 1), "n": (192, 1), "k": (128, 1)},
    (Tensor(("m", "k"), "k"), Tensor(("k", "n"), "n"), Tensor(("m", "n"), "n")),
    unit="pt",
)


@pytest.mark.parametrize("form", [WHOLE, WINDOW, SHARE])
@pytest.mark.parametrize("shares", [{"m": (3, 2, 2)}, {"n": (128, 64)}, {"m": (4, 3), "n": (64, 128)}])
def test_a_product_of_unequal_blocks(shares: Shares, form: str) -> None:
    x, y = numbers(0, 7, 128), numbers(1, 128, 192)
    superdsc = through_file(divided(superdsc_of(PRODUCT), shares, form))
    assert np.array_equal(result(launch(PRODUCT, superdsc, (x, y)), 2, (7, 192)), dlfloat_rounded(x @ y))


def test_a_product_whose_k_is_shared_evenly_and_rows_are_not() -> None:
    x, y = numbers(0, 7, 128), numbers(1, 128, 64)
    narrow = replace(PRODUCT, dims={"m": (7, 1), "n": (64, 1), "k": (128, 1)})
    superdsc = through_file(divided(superdsc_of(narrow), {"m": (4, 3), "k": (64, 64)}))
    assert np.array_equal(result(launch(narrow, superdsc, (x, y)), 2, (7, 64)), dlfloat_rounded(x @ y))


def dlfloat_rounded(values: Doubles) -> Doubles:
    return dlfloat.decode(dlfloat.encode(values.astype(np.float32))).astype(np.float64)


def test_sums_over_rows_and_over_columns() -> None:
    x = numbers(2, 7, 128)
    over_columns = Operation("sum", {"rows": (7, 1), "cols": (128, 1)}, (MATRIX, replace(MATRIX, scale={"cols": -2})))
    superdsc = through_file(divided(superdsc_of(over_columns), {"rows": (3, 2, 2)}))
    lanes = result(launch(over_columns, superdsc, (x,)), 1, (7, 64))
    assert np.array_equal(lanes[:, 0], x.sum(axis=1))
    over_rows = Operation(
        "sumnonstick", {"rows": (7, 1), "cols": (192, 1)}, (MATRIX, replace(MATRIX, scale={"rows": -1}))
    )
    x = numbers(2, 7, 192)
    superdsc = through_file(divided(superdsc_of(over_rows), {"cols": (128, 64)}))
    assert np.array_equal(result(launch(over_rows, superdsc, (x,)), 1, (1, 192))[0], x.sum(axis=0))


def test_unequal_shares_in_the_scratchpads() -> None:
    """A sum into LX and a product out of it, both divided alike; divided otherwise the second one is refused."""
    held = replace(MATRIX, lx_start=256)
    first = superdsc_of(replace(add(7, 192), tensors=(MATRIX, MATRIX, held)))
    second = superdsc_of(Operation("mul", add(7, 192).dims, (held, MATRIX, MATRIX)), 1, (0, 1 << 34, 2 << 34))
    x, y = numbers(0, 7, 192), numbers(1, 7, 192)

    def chained(*shares: Shares) -> Launched:
        files = {
            f"sdsc_{i}.json": through_file(divided(own, s)) for i, (own, s) in enumerate(zip((first, second), shares))
        }
        contents = {index: on_device(values) for index, values in enumerate((x, y))}
        return Launched(program_of(2), files, table_of(add(7, 192)), contents)

    alike = chained({"rows": (3, 2, 2)}, {"rows": (3, 2, 2)})
    assert np.array_equal(result(alike, 2, (7, 192)), (x + y) * y)
    with pytest.raises(SpyrecError, match="SPY0718"):
        chained({"rows": (3, 2, 2)}, {"rows": (2, 3, 2)}).memory("fast")


def test_counters_are_those_of_each_part() -> None:
    """Each part reads its rows of both operands and stores as many, counted stick by stick."""
    operation = add(7, 192)
    superdsc = divided(superdsc_of(operation), {"rows": (3, 2, 2)})
    _, stats = launch(operation, superdsc, (numbers(0, 7, 192), numbers(1, 7, 192))).memory("fast")
    found = [(item.cores, item.hbm_read_bytes, item.hbm_write_bytes, item.flops) for item in stats.operations]
    assert found == [(1, 2 * 3 * 3 * 128, 3 * 3 * 128, 3 * 192), (2, 2 * 4 * 3 * 128, 4 * 3 * 128, 4 * 192)]
    assert all(item.simulated_us is not None and item.simulated_us > 0 for item in stats.operations)


def in_a_loop(superdsc: SuperDsc, rounds: int, step: int) -> tuple[Program, SuperDsc]:
    """Return a program that gives every start a symbol of its own and advances all by a step per round."""
    places: dict[int, int] = {}

    def symbolic(dsc: SuperDsc) -> SuperDsc:
        operands = list(dsc.operands)
        for position, operand in enumerate(operands):
            ids = tuple(range(-1 - len(places), -1 - len(places) - len(dsc.core_ids), -1))
            places.update(zip(ids, operand.start_addresses, strict=True))
            operands[position] = replace(operand, start_addresses=ids, is_symbolic=True)
        return replace(dsc, operands=tuple(operands))

    changed = superdsc
    for number in range(len(superdsc.dscs)):
        changed = with_dsc(changed, number, symbolic)
    body: list[Statement] = [Constant("c0", 0), Constant("c1", 1), Constant("count", rounds)]
    body += [ArgumentExtract(f"base{i}", f"arg_{i}_base_addr") for i in range(3)]
    inner: list[Statement] = []
    for number, place in enumerate(places.values()):
        body += [Constant(f"o{number}", place % (1 << 34)), Add(f"a{number}", f"base{place >> 34}", f"o{number}")]
        inner.append(AffineApply(f"p{number}", "step", ("t",), f"a{number}"))
    inner.append(SdscExecute("sdsc_0.json", tuple(f"p{n}" for n in range(len(places))), tuple(places)))
    body.append(For("t", "c0", "count", "c1", tuple(inner)))
    parameters = tuple(InputArgument(f"arg_{i}_base_addr") for i in range(3))
    return Program((AffineMap("step", (step,)),), parameters, tuple(body)), changed


@pytest.mark.parametrize("rounds", [1, 3])
def test_unequal_tiles_in_a_loop(rounds: int) -> None:
    """Tiles of seven rows, each divided 3, 2, 2, in a tensor of as many as there are rounds, by symbols."""
    rows = 7 * rounds
    tile = replace(MATRIX, gap={"rows": rows - 7} if rounds > 1 else {})
    operation = replace(add(7, 192), tensors=(tile, tile, tile))
    program, superdsc = in_a_loop(divided(superdsc_of(operation), {"rows": (3, 2, 2)}), rounds, 7 * 128)
    x, y = numbers(0, rows, 192), numbers(1, rows, 192)
    contents = {index: on_device(values) for index, values in enumerate((x, y))}
    launched = Launched(program, {"sdsc_0.json": through_file(superdsc)}, table_of(operation), contents)
    assert np.array_equal(result(launched, 2, (rows, 192)), x + y)
    assert [item.executions for item in launched.memory("fast")[1].operations] == [rounds, rounds]


@settings(max_examples=EXAMPLES)
@given(source=st.randoms(use_true_random=False))
def test_random_sums_products_and_folds_are_numpys(source: Random) -> None:
    rows, inner, columns = source.randint(1, 9), 64 * source.randint(1, 2), 64 * source.randint(1, 3)
    forms = [WHOLE, WINDOW, SHARE]
    shares = {"rows": random_cut(source, rows, 1), "cols": random_cut(source, columns, 64)}
    x, y = numbers(source.randint(0, 99), rows, columns), numbers(source.randint(0, 99), rows, columns)
    both = divided(superdsc_of(add(rows, columns)), shares, source.choice(forms))
    assert np.array_equal(result(launch(add(rows, columns), both, (x, y)), 2, (rows, columns)), x + y)
    product = replace(PRODUCT, dims={"m": (rows, 1), "n": (columns, 1), "k": (inner, 1)})
    blocks = divided(superdsc_of(product), {"m": shares["rows"], "n": shares["cols"]}, source.choice(forms))
    a, b = numbers(source.randint(0, 99), rows, inner), numbers(source.randint(0, 99), inner, columns)
    assert np.array_equal(result(launch(product, blocks, (a, b)), 2, (rows, columns)), dlfloat_rounded(a @ b))
    fold = Operation("maxnonstick", add(rows, columns).dims, (MATRIX, replace(MATRIX, scale={"rows": -1})))
    folded = divided(superdsc_of(fold), {"cols": shares["cols"]}, source.choice(forms))
    assert np.array_equal(result(launch(fold, folded, (x,)), 1, (1, columns))[0], x.max(axis=0))


def random_cut(source: Random, extent: int, unit: int) -> tuple[int, ...]:
    """Return up to five shares of whole units."""
    units = extent // unit
    cuts = sorted(source.sample(range(1, units), source.randint(0, min(4, units - 1))))
    return tuple((b - a) * unit for a, b in zip([0, *cuts], [*cuts, units], strict=True))


# What is refused.

Change = Callable[[SuperDsc], SuperDsc]


def refusal(superdsc: SuperDsc, operation: Operation | None = None) -> SpyrecError:
    """Return why a file is not run, whether its text or its meaning is wrong."""
    chosen = operation or add(7, 192)
    with pytest.raises(SpyrecError) as found:
        run_of(to_bytes(superdsc), chosen)
    return found.value


def run_of(text: bytes, operation: Operation) -> None:
    files = {"sdsc_0.json": parse_superdsc(text)}
    contents = {0: np.zeros(table_of(operation).entries[0].size_bytes, np.uint8)}
    Launched(program_of(), files, table_of(operation), contents).memory("fast")


def with_second(change: Change) -> Change:
    return lambda superdsc: with_dsc(superdsc, 1, change)


def moved_operand(position: int, by: int, number: int = 1) -> Change:
    def one(dsc: SuperDsc) -> SuperDsc:
        operands = list(dsc.operands)
        starts = tuple(start + by for start in operands[position].start_addresses)
        operands[position] = replace(operands[position], start_addresses=starts)
        return replace(dsc, operands=tuple(operands))

    return lambda superdsc: with_dsc(superdsc, number, one)


ROWS_OF_THREE = divided(superdsc_of(add(7, 192)), {"rows": (3, 2, 2)})


@pytest.mark.parametrize(
    ("change", "code", "fact"),
    [
        (moved_operand(2, -128), "SPY0755", "core 0 of DSC 0 and core 1 of DSC 1 both store byte 256"),
        (moved_operand(2, 128, 0), "SPY0755", "core 0 of DSC 0 and core 1 of DSC 1 both store byte 384"),
        (moved_operand(2, 1 << 14), "SPY0716", "lies in no argument"),
        (moved_operand(0, 128, 0), "SPY0714", "128 bytes off"),
        (with_second(lambda own: replace(own, core_extent={**own.core_extent, "rows": 3})), "SPY0661",
         "N_ of DSC 0 has 7"),
        (with_second(lambda own: replace(own, iteration={**own.iteration, "rows": 5})), "SPY0661",
         "its cores have 4 and all cores 7"),
        (with_second(lambda own: replace(own, core_work_slices=own.core_work_slices[:1] * 2)), "SPY0661",
         "are those of core 1"),
        (with_second(lambda own: replace(own, core_work_slices=({"rows": 0, "cols": 0},) * 2)), "SPY0661",
         "are those of core 0"),
    ],
)  # fmt: skip
def test_dscs_that_do_not_fit_together(change: Change, code: str, fact: str) -> None:
    found = refusal(change(ROWS_OF_THREE)).diagnostics
    assert any(item.code == code and fact in item.message for item in found), [str(item) for item in found]


def test_an_overlap_names_core_and_operand() -> None:
    (found,) = refusal(moved_operand(2, -128)(ROWS_OF_THREE)).diagnostics
    assert "core 1" in "".join(found.notes) + found.message
    assert "operand 2" in found.message


def test_a_slice_of_two_sizes() -> None:
    uneven = divided(superdsc_of(add(7, 192)), {"rows": (3, 4), "cols": (64, 128)})
    wrong = with_dsc(uneven, 1, lambda own: replace(own, core_extent={**own.core_extent, "rows": 2}))
    assert "SPY0661" in str(refusal(wrong))


def masked_sum() -> tuple[Operation, Shares]:
    x = Operation(
        "sum",
        {"rows": (7, 1), "cols": (128, 1)},
        (MATRIX, replace(MATRIX, scale={"cols": -2})),
        masks={"cols": ((100, 28),)},
    )
    return replace(x, constants={"samv-maskvalue": 0}), {"cols": (64, 64), "rows": (3, 4)}


@pytest.mark.parametrize(
    ("operation", "shares", "reason"),
    [
        (PRODUCT, {"k": (64, 64), "m": (3, 4)}, None),
        (replace(PRODUCT, dims={**PRODUCT.dims, "k": (192, 1)}), {"k": (64, 128)}, "folded dim"),
        (Operation("sum", {"rows": (7, 1), "cols": (192, 1)}, (MATRIX, replace(MATRIX, scale={"cols": -2}))),
         {"cols": (64, 128)}, "folded dim"),
        (Operation("ReStickifyOpHBM", {"rows": (192, 1), "cols": (128, 1)}, (MATRIX, Tensor(ROWS, "rows"))),
         {"rows": (64, 128)}, "gaps have two meanings"),
        (replace(add(7, 192), tensors=(MATRIX, MATRIX, MATRIX)), {"rows": (3, 4)}, None),
        (*masked_sum(), None),
    ],
)  # fmt: skip
def test_what_dscs_do_not_share(operation: Operation, shares: Shares, reason: str | None) -> None:
    superdsc = divided(superdsc_of(operation), shares)
    if reason is None:
        parse_superdsc(to_bytes(superdsc))
        return
    (found,) = refusal(superdsc, operation).diagnostics
    assert (found.code, reason in found.message) == ("SPY0756", True), found.message


def test_steady_and_epilogue_sizes_that_differ_are_refused_by_name() -> None:
    text = to_bytes(ROWS_OF_THREE).decode()
    place = text.index('"el_"')
    changed = text[:place] + text[place:].replace('"rows_": 3', '"rows_": 2', 1)
    with pytest.raises(SpyrecError, match="SPY0622") as found:
        parse_superdsc(changed)
    assert "ss_ and el_ differ" in found.value.diagnostics[0].message


def sharing(**sets: Sequence[Sequence[int]]) -> SuperDsc:
    return with_schedule(ROWS_OF_THREE, shares=shared(**sets))


def test_what_is_shared_is_written_and_read_again_and_changes_nothing() -> None:
    alike = Operation("add", add(7, 192).dims, (MATRIX, replace(MATRIX, scale={"rows": -1}), MATRIX))
    divided_alike = divided(superdsc_of(alike), {"rows": (3, 2, 2)})
    superdsc = with_schedule(divided_alike, shares=shared(Tensor0=[[0], [1]], Tensor1=[[0, 1]], Tensor2=[[0], [1]]))
    x, y = numbers(0, 7, 192), numbers(1, 1, 192)
    assert np.array_equal(result(launch(alike, through_file(superdsc), (x, y)), 2, (7, 192)), x + y)


@pytest.mark.parametrize(
    ("sets", "code", "fact"),
    [
        ({"Tensor2": [[0, 1]]}, "SPY0664", 'share one part of "Tensor2"'),
        ({"Tensor0": [[0, 1]]}, "SPY0664", 'share one part of "Tensor0"'),
        ({"Tensor3": [[0], [1]]}, "SPY0663", "is no tensor of the DSCs"),
        ({"Tensor0": [[0]]}, "SPY0663", "do not have each of 2 DSCs once"),
        ({"Tensor0": [[0], [1, 2]]}, "SPY0663", "do not have each of 2 DSCs once"),
        ({"Tensor0": [[0, 1], [1]]}, "SPY0663", "do not have each of 2 DSCs once"),
    ],
)
def test_a_record_of_shared_tensors_that_lies(
    sets: Mapping[str, Sequence[Sequence[int]]], code: str, fact: str
) -> None:
    (found,) = refusal(sharing(**sets)).diagnostics
    assert found.code == code
    assert fact in found.message


def test_a_tensor_that_all_read_is_not_in_parts() -> None:
    alike = Operation("add", add(7, 192).dims, (MATRIX, replace(MATRIX, scale={"rows": -1}), MATRIX))
    superdsc = with_schedule(divided(superdsc_of(alike), {"rows": (3, 2, 2)}), shares=shared(Tensor1=[[0], [1]]))
    (found,) = refusal(superdsc, alike).diagnostics
    assert found.code == "SPY0664"
    assert "have different parts" in found.message


def test_any_value_of_the_file_replaced_is_refused_or_computes_what_it_says() -> None:
    text = to_bytes(sharing(Tensor0=[[0], [1]], Tensor2=[[0], [1]]))
    generator = np.random.default_rng(7)
    outcomes = {"computed": 0, "refused": 0}
    contents = {index: on_device(numbers(index, 7, 192)) for index in (0, 1)}
    for _ in range(200):
        data = json.loads(text)
        places = list(places_of(data))
        node, key = places[generator.integers(len(places))]
        node[key] = [0, 1, 2, -1, 1 << 39, "x", None, [], {}, 64][generator.integers(10)]  # type: ignore[index, call-overload]
        try:
            files = {"sdsc_0.json": parse_superdsc(json.dumps(data))}
            Launched(program_of(), files, table_of(add(7, 192)), contents).assert_equal()
            outcomes["computed"] += 1
        except SpyrecError:
            outcomes["refused"] += 1
    assert outcomes["computed"] > 5
    assert outcomes["refused"] > 50
