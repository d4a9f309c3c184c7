"""A reduction over a tiled dim: filled with the identity before the loop, a partial result and a combination in it.

Sums run in float32, whatever the format of the result, so that tiling rounds no more often than the one time at the
end; a matmul stores nothing but SEN169_FP16, so that its partial products are rounded once more each.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.device_ops import IDENTITY, cast_between, device_operation
from spyrec.hardware.dtypes import DType
from spyrec.ir.access import Access
from spyrec.ir.graph import ConstantData, Derived
from spyrec.ir.kernel import BufferRole, ConstantSource, Kernel, KernelBuffer, Use
from spyrec.ir.kernel_form import Rule
from spyrec.ir.types import TensorType

PASS_NAME = "tile-loops"


@dataclass(frozen=True, slots=True)
class Accumulation:
    """The kernels of a tiled reduction by where they stand, and the buffers to add."""

    before: Kernel
    inside: tuple[Kernel, ...]
    after: Kernel | None
    buffers: tuple[KernelBuffer, ...]
    total: str
    """The buffer that is complete only when the loop has ended."""


def can_accumulate(kernel: Kernel, pieces: Collection[int]) -> bool:
    """Whether partial results of a kernel over tiles of so many elements can be combined."""
    fold = device_operation(kernel.op_func).fold
    return fold is not None and all(piece >= fold.least_tile for piece in pieces)


def accumulate(kernel: Kernel, buffers: Mapping[str, KernelBuffer]) -> Accumulation:
    """Return the parts of a reduction for a loop over its reduced dim.

    ``y = sum(x)  -->  t = 0; loop: p = sum(float32(tile of x)); t = add(t, p);  y = float16(t)``
    """
    return _Accumulator(kernel, buffers).run()


class _Accumulator:
    def __init__(self, kernel: Kernel, buffers: Mapping[str, KernelBuffer]) -> None:
        self._kernel = kernel
        fold = device_operation(kernel.op_func).fold
        assert fold is not None, kernel.op_func
        self._fold = fold
        self._target = buffers[kernel.output.buffer]
        self._source = buffers[kernel.inputs[0].buffer]
        self._origin = Derived(PASS_NAME, (kernel.origin,))
        self._made: list[KernelBuffer] = []
        is_half = self._target.type.dtype is not DType.FLOAT32
        self._is_widened = is_half and not self._fold.is_split_exact

    def run(self) -> Accumulation:
        dtype = DType.FLOAT32 if self._is_widened else self._target.type.dtype
        total = self._target.name
        if self._is_widened:
            total = self._buffer("total", self._target.type.shape, dtype)
        identity = self._identity(dtype)
        shape = self._target.type.shape
        before = self._over_target("identity", Use(identity, Access(shape, ())), total, is_cast=False)
        partial, kernels = self._partial(dtype)
        whole = Access.identity(shape)
        combine = replace(
            self._over_target("combined", Use(total, whole), total, is_cast=False),
            op=self._fold.join,
            op_func=self._fold.join,
            rule=Rule.SAME_STICK,
            inputs=(Use(total, whole), Use(partial, whole)),
            reason=None,
        )
        after = None
        if self._is_widened:
            after = self._over_target("rounded", Use(total, whole), self._target.name, is_cast=True)
        return Accumulation(before, (*kernels, combine), after, tuple(self._made), total)

    def _partial(self, dtype: DType) -> tuple[str, tuple[Kernel, ...]]:
        """Return the buffer of one tile's result in ``dtype``, and the kernels that make it."""
        kernel, shape = self._kernel, self._target.type.shape
        if kernel.rule is Rule.CONTRACTION:
            product = self._buffer("product", shape, self._target.type.dtype)
            partial = self._buffer("partial", shape, dtype)
            inner = replace(kernel, name=f"{kernel.name}.product", output=replace(kernel.output, buffer=product))
            cast = self._over_target("widened", Use(product, Access.identity(shape)), partial, is_cast=True)
            return partial, (inner, cast)
        partial = self._buffer("partial", shape, dtype)
        inner = replace(kernel, name=f"{kernel.name}.partial", output=replace(kernel.output, buffer=partial))
        if not self._is_widened:
            return partial, (inner,)
        operand = self._buffer("operand", kernel.extents, dtype)
        whole = Access.identity(kernel.extents)
        cast = replace(
            self._copy(f"{kernel.name}.operand", kernel.inputs[0], Use(operand, whole), is_cast=True),
            extents=kernel.extents,
            dims=kernel.dims,
        )
        return partial, (cast, replace(inner, inputs=(Use(operand, whole),)))

    def _buffer(self, suffix: str, shape: tuple[int, ...], dtype: DType) -> str:
        name = f"{self._target.name}.{suffix}"
        self._made.append(KernelBuffer(name, TensorType(shape, dtype), BufferRole.INTERMEDIATE, self._origin))
        return name

    def _identity(self, dtype: DType) -> str:
        identity = self._fold.mask
        number = {0.0: "zero", math.inf: "infinity", -math.inf: "minus_infinity"}.get(identity, f"{identity:g}")
        name = f"identity.{number}.{dtype.value}"
        data = ConstantData(array=np.asarray(identity, np.float64))
        source = ConstantSource(data, ())
        self._made.append(KernelBuffer(name, TensorType((), dtype), BufferRole.CONSTANT, self._origin, constant=source))
        return name

    def _over_target(self, suffix: str, source: Use, target: str, *, is_cast: bool) -> Kernel:
        """Return a copy or cast over all of what the reduction writes, its dims named as the reduction's are."""
        shape = self._target.type.shape
        copy = self._copy(f"{self._kernel.name}.{suffix}", source, Use(target, Access.identity(shape)), is_cast=is_cast)
        return replace(copy, extents=shape, dims=output_dims(self._kernel, len(shape)))

    def _copy(self, name: str, source: Use, target: Use, *, is_cast: bool) -> Kernel:
        kernel = self._kernel
        to_single = self._source.type.dtype is not DType.FLOAT32 and not name.endswith(".rounded")
        half, single = DType.FLOAT16.device_format, DType.FLOAT32.device_format
        cast = cast_between(*((half, single) if to_single else (single, half)))
        assert cast is not None
        op_func = cast if is_cast else IDENTITY
        return Kernel(
            name=name,
            op="to" if is_cast else "spyre.copy",
            op_func=op_func,
            rule=Rule.CAST if is_cast else Rule.COPY,
            extents=(),
            inputs=(source,),
            output=target,
            origin=self._origin,
            reason=f'"{kernel.name}" adds up the tiles of a reduced dim',
        )


def output_dims(kernel: Kernel, rank: int) -> tuple[str | None, ...]:
    """Return the names of a kernel's output dims: those of the iteration dims that walk them."""
    names: list[str | None] = [None] * rank
    for dim, coordinate in enumerate(kernel.output.access.coordinates):
        if len(coordinate.terms) == 1 and coordinate.terms[0].divisor == 1 and kernel.dims:
            names[dim] = kernel.dims[coordinate.terms[0].dim]
    return tuple(names)
