"""Every element of every operand lies where device_size and coordinates put it, by the SuperDSC's own address rule."""

from __future__ import annotations

from itertools import product
from math import gcd, prod

from hypothesis import given, settings
from hypothesis import strategies as st

from spyrec.bundle.superdsc import SuperDsc
from spyrec.codegen.emit_opspecs import CodegenOptions, emit_opspecs
from spyrec.codegen.opspec import OpSpec, TensorArgument
from spyrec.hardware.dtypes import DeviceFormat
from tests.codegen.builders import (
    FP16,
    FP32,
    Along,
    ExecutionRule,
    argument,
    core_points,
    direct_address,
    file_of,
    space,
)

LETTERS = "abcde"
FAST = settings(max_examples=35)


def assert_every_element_is_addressed_right(spec: OpSpec) -> None:
    emitted = emit_opspecs(file_of(spec), CodegenOptions())
    (dsc,) = emitted.superdscs.values()
    sizes = {dim.symbol: dim.size for dim in spec.iteration_space}
    labels = dict(zip(sizes, iterated_dims(spec, dsc), strict=True))
    grid = set(product(*(range(cut) for cut in dsc.work_slices.values())))
    assert len(dsc.core_ids) == len(grid) == prod(dsc.work_slices.values())
    assert {tuple(slices[dim] for dim in dsc.work_slices) for slices in dsc.core_work_slices} == grid
    assert all(dsc.core_extent[dim] * cut == dsc.iteration[dim] for dim, cut in dsc.work_slices.items())
    rules = [ExecutionRule(dsc, position) for position in range(len(spec.args))]
    reached = 0
    for core in dsc.core_ids:
        for local, point in core_points(dsc, core, labels, sizes):
            reached += 1
            for rule, arg in zip(rules, spec.args, strict=True):
                assert rule.address(core, local) == direct_address(arg, point), (core, local, arg)
    assert reached


def iterated_dims(spec: OpSpec, dsc: SuperDsc) -> list[str]:
    """The dims of the iteration space without a synthetic one: a cast's row comes first, a sparse stick last."""
    dims, count = list(dsc.iteration), len(spec.iteration_space)
    return dims[-count:] if spec.op == "dl16tofp32" else dims[:count]


@st.composite
def divided(draw: st.DrawFn, size: int, most: int, unit: int = 1) -> int:
    """A split of ``size`` into slices of whole ``unit``s, at most ``most`` of them."""
    if size % unit:
        return 1
    choices = [cut for cut in range(1, most + 1) if (size // unit) % cut == 0]
    return draw(st.sampled_from(choices))


@st.composite
def spaces(draw: st.DrawFn, lanes: int, rank: int) -> tuple[dict[str, int], dict[str, int], str]:
    """Sizes and splits of random dims, and which of them is the stick."""
    symbols = list(LETTERS[:rank])
    stick = draw(st.sampled_from(symbols))
    sizes: dict[str, int] = {}
    splits: dict[str, int] = {}
    budget = 32
    for symbol in symbols:
        is_stick = symbol == stick
        unit = lanes if is_stick else 1
        whole = draw(st.integers(1, 12 if not is_stick else 4)) * unit
        sizes[symbol] = whole - (draw(st.integers(0, lanes - 1)) if is_stick and draw(st.booleans()) else 0)
        splits[symbol] = draw(divided(sizes[symbol], budget, unit))
        budget //= splits[symbol]
    return sizes, splits, stick


@st.composite
def windows(draw: st.DrawFn, symbol: str, *, may_have_tail: bool = True) -> Along:
    if draw(st.booleans()):
        return Along(symbol)
    return Along(symbol, draw(st.integers(0, 3)), draw(st.integers(0, 3)) if may_have_tail else 0)


@st.composite
def pointwise_specs(draw: st.DrawFn) -> OpSpec:
    data_format = draw(st.sampled_from([FP16, FP32]))
    lanes = data_format.elements_per_stick
    assert lanes is not None
    sizes, splits, stick = draw(spaces(lanes, draw(st.integers(1, 4))))
    args: list[TensorArgument] = []
    for index in range(3):
        is_output = index == 2
        kept = [symbol for symbol in sizes if is_output or draw(st.integers(0, 3))]
        order = draw(st.permutations(kept))
        ragged = sizes[stick] % lanes != 0
        axes = [draw(windows(symbol, may_have_tail=not (is_output and ragged and symbol == stick))) for symbol in order]
        axes = [Along(None)] * (len(sizes) + 1 - len(axes)) + axes
        own_stick = stick if stick in kept else None
        args.append(argument(axes, own_stick, sizes, index=index, is_input=not is_output, data_format=data_format))
    return OpSpec("add", False, space(sizes, splits), tuple(args))


@FAST
@given(pointwise_specs())
def test_pointwise_with_broadcasts_windows_and_any_dim_order(spec: OpSpec) -> None:
    assert_every_element_is_addressed_right(spec)


@st.composite
def reduction_specs(draw: st.DrawFn) -> OpSpec:
    data_format = draw(st.sampled_from([FP16, FP32]))
    lanes = data_format.elements_per_stick
    assert lanes is not None
    sizes, splits, stick = draw(spaces(lanes, draw(st.integers(1, 4))))
    kept = [symbol for symbol in sizes if draw(st.booleans())]
    whole = [draw(windows(symbol)) for symbol in draw(st.permutations(list(sizes)))]
    args = (
        argument(whole, stick, sizes, index=0, data_format=data_format),
        argument(
            [Along(None)] * (len(sizes) + 1 - len(kept)) + [Along(symbol) for symbol in draw(st.permutations(kept))],
            stick if stick in kept else None,
            sizes,
            index=1,
            is_input=False,
            data_format=data_format,
        ),
    )
    return OpSpec(draw(st.sampled_from(["sum", "max", "mean"])), True, space(sizes, splits), args)


@FAST
@given(reduction_specs())
def test_reductions_over_any_dims(spec: OpSpec) -> None:
    assert_every_element_is_addressed_right(spec)


@st.composite
def matmul_specs(draw: st.DrawFn) -> OpSpec:
    batch = {symbol: draw(st.integers(1, 4)) for symbol in "ab"[: draw(st.integers(0, 2))]}
    ragged_n, ragged_k = draw(st.integers(0, 63)), draw(st.integers(0, 63))
    sizes = batch | {
        "m": draw(st.integers(1, 9)),
        "n": 64 * draw(st.integers(1, 4)) - ragged_n,
        "k": 64 * draw(st.integers(1, 4)) - ragged_k,
    }
    padded = sizes | {"k": -(-sizes["k"] // 64) * 64}
    splits = {
        "m": draw(divided(sizes["m"], 4)),
        "n": draw(divided(sizes["n"], 4, 64)),
        "k": draw(divided(padded["k"], 2, 64)),
    }
    shared = draw(st.booleans())

    def laid_out(symbols: str, stick: str, extents: dict[str, int], index: int) -> TensorArgument:
        names = [*(() if shared and index == 1 else batch), *symbols]
        axes = [draw(windows(symbol, may_have_tail=index != 2)) for symbol in draw(st.permutations(names))]
        return argument(axes, stick, extents, index=index, is_input=index < 2)

    args = (laid_out("mk", "k", sizes, 0), laid_out("kn", "n", padded, 1), laid_out("mn", "n", sizes, 2))
    return OpSpec("batchmatmul", True, space(sizes, splits), args)


@FAST
@given(matmul_specs())
def test_matmuls_with_batches_shared_weights_and_windows(spec: OpSpec) -> None:
    assert_every_element_is_addressed_right(spec)


@st.composite
def restickify_specs(draw: st.DrawFn) -> OpSpec:
    sizes = {"a": draw(st.integers(1, 200)), "b": draw(st.integers(1, 5)), "c": draw(st.integers(1, 200))}
    splits = {
        "a": draw(divided(sizes["a"], 4, 64)),
        "b": draw(divided(sizes["b"], 5)),
        "c": draw(divided(sizes["c"], 2, 64)),
    }
    first = [Along(symbol) for symbol in draw(st.permutations("abc"))]
    second = [Along(symbol) for symbol in draw(st.permutations("abc"))]
    args = (argument(first, "c", sizes, index=0), argument(second, "a", sizes, index=1, is_input=False))
    return OpSpec("ReStickifyOpHBM", False, space(sizes, splits), args)


@FAST
@given(restickify_specs())
def test_restickify_of_whole_and_ragged_dims(spec: OpSpec) -> None:
    assert_every_element_is_addressed_right(spec)


@st.composite
def cast_specs(draw: st.DrawFn) -> OpSpec:
    rank = draw(st.integers(1, 3))
    symbols = list(LETTERS[:rank])
    stick = symbols[-1]
    sizes = {symbol: draw(st.integers(1, 6)) for symbol in symbols} | {stick: draw(st.integers(1, 200))}
    splits = {symbol: draw(divided(sizes[symbol], 3)) for symbol in symbols[:-1]}
    splits[stick] = draw(divided(sizes[stick], 3, 64))
    # Both sides have room for the common multiple of their sticks.
    room = -(-sizes[stick] // 64) * 64
    args: list[TensorArgument] = []
    for index, data_format in enumerate([FP16, FP32]):
        lanes = data_format.elements_per_stick
        assert lanes is not None
        tail = room // lanes - -(-sizes[stick] // lanes)
        order = draw(st.permutations(symbols))
        axes = [Along(symbol, 0, tail if symbol == stick else 0) for symbol in order]
        args.append(argument(axes, stick, sizes, index=index, is_input=index == 0, data_format=data_format))
    return OpSpec("dl16tofp32", False, space(sizes, splits), tuple(args))


@FAST
@given(cast_specs())
def test_casts_whose_sides_have_room_for_common_sticks(spec: OpSpec) -> None:
    assert_every_element_is_addressed_right(spec)


@FAST
@given(st.data())
def test_eight_bit_operands(data: st.DataObject) -> None:
    lanes = DeviceFormat.SEN143_FP8.elements_per_stick
    assert lanes == 128
    sizes = {"a": data.draw(st.integers(1, 8)), "b": 128 * data.draw(st.integers(1, 4))}
    splits = {"a": data.draw(divided(sizes["a"], 8)), "b": data.draw(divided(sizes["b"], 4, 128))}
    order = data.draw(st.permutations("ab"))
    args = tuple(
        argument([Along(symbol) for symbol in order], "b", sizes, index=index, is_input=index == 0, data_format=fmt)
        for index, fmt in enumerate([FP16, DeviceFormat.SEN143_FP8])
    )
    assert_every_element_is_addressed_right(OpSpec("qfp8ch", False, space(sizes, splits), args))


@FAST
@given(st.data())
def test_lx_windows_lie_densely_in_each_core(data: st.DataObject) -> None:
    rows = data.draw(st.integers(1, 8)) * 4
    cut = data.draw(st.sampled_from([1, 2, 4]))
    sizes = {"a": rows, "b": 64 * data.draw(st.integers(1, 3))}
    offset, tail = data.draw(st.integers(0, 2)), data.draw(st.integers(0, 2))
    stick_outer = data.draw(st.booleans())
    axes = [Along("b", offset, tail), Along("a")] if stick_outer else [Along("a"), Along("b", offset, tail)]
    args = (
        argument(axes, "b", sizes, index=0, lx=256),
        argument([Along("b"), Along("a")], "b", sizes, index=1, is_input=False),
    )
    emitted = emit_opspecs(file_of(OpSpec("abs", False, space(sizes, {"a": cut}), args)))
    (dsc,) = emitted.superdscs.values()
    local = argument(axes, "b", sizes | {"a": rows // cut}, index=0, lx=256)
    rule = ExecutionRule(dsc, 0)
    for core in dsc.core_ids:
        for place in ({"mb": 0, "out": 0}, {"mb": rows // cut - 1, "out": sizes["b"] - 1}, {"mb": 0, "out": 63}):
            point = {"a": place["mb"], "b": place["out"]}
            assert rule.address(core, place) == direct_address(local, point)
    assert gcd(dsc.operands[0].start_addresses[0], 128) == 128
