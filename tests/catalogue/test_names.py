"""The ops that a graph is promised to have, by PyTorch's names: each is there, and knows the arguments named with it.

Written down here, and not read from the catalogue: an op that gets lost is missed.
"""

from __future__ import annotations

import pytest

from spyrec.ir.attribute_text import attribute_fields
from spyrec.ir.opdef import catalogue
from spyrec.ir.refused_ops import REFUSED_OPS

PROMISED = {
    "element-wise": """
        sin cos tan erf exp2 expm1 log1p log2 log10 ceil round trunc frac sign fmod remainder floor_divide
        div(rounding_mode) leaky_relu elu selu hardtanh relu6 hardsigmoid hardswish mish softsign logsigmoid glu prelu
        threshold bitwise_and bitwise_or bitwise_xor bitwise_not bitwise_left_shift bitwise_right_shift logical_and
        logical_not logical_or logical_xor isnan isinf nan_to_num lerp addcmul(value) addcdiv(value) masked_fill
        clamp(min,max) dropout pow(exponent)
    """,
    "reductions": """
        prod(dim,keepdim,dtype) any(dim,keepdim) all(dim,keepdim) var(dim,unbiased,correction,keepdim)
        std(dim,unbiased,correction,keepdim) var_mean(dim,unbiased,correction,keepdim) norm(p,dim,keepdim,dtype)
        logsumexp(dim,keepdim) log_softmax(dim,dtype) softmax(dim,dtype) argmax(dim,keepdim) argmin(dim,keepdim)
        max(dim,keepdim) min(dim,keepdim) cumsum(dim,dtype) cumprod(dim,dtype) cummax(dim) mean(dim,keepdim,dtype)
        sum(dim,keepdim,dtype)
    """,
    "indexing": """
        embedding(padding_idx) index_select(dim) index gather(dim) take_along_dim(dim) index_copy(dim)
        index_put(accumulate) index_add(dim,alpha) scatter(dim,reduce) scatter_add(dim) masked_scatter where
        one_hot(num_classes) arange(start,end,step,dtype) tril(diagonal) triu(diagonal) topk(k,dim,largest,sorted)
        sort(dim,descending,stable) argsort(dim,descending,stable) histc(bins,min,max) pad(pad,mode,value) flip(dims)
        roll(shifts,dims) repeat_interleave(repeats,dim) split(split_size,dim) chunk(chunks,dim) unbind(dim)
        unfold(dimension,size,step) narrow(dim,start,length) movedim(source,destination)
        slice_scatter(dim,start,end,step) select_scatter(dim,index) meshgrid(indexing) einsum(equation)
    """,
    "layers": """
        conv1d(stride,padding,dilation,groups) conv2d(stride,padding,dilation,groups)
        conv_transpose2d(stride,padding,output_padding,groups,dilation)
        avg_pool1d(kernel_size,stride,padding,ceil_mode,count_include_pad)
        avg_pool2d(kernel_size,stride,padding,ceil_mode,count_include_pad,divisor_override)
        max_pool1d(kernel_size,stride,padding,dilation,ceil_mode)
        max_pool2d(kernel_size,stride,padding,dilation,ceil_mode) adaptive_avg_pool1d(output_size)
        adaptive_avg_pool2d(output_size) batch_norm(training,momentum,eps) group_norm(num_groups,eps)
        instance_norm(use_input_stats,momentum,eps) interpolate(size,scale_factor,mode,align_corners)
        pixel_shuffle(upscale_factor) grouped_mm(out_dtype) baddbmm(beta,alpha) _scaled_mm(out_dtype)
        _weight_int8pack_mm _weight_int4pack_mm(qGroupSize)
    """,
}

NAMED = [
    (family, *entry.rstrip(")").partition("(")[::2]) for family, text in PROMISED.items() for entry in text.split()
]


@pytest.mark.parametrize(("family", "name", "arguments"), NAMED, ids=[name for _, name, _ in NAMED])
def test_a_promised_op_is_there_with_its_arguments(family: str, name: str, arguments: str) -> None:
    definition = catalogue()[name]
    assert definition.is_public, family
    known = {*attribute_fields(definition.attributes), *(spec.name for spec in definition.operands)}
    assert {item for item in arguments.split(",") if item} <= known


def test_so_is_the_refusal_of_what_no_compiler_knows_the_shape_of() -> None:
    assert REFUSED_OPS["nonzero"].startswith("the shape of its result depends on the numbers of its operands")


def test_clamp_and_pow_take_tensors_where_they_take_numbers() -> None:
    for name, operands in (("clamp", ["min", "max"]), ("pow", ["exponent"])):
        definition = catalogue()[name]
        assert [spec.name for spec in definition.operands if spec.is_optional] == operands
        assert set(operands) <= {*attribute_fields(definition.attributes)}
