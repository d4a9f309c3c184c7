"""Every declaration of the catalogue, on its samples: the rules of one op agree with each other."""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass

import numpy as np
import pytest

from spyrec.hardware.dtypes import DType
from spyrec.ir.attribute_text import attribute_fields, read_attribute, write_attributes
from spyrec.ir.numbers import as_computed
from spyrec.ir.opdef import Array, Attributes, OpDef, OpKind, catalogue
from spyrec.ir.types import TensorType

OPS = list(catalogue().values())
SAMPLES = [
    pytest.param(op, types, attributes, id=f"{op.name}-{index}")
    for op in OPS
    for index, (types, attributes) in enumerate(op.samples)
]
sampled = pytest.mark.parametrize(("op", "types", "attributes"), SAMPLES)

PUBLIC = """
_grouped_mm _scaled_mm _weight_int4pack_mm _weight_int8pack_mm abs acos acosh adaptive_avg_pool1d
adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d add addbmm
addcdiv addcmul addmm addmv all amax amin aminmax any arange argmax argmin argsort asin asinh atan atan2 atanh
avg_pool1d avg_pool2d avg_pool3d baddbmm batch_norm bitwise_and bitwise_left_shift bitwise_not bitwise_or
bitwise_right_shift bitwise_xor bmm broadcast_to bucketize cat cdist ceil channel_shuffle chunk clamp clone
col2im contiguous conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d copysign cos cosh
count_nonzero cummax cummin cumprod cumsum diagonal div dot dropout einsum elu embedding embedding_bag empty
empty_like eq erf erfc exp exp2 expand expand_as expm1 eye flatten flip floor floor_divide fmod frac full
full_like gather ge gelu glu grid_sampler_2d group_norm grouped_mm gt hardsigmoid hardswish hardtanh histc hypot
index index_add index_copy index_fill index_put index_select instance_norm interpolate isinf isnan kthvalue
layer_norm le leaky_relu lerp linalg_vector_norm linear linspace log log10 log1p log2 log_softmax logcumsumexp
logical_and logical_not logical_or logical_xor logsigmoid logsumexp lt masked_fill masked_scatter matmul max
max_pool1d max_pool1d_with_indices max_pool2d max_pool2d_with_indices max_pool3d max_pool3d_with_indices maximum
mean median meshgrid min minimum mish mm moveaxis movedim mul mv nan_to_num narrow ne neg new_empty new_full
new_ones new_zeros nonzero_static norm one_hot ones ones_like outer pad pdist permute pixel_shuffle
pixel_unshuffle pow prelu prod reciprocal relu relu6 remainder repeat repeat_interleave reshape reshape_as
rms_norm roll round rsqrt rsub scalar_tensor scaled_dot_product_attention scatter scatter_add scatter_reduce
searchsorted select select_scatter selu sigmoid sign silu sin sinh slice slice_scatter softmax softplus softsign
sort split split_with_sizes sqrt square squeeze stack std std_mean sub sum swapaxes swapdims t take_along_dim
tan tanh threshold tile to topk transpose tril triu trunc type_as unbind unflatten unfold unsqueeze var var_mean
view view_as where zeros zeros_like
"""

# SuperDSC format reference, sections 4.1 and 4.2; prod and the three with windows are August's
DEVICE_NAMES = """
abs neg exp sqrt rsqrt reciprocal sigmoid floor log tanh relufwd gelufwd silu softplus clip add sub mul realdiv
maximum minimum equal notequal greaterequal greaterthan lesserequal lesserthan where3 identity ReStickifyOpHBM
layernormscale layernormnorm sum max min mean exx2 batchmatmul prod avgpoolfwd conv2d depthwiseconv2dnative
"""

# the same reference, section 4.4
SINGLE_NAMES = """
add sub mul where realdiv relufwd reciprocal mean sum max min layernormscale abs neg exp sigmoid exx2 layernormnorm
identity sqrt rsqrt topkvalue topkindex floor to_dtype maximum minimum prod
"""


def random_array(wanted: TensorType, seed: int) -> Array:
    generator = np.random.default_rng(seed)
    if wanted.dtype is DType.BOOL:
        return np.asarray(generator.random(wanted.shape) < 0.5)
    if wanted.dtype.is_float:
        return np.asarray(generator.standard_normal(wanted.shape))
    return np.asarray(generator.integers(0, 100, wanted.shape))


def run(op: OpDef, types: tuple[TensorType | None, ...], attributes: Attributes) -> tuple[Array, ...]:
    arrays = [None if item is None else random_array(item, index) for index, item in enumerate(types)]
    with np.errstate(all="ignore"):
        return op.reference(arrays, attributes)


def test_catalogue_has_the_public_ops_of_the_product() -> None:
    assert {op.name for op in OPS if op.is_public} == set(PUBLIC.split())


@sampled
def test_infer_agrees_with_reference(op: OpDef, types: tuple[TensorType | None, ...], attributes: Attributes) -> None:
    inferred, results = op.infer(types, attributes), run(op, types, attributes)
    assert len(inferred) == len(results) == (op.result_count or len(results))
    for wanted, result in zip(inferred, results):
        carrier = np.bool_ if wanted.dtype is DType.BOOL else np.float64 if wanted.dtype.is_float else np.int64
        assert isinstance(result, np.ndarray), "NumPy turns 0-d results into scalars"
        if carrier is np.int64 and result.dtype.kind == "f":  # float64 holds what 32 bits do
            whole = np.where(np.abs(result) < 2.0**62, result, 0.0)  # a power may be beyond
            assert (whole == np.trunc(whole)).all()
            result = as_computed(whole, wanted.dtype)
        assert (result.shape, result.dtype) == (wanted.shape, np.dtype(carrier))


@sampled
def test_axis_sources_have_the_extent_of_their_axis(
    op: OpDef, types: tuple[TensorType | None, ...], attributes: Attributes
) -> None:
    result = op.infer(types, attributes)[0]
    sources = op.axes(types, attributes)
    assert len(sources) == result.rank
    for axis, found in enumerate(sources):
        for operand, operand_axis in found:
            operand_type = types[operand]
            assert operand_type is not None
            assert operand_type.shape[operand_axis] == result.shape[axis]


ONE_TO_ONE = [
    pytest.param(op, types, attributes, id=f"{op.name}-{index}")
    for op in OPS
    for index, (types, attributes) in enumerate(op.samples)
    if op.kind in (OpKind.POINTWISE, OpKind.VIEW, OpKind.MOVEMENT) and op.name != "slice"
]


@pytest.mark.parametrize(("op", "types", "attributes"), ONE_TO_ONE)
def test_result_axes_run_along_their_sources(
    op: OpDef, types: tuple[TensorType | None, ...], attributes: Attributes
) -> None:
    """Reversing a source axis in every operand that has it reverses the result axis, where elements stay one to one."""
    arrays = [None if item is None else random_array(item, index) for index, item in enumerate(types)]
    with np.errstate(all="ignore"):
        plain = op.reference(arrays, attributes)[0]
        for axis, found in enumerate(op.axes(types, attributes)):
            if not found:
                continue
            flipped = list(arrays)
            for operand, operand_axis in found:
                array = flipped[operand]
                assert array is not None
                flipped[operand] = np.flip(array, operand_axis)
            np.testing.assert_array_equal(op.reference(flipped, attributes)[0], np.flip(plain, axis))


@sampled
def test_attributes_survive_their_text_form(
    op: OpDef, types: tuple[TensorType | None, ...], attributes: Attributes
) -> None:
    text = write_attributes(attributes)
    known = attribute_fields(op.attributes)
    values = {name: read_attribute(known[name].annotation, raw, {}) for name, raw in text.items()}
    assert op.attributes(**values) == attributes


SINGLE_IN_STEPS = "silu clip"
"""Operations that the device has for 16-bit floats alone, and graphs for float32, too, made of others."""

ONLY_HALF_IN_GRAPHS = "equal notequal greaterequal greaterthan lesserequal lesserthan where3"
"""Operations that the device has for float32, too, and graphs for 16-bit floats alone."""


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_declaration_is_whole(op: OpDef) -> None:
    assert op.summary
    assert op.samples
    assert is_dataclass(op.attributes)
    assert all(item.default_factory is MISSING for item in fields(op.attributes))
    assert set(op.number_attributes) <= set(attribute_fields(op.attributes))
    if op.device is not None:
        assert op.device.op_func in DEVICE_NAMES.split()
        if op.device.op_func in SINGLE_IN_STEPS.split():
            assert op.formats > op.device.record.accepts
            return
        assert op.formats <= op.device.record.accepts
        assert (op.formats != op.device.record.accepts) == (op.device.op_func in ONLY_HALF_IN_GRAPHS.split())
        # a restickify moves any format (D098 of docs/decisions.md)
        is_single = op.device.op_func in [*SINGLE_NAMES.split(), "ReStickifyOpHBM"]
        assert any(item.name == "IEEE_FP32" for item in op.formats) == is_single
    else:
        assert op.kind not in (OpKind.POINTWISE, OpKind.REDUCTION, OpKind.CONTRACTION, OpKind.LAYER_NORM)
