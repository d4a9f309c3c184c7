"""When kernels are alike: what a pass finds out about one of them holds of the others, whose tensors are other ones.

Layers repeat, and names are all that tells their kernels apart.  A pass that asks a question of every kernel keeps the
answers by likeness, says which operand it means by its position, and computes each of them once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TypeVar, cast

from spyrec.dataclass import dataclass
from spyrec.ir.kept_answers import KeptAnswers
from spyrec.ir.kernel import BufferRole, Kernel, KernelBuffer, KernelGraph, KernelProgram

Answer = TypeVar("Answer")

Likeness = Hashable
"""All that layouts, divisions and places depend on: not the names, not the numbers of a constant."""


def likeness(graph: KernelGraph, kernel: Kernel) -> Likeness:
    """Return what a kernel that has a form has in common with those alike: its nest, and how it uses which buffers.

    Loops go by their depth, and so do those that a buffer is at home in, which are the outermost around all who use it;
    buffers by their first operand.
    """
    first: dict[str, int] = {}
    uses: list[Hashable] = []
    for position, use in enumerate(kernel.uses):
        buffer = graph.buffers[use.buffer]
        alias = first.setdefault(use.buffer, position)
        is_internal = buffer.role is BufferRole.INTERMEDIATE
        assert buffer.home == kernel.loops[: len(buffer.home)], (kernel.name, use.buffer)
        uses.append((alias, use.access, use.steps, is_internal, buffer.type, buffer.layout, len(buffer.home)))
    return (kernel.op_func, kernel.rule, kernel.placed, kernel.reduced, len(kernel.loops), kernel.owners, *uses)


@dataclass(frozen=True, slots=True)
class ProgramLikeness:
    """What a program has in common with those alike, and what it does not: ``buffers`` and ``loops``.

    Both are in order of first use, so that those of alike programs correspond by place.
    """

    key: Hashable
    buffers: tuple[str, ...]
    loops: tuple[int, ...]


def program_likeness(graph: KernelGraph, program: KernelProgram) -> ProgramLikeness:
    """Return what divided kernels and their buffers have in common with those of other programs.

    Neither names nor numbers of loops count, nor the numbers of constants, nor places in memory.
    """
    kernels = graph.kernels[program.first_kernel : program.end_kernel]
    names: dict[str, int] = {}
    loops: dict[int, int] = {}
    nests: list[Hashable] = []
    for kernel in kernels:
        for loop in kernel.loops:
            loops.setdefault(loop, len(loops))
        uses = tuple([(names.setdefault(use.buffer, len(names)), use.access, use.steps) for use in kernel.uses])
        around = tuple([loops[loop] for loop in kernel.loops])
        said = (kernel.op_func, kernel.rule, kernel.extents, kernel.reduced, kernel.dims, kernel.tiled)
        nests.append((kernel.form, kernel.division, kernel.owners, said, around, uses))
    internal = program.pool_offsets
    return ProgramLikeness(
        (
            tuple(nests),
            tuple([graph.loops[loop] for loop in loops]),
            tuple([(_in_memory(graph.buffers[name], loops), name in internal) for name in names]),
        ),
        tuple(names),
        tuple(loops),
    )


def _in_memory(buffer: KernelBuffer, loops: Mapping[int, int]) -> Hashable:
    home = tuple([loops[loop] for loop in buffer.home])
    return (buffer.role, buffer.type, buffer.layout, buffer.host_shape, home)


class Answers:
    """Answers to questions about kernels and tensors, each found once.

    A question is a tuple that begins with its name.  Of what it names by ``id`` somebody has to hold the object.
    ``kept``: those that outlive the process, where somebody keeps any.
    """

    def __init__(self, kept: KeptAnswers | None = None) -> None:
        self.kept = kept
        self._numbers: dict[Hashable, int] = {}
        self._known: dict[Hashable, object] = {}

    def number(self, *facts: Hashable) -> int:
        """Return a number that stands for these facts, a short name for further questions."""
        return self._numbers.setdefault(facts, len(self._numbers))

    def answer(self, question: Hashable, find: Callable[[], Answer]) -> Answer:
        """Return the answer to a question: that of the first time it was asked."""
        try:
            return cast("Answer", self._known[question])
        except KeyError:
            return cast("Answer", self._known.setdefault(question, find()))
