"""A program with the axes of its kernels, as its arguments' host dims have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from spyrec.contracts.classes import Axes, axes_of, places_of
from spyrec.contracts.digits import AxisDigit
from spyrec.contracts.walks import Space
from spyrec.dataclass import dataclass
from spyrec.ir.kernel import Kernel, KernelBuffer, KernelGraph, KernelProgram
from spyrec.ir.likeness import Answers, program_likeness

Signature = tuple[AxisDigit, ...]
"""The axes of a host dim, outermost first."""


@dataclass(frozen=True, slots=True)
class KnownProgram:
    """What is known of a program before its loops have names.

    ``axes``: those of a program that is alike, whose names places have in them.  ``signatures``: of each argument's
    host dims.
    """

    graph: KernelGraph
    program: KernelProgram
    axes: Axes
    signatures: Mapping[str, tuple[Signature, ...]]
    written: tuple[str, ...]

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels of the program."""
        return self.graph.kernels[self.program.first_kernel : self.program.end_kernel]

    def followers(self, signature: Signature, among: AbstractSet[AxisDigit] | None = None) -> dict[str, int] | None:
        """Return the host dim by argument that follows a loop over these axes, ``None`` where they are no loop.

        ``among``: axes that may be one, by default those that are free.
        """
        allowed = self.axes.free if among is None else among
        if not signature or len(set(signature)) < len(signature) or not allowed >= set(signature):
            return None
        dims: dict[str, int] = {}
        for name, found in self.signatures.items():
            touching = [dim for dim, other in enumerate(found) if set(other) & set(signature)]
            if not touching:
                continue
            if len(touching) > 1 or found[touching[0]] != signature:
                return None
            dims[name] = touching[0]
        return dims

    def are_apart(self, signatures: Sequence[Signature]) -> bool:
        """Whether no kernel and no tensor has axes of two of them, so that one loop may step along all at once."""
        numbers = {digit: number for number, signature in enumerate(signatures) for digit in signature}
        seen: dict[tuple[Space, str], int] = {}
        for place, digits in self.axes.by_place.items():
            for number in {numbers[digit] for digit in digits if digit in numbers}:
                if seen.setdefault((place.space, place.owner), number) != number:
                    return False
        return True

    def is_cut_evenly(self, dims: Mapping[str, int]) -> bool:
        """Whether tiles of these host dims begin where sticks and blocks do, and no run chooses their extent."""
        graph = self.graph
        return not any(
            _is_padded(graph.buffers[name], dim) or _is_symbolic(graph, name, dim) for name, dim in dims.items()
        )

    def covered(self, dims: Mapping[str, int]) -> int | None:
        """Return the elements that an iteration of a loop over these host dims covers, ``None`` where it is none.

        Where sticks of one size end inside of the dim, the program computes every lane of the last one: it covers whole
        sticks, of whatever its tensors hold there.  That takes the dim to be that of the sticks wherever it is walked.
        """
        graph = self.graph
        if any(_is_symbolic(graph, name, dim) for name, dim in dims.items()):
            return None
        (extent,) = {graph.buffers[name].host_type.shape[dim] for name, dim in dims.items()}
        if not any(_is_padded(graph.buffers[name], dim) for name, dim in dims.items()):
            return extent
        lanes = self._lanes({self.signatures[name][dim] for name, dim in dims.items()})
        return None if lanes is None else -(-extent // lanes) * lanes

    def _lanes(self, signatures: AbstractSet[Signature]) -> int | None:
        """Return the elements of a stick where these axes are the whole of a stick dim in everything that has them."""
        walked = {digit for signature in signatures for digit in signature}
        sizes: set[int] = set()
        for place, digits in self.axes.by_place.items():
            if walked.isdisjoint(digits):
                continue
            if len(digits) > 1:
                return None
            if place.space is Space.KERNEL:
                continue
            buffer = self.graph.buffers[place.owner]
            if buffer.host_shape is not None or buffer.home or buffer.placed.stick_dim != place.dim:
                return None
            sizes.add(buffer.placed.lane_extent)
        return sizes.pop() if len(sizes) == 1 else None


def known_programs(graph: KernelGraph) -> list[KnownProgram]:
    """Return what is known of each program of a graph; the axes of those that are alike are found once."""
    answers = Answers()
    found: list[KnownProgram] = []
    for program in graph.programs:
        alike = program_likeness(graph, program)
        first, axes = answers.answer(alike.key, lambda p=program, a=alike: (a.buffers, axes_of(graph, p)))
        found.append(_known(graph, program, axes, dict(zip(alike.buffers, first, strict=True))))
    return found


def known_program(graph: KernelGraph, program: KernelProgram) -> KnownProgram:
    """Return the axes of a program, and those of its arguments' host dims."""
    return _known(graph, program, axes_of(graph, program), {name: name for name in program.arguments})


def _known(graph: KernelGraph, program: KernelProgram, axes: Axes, names: Mapping[str, str]) -> KnownProgram:
    """Return what the axes say of a program; ``names``: what its arguments are called in them."""
    signatures = {name: _signatures(graph.buffers[name], axes, names[name]) for name in program.arguments}
    made = {kernel.output.buffer for kernel in graph.kernels[program.first_kernel : program.end_kernel]}
    return KnownProgram(graph, program, axes, signatures, tuple(name for name in program.arguments if name in made))


def _signatures(buffer: KernelBuffer, axes: Axes, called: str) -> tuple[Signature, ...]:
    """Return the axes of each host dim; one that the layout joins with another has all of both, and so follows none."""
    by_dim = [axes.by_place.get(place, ()) for place in places_of(called, buffer.type.rank)]
    if buffer.host_shape is None:
        return tuple(by_dim)
    found: list[Signature] = [()] * len(buffer.host_shape)
    for place, coordinate in zip(by_dim, buffer.whole.coordinates, strict=True):
        walked = [term.dim for term in coordinate.terms]
        for dim in walked:
            found[dim] = place if len(walked) == 1 else (*place, *place)
    return tuple(found)


def _is_padded(buffer: KernelBuffer, host_dim: int) -> bool:
    """Whether device memory has room beyond a dim: a tile of it would begin inside of a stick or a block."""
    dim = host_dim
    if buffer.host_shape is not None:
        whole = buffer.whole.coordinates
        dim = next(place for place, item in enumerate(whole) if [term.dim for term in item.terms] == [host_dim])
    room = 1
    for digit in buffer.placed.digits:
        room *= digit.extent if digit.host_dim == dim else 1
    return room != buffer.type.shape[dim]


def _is_symbolic(graph: KernelGraph, name: str, dim: int) -> bool:
    """Whether each run chooses the extent of a dim, or might: of a tensor that a pass made nobody says."""
    symbolic = {} if graph.source is None else graph.source.symbolic_dims
    if not symbolic:
        return False
    dims = source_dims(graph, name)
    return not dims or dims[dim] in symbolic


def source_dims(graph: KernelGraph, name: str) -> tuple[str | None, ...]:
    """Return the dim names that the source graph gives a buffer which is one of its values."""
    if graph.source is None:
        return ()
    value = next((result for result, buffer in graph.outputs if buffer == name), name)
    known = graph.source.values.get(value)
    shape = graph.buffers[name].host_type.shape
    return known.dims if known is not None and known.type.shape == shape else ()
