"""Soundness and sharpness of the error bounds, against a simulation of the device that shares none of their code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from spyrec.compare.bounds import ValueBound, bound_outputs
from spyrec.compare.propagation import error_rule
from spyrec.compare.verdict import CheckReport, OutputCase
from spyrec.hardware.dtypes import DType
from spyrec.ir.graph import Graph, Scalar
from spyrec.ir.opdef import OpKind, catalogue
from spyrec.ir.ops.movement import JoinAttributes, ToAttributes
from spyrec.ir.ops.reduction import ReductionAttributes
from spyrec.ir.ops.unary import ClampAttributes
from spyrec.ir.ops.views import ReshapeAttributes, TransposeAttributes
from spyrec.ir.reader import read_graph
from spyrec.passes.device_graph import device_graph
from tests.compare.device_graphs import (
    Array,
    GraphMaker,
    damaged,
    load_from,
    random_graph,
    simulate,
    stored,
)

Floats = npt.NDArray[np.float64]
LAST = ReductionAttributes((-1,), keepdim=True)


def bounds_of(maker: GraphMaker, graph: Graph, numerics: str = "dl16") -> dict[str, ValueBound]:
    return dict(zip(graph.outputs, bound_outputs(graph, maker.inputs, load_from(graph), numerics)))


def ratios(known: ValueBound, got: Array) -> npt.NDArray[np.float64]:
    """Return error / bound of the elements that have a finite bound and a finite reference."""
    want = known.exact.astype(np.float64)
    bounded = np.isfinite(want) & np.isfinite(known.bound)
    error = np.abs(got.astype(np.float64)[bounded] - want[bounded])
    bound = known.bound[bounded]
    return np.where(error == 0, 0.0, np.divide(error, bound, out=np.full(error.shape, np.inf), where=bound > 0))


def judge(known: ValueBound, got: Array, dtype: DType = DType.FLOAT16, numerics: str = "dl16") -> CheckReport:
    return OutputCase(known.exact, got, known, dtype, numerics).report(merges_nan=numerics == "dl16")


@pytest.mark.parametrize("numerics", ["dl16", "ieee", "f32"])
@pytest.mark.parametrize("block", range(4))
def test_no_rounding_of_the_device_leaves_the_bound_and_the_bound_is_not_loose(numerics: str, block: int) -> None:
    # NumPy's float32 functions and sums of equal terms err in one direction; beside DL16 and half that is nothing
    limit = 1.25 if numerics == "f32" else 1.0 + 1e-9
    elements, worst = 0, list[float]()
    for seed in range(block * 25, block * 25 + 25):
        maker, made = random_graph(seed)
        graph = maker.graph(*made)
        values = simulate(graph, maker.inputs, numerics)
        for name, known in bounds_of(maker, graph, numerics).items():
            found = ratios(known, values[name])
            elements += found.size
            if found.size:
                worst.append(float(found.max()))
            assert found.size == 0 or found.max() <= limit, (seed, name, graph.producers()[name].op)
    assert elements > 10_000
    assert float(np.median(worst)) >= 0.1


def test_the_bound_of_float32_graphs_holds_and_is_not_loose() -> None:
    maker = GraphMaker(3, DType.FLOAT32)
    x, w = maker.input(maker.normal(20, 128)), maker.constant(maker.normal(128))
    mean = maker.node("mean", maker.node("mul", x, w), attributes=LAST)
    centred = maker.node("sub", x, mean)
    scaled = maker.node("div", centred, maker.node("sqrt", maker.node("abs", maker.node("add", mean, w))))
    half = maker.node("to", scaled, attributes=ToAttributes(DType.FLOAT16))
    graph = maker.graph(centred, scaled, half)
    values = simulate(graph, maker.inputs, "f32")
    values[half] = stored(values[scaled])
    for name, known in bounds_of(maker, graph).items():
        found = ratios(known, values[name])
        assert 0.05 <= found.max() <= 1.0, name
    assert np.median(bounds_of(maker, graph)[scaled].bound) < 1e-5


def test_repeated_values_whose_roundings_do_not_average_out_stay_inside() -> None:
    maker = GraphMaker(0)
    halves = np.concatenate([np.full((1, 2000), 0.1), np.full((1, 2000), -0.1)], axis=1).astype(np.float16)
    x = maker.input(halves)
    third = maker.node("mul", x, maker.constant(np.full((4000,), 1 / 3, dtype=np.float16)))
    weight = maker.constant(np.concatenate([np.full((2000, 1), 1.0), np.full((2000, 1), 0.98)]).astype(np.float16))
    total = maker.node("spyre.batchmatmul", third, weight)
    graph = maker.graph(third, total)
    values = simulate(graph, maker.inputs)
    for name, known in bounds_of(maker, graph).items():
        assert ratios(known, values[name]).max() <= 1.0


_ABOVE, _BELOW = 1.0 + 2.0**-11, 1.0 - 2.0**-11
_KINKS: dict[str, tuple[float, ClampAttributes | None, Callable[[Floats], Floats]]] = {
    "abs": (2.0**-9, None, np.abs),
    "relu": (-(2.0**-9), None, lambda x: np.maximum(x, 0.0)),
    "clamp": (_ABOVE, ClampAttributes(None, 1.0), lambda x: np.minimum(x, 1.0)),
    "minimum": (_ABOVE, None, lambda x: np.minimum(x, 1.0)),
    "maximum": (_BELOW, None, lambda x: np.maximum(x, 1.0)),
    "amin": (_ABOVE, None, lambda x: np.minimum(x, 1.0)),
    "amax": (_BELOW, None, lambda x: np.maximum(x, 1.0)),
}
"""Op -> a value beside its kink (1 is the other operand), its attributes, what it does."""


@pytest.mark.parametrize("op", _KINKS)
def test_an_error_that_reaches_over_a_kink_stays_inside_the_bound_and_so_does_what_follows(op: str) -> None:
    """The operand may lie anywhere within its own bound, whatever side of the kink random roundings happen to show."""
    near, attributes, function = _KINKS[op]
    maker = GraphMaker(1)
    third = maker.input(np.full((40, 64), 0.75, np.float16))
    rounded = maker.node("sub", maker.node("mul", third, third), maker.constant(np.full((), 0.5625 - near, np.float16)))
    one = maker.constant(np.ones((40, 64), np.float16))
    if op in ("minimum", "maximum"):
        chosen = maker.node(op, rounded, one)
    elif op in ("amin", "amax"):
        pair = maker.node("cat", rounded, one, attributes=JoinAttributes(-1))
        pair = maker.node("reshape", pair, attributes=ReshapeAttributes((40, 2, 64)))
        chosen = maker.node(op, pair, attributes=ReductionAttributes((1,), keepdim=False))
    else:
        chosen = maker.node(op, rounded, attributes=attributes)
    doubled = maker.node("mul", chosen, Scalar(2.0))
    known = bounds_of(maker, maker.graph(rounded, chosen, doubled))
    assert (known[rounded].bound > 2.0**-11).all()
    for sign in (-1.0, 1.0):
        moved = function(known[rounded].exact.astype(np.float64) + sign * known[rounded].bound)
        assert ratios(known[chosen], moved).max() <= 1.0 + 1e-9
        assert ratios(known[doubled], 2.0 * moved).max() <= 1.0 + 1e-9
    assert (known[chosen].bound <= known[rounded].bound + 1e-12).all()


def _attending_block(maker: GraphMaker, x: str, mask: str) -> str:
    """Add a causal attention over the rows of ``x``, a residual sum, an rms norm and a matrix, each in device ops."""
    rows, width = maker.shape(x)
    key = maker.node("spyre.batchmatmul", x, maker.constant(maker.normal(width, width, scale=2 * width**-0.5)))
    key = maker.node("transpose", key, attributes=TransposeAttributes(0, 1))
    scores = maker.node("mul", maker.node("spyre.batchmatmul", x, key), Scalar(width**-0.5))
    scores = maker.node("add", scores, mask)
    powers = maker.node("exp", maker.node("sub", scores, maker.node("amax", scores, attributes=LAST)))
    shares = maker.node("div", powers, maker.node("sum", powers, attributes=LAST))
    x = maker.node("add", x, maker.node("spyre.batchmatmul", shares, x))
    square = maker.node("mean", maker.node("mul", x, x), attributes=LAST)
    x = maker.node("mul", x, maker.node("rsqrt", maker.node("add", square, Scalar(2.0**-17))))
    weight = maker.constant(maker.normal(width, width, scale=width**-0.5))
    assert maker.shape(x) == (rows, width)
    wide = maker.node("relu", maker.node("spyre.batchmatmul", x, weight))
    return maker.node("add", x, maker.node("mul", wide, wide))


@pytest.mark.parametrize("seed", range(3))
def test_which_score_is_the_largest_costs_no_bound(seed: int) -> None:
    """Scores lie closer than their errors in many rows; a largest element and a relu move by no more than errors do."""
    maker = GraphMaker(seed)
    x = maker.input(maker.normal(48, 64, scale=0.25))
    mask = maker.constant(np.triu(np.full((48, 48), -1e4, np.float16), 1))
    for _ in range(3):
        x = _attending_block(maker, x, mask)
    graph = maker.graph(x)
    known = bounds_of(maker, graph)[x]
    found = ratios(known, simulate(graph, maker.inputs)[x])
    assert found.size == known.exact.size
    assert 0.05 <= found.max() <= 1.0
    assert np.median(known.bound) < 0.1 * np.std(known.exact.astype(np.float64))


def test_errors_over_kinks_that_go_one_way_stay_inside_the_bound_of_their_sum() -> None:
    """All elements of a row reach over their kinks together: their errors add up where random ones would cancel."""
    near, count = 2.0**-11, 256
    maker = GraphMaker(2)
    third = maker.input(np.full((8, count), 0.75, np.float16))
    bias = maker.constant(np.full((), 0.5625 + near, np.float16))
    rounded = maker.node("sub", maker.node("mul", third, third), bias)
    chosen = maker.node("relu", rounded)
    total = maker.node("sum", chosen, attributes=LAST)
    apart = maker.node("sub", chosen, maker.node("relu", maker.node("mul", rounded, Scalar(1.0))))
    known = bounds_of(maker, maker.graph(rounded, total, apart))
    moved = np.maximum(known[rounded].exact.astype(np.float64) + known[rounded].bound, 0.0)
    assert moved.min() > 0
    assert ratios(known[total], moved.sum(axis=-1, keepdims=True)).max() <= 1.0 + 1e-9
    assert ratios(known[apart], moved).max() <= 1.0 + 1e-9


def test_a_chain_of_contractions_keeps_a_useful_bound() -> None:
    maker = GraphMaker(5)
    name = maker.input(maker.normal(16, 256))
    for _ in range(8):
        product = maker.node("spyre.batchmatmul", name, maker.constant(maker.normal(256, 256, scale=1 / 16)))
        name = maker.node("gelu", maker.node("add", product, name))
    graph = maker.graph(name)
    known = bounds_of(maker, graph)[name]
    found = ratios(known, simulate(graph, maker.inputs)[name])
    assert found.size == 16 * 256
    assert 0.05 <= found.max() <= 1.0
    assert np.median(known.bound) < 0.05 * np.std(known.exact.astype(np.float64))
    assert not judge(known, np.zeros((16, 256), np.float16)).ok


def test_every_op_of_the_device_has_an_error_rule() -> None:
    apart = (OpKind.CAST, OpKind.CREATION)
    lacking = [d.name for d in catalogue().values() if d.device and d.kind not in apart and error_rule(d) is None]
    assert lacking == []


def _single_op_graphs() -> list[tuple[str, GraphMaker, str]]:
    """One small graph per op of the device that stores floats, with inputs in the op's domain."""
    cases: list[tuple[str, GraphMaker, str]] = []
    for definition in catalogue().values():
        types = definition.samples[0][0] if definition.samples else ()
        if definition.device is None or definition.kind is OpKind.CAST or None in types:
            continue
        maker = GraphMaker(11)
        names: list[str] = []
        for index, item in enumerate(types):
            assert item is not None
            shape = item.shape
            positive = np.abs(maker.normal(*shape)) + np.float16(0.5)
            is_condition = item.dtype is DType.BOOL
            values = np.asarray(maker.random.random(shape) < 0.5) if is_condition else positive
            names.append(maker.input(np.asarray(values, dtype=np.bool_ if is_condition else np.float16)))
            del index
        result = maker.node(definition.name, *names, attributes=definition.samples[0][1])
        cases.append((definition.name, maker, result))
    return cases


def test_an_error_of_8_units_in_one_stored_element_of_any_op_fails_the_check_unless_operands_cancel() -> None:
    """What one op explains is 1 to 3 roundings of its operands and result: 8 units (8 to 16 roundings) are outside."""
    planted, inside = 0, dict[str, int]()
    for op, maker, name in _single_op_graphs():
        graph = maker.graph(name)
        known = bounds_of(maker, graph)[name]
        sound = simulate(graph, maker.inputs)[name]
        dtype = graph.type_of(name).dtype
        carrier = np.float16 if dtype is DType.FLOAT16 else np.bool_
        assert judge(known, sound.astype(carrier), dtype).ok, op
        for element in np.flatnonzero(sound.reshape(-1)):
            altered = damaged(sound, int(element), 8)
            report = judge(known, altered.astype(carrier), dtype)
            planted += 1
            if report.ok:
                error = abs(float(altered.reshape(-1)[element]) - float(known.exact.reshape(-1)[element]))
                assert error <= 2 * known.bound.reshape(-1)[element], op
                inside[op] = inside.get(op, 0) + 1
            else:
                assert sound.ndim == 0 or np.ravel_multi_index(report.worst.index, sound.shape) == element, op
    assert planted > 800
    assert set(inside) <= {"sub", "spyre.layernormnorm"}, "differences of nearly equal numbers lose their digits"
    assert sum(inside.values()) < planted / 100


def test_an_error_of_8_units_inside_a_chain_fails_the_check_or_lies_inside_the_bound() -> None:
    maker = GraphMaker(21)
    x = maker.input(maker.normal(8, 64))
    hidden = maker.node("spyre.batchmatmul", x, maker.constant(maker.normal(64, 64, scale=1 / 8)))
    active = maker.node("silu", hidden)
    out = maker.node("mul", active, x)
    graph = maker.graph(out)
    known = bounds_of(maker, graph)[out]
    caught = 0
    for element in range(512):
        altered = simulate(graph, maker.inputs, damage=(hidden, element, 8))[out]
        report = judge(known, altered.astype(np.float16))
        error = abs(float(altered.reshape(-1)[element]) - float(known.exact.reshape(-1)[element]))
        assert report.ok == (error <= 2 * float(known.bound.reshape(-1)[element]))
        caught += not report.ok
    assert caught > 512 / 8, "a product of 64 terms has a bound of several units itself"


def test_an_error_of_8_units_in_any_op_of_the_digits_example_is_caught_at_the_op_or_lies_inside_its_bound() -> None:
    """Judged where it is stored (as a bisection does): downstream a softmax and two matmuls dilute it."""
    root = Path(__file__).resolve().parents[2] / "examples" / "digits"
    graph = device_graph(read_graph(root / "graph.json"))
    (image,) = graph.inputs
    with np.load(root / "heldout.npz", allow_pickle=False) as archive:
        inputs = {image: archive[image]}
    stores = [node.output for node in graph.nodes if catalogue()[node.op].kind is not OpKind.VIEW]
    whole = replace(graph, outputs=tuple(stores))
    sound = simulate(whole, inputs)
    caught: dict[str, bool] = {}
    for name, known in zip(stores, bound_outputs(whole, inputs, load_from(whole), "dl16")):
        assert judge(known, sound[name].astype(np.float16)).ok, name
        largest = int(np.argmax(np.abs(sound[name])))
        altered = damaged(sound[name], largest, 8)
        report = judge(known, altered.astype(np.float16))
        error = abs(float(altered.reshape(-1)[largest]) - float(known.exact.reshape(-1)[largest]))
        assert report.ok == (error <= 2 * known.bound.reshape(-1)[largest]), name
        caught[name] = not report.ok
    assert caught[graph.outputs[0]]
    assert sum(caught.values()) >= len(caught) / 2, caught
