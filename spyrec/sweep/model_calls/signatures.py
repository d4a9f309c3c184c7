"""The names that lists of calls have for PyTorch's functions, and the parameters of each in order."""

from __future__ import annotations

from collections.abc import Mapping

from spyrec.sweep.model_calls.cases import Argument, Case

_PREFIXES = (
    "torch.ops.transformers.",
    "torch.nn.functional.",
    "torch.functional.",
    "torch.Tensor.",
    "torch._C.",
    "torch.",
)

_OTHER_NAMES = {
    "__eq__": "eq",
    "_log_api_usage_once": "nothing",
    "add_": "add",
    "and_": "bitwise_and",
    "clamp_": "clamp",
    "copy_": "copy",
    "floordiv": "floor_divide",
    "grouped_mm_fallback": "grouped_mm",
    "index_copy_": "index_copy",
    "invert": "bitwise_not",
    "masked_fill_": "masked_fill",
    "or_": "bitwise_or",
    "truediv": "div",
}
"""Operators and methods in place, by the function that computes the same."""

_PARAMETERS = {
    "add": "input other alpha",
    "all": "input dim keepdim",
    "arange": "start end step dtype",
    "as_tensor": "input",
    "bitwise_and": "input other",
    "bitwise_not": "input",
    "bitwise_or": "input other",
    "bmm": "input mat2",
    "cat": "tensors dim",
    "chunk": "input chunks dim",
    "clamp": "input min max",
    "clone": "input",
    "contiguous": "input",
    "conv1d": "input weight bias stride padding dilation groups",
    "conv2d": "input weight bias stride padding dilation groups",
    "copy": "input source",
    "cos": "input",
    "cumsum": "input dim dtype",
    "div": "input other rounding_mode",
    "dropout": "input p training inplace",
    "embedding": "input weight padding_idx max_norm norm_type scale_grad_by_freq sparse",
    "empty_like": "input",
    "eq": "input other",
    "exp": "input",
    "expand": "input *size",
    "expand_as": "input other",
    "flatten": "input start_dim end_dim",
    "float": "input",
    "floor": "input",
    "floor_divide": "input other",
    "full": "size fill_value dtype",
    "ge": "input other",
    "gelu": "input approximate",
    "getitem": "input index",
    "grouped_mm": "mat_a mat_b offs",
    "gt": "input other",
    "histc": "input bins min max",
    "index_add": "input dim index source",
    "index_copy": "input dim index source",
    "le": "input other",
    "linear": "input weight bias",
    "log": "input",
    "long": "input",
    "lt": "input other",
    "masked_fill": "input mask value",
    "masked_scatter": "input mask source",
    "matmul": "input other",
    "max": "input dim keepdim",
    "mean": "input dim keepdim dtype",
    "meshgrid": "*tensors indexing",
    "mul": "input other",
    "neg": "input",
    "new_ones": "input size dtype",
    "nothing": "*names",
    "ones": "*size dtype",
    "pad": "input pad mode value",
    "permute": "input *dims",
    "pow": "input exponent",
    "prod": "input dim keepdim dtype",
    "repeat": "input *repeats",
    "repeat_interleave": "input repeats dim output_size",
    "reshape": "input *shape",
    "rms_norm": "input normalized_shape weight eps",
    "rsqrt": "input",
    "scaled_dot_product_attention": "query key value attn_mask dropout_p is_causal scale enable_gqa",
    "scatter": "input dim index src",
    "setitem": "input index value",
    "sigmoid": "input",
    "silu": "input inplace",
    "sin": "input",
    "softmax": "input dim dtype",
    "softplus": "input beta threshold",
    "sort": "input dim descending",
    "split": "input split_size dim",
    "squeeze": "input dim",
    "stack": "tensors dim",
    "sub": "input other alpha",
    "sum": "input dim keepdim dtype",
    "sym_sum": "args",
    "tanh": "input",
    "tensor": "data",
    "to": "input dtype other non_blocking",
    "topk": "input k dim",
    "transpose": "input dim0 dim1",
    "tril": "input diagonal",
    "type_as": "input other",
    "unsqueeze": "input dim",
    "view": "input *shape",
    "view_as": "input other",
    "where": "condition input other",
    "zeros": "*size dtype",
    "zeros_like": "input",
}
"""Parameters by name in order; ``*`` takes what follows, as one tuple or as many arguments."""

Bound = Mapping[str, Argument]
"""Arguments of a call by the names of its parameters."""


class UnknownCall(LookupError):
    """A call that has no parameters here, or more arguments than they are."""


def public_name(name: str) -> str:
    """Return PyTorch's public function of a call: ``torch.Tensor.add_`` is ``add``."""
    for prefix in _PREFIXES:
        if name.startswith(prefix):
            name = name.removeprefix(prefix)
            break
    return _OTHER_NAMES.get(name, name)


def bind(case: Case) -> dict[str, Argument]:
    """Return the arguments of a call by the names of its parameters.  Errors: :class:`UnknownCall`."""
    name = public_name(case.op)
    if name not in _PARAMETERS:
        raise UnknownCall(f"{case.op} has no parameters that are known")
    bound: dict[str, Argument] = {}
    left = list(case.arguments)
    for parameter in _PARAMETERS[name].split():
        if parameter.startswith("*"):
            if left:
                bound[parameter[1:]] = left[0] if len(left) == 1 and isinstance(left[0], tuple) else tuple(left)
            left = []
        elif left:
            bound[parameter] = left.pop(0)
    if left:
        raise UnknownCall(f"{case.op} has {len(left)} more arguments than parameters that are known")
    return {**bound, **dict(case.keywords)}
