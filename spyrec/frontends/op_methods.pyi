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

    def add(
        self,
        input: Value | Number,
        other: Value | Number,
        *,
        alpha: float = 1.0,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """input + alpha other"""

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

    def clamp(
        self,
        input: Value,
        min: float | None = None,
        max: float | None = None,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """x limited to the range from min to max"""

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
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """arithmetic mean"""

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

    def pow(
        self,
        input: Value,
        exponent: float,
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """x to the power of a number"""

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

    def sub(
        self,
        input: Value | Number,
        other: Value | Number,
        *,
        alpha: float = 1.0,
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
        *,
        name: str | None = None,
        outputs: Sequence[str] | None = None,
        layout: Layout | None = None,
        work_division: WorkDivision | None = None,
    ) -> Value:
        """sum"""

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
