"""Every operator of ONNX that is read, against the reference evaluator of the onnx package."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import spyrec
from spyrec.diagnostics import SpyrecError
from spyrec.frontends.onnx.operators import OPERATORS
from spyrec.ir.evaluate import evaluate

Array = npt.NDArray[np.generic]

_RANDOM = np.random.default_rng(20261122)


@dataclass(frozen=True)
class Case:
    """One node: its run-time inputs, then what is known beforehand, and its attributes."""

    op: str
    inputs: Sequence[Array]
    known: Mapping[int, Array] = field(default_factory=dict[int, Array])
    attributes: Mapping[str, object] = field(default_factory=dict[str, object])
    results: int = 1
    opset: int = 22


def _f(*shape: int) -> npt.NDArray[np.float32]:
    return _RANDOM.standard_normal(shape).astype(np.float32)


def _p(*shape: int) -> npt.NDArray[np.float32]:
    return (np.abs(_f(*shape)) + 0.25).astype(np.float32)


def _i(*numbers: int) -> Array:
    return np.asarray(numbers, np.int64)


def _index(high: int, *shape: int) -> Array:
    return _RANDOM.integers(0, high, shape)


_X = _f(2, 3, 4)
_IMAGE = _f(1, 4, 6, 6)
_BITS = _RANDOM.integers(0, 100, (2, 3)).astype(np.int64)
_TRUTH = _RANDOM.random((2, 3)) < 0.5

_UNARY = [
    Case(op, [_X])
    for op in (
        "Abs", "Atan", "Asinh", "Ceil", "Cos", "Cosh", "Erf", "Exp", "Floor", "HardSwish", "Identity",
        "IsNaN", "LeakyRelu", "Mish", "Neg", "Relu", "Round", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus",
        "Softsign", "Tan", "Tanh", "Elu", "Celu", "Selu", "HardSigmoid", "Gelu", "ThresholdedRelu",
        "Softmax", "LogSoftmax", "Flatten", "IsInf", "Shrink",
    )
]  # fmt: skip
_POOLED = [Case(op, [_IMAGE]) for op in ("GlobalAveragePool", "GlobalMaxPool")]
_POSITIVE = [Case(op, [_p(2, 3)]) for op in ("Log", "Sqrt", "Reciprocal")]
_INSIDE = [Case(op, [np.tanh(_f(2, 3))]) for op in ("Acos", "Asin", "Atanh")] + [Case("Acosh", [_p(2, 3) + 1])]
_BINARY = [Case(op, [_f(2, 3, 4), _f(3, 1)]) for op in ("Add", "Sub", "Mul", "Max", "Min", "PRelu")]
_COMPARED = [
    Case(op, [np.round(_f(4, 4)), np.round(_f(4))])
    for op in ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")
]
_TRUTHS = [Case(op, [_TRUTH, ~_TRUTH[:1]]) for op in ("And", "Or", "Xor")] + [Case("Not", [_TRUTH])]
_BITWISE = [Case(op, [_BITS, _BITS[::-1].copy()]) for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")]
_REDUCED = [
    Case(op, [_p(2, 3, 4)], {1: _i(0, -1)}, {"keepdims": keep})
    for op in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
               "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare")
    for keep in (0, 1)
]  # fmt: skip
_OTHERS = [
    Case("ArgMax", [_X], {}, {"axis": 1, "keepdims": 0}),
    Case("ArgMin", [np.round(_X)], {}, {"axis": -1, "select_last_index": 1}),
    Case("Attention", [_f(1, 2, 3, 4), _f(1, 2, 5, 4), _f(1, 2, 5, 4)], {}, {}, 1, 23),
    Case("Attention", [_f(1, 3, 8), _f(1, 5, 4), _f(1, 5, 4)], {}, {"q_num_heads": 4, "kv_num_heads": 2}, 1, 23),
    Case("Attention", [_f(1, 2, 3, 4), _f(1, 2, 3, 4), _f(1, 2, 3, 4), _f(3, 5), _f(1, 2, 2, 4), _f(1, 2, 2, 4)],
         {}, {"is_causal": 1}, 3, 24),
    Case("CumProd", [_X], {1: np.asarray(1)}, {"exclusive": 1}, 1, 26),
    Case("EyeLike", [_f(3, 4)], {}, {"k": -1}),
    Case("Hardmax", [_X], {}, {"axis": 1}),
    Case("LRN", [_f(4, 4, 3, 3)], {}, {"size": 3, "alpha": 0.5, "beta": 0.5}),
    Case("LayerNormalization", [_X, _f(4)], {}, {}, 3),
    Case("MeanVarianceNormalization", [_IMAGE]),
    Case("RotaryEmbedding", [_f(1, 2, 3, 4), _f(6, 2), _f(6, 2), _index(6, 1, 3)], {}, {}, 1, 23),
    Case("RotaryEmbedding", [_f(1, 3, 12), _f(1, 3, 1), _f(1, 3, 1)], {},
         {"num_heads": 3, "rotary_embedding_dim": 2, "interleaved": 1}, 1, 23),
    Case("SwiGLU", [_X, _f(2, 3, 4)], {}, {"alpha": 0.5}, 1, 28),
    Case("AveragePool", [_IMAGE], {}, {"kernel_shape": [2, 2], "strides": [2, 2]}),
    Case("AveragePool", [_IMAGE], {}, {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
    Case("BatchNormalization", [_IMAGE], {1: _f(4), 2: _f(4), 3: _f(4), 4: _p(4)}, {"epsilon": 1e-3}),
    Case("BitShift", [_BITS.astype(np.uint8) // 8, np.full((2, 3), 2, np.uint8)], {}, {"direction": "RIGHT"}),
    Case("BitwiseNot", [_BITS]),
    Case("Cast", [_X], {}, {"to": 7}),
    Case("CastLike", [_X, _BITS[:1, :1]]),
    Case("Clip", [_X], {1: np.asarray(-0.5, np.float32), 2: np.asarray(0.75, np.float32)}),
    Case("Col2Im", [_f(1, 12, 6)], {1: _i(3, 4), 2: _i(2, 2)}),
    Case("Concat", [_X, _f(2, 1, 4)], {}, {"axis": 1}),
    Case("Conv", [_IMAGE], {1: _f(6, 2, 3, 3), 2: _f(6)}, {"group": 2, "pads": [1, 0, 1, 2], "strides": [2, 1]}),
    Case("Conv", [_f(1, 3, 9)], {1: _f(4, 3, 3)}, {"dilations": [2], "auto_pad": "SAME_UPPER"}),
    Case("ConvTranspose", [_f(1, 4, 3, 3)], {1: _f(4, 2, 2, 2), 2: _f(2)}, {"strides": [2, 2]}),
    Case("CumSum", [_X], {1: np.asarray(1)}, {"reverse": 1, "exclusive": 1}),
    Case("CumSum", [_X], {1: np.asarray(-1)}),
    Case("DepthToSpace", [_f(1, 8, 2, 3)], {}, {"blocksize": 2, "mode": "DCR"}),
    Case("DepthToSpace", [_f(1, 8, 2, 3)], {}, {"blocksize": 2, "mode": "CRD"}),
    Case("Div", [_X, _p(4)]),
    Case("Div", [_BITS - 50, np.asarray([[3, -4, 7]])]),
    Case("Dropout", [_X]),
    Case("Einsum", [_f(2, 3), _f(3, 4)], {}, {"equation": "ij,jk->ki"}),
    Case("Expand", [_f(3, 1)], {1: _i(2, 1, 4)}),
    Case("Gather", [_f(5, 3), _index(5, 2, 2)]),
    Case("Gather", [_X, _index(4, 3)], {}, {"axis": 2}),
    Case("Gather", [_X], {1: np.asarray(-1)}, {"axis": 1}),
    Case("GatherElements", [_X, _index(3, 2, 2, 4)], {}, {"axis": 1}),
    Case("GatherND", [_X, np.asarray([[0, 1], [1, 2]])]),
    Case("Gemm", [_f(2, 3)], {1: _f(4, 3), 2: _f(4)}, {"transB": 1}),
    Case("Gemm", [_f(3, 2)], {1: _f(3, 4), 2: _f(1, 4)}, {"transA": 1, "alpha": 0.5, "beta": 2.0}),
    Case("GridSample", [_IMAGE, np.tanh(_f(1, 2, 3, 2))], {}, {"mode": "linear", "align_corners": 1}),
    Case("GridSample", [_IMAGE, np.tanh(_f(1, 2, 3, 2))], {}, {"mode": "linear", "padding_mode": "border"}),
    Case("GroupNormalization", [_IMAGE], {1: _f(4), 2: _f(4)}, {"num_groups": 2}),
    Case("InstanceNormalization", [_IMAGE], {1: _f(4), 2: _f(4)}),
    Case("LayerNormalization", [_X], {1: _f(3, 4), 2: _f(3, 4)}, {"axis": 1}),
    Case("LpNormalization", [_X], {}, {"axis": 1, "p": 2}),
    Case("MatMul", [_f(2, 3, 4), _f(4, 5)]),
    Case("MaxPool", [_IMAGE], {}, {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}),
    Case("Mean", [_f(2, 3), _f(3), _f(2, 1)]),
    Case("Mod", [_BITS - 50, np.asarray([[3, -4, 7]])]),
    Case("Mod", [_X, _p(4)], {}, {"fmod": 1}),
    Case("OneHot", [_index(5, 2, 3)], {1: np.asarray(5), 2: np.asarray([0.5, 2.0], np.float32)}, {"axis": 1}),
    Case("Pad", [_X], {1: _i(1, 0, 2, 0, 1, 0), 2: np.asarray(1.5, np.float32)}),
    Case("Pad", [_X], {1: _i(0, 0, 0, 0, 0, 0), 2: np.asarray(1.5, np.float32)}),
    Case("Pad", [_X], {1: _i(0, 0), 2: np.asarray(1.5, np.float32), 3: _i(0)}, {"mode": "reflect"}),
    Case("Pad", [_IMAGE], {1: _i(1, 2, 0, 1), 2: np.asarray(0, np.float32), 3: _i(2, 3)}, {"mode": "reflect"}),
    Case("Pow", [_p(2, 3), _f(3)]),
    Case("RMSNormalization", [_X], {1: _f(4)}, {}, 1, 23),
    Case("Reshape", [_X], {1: _i(0, -1, 2)}),
    Case("Resize", [_IMAGE], {2: np.asarray([1, 1, 2, 2], np.float32)},
         {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}),
    Case("ScatterElements", [_X, _index(3, 2, 1, 4), _f(2, 1, 4)], {}, {"axis": 1}),
    Case("ScatterElements", [_X, _index(3, 2, 2, 4), _f(2, 2, 4)], {}, {"axis": 1, "reduction": "add"}),
    Case("ScatterND", [_X, np.asarray([[0, 1], [1, 2]]), _f(2, 4)]),
    Case("Slice", [_X], {1: _i(1, -2), 2: _i(9, 9), 3: _i(1, 2)}),
    Case("Slice", [_X], {1: _i(-1), 2: _i(-100), 3: _i(2), 4: _i(-2)}),
    Case("Softmax", [_X], {}, {"axis": 1}),
    Case("SpaceToDepth", [_f(1, 2, 4, 6)], {}, {"blocksize": 2}),
    Case("Split", [_X], {1: _i(1, 3)}, {"axis": 2}, 2),
    Case("Split", [_X], {}, {"axis": 2, "num_outputs": 3}, 3),
    Case("Squeeze", [_f(1, 3, 1)], {1: _i(0)}),
    Case("Sum", [_f(2, 3), _f(3), _f(2, 1)]),
    Case("Swish", [_X], {}, {}, 1, 24),
    Case("Tile", [_f(2, 3)], {1: _i(2, 1)}),
    Case("TopK", [_X], {1: _i(2)}, {"axis": 1}, 2),
    Case("Transpose", [_X], {}, {"perm": [2, 0, 1]}),
    Case("Trilu", [_f(4, 5)], {1: np.asarray(1)}, {"upper": 0}),
    Case("Unsqueeze", [_X], {1: _i(0, -1)}),
    Case("Where", [_X > 0, _X, _f(4)]),
]  # fmt: skip


def _recurrent(
    op: str, gates: int, directions: int, states: int, more: Mapping[str, object], peepholes: int = 0
) -> Case:
    """A recurrent operator of 4 steps, 2 sequences, 3 numbers in and a state of 5, with all of its operands."""
    first = 1 if more.get("layout") else 0
    inputs = [_f(2, 4, 3) if first else _f(4, 2, 3)]
    known: dict[int, Array] = {
        1: _f(directions, gates * 5, 3), 2: _f(directions, gates * 5, 5), 3: _f(directions, gates * 10), 4: _i(4, 4),
    }  # fmt: skip
    known |= {5 + index: _f(2, directions, 5) if first else _f(directions, 2, 5) for index in range(states)}
    known[4] = known[4].astype(np.int32)
    if peepholes:
        known[7] = _f(directions, peepholes * 5)
    return Case(op, inputs, known, {"hidden_size": 5, **more}, 1 + states)


_QUANTIZED = [
    Case("DequantizeLinear", [_BITS.astype(np.int8)], {1: np.asarray(0.25, np.float32), 2: np.asarray(3, np.int8)}),
    Case("DequantizeLinear", [_BITS.astype(np.uint8)], {1: _p(2), 2: np.asarray([1, 200], np.uint8)}, {"axis": 0}),
    Case("DequantizeLinear", [_index(9, 2, 5).astype(np.int8)], {1: _p(2, 3)}, {"axis": 1, "block_size": 2}),
    Case("QuantizeLinear", [_f(2, 3) * 9], {1: np.asarray(0.0625, np.float32), 2: np.asarray(3, np.int8)}),
    Case("QuantizeLinear", [_f(2, 3) * 9], {1: np.asarray([0.5, 0.03, 2], np.float32)}),
]  # fmt: skip
_SIZES = {3: _i(1, 4, 9, 4)}
_SCALES = {2: np.asarray([1, 1, 1.4, 0.6], np.float32)}
_HOW = "coordinate_transformation_mode"
_RESIZED = [
    Case("Resize", [_IMAGE], {3: _i(1, 4, 9, 12)}, {"mode": "linear"}),
    Case("Resize", [_IMAGE], {3: _i(1, 4, 6, 6)}, {"mode": "cubic"}),
    Case("Resize", [_IMAGE], {3: _i(1, 4, 6, 6)}, {"nearest_mode": "floor", "cubic_coeff_a": -0.5}),
    Case("ReduceSum", [_X], {}, {"noop_with_empty_axes": 1, "keepdims": 0}),
    Case("Resize", [_IMAGE], {3: _i(2, 3, 9, 6)}, {"mode": "linear"}),
    Case("Resize", [_IMAGE], {3: _i(12, 3)}, {"mode": "cubic", "axes": [3, 1]}),
    *(
        Case("Resize", [_IMAGE], known, {"mode": mode, _HOW: how})
        for mode in ("linear", "cubic", "nearest")
        for how in ("half_pixel", "pytorch_half_pixel", "half_pixel_symmetric", "asymmetric", "align_corners")
        for known in (_SIZES, _SCALES)
    ),
    *(
        Case("Resize", [_IMAGE], _SIZES, {"mode": mode, "antialias": smoothed, "exclude_outside": cut, **more})
        for mode, more in (("linear", {}), ("cubic", {"cubic_coeff_a": -0.5}))
        for smoothed, cut in ((1, 0), (1, 1), (0, 1))
    ),
    *(
        Case("Resize", [_IMAGE], _SIZES, {"nearest_mode": rounded, _HOW: "asymmetric"})
        for rounded in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
    ),
]  # fmt: skip
_BOTH = {"direction": "bidirectional"}
_RECURRENT = [
    _recurrent("LSTM", 4, 1, 2, {}),
    _recurrent("LSTM", 4, 2, 2, _BOTH, 3),
    _recurrent("LSTM", 4, 1, 2, {"layout": 1}),
    _recurrent("GRU", 3, 1, 1, {"linear_before_reset": 1}),
    _recurrent("GRU", 3, 2, 1, _BOTH),
    _recurrent("RNN", 1, 1, 1, {"activations": ["Tanh"], "direction": "reverse"}),
    _recurrent("RNN", 1, 2, 1, {"activations": ["Tanh", "Tanh"], **_BOTH}),
    Case("LSTM", [_f(4, 2, 3)], {1: _f(1, 20, 3), 2: _f(1, 20, 5)}, {"hidden_size": 5}),
    Case("GRU", [_f(4, 2, 3)], {1: _f(1, 15, 3), 2: _f(1, 15, 5)}, {"hidden_size": 5, "linear_before_reset": 1}),
]  # fmt: skip
CASES = [
    *_UNARY, *_POOLED, *_POSITIVE, *_INSIDE, *_BINARY, *_COMPARED, *_TRUTHS, *_BITWISE, *_REDUCED, *_OTHERS,
    *_RECURRENT, *_QUANTIZED, *_RESIZED,
]  # fmt: skip


def _model(case: Case) -> tuple[onnx.ModelProto, dict[str, Array]]:
    count = max([len(case.inputs) + len(case.known), *(index + 1 for index in case.known)])
    given = iter(case.inputs)
    names: list[str] = []
    arrays: dict[str, Array] = {}
    for index in range(count):
        if index in case.known:
            names.append(f"k{index}")
            continue
        array = next(given, None)
        names.append("" if array is None else f"x{index}")
        if array is not None:
            arrays[f"x{index}"] = array
    outputs = [f"y{index}" for index in range(case.results)]
    node = onnx.helper.make_node(case.op, names, outputs)
    node.attribute.extend(onnx.helper.make_attribute(name, value) for name, value in case.attributes.items())
    dtype = onnx.helper.np_dtype_to_tensor_dtype
    graph = onnx.helper.make_graph(
        [node],
        "one",
        [onnx.helper.make_tensor_value_info(name, dtype(array.dtype), array.shape) for name, array in arrays.items()],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [onnx.numpy_helper.from_array(np.asarray(array), f"k{index}") for index, array in case.known.items()],
    )
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", case.opset)]), arrays


def test_an_index_that_counts_from_the_end_and_depends_on_no_input_is_computed() -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 22]>
    scattered (float[3, 5000] x) => (float[3, 5000] y, float[1, 5000] z) {
        last = Constant <value_ints = [-1]> ()
        one = Constant <value_float = 1.0> ()
        shape = Constant <value_ints = [1, 5000]> ()
        index = Expand (last, shape)
        ones = Expand (one, shape)
        y = ScatterElements <axis = 0> (x, index, ones)
        z = GatherElements <axis = 0> (x, index)
    }
    """
    x = np.arange(15000, dtype=np.float32).reshape(3, 5000)
    graph = spyrec.import_onnx(onnx.parser.parse_model(text), "keep").build()
    found = evaluate(graph, {"x": x})
    assert (found["y"][2] == 1).all()
    assert (found["y"][:2] == x[:2]).all()
    assert (found["z"] == x[2:]).all()


@pytest.mark.parametrize("case", CASES, ids=[f"{number}-{case.op}" for number, case in enumerate(CASES)])
def test_an_operator_computes_what_onnx_says(case: Case) -> None:
    model, arrays = _model(case)
    evaluator = ReferenceEvaluator(model)
    run = cast("Callable[[None, dict[str, Array]], list[Array]]", evaluator.run)  # pyright: ignore[reportUnknownMemberType] -- untyped
    wanted = run(None, arrays)
    graph = spyrec.import_onnx(model, "keep").build()
    found = evaluate(graph, arrays)
    assert len(graph.outputs) == len(wanted)
    for name, expected in zip(graph.outputs, wanted, strict=True):
        assert found[name].shape == expected.shape
        np.testing.assert_allclose(found[name].astype(np.float64), expected.astype(np.float64), rtol=2e-5, atol=2e-6)


def test_every_operator_has_a_case() -> None:
    made_of_shapes = {"Range", "ConstantOfShape"}
    assert set(OPERATORS) - {case.op for case in CASES} == made_of_shapes


def test_shapes_are_computed_beforehand() -> None:
    """``Shape``, ``Gather``, ``Concat`` and ``ConstantOfShape`` of known extents leave a reshape and nothing else."""
    text = """
    <ir_version: 10, opset_import: ["" : 22]>
    shapes (float[2, 3, 4] x) => (y) {
        s = Shape (x)
        zero = Constant <value = int64 {0}> ()
        first = Gather (s, zero)
        axes = Constant <value = int64[1] {0}> ()
        row = Unsqueeze (first, axes)
        rest = Constant <value = int64[1] {-1}> ()
        target = Concat <axis = 0> (row, rest)
        y = Reshape (x, target)
    }
    """
    graph = spyrec.import_onnx(onnx.parser.parse_model(text)).build()
    assert [node.op for node in graph.nodes] == ["reshape"]
    assert graph.type_of("y").shape == (2, 12)


def test_all_problems_are_told_at_once() -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 22, "own" : 1]>
    wrong (float[2, 3] x) => (y, z) {
        a = NonZero (x)
        y = Cast <to = 1> (a)
        b = own.Magic (x)
        z = Relu (b)
    }
    """
    with pytest.raises(SpyrecError) as raised:
        spyrec.import_onnx(onnx.parser.parse_model(text))
    assert [found.message for found in raised.value.diagnostics] == [
        "NonZero: a graph has no op for it",
        'Magic: the domain "own" is none that a graph knows',
    ]


def test_symbolic_dims_are_bound() -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 22]>
    dims (float[N, 3] x) => (float[N, 3] y) { y = Relu (x) }
    """
    model = onnx.parser.parse_model(text)
    with pytest.raises(SpyrecError, match="--dim N=EXTENT"):
        spyrec.import_onnx(model)
    assert spyrec.import_onnx(model, dims={"N": 5}).build().type_of("y").shape == (5, 3)


def test_a_bfloat16_number_is_no_bits() -> None:
    """The package registers ml_dtypes' bfloat16 among NumPy's, and its carrier is no dtype of a graph."""
    text = """
    <ir_version: 10, opset_import: ["" : 22]>
    scaled (bfloat16[64] x) => (bfloat16[64] y) { y = Mul (x, c) }
    """
    model = onnx.parser.parse_model(text)
    model.graph.initializer.add(name="c", data_type=onnx.TensorProto.BFLOAT16, raw_data=b"\xc0\x3f")  # 1.5
    bits = np.asarray([0x4000, 0xC040] * 32, np.uint16)  # 2 and -3
    (found,) = evaluate(spyrec.import_onnx(model, dtype="keep").build(), {"x": bits}).values()
    np.testing.assert_array_equal(found, [3.0, -4.5] * 32)


def _of_constant(dtype: str, number: int, rest: str) -> onnx.ModelProto:
    text = f"""
    <ir_version: 10, opset_import: ["" : 22]>
    rare (int64[2] x) => (y) <{dtype}[2] c = {{1, {number}}}> {{ {rest} }}
    """
    return onnx.parser.parse_model(text)


@pytest.mark.parametrize("dtype", ["uint16", "uint32", "uint64"])
def test_numbers_of_dtypes_that_a_graph_has_not_are_known_beforehand(dtype: str) -> None:
    model = _of_constant(dtype, 60000, "w = Cast <to = 7> (c)\n y = Add (x, w)")
    found = evaluate(spyrec.import_onnx(model).build(), {"x": np.asarray([5, -7])})
    np.testing.assert_array_equal(found["y"], [6, 59993])
    with pytest.raises(SpyrecError, match=f"Cast: a graph has no {dtype}"):
        spyrec.import_onnx(_of_constant(dtype, 3, f"w = Cast <to = {_NUMBERS[dtype]}> (x)\n y = Add (w, c)"))


_NUMBERS = {"uint16": 4, "uint32": 12, "uint64": 13}


def test_a_number_beyond_64_bits_with_a_sign_is_told() -> None:
    model = _of_constant("uint64", 2**63 + 5, "y = Pow (x, c)")
    with pytest.raises(SpyrecError, match="Pow: the number 9223372036854775813 of uint64 is beyond int64"):
        spyrec.import_onnx(model)


@pytest.mark.parametrize(
    ("node", "text"),
    [
        ("y = Attention <q_num_heads = 1, kv_num_heads = 1, left_window_size = 1> (x, x, x)", '"left_window_size"'),
        ("y = Attention <q_num_heads = 1, kv_num_heads = 1> (x, x, x, , , , n)", 'operand 6 \\("n"\\)'),
        ("z, y = MaxPool <kernel_shape = [1]> (x)", "the indices of a pool"),
        ("z, m, v, y, w = BatchNormalization (x, n, n, n, n)", "."),
        ("b, y = Dropout (x, n, t)", "training_mode draws numbers"),
    ],
)
def test_what_an_operator_says_and_a_graph_has_not_is_refused(node: str, text: str) -> None:
    """A newer operator's attribute, operand or result is never left out: the numbers would be wrong."""
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 24]>\n'
        f"said (float[1, 2, 4] x) => (y) <float[1] n = {{0.5}}, bool t = {{1}}> {{ {node} }}"
    )
    with pytest.raises(SpyrecError, match=text) as caught:
        spyrec.import_onnx(model)
    assert [item.code for item in caught.value.diagnostics] == ["SPY0166"]
