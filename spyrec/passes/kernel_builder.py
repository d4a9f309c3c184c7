"""Buffers and kernels of a graph under construction, and where each value of the graph lies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from spyrec.ir.access import Access
from spyrec.ir.graph import Derived, Graph, LayoutPin, Node, Operand, Origin
from spyrec.ir.kernel import BufferRole, Kernel, KernelBuffer, Use, copy_kernel
from spyrec.ir.types import TensorType

PASS_NAME = "form-kernels"


class KernelBuilder:
    """Collects buffers and kernels; ``uses`` says which buffer, read how, a value of the graph is."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.buffers: dict[str, KernelBuffer] = {}
        self.kernels: list[Kernel] = []
        self.uses: dict[str, Use] = {}
        self.output_buffers: dict[str, str] = {}
        self._kernel_names: set[str] = set()

    def add_buffer(self, buffer: KernelBuffer) -> KernelBuffer:
        """Add a buffer that is a value of the graph under the same name."""
        self.buffers[buffer.name] = buffer
        self.uses[buffer.name] = Use(buffer.name, buffer.whole)
        return buffer

    def new_buffer(
        self,
        stem: str,
        tensor_type: TensorType,
        origin: Origin,
        *,
        role: BufferRole = BufferRole.INTERMEDIATE,
        pin: LayoutPin | None = None,
        host_shape: tuple[int, ...] | None = None,
    ) -> KernelBuffer:
        """Add a buffer that kernels write, under a name of its own."""
        name = unique(stem, lambda candidate: candidate in self.buffers or self._is_value(candidate, stem, role))
        buffer = KernelBuffer(name, tensor_type, role, Derived(PASS_NAME, (origin,)), pin=pin, host_shape=host_shape)
        self.buffers[name] = buffer
        return buffer

    def _is_value(self, candidate: str, stem: str, role: BufferRole) -> bool:
        """Whether a name belongs to another value of the graph."""
        return role is not BufferRole.OUTPUT and candidate in self.graph.values and candidate != stem

    def operand(self, operand: Operand) -> Use:
        """Return where an operand lies."""
        assert isinstance(operand, str), operand
        return self.uses[operand]

    def type_of(self, operand: Operand) -> TensorType:
        """Return the type of an operand."""
        assert isinstance(operand, str), operand
        return self.graph.values[operand].type

    def dims_of(self, operand: Operand) -> tuple[str | None, ...]:
        """Return the dim names of an operand's axes."""
        assert isinstance(operand, str), operand
        return self.graph.values[operand].dims

    def result(self, node: Node) -> KernelBuffer:
        """Add the buffer that a node's result gets; its value is all of it."""
        tensor_type = self.graph.values[node.output].type
        stem = node.output if node.output not in self.graph.outputs else f"{node.output}.value"
        buffer = self.new_buffer(stem, tensor_type, node.origin)
        self.uses[node.output] = Use(buffer.name, Access.identity(tensor_type.shape))
        return buffer

    def has_elidable_copy(self, buffer: str) -> bool:
        """Whether a copy of this buffer may be dropped already."""
        return any(kernel.is_elidable and kernel.inputs[0].buffer == buffer for kernel in self.kernels)

    def add_kernel(self, kernel: Kernel) -> None:
        """Add a kernel under a name of its own."""
        name = unique(kernel.name, lambda candidate: candidate in self._kernel_names)
        self._kernel_names.add(name)
        self.kernels.append(kernel if name == kernel.name else renamed(kernel, name))


def renamed(kernel: Kernel, name: str) -> Kernel:
    """Return the kernel under another name."""
    return replace(kernel, name=name)


def unique(stem: str, is_taken: Callable[[str], bool]) -> str:
    """Return ``stem``, or ``stem`` with the first number that is not taken."""
    name, number = stem, 0
    while is_taken(name):
        number += 1
        name = f"{stem}.{number}"
    return name


def whole(buffer: KernelBuffer) -> Access:
    """Return the access to all of a buffer in its own order."""
    return Access.identity(buffer.type.shape)


DimNames = tuple[str | None, ...]


def copy_between(
    builder: KernelBuilder, source: Use, target: Use, origin: Origin, reason: str, dims: DimNames = ()
) -> None:
    """Add a copy of what ``source`` reads to where ``target`` writes, over the same extents, named ``dims``."""
    builder.add_kernel(replace(copy_kernel(f"{target.buffer}.piece", source, target, origin), reason=reason, dims=dims))


def copy_into(
    builder: KernelBuilder,
    use: Use,
    target: KernelBuffer,
    *,
    is_elidable: bool = False,
    reason: str | None = None,
    dims: DimNames = (),
) -> Use:
    """Add a copy of what ``use`` reads, in row-major order, into all of ``target``; return the use of the target.

    ``dims`` names the dims that ``use`` walks.
    """
    access = whole(target).reshape(use.access.extents)
    assert access is not None, (target.type, use.access.extents)
    output = Use(target.name, access)
    builder.add_kernel(
        replace(
            copy_kernel(f"{target.name}.copy", use, output, target.origin),
            # a value becomes its copy where both get one layout, and it can become one only
            is_elidable=is_elidable and not builder.has_elidable_copy(use.buffer),
            reason=reason,
            dims=dims,
        )
    )
    return output
