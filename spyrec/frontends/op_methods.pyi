"""The ops of the catalogue as methods: what type checkers and editors know of ``op_methods.py``.

Generated from the op declarations by scripts/generated_files.py; `make cases` writes it again.
"""

# ruff: noqa: A002, D403, PYI021 -- the names are PyTorch's, the docstrings are for editors and are the catalogue's

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from spyrec.frontends.arguments import DTypeLike, Layout, WorkDivision
from spyrec.frontends.dim import Extent
from spyrec.frontends.value import Number, Value
from spyrec.ir.opdef import OpDef

def op_method(definition: OpDef) -> Callable[..., object]: ...

class OpMethods:
    """Every public op of the catalogue as a method."""

    def record_op(self, definition: OpDef, operands: Sequence[object], arguments: Mapping[str, object]) -> object: ...
    def _grouped_mm(
        self,
        mat_a: Value,
        mat_b: Value,
        offs: Value | None = None,
        bias: Value | None = None,
        *,
        out_dtype: DTypeLike | None = None,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """the rows (or columns) up to each end in offs times the matrix of their group"""

    def _scaled_mm(
        self,
        input: Value,
        mat2: Value,
        scale_a: Value,
        scale_b: Value,
        bias: Value | None = None,
        scale_result: Value | None = None,
        *,
        out_dtype: DTypeLike | None = None,
        use_fast_accum: bool = False,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """product of 8-bit float matrices, times a scale of each, plus bias"""

    def _weight_int4pack_mm(
        self,
        input: Value,
        mat2: Value,
        qScaleAndZeros: Value,
        *,
        qGroupSize: int,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """input times the transposed 4-bit weight: uint8 [n, k/2], the first of two neighbours in the high nibble"""

    def _weight_int8pack_mm(
        self,
        input: Value,
        mat2: Value,
        scales: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """input times the transposed int8 weight, each row of it times its scale"""

    def abs(
        self,
        input: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """absolute value"""

    def acos(
        self,
        input: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """arc cosine of x, in radians from 0 to pi"""

    def acosh(
        self,
        input: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """the positive number whose cosh is x"""

    def adaptive_avg_pool1d(
        self,
        input: Value,
        output_size: int | Sequence[int],
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """means of a given number of parts of 1 dim"""

    def adaptive_avg_pool2d(
        self,
        input: Value,
        output_size: int | Sequence[int],
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """means of a given number of parts of 2 dims"""

    def adaptive_avg_pool3d(
        self,
        input: Value,
        output_size: int | Sequence[int],
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """means of a given number of parts of 3 dims"""

    def adaptive_max_pool1d(
        self,
        input: Value,
        output_size: int | Sequence[int],
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """largest of a given number of parts of 1 dim"""

    def adaptive_max_pool2d(
        self,
        input: Value,
        output_size: int | Sequence[int],
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """largest of a given number of parts of 2 dims"""

    def adaptive_max_pool3d(
        self,
        input: Value,
        output_size: int | Sequence[int],
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """largest of a given number of parts of 3 dims"""

    def add(
        self,
        input: Value | Number,
        other: Value | Number,
        *,
        alpha: float = 1,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """input + alpha other; of bools: either"""

    def addbmm(
        self,
        input: Value,
        batch1: Value,
        batch2: Value,
        *,
        beta: float = 1.0,
        alpha: float = 1.0,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """beta input + alpha (the sum of batch1 times batch2 over the batch)"""

    def addcdiv(
        self,
        input: Value,
        tensor1: Value,
        tensor2: Value,
        *,
        value: float = 1.0,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """input + value tensor1 / tensor2"""

    def addcmul(
        self,
        input: Value,
        tensor1: Value,
        tensor2: Value,
        *,
        value: float = 1.0,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """input + value tensor1 tensor2"""

    def addmm(
        self,
        input: Value,
        mat1: Value,
        mat2: Value,
        *,
        beta: float = 1.0,
        alpha: float = 1.0,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """beta input + alpha (mat1 times mat2)"""

    def addmv(
        self,
        input: Value,
        mat: Value,
        vec: Value,
        *,
        beta: float = 1.0,
        alpha: float = 1.0,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """beta input + alpha (mat times vec)"""

    def all(
        self,
        input: Value,
        dim: int | Sequence[int] | None = None,
        keepdim: bool = False,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """whether all elements are true or not zero"""

    def amax(
        self,
        input: Value,
        dim: int | Sequence[int] | None = None,
        keepdim: bool = False,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """largest"""

    def amin(
        self,
        input: Value,
        dim: int | Sequence[int] | None = None,
        keepdim: bool = False,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """smallest"""

    def aminmax(
        self,
        input: Value,
        dim: int | None = None,
        keepdim: bool = False,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> tuple[Value, Value]:
        """smallest and largest element"""

    def any(
        self,
        input: Value,
        dim: int | Sequence[int] | None = None,
        keepdim: bool = False,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """whether any element is true or not zero"""

    def arange(
        self,
        start: float | bool = 0,
        end: float | bool | None = None,
        step: float | bool = 1,
        dtype: DTypeLike | None = None,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """numbers from start to below end, step apart"""

    def argmax(
        self,
        input: Value,
        dim: int | None = None,
        keepdim: bool = False,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """place of the largest element, the first of equals"""

    def argmin(
        self,
        input: Value,
        dim: int | None = None,
        keepdim: bool = False,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """place of the smallest element, the first of equals"""

    def argsort(
        self,
        input: Value,
        dim: int = -1,
        descending: bool = False,
        stable: bool | None = None,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """where the elements along dim stand that follow one another in order"""

    def asin(
        self,
        input: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """arc sine of x, in radians"""

    def asinh(
        self,
        input: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """the number whose sinh is x"""

    def atan(
        self,
        input: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """arc tangent of x, in radians"""

    def atan2(
        self,
        input: Value,
        other: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """the angle of the point (other, input), in radians from -pi to pi"""

    def atanh(
        self,
        input: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """the number whose tanh is x"""

    def avg_pool1d(
        self,
        input: Value,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = (0,),
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """means of windows over 1 dim"""

    def avg_pool2d(
        self,
        input: Value,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = (0,),
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """means of windows over 2 dims"""

    def avg_pool3d(
        self,
        input: Value,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = (0,),
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """means of windows over 3 dims"""

    def baddbmm(
        self,
        input: Value,
        batch1: Value,
        batch2: Value,
        *,
        beta: float = 1.0,
        alpha: float = 1.0,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """beta input + alpha (batch1 times batch2, matrix by matrix)"""

    def batch_norm(
        self,
        input: Value,
        running_mean: Value,
        running_var: Value,
        weight: Value | None = None,
        bias: Value | None = None,
        *,
        training: bool = False,
        momentum: float = 0.1,
        eps: float = 1e-05,
        cudnn_enabled: bool = True,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """(x - running_mean) / sqrt(running_var + eps) of each channel, times weight, plus bias"""

    def bitwise_and(
        self,
        input: Value | Number,
        other: Value | Number,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """bits that both have"""

    def bitwise_left_shift(
        self,
        input: Value | Number,
        other: Value | Number,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """input times 2 to the power of other; 0 where other is no count of bits"""

    def bitwise_not(
        self,
        input: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """the other bits; of a bool, the other one"""

    def bitwise_or(
        self,
        input: Value | Number,
        other: Value | Number,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """bits that one has"""

    def bitwise_right_shift(
        self,
        input: Value | Number,
        other: Value | Number,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """bits moved down, the sign kept; the sign where other is no count of bits"""

    def bitwise_xor(
        self,
        input: Value | Number,
        other: Value | Number,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """bits that one alone has"""

    def bmm(
        self,
        input: Value,
        mat2: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """matrix products of two batches"""

    def broadcast_to(
        self,
        input: Value,
        size: Extent | Sequence[Extent],
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """dims of extent 1 repeat without a copy; new dims in front"""

    def bucketize(
        self,
        input: Value | Number,
        boundaries: Value,
        *,
        out_int32: bool = False,
        right: bool = False,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """in which of the buckets between ordered boundaries values lie"""

    def cat(
        self,
        tensors: Sequence[Value],
        dim: int = 0,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """tensors joined along a dim"""

    def cdist(
        self,
        x1: Value,
        x2: Value,
        *,
        p: float = 2.0,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """the p-norm of x1[i] - x2[j], for all pairs of rows"""

    def ceil(
        self,
        input: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """smallest integer not below x"""

    def channel_shuffle(
        self,
        input: Value,
        groups: int,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """the channels of groups in turns"""

    def chunk(
        self,
        input: Value,
        chunks: int,
        dim: int = 0,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> tuple[Value, ...]:
        """a dim cut into so many pieces"""

    def clamp(
        self,
        input: Value,
        min: Value | Number | None = None,
        max: Value | Number | None = None,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """x limited to the range from min to max, numbers or tensors"""

    def clone(
        self,
        input: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """a copy"""

    def col2im(
        self,
        input: Value,
        output_size: int | Sequence[int],
        kernel_size: int | Sequence[int],
        dilation: int | Sequence[int] = (1,),
        padding: int | Sequence[int] = (0,),
        stride: int | Sequence[int] = (1,),
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """an image in which the columns of windows are added up (torch.nn.functional.fold)"""

    def contiguous(
        self,
        input: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """a copy in the default layout"""

    def conv1d(
        self,
        input: Value,
        weight: Value,
        bias: Value | None = None,
        *,
        stride: int | Sequence[int] = (1,),
        padding: int | Sequence[int] | Literal["valid", "same"] = (0,),
        dilation: int | Sequence[int] = (1,),
        groups: int = 1,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """kernels of channels slid over 1 dim (as PyTorch: not flipped), plus bias"""

    def conv2d(
        self,
        input: Value,
        weight: Value,
        bias: Value | None = None,
        *,
        stride: int | Sequence[int] = (1,),
        padding: int | Sequence[int] | Literal["valid", "same"] = (0,),
        dilation: int | Sequence[int] = (1,),
        groups: int = 1,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """kernels of channels slid over 2 dims (as PyTorch: not flipped), plus bias"""

    def conv3d(
        self,
        input: Value,
        weight: Value,
        bias: Value | None = None,
        *,
        stride: int | Sequence[int] = (1,),
        padding: int | Sequence[int] | Literal["valid", "same"] = (0,),
        dilation: int | Sequence[int] = (1,),
        groups: int = 1,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """kernels of channels slid over 3 dims (as PyTorch: not flipped), plus bias"""

    def conv_transpose1d(
        self,
        input: Value,
        weight: Value,
        bias: Value | None = None,
        *,
        stride: int | Sequence[int] = (1,),
        padding: int | Sequence[int] = (0,),
        output_padding: int | Sequence[int] = (0,),
        groups: int = 1,
        dilation: int | Sequence[int] = (1,),
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """each element times a kernel, spread over 1 dim and added up, plus bias"""

    def conv_transpose2d(
        self,
        input: Value,
        weight: Value,
        bias: Value | None = None,
        *,
        stride: int | Sequence[int] = (1,),
        padding: int | Sequence[int] = (0,),
        output_padding: int | Sequence[int] = (0,),
        groups: int = 1,
        dilation: int | Sequence[int] = (1,),
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """each element times a kernel, spread over 2 dims and added up, plus bias"""

    def conv_transpose3d(
        self,
        input: Value,
        weight: Value,
        bias: Value | None = None,
        *,
        stride: int | Sequence[int] = (1,),
        padding: int | Sequence[int] = (0,),
        output_padding: int | Sequence[int] = (0,),
        groups: int = 1,
        dilation: int | Sequence[int] = (1,),
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """each element times a kernel, spread over 3 dims and added up, plus bias"""

    def copysign(
        self,
        input: Value | Number,
        other: Value | Number,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """the magnitude of input with the sign of other; a zero that the device made has none"""

    def cos(
        self,
        input: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """cosine of x in radians"""

    def cosh(
        self,
        input: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """hyperbolic cosine of x"""

    def count_nonzero(
        self,
        input: Value,
        dim: int | Sequence[int] | None = None,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """how many elements are true or not zero"""

    def cummax(
        self,
        input: Value,
        dim: int,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> tuple[Value, Value]:
        """largest elements so far along dim, and their places"""

    def cummin(
        self,
        input: Value,
        dim: int,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> tuple[Value, Value]:
        """smallest elements so far along dim, and their places"""

    def cumprod(
        self,
        input: Value,
        dim: int,
        dtype: DTypeLike | None = None,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """running products along dim"""

    def cumsum(
        self,
        input: Value,
        dim: int,
        dtype: DTypeLike | None = None,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """running sums along dim"""

    def diagonal(
        self,
        input: Value,
        offset: int = 0,
        dim1: int = 0,
        dim2: int = 1,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """the elements on a diagonal of two dims"""

    def div(
        self,
        input: Value | Number,
        other: Value | Number,
        *,
        rounding_mode: Literal["trunc", "floor"] | None = None,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """quotient"""

    def dot(
        self,
        input: Value,
        tensor: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """sum of the products of two vectors"""

    def dropout(
        self,
        input: Value,
        p: float,
        training: bool,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """x itself: nothing is dropped but in training"""

    def einsum(
        self,
        operands: Sequence[Value],
        equation: str,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """sums of products, the dims named by an equation"""

    def elu(
        self,
        input: Value,
        alpha: float = 1.0,
        scale: float = 1.0,
        input_scale: float = 1.0,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """x above 0, alpha (exp(x) - 1) below"""

    def embedding(
        self,
        input: Value,
        weight: Value,
        *,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """rows of the weight"""

    def embedding_bag(
        self,
        input: Value,
        weight: Value,
        offsets: Value | None = None,
        per_sample_weights: Value | None = None,
        *,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: Literal["sum", "mean", "max"] = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """sums, means or maxima of the rows that each bag of indices names"""

    def empty(
        self,
        size: Extent | Sequence[Extent],
        dtype: DTypeLike = "float32",
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """a tensor for which nothing says more: zeros"""

    def empty_like(
        self,
        input: Value,
        dtype: DTypeLike | None = None,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """a tensor for which nothing says more: zeros, in the shape of input"""

    def eq(
        self,
        input: Value | Number,
        other: Value | Number,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """input = other, as bool"""

    def erf(
        self,
        input: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """error function"""

    def erfc(
        self,
        input: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """1 - erf(x), with all its digits where erf is close to 1"""

    def exp(
        self,
        input: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """e to the power of x"""

    def exp2(
        self,
        input: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """2 to the power of x"""

    def expand(
        self,
        input: Value,
        size: Extent | Sequence[Extent],
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """dims of extent 1 repeat without a copy; new dims in front"""

    def expand_as(
        self,
        input: Value,
        other: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """dims of extent 1 repeat up to the shape of other"""

    def expm1(
        self,
        input: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """exp(x) - 1, exact near 0"""

    def eye(
        self,
        n: Extent,
        m: Extent | None = None,
        dtype: DTypeLike = "float32",
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """ones where row and column are equal, zeros elsewhere"""

    def flatten(
        self,
        input: Value,
        start_dim: int = 0,
        end_dim: int = -1,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """dims start_dim to end_dim become one"""

    def flip(
        self,
        input: Value,
        dims: int | Sequence[int],
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """the order along dims reversed"""

    def floor(
        self,
        input: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """largest integer not above x"""

    def floor_divide(
        self,
        input: Value | Number,
        other: Value | Number,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """floor(input / other)"""

    def fmod(
        self,
        input: Value | Number,
        other: Value | Number,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """input - other trunc(input / other), which has the sign of input"""

    def frac(
        self,
        input: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """the fraction of x, with its sign"""

    def full(
        self,
        size: Extent | Sequence[Extent],
        fill_value: float | bool,
        dtype: DTypeLike = "float16",
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """a tensor of one number"""

    def full_like(
        self,
        input: Value,
        fill_value: float | bool,
        dtype: DTypeLike | None = None,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """one number, in the shape of input"""

    def gather(
        self,
        input: Value,
        index: Value,
        *,
        dim: int,
        sparse_grad: bool = False,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """result[i][j] = input[index[i][j]][j] for dim 0"""

    def ge(
        self,
        input: Value | Number,
        other: Value | Number,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """input >= other, as bool"""

    def gelu(
        self,
        input: Value,
        approximate: Literal["none", "tanh"] = "none",
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """x times the normal distribution function at x; approximate: none or tanh"""

    def glu(
        self,
        input: Value,
        dim: int = -1,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """the first half of dim times the sigmoid of the second"""

    def grid_sampler_2d(
        self,
        input: Value,
        grid: Value,
        *,
        interpolation_mode: int,
        padding_mode: int,
        align_corners: bool,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """an image read at fractional places, -1 to 1 from edge to edge (torch.nn.functional.grid_sample)"""

    def group_norm(
        self,
        input: Value,
        weight: Value | None = None,
        bias: Value | None = None,
        *,
        num_groups: int,
        eps: float = 1e-05,
        cudnn_enabled: bool = True,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """(x - mean) / sqrt(variance + eps) over each group of channels, times weight, plus bias"""

    def grouped_mm(
        self,
        mat_a: Value,
        mat_b: Value,
        offs: Value | None = None,
        bias: Value | None = None,
        *,
        out_dtype: DTypeLike | None = None,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """the rows (or columns) up to each end in offs times the matrix of their group"""

    def gt(
        self,
        input: Value | Number,
        other: Value | Number,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """input > other, as bool"""

    def hardsigmoid(
        self,
        input: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """(x + 3) / 6, limited to 0 and 1"""

    def hardswish(
        self,
        input: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """x hardsigmoid(x)"""

    def hardtanh(
        self,
        input: Value,
        min_val: float = -1.0,
        max_val: float = 1.0,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """x limited to the range from min_val to max_val"""

    def histc(
        self,
        input: Value,
        bins: int = 100,
        min: float = 0.0,
        max: float = 0.0,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """how many elements lie in each of the bins between min and max"""

    def hypot(
        self,
        input: Value,
        other: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """root of input**2 + other**2 that overflows with its result alone"""

    def index(
        self,
        input: Value,
        indices: Sequence[Value | None],
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """input[i, j, ...]: an index tensor per leading dim, null for a dim that stays whole"""

    def index_add(
        self,
        input: Value,
        index: Value,
        source: Value,
        *,
        dim: int,
        alpha: float | bool = 1,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """input plus alpha source in the places along dim that the index names, each as often as it is named"""

    def index_copy(
        self,
        input: Value,
        index: Value,
        source: Value,
        *,
        dim: int,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """input with source in the places along dim that the index names; of one named twice the later stays"""

    def index_fill(
        self,
        input: Value,
        index: Value,
        value: Value | Number,
        *,
        dim: int,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """input with one number in the places along dim that the index names"""

    def index_put(
        self,
        input: Value,
        indices: Sequence[Value | Number | None],
        *,
        accumulate: bool = False,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """input with values at [i, j, ...]: index tensors as those of index or bool masks, then the values"""

    def index_select(
        self,
        input: Value,
        index: Value,
        *,
        dim: int,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """the indices of one dim that a list names"""

    def instance_norm(
        self,
        input: Value,
        running_mean: Value | None = None,
        running_var: Value | None = None,
        weight: Value | None = None,
        bias: Value | None = None,
        *,
        use_input_stats: bool = True,
        momentum: float = 0.1,
        eps: float = 1e-05,
        cudnn_enabled: bool = True,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """(x - mean) / sqrt(variance + eps) over each channel of each sample, times weight, plus bias"""

    def interpolate(
        self,
        input: Value,
        size: int | Sequence[int] | None = None,
        scale_factor: float | Sequence[float] | None = None,
        mode: Literal["nearest", "nearest-exact", "linear", "bilinear", "trilinear", "bicubic", "area"] = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
        antialias: bool = False,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """other extents behind the channels: by the nearest element, or linearly along each dim"""

    def isinf(
        self,
        input: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """whether x is an infinity; a NaN that the device made is one"""

    def isnan(
        self,
        input: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """whether x is NaN; what the device made is an infinity instead"""

    def kthvalue(
        self,
        input: Value,
        k: int,
        dim: int = -1,
        keepdim: bool = False,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> tuple[Value, Value]:
        """the k-th smallest element along dim, and its place; of equals the one that comes first in order"""

    def layer_norm(
        self,
        input: Value,
        weight: Value | None = None,
        bias: Value | None = None,
        *,
        normalized_shape: Extent | Sequence[Extent],
        eps: float = 1e-05,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """(x - mean) / sqrt(variance + eps) over the last dims, times weight, plus bias"""

    def le(
        self,
        input: Value | Number,
        other: Value | Number,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """input <= other, as bool"""

    def leaky_relu(
        self,
        input: Value,
        negative_slope: float = 0.01,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """x above 0, negative_slope x below"""

    def lerp(
        self,
        input: Value,
        end: Value,
        weight: Value | Number,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """input + weight (end - input)"""

    def linalg_vector_norm(
        self,
        input: Value,
        ord: float = 2.0,
        dim: int | Sequence[int] | None = None,
        keepdim: bool = False,
        dtype: DTypeLike | None = None,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """(sum of magnitudes to the power p) to the power 1 / p; the largest magnitude of p infinite"""

    def linear(
        self,
        input: Value,
        weight: Value,
        bias: Value | None = None,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """input times the transposed weight, plus bias"""

    def linspace(
        self,
        start: float,
        end: float,
        steps: int,
        dtype: DTypeLike = "float32",
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """numbers of one distance from start to end"""

    def log(
        self,
        input: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """natural logarithm"""

    def log10(
        self,
        input: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """logarithm to base 10"""

    def log1p(
        self,
        input: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """log(1 + x), exact near 0"""

    def log2(
        self,
        input: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """logarithm to base 2"""

    def log_softmax(
        self,
        input: Value,
        dim: int,
        dtype: DTypeLike | None = None,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """logarithm of softmax along dim"""

    def logcumsumexp(
        self,
        input: Value,
        dim: int,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """logarithms of the sums of exponentials so far along dim"""

    def logical_and(
        self,
        input: Value | Number,
        other: Value | Number,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """whether both are true or not zero"""

    def logical_not(
        self,
        input: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """whether x is false or zero"""

    def logical_or(
        self,
        input: Value | Number,
        other: Value | Number,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """whether one is true or not zero"""

    def logical_xor(
        self,
        input: Value | Number,
        other: Value | Number,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """whether one alone is true or not zero"""

    def logsigmoid(
        self,
        input: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """log(sigmoid(x))"""

    def logsumexp(
        self,
        input: Value,
        dim: int | Sequence[int],
        keepdim: bool = False,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """logarithm of the sum of exponentials"""

    def lt(
        self,
        input: Value | Number,
        other: Value | Number,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """input < other, as bool"""

    def masked_fill(
        self,
        input: Value,
        mask: Value,
        value: Value | Number,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """value where the mask holds, input elsewhere"""

    def masked_scatter(
        self,
        input: Value,
        mask: Value,
        source: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """input with the elements of source, in order, where the mask is true"""

    def matmul(
        self,
        input: Value,
        other: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """matrix product; the batch dims broadcast"""

    def max(
        self,
        input: Value,
        other: Value | None = None,
        *,
        dim: int | None = None,
        keepdim: bool = False,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value | tuple[Value, ...]:
        """largest element of all, or along dim with its place; of two tensors the larger"""

    def max_pool1d(
        self,
        input: Value,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = (0,),
        dilation: int | Sequence[int] = (1,),
        ceil_mode: bool = False,
        return_indices: bool = False,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """largest of windows over 1 dim"""

    def max_pool1d_with_indices(
        self,
        input: Value,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = (0,),
        dilation: int | Sequence[int] = (1,),
        ceil_mode: bool = False,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> tuple[Value, Value]:
        """largest of windows over 1 dim, and their places, counted row by row"""

    def max_pool2d(
        self,
        input: Value,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = (0,),
        dilation: int | Sequence[int] = (1,),
        ceil_mode: bool = False,
        return_indices: bool = False,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """largest of windows over 2 dims"""

    def max_pool2d_with_indices(
        self,
        input: Value,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = (0,),
        dilation: int | Sequence[int] = (1,),
        ceil_mode: bool = False,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> tuple[Value, Value]:
        """largest of windows over 2 dims, and their places, counted row by row"""

    def max_pool3d(
        self,
        input: Value,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = (0,),
        dilation: int | Sequence[int] = (1,),
        ceil_mode: bool = False,
        return_indices: bool = False,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """largest of windows over 3 dims"""

    def max_pool3d_with_indices(
        self,
        input: Value,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = (0,),
        dilation: int | Sequence[int] = (1,),
        ceil_mode: bool = False,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> tuple[Value, Value]:
        """largest of windows over 3 dims, and their places, counted row by row"""

    def maximum(
        self,
        input: Value | Number,
        other: Value | Number,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """the larger element"""

    def mean(
        self,
        input: Value,
        dim: int | Sequence[int] | None = None,
        keepdim: bool = False,
        dtype: DTypeLike | None = None,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """arithmetic mean"""

    def median(
        self,
        input: Value,
        dim: int | None = None,
        keepdim: bool = False,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value | tuple[Value, ...]:
        """the middle element of all, or along dim with its place; the lower of two"""

    def meshgrid(
        self,
        tensors: Sequence[Value],
        indexing: Literal["ij", "xy"] = "ij",
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> tuple[Value, ...]:
        """for each vector a tensor over all combinations, which runs along the vector's own dim"""

    def min(
        self,
        input: Value,
        other: Value | None = None,
        *,
        dim: int | None = None,
        keepdim: bool = False,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value | tuple[Value, ...]:
        """smallest element of all, or along dim with its place; of two tensors the smaller"""

    def minimum(
        self,
        input: Value | Number,
        other: Value | Number,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """the smaller element"""

    def mish(
        self,
        input: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """x tanh(softplus(x))"""

    def mm(
        self,
        input: Value,
        mat2: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """matrix product"""

    def moveaxis(
        self,
        input: Value,
        source: int | Sequence[int],
        destination: int | Sequence[int],
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """dims moved to other places, the others in their order"""

    def movedim(
        self,
        input: Value,
        source: int | Sequence[int],
        destination: int | Sequence[int],
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """dims moved to other places, the others in their order"""

    def mul(
        self,
        input: Value | Number,
        other: Value | Number,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """product; of bools: both"""

    def mv(
        self,
        input: Value,
        vec: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """matrix times vector"""

    def nan_to_num(
        self,
        input: Value,
        nan: float | None = None,
        posinf: float | None = None,
        neginf: float | None = None,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """x with numbers for NaN and the infinities"""

    def narrow(
        self,
        input: Value,
        dim: int,
        start: Extent,
        length: Extent,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """length indices of a dim from start on"""

    def ne(
        self,
        input: Value | Number,
        other: Value | Number,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """input and other differ, as bool"""

    def neg(
        self,
        input: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """negation"""

    def new_empty(
        self,
        input: Value,
        size: Extent | Sequence[Extent],
        dtype: DTypeLike | None = None,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """a tensor for which nothing says more: zeros, in the dtype of input"""

    def new_full(
        self,
        input: Value,
        size: Extent | Sequence[Extent],
        fill_value: float | bool,
        dtype: DTypeLike | None = None,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """one number, in the dtype of input"""

    def new_ones(
        self,
        input: Value,
        size: Extent | Sequence[Extent],
        dtype: DTypeLike | None = None,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """ones, in the dtype of input"""

    def new_zeros(
        self,
        input: Value,
        size: Extent | Sequence[Extent],
        dtype: DTypeLike | None = None,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """zeros, in the dtype of input"""

    def nonzero_static(
        self,
        input: Value,
        size: int,
        fill_value: int = -1,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """where the first elements stand that are true or not zero, in order, a row of indices each"""

    def norm(
        self,
        input: Value,
        p: float = 2.0,
        dim: int | Sequence[int] | None = None,
        keepdim: bool = False,
        dtype: DTypeLike | None = None,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """(sum of magnitudes to the power p) to the power 1 / p; the largest magnitude of p infinite"""

    def one_hot(
        self,
        input: Value,
        num_classes: int = -1,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """for each number a row of zeros with a one at its place"""

    def ones(
        self,
        size: Extent | Sequence[Extent],
        dtype: DTypeLike = "float32",
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """ones"""

    def ones_like(
        self,
        input: Value,
        dtype: DTypeLike | None = None,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """ones, in the shape of input"""

    def outer(
        self,
        input: Value,
        vec2: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """each element of input times each of vec2"""

    def pad(
        self,
        input: Value,
        pad: Extent | Sequence[Extent],
        mode: Literal["constant", "reflect", "replicate", "circular"] = "constant",
        value: float | bool | None = None,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """elements added around the last dims, or cut off"""

    def pdist(
        self,
        input: Value,
        p: float = 2.0,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """the p-norm of input[i] - input[j], for all i < j in order"""

    def permute(
        self,
        input: Value,
        dims: int | Sequence[int],
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """the dims in another order"""

    def pixel_shuffle(
        self,
        input: Value,
        upscale_factor: int,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """channels become rows and columns"""

    def pixel_unshuffle(
        self,
        input: Value,
        downscale_factor: int,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """rows and columns become channels"""

    def pow(
        self,
        input: Value | Number,
        exponent: Value | Number | None = None,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """x to the power of a number or a tensor"""

    def prelu(
        self,
        input: Value,
        weight: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """x above 0, its channel's weight times x below"""

    def prod(
        self,
        input: Value,
        dim: int | Sequence[int] | None = None,
        keepdim: bool = False,
        dtype: DTypeLike | None = None,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """product"""

    def reciprocal(
        self,
        input: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """1 / x"""

    def relu(
        self,
        input: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """max(x, 0)"""

    def relu6(
        self,
        input: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """x limited to the range from 0 to 6"""

    def remainder(
        self,
        input: Value | Number,
        other: Value | Number,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """input - other floor(input / other), which has the sign of other"""

    def repeat(
        self,
        input: Value,
        repeats: Extent | Sequence[Extent],
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """the tensor tiled along its dims"""

    def repeat_interleave(
        self,
        input: Value,
        repeats: Extent,
        dim: int | None = None,
        output_size: Extent | None = None,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """each element several times in a row"""

    def reshape(
        self,
        input: Value,
        shape: Extent | Sequence[Extent],
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """the same elements in row-major order under another shape"""

    def reshape_as(
        self,
        input: Value,
        other: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """the same elements in the shape of other"""

    def rms_norm(
        self,
        input: Value,
        weight: Value | None = None,
        *,
        normalized_shape: Extent | Sequence[Extent],
        eps: float | None = None,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """x / sqrt(mean of squares + eps) over the last dims, times weight"""

    def roll(
        self,
        input: Value,
        shifts: Extent | Sequence[Extent],
        dims: int | Sequence[int] = (),
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """elements moved along dims, those beyond the end to the beginning"""

    def round(
        self,
        input: Value,
        decimals: int = 0,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """nearest number of decimals digits, the even one of two"""

    def rsqrt(
        self,
        input: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """1 / sqrt(x)"""

    def rsub(
        self,
        input: Value | Number,
        other: Value | Number,
        *,
        alpha: float = 1,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """other - alpha input"""

    def scalar_tensor(
        self,
        s: float | bool,
        dtype: DTypeLike = "float32",
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """one number"""

    def scaled_dot_product_attention(
        self,
        query: Value,
        key: Value,
        value: Value,
        attn_mask: Value | None = None,
        *,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """softmax(query key^T scale + mask) value; a bool mask means 'may attend'"""

    def scatter(
        self,
        input: Value,
        index: Value,
        src: Value | Number,
        *,
        dim: int,
        reduce: Literal["add", "multiply"] | None = None,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """result[index[i][j]][j] = src[i][j] for dim 0; src may be a number; of a place named twice the later stays"""

    def scatter_add(
        self,
        input: Value,
        index: Value,
        src: Value,
        *,
        dim: int,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """input plus src, each element where the index says along dim"""

    def scatter_reduce(
        self,
        input: Value,
        index: Value,
        src: Value,
        *,
        dim: int,
        reduce: Literal["sum", "prod", "mean", "amax", "amin"],
        include_self: bool = True,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """input with the sum, product, mean or extremum of what the index sends to each place along dim"""

    def searchsorted(
        self,
        sorted_sequence: Value,
        input: Value | Number,
        *,
        out_int32: bool = False,
        right: bool = False,
        side: Literal["left", "right"] | None = None,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """where values would stand in ordered rows"""

    def select(
        self,
        input: Value,
        dim: int,
        index: int,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """one index of a dim, which disappears"""

    def select_scatter(
        self,
        input: Value,
        src: Value,
        *,
        dim: int,
        index: int,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """input with src in place of one index of a dim"""

    def selu(
        self,
        input: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """elu with the scale and the alpha that keep mean and variance"""

    def sigmoid(
        self,
        input: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """1 / (1 + exp(-x))"""

    def sign(
        self,
        input: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """-1, 0 or 1 as x is below, at or above 0; of a bool the bool"""

    def silu(
        self,
        input: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """x sigmoid(x)"""

    def sin(
        self,
        input: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """sine of x in radians"""

    def sinh(
        self,
        input: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """hyperbolic sine of x"""

    def slice(
        self,
        input: Value,
        dim: int = 0,
        start: Extent | None = None,
        end: Extent | None = None,
        step: int = 1,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """indices start, start + step, ... below end of one dim"""

    def slice_scatter(
        self,
        input: Value,
        src: Value,
        *,
        dim: int = 0,
        start: Extent | None = None,
        end: Extent | None = None,
        step: int = 1,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """input with src in place of a slice"""

    def softmax(
        self,
        input: Value,
        dim: int,
        dtype: DTypeLike | None = None,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """exponentials that sum to 1 along dim"""

    def softplus(
        self,
        input: Value,
        beta: float = 1.0,
        threshold: float = 20.0,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """log(1 + exp(beta x)) / beta, x where beta x > threshold"""

    def softsign(
        self,
        input: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """x / (1 + abs(x))"""

    def sort(
        self,
        input: Value,
        dim: int = -1,
        descending: bool = False,
        stable: bool | None = None,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> tuple[Value, Value]:
        """the elements along dim in order, and where they stood"""

    def split(
        self,
        input: Value,
        split_size: Extent | Sequence[Extent],
        dim: int = 0,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> tuple[Value, ...]:
        """a dim cut into pieces of one size, or of the sizes of a list"""

    def split_with_sizes(
        self,
        input: Value,
        split_sizes: Extent | Sequence[Extent],
        dim: int = 0,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> tuple[Value, ...]:
        """a dim cut into pieces of the sizes of a list"""

    def sqrt(
        self,
        input: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """square root"""

    def square(
        self,
        input: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """x times x"""

    def squeeze(
        self,
        input: Value,
        dim: int | Sequence[int] | None = None,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """without the dims of extent 1"""

    def stack(
        self,
        tensors: Sequence[Value],
        dim: int = 0,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """tensors of one shape along a new dim"""

    def std(
        self,
        input: Value,
        dim: int | Sequence[int] | None = None,
        unbiased: bool | None = None,
        correction: float | None = None,
        keepdim: bool = False,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """square root of var"""

    def std_mean(
        self,
        input: Value,
        dim: int | Sequence[int] | None = None,
        unbiased: bool | None = None,
        correction: float | None = None,
        keepdim: bool = False,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> tuple[Value, Value]:
        """std, and the mean"""

    def sub(
        self,
        input: Value | Number,
        other: Value | Number,
        *,
        alpha: float = 1,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """input - alpha other"""

    def sum(
        self,
        input: Value,
        dim: int | Sequence[int] | None = None,
        keepdim: bool = False,
        dtype: DTypeLike | None = None,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """sum"""

    def swapaxes(
        self,
        input: Value,
        axis0: int,
        axis1: int,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """two dims change places"""

    def swapdims(
        self,
        input: Value,
        dim0: int,
        dim1: int,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """two dims change places"""

    def t(
        self,
        input: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """the transposed matrix; vectors stay"""

    def take_along_dim(
        self,
        input: Value,
        indices: Value,
        *,
        dim: int | None = None,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """gather, with the other dims of both broadcast"""

    def tan(
        self,
        input: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """tangent of x in radians"""

    def tanh(
        self,
        input: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """hyperbolic tangent"""

    def threshold(
        self,
        input: Value,
        threshold: float,
        value: float,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """x above threshold, value elsewhere"""

    def tile(
        self,
        input: Value,
        dims: Extent | Sequence[Extent],
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """the tensor repeated along its dims, the last of which may be named alone"""

    def to(
        self,
        input: Value,
        dtype: DTypeLike,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """another dtype; to bool: whether not zero"""

    def topk(
        self,
        input: Value,
        k: int,
        dim: int = -1,
        largest: bool = True,
        sorted: bool = True,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> tuple[Value, Value]:
        """the k largest or smallest elements along dim, and their places"""

    def transpose(
        self,
        input: Value,
        dim0: int,
        dim1: int,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """two dims change places"""

    def tril(
        self,
        input: Value,
        diagonal: int = 0,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """matrices with zeros but below and on a diagonal"""

    def triu(
        self,
        input: Value,
        diagonal: int = 0,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """matrices with zeros but above and on a diagonal"""

    def trunc(
        self,
        input: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """x without its fraction"""

    def type_as(
        self,
        input: Value,
        other: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """converted to the dtype of other"""

    def unbind(
        self,
        input: Value,
        dim: int = 0,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> tuple[Value, ...]:
        """the tensors that stand one after the other along a dim"""

    def unflatten(
        self,
        input: Value,
        dim: int,
        sizes: Extent | Sequence[Extent],
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """one dim becomes several"""

    def unfold(
        self,
        input: Value,
        dimension: int,
        size: Extent,
        step: Extent,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """windows along a dim, side by side in a new last dim"""

    def unsqueeze(
        self,
        input: Value,
        dim: int,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """a new dim of extent 1"""

    def var(
        self,
        input: Value,
        dim: int | Sequence[int] | None = None,
        unbiased: bool | None = None,
        correction: float | None = None,
        keepdim: bool = False,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """mean of the squared distances from the mean, over the count less correction"""

    def var_mean(
        self,
        input: Value,
        dim: int | Sequence[int] | None = None,
        unbiased: bool | None = None,
        correction: float | None = None,
        keepdim: bool = False,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> tuple[Value, Value]:
        """var, and the mean"""

    def view(
        self,
        input: Value,
        size: Extent | Sequence[Extent],
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """the same as reshape: a tensor of a graph has no strides that could forbid it"""

    def view_as(
        self,
        input: Value,
        other: Value,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """the same elements in the shape of other"""

    def where(
        self,
        condition: Value,
        input: Value | Number,
        other: Value | Number,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """input where the condition holds, other elsewhere"""

    def zeros(
        self,
        size: Extent | Sequence[Extent],
        dtype: DTypeLike = "float32",
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """zeros"""

    def zeros_like(
        self,
        input: Value,
        dtype: DTypeLike | None = None,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """zeros, in the shape of input"""
