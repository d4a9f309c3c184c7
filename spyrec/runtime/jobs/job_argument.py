"""One tensor that a job takes, and whether a launch's tensor is that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from spyrec.bundle.manifest import Argument, Role
from spyrec.bundle.tile_contract import argument_layout
from spyrec.dataclass import dataclass
from spyrec.hardware.dtypes import DeviceFormat, DType
from spyrec.hardware.target import STICK_BYTES
from spyrec.layout.device_layout import DeviceLayout
from spyrec.layout.symbolic_dim import SymbolicDim
from spyrec.layout.tiling import row_major_strides
from spyrec.runtime.errors import DtypeMismatch, LayoutMismatch, RuntimeFault, ShapeMismatch
from spyrec.runtime.inputs.binding import has_host_form
from spyrec.runtime.memory.allocator import AllocationIndex
from spyrec.runtime.streams.launch_argument import LaunchArgument

_WORDS = STICK_BYTES // 4
"""Elements per stick of the form in which bytes are passed that have no host form."""


@dataclass(frozen=True, slots=True)
class JobArgument:
    """A tensor as the program was compiled for it.

    ``shape``, ``strides``, ``dtype`` and ``layout`` are ``None`` where only the bytes are known (a bundle of others).
    ``axes``: by axis the symbolic dim that it is, with its name; empty where no axis is one; ``shape`` has the largest
    extents.
    """

    name: str
    role: Role
    size_bytes: int
    shape: tuple[int, ...] | None = None
    strides: tuple[int, ...] | None = None
    dtype: DType | None = None
    layout: DeviceLayout | None = None
    axes: tuple[tuple[str, SymbolicDim] | None, ...] = field(default=())

    def matches(self, given: LaunchArgument) -> bool:
        """Whether a tensor is what the program was compiled for, but for the extents of symbolic dims."""
        if self.layout is None:
            return True
        same = given.layout is self.layout or given.layout == self.layout
        if not same or given.dtype is not self.dtype or given.storage_offset_bytes % STICK_BYTES:
            return False
        if given.shape == self.shape:
            return given.strides == self.strides or self._moves_alike(given)
        return self._admits(given.shape)

    def mismatch(self, given: LaunchArgument) -> RuntimeFault:
        """Return the error for a tensor that does not match: SPY0951 dtype, SPY0953 shape, SPY0952 layout."""
        name = f'tensor "{self.name}"'
        if given.dtype is not self.dtype:
            assert self.dtype is not None
            return DtypeMismatch(f"{name} is {given.dtype.value}, the program takes {self.dtype.value}")
        if given.shape != self.shape and not self._admits(given.shape):
            return ShapeMismatch(f"{name} has shape {list(given.shape)}, the program takes {self.shape_text}")
        hint = "make the tensor with the layout that the plan's argument has"
        notes = (f"the tensor: {given.layout}", f"the program: {self.layout}")
        return LayoutMismatch(f"{name} lies in another layout than the program takes", notes=notes, hint=hint)

    @property
    def shape_text(self) -> str:
        """The shape as messages show it: symbolic axes with their names and bounds."""
        assert self.shape is not None
        axes = self.axes or (None,) * len(self.shape)
        parts = [
            str(extent) if axis is None else f"{axis[0]} ({axis[1]})"
            for extent, axis in zip(self.shape, axes, strict=True)
        ]
        return f"[{', '.join(parts)}]"

    def actual_shape(self, extents: Mapping[str, int]) -> tuple[int, ...] | None:
        """Return the shape in a launch that chose ``extents``; the largest of a dim that no tensor has."""
        if self.shape is None or not self.axes:
            return self.shape
        pairs = zip(self.shape, self.axes, strict=True)
        return tuple(size if axis is None else extents.get(axis[0], axis[1].largest) for size, axis in pairs)

    def placed(self, index: AllocationIndex, shape: tuple[int, ...] | None = None) -> LaunchArgument:
        """Return memory as this tensor in a launch; ``shape``: where the launch chose smaller extents."""
        if self.layout is None or self.dtype is None or self.shape is None or self.strides is None:
            sticks = self.size_bytes // STICK_BYTES
            form = DeviceLayout((sticks, _WORDS), (_WORDS, 1), DeviceFormat.IEEE_FP32)
            return LaunchArgument(index, (sticks, _WORDS), (_WORDS, 1), DType.FLOAT32, form)
        if shape is None or shape == self.shape:
            return LaunchArgument(index, self.shape, self.strides, self.dtype, self.layout)
        return LaunchArgument(index, shape, row_major_strides(shape), self.dtype, self.layout)

    def _admits(self, shape: tuple[int, ...]) -> bool:
        if self.shape is None or not self.axes or len(shape) != len(self.shape):
            return False
        return all(
            extent == largest if axis is None else axis[1].admits(extent)
            for extent, largest, axis in zip(shape, self.shape, self.axes, strict=True)
        )

    def _moves_alike(self, given: LaunchArgument) -> bool:
        """Whether the strides differ only along dims of one element."""
        assert self.shape is not None
        assert self.strides is not None
        pairs = zip(self.shape, given.strides, self.strides, strict=True)
        return all(mine == theirs for extent, mine, theirs in pairs if extent > 1)


def job_argument(argument: Argument, symbolic: Mapping[str, SymbolicDim], size_bytes: int) -> JobArgument:
    """Return an argument of a manifest as launches see it."""
    if not has_host_form(argument):
        return JobArgument(argument.name, argument.role, size_bytes)
    layout = argument_layout(argument)
    axes = tuple(None if name is None else (name, symbolic[name]) for name in argument.symbolic_axes)
    return JobArgument(
        argument.name, argument.role, size_bytes, argument.shape, layout.host_strides, argument.dtype, layout, axes
    )


def extents_of(arguments: tuple[JobArgument, ...], given: tuple[LaunchArgument, ...]) -> dict[str, int]:
    """Return the extent that a launch gives each symbolic dim of its tensors; errors SPY0953 where two disagree."""
    found: dict[str, tuple[int, str]] = {}
    for argument, tensor in zip(arguments, given, strict=True):
        for extent, axis in zip(tensor.shape, argument.axes, strict=False):
            if axis is None:
                continue
            known = found.setdefault(axis[0], (extent, argument.name))
            if known[0] != extent:
                fact = f'dim "{axis[0]}" has {known[0]} elements in "{known[1]}" and {extent} in "{argument.name}"'
                raise ShapeMismatch(fact, hint="a symbolic dim has one extent in a launch")
    return {name: extent for name, (extent, _) in found.items()}
