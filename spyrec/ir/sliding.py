"""How the window of a kernel slides along dims of its first operand: iteration dims, steps and padding.

The access of such an operand names every element that every window takes, those before and behind the dim too, which
are zero and lie nowhere.  In device form the dim itself has a place, ``[elements / stride, stride]`` for pools and
convolutions, and the file says the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spyrec.dataclass import dataclass
from spyrec.device_ops.record import WindowForm
from spyrec.ir.access import Access, Coordinate, Term


@dataclass(frozen=True, slots=True)
class Slide:
    """One axis: element ``output * stride + tap * dilation - front`` of dim ``host_dim`` of the buffer.

    ``output``, ``tap``: iteration dims.  ``extent``: elements of the dim; ``host_dim``: ``None`` where there is one and
    the buffer has no dim for it.  ``has_steps``: the device counts whole strides and the elements of one.
    """

    host_dim: int | None
    extent: int
    output: int
    tap: int
    stride: int
    dilation: int
    front: int
    has_steps: bool

    def elements(self, first: int, outputs: int, taps: int) -> frozenset[int]:
        """Return the elements of the dim that windows take at so many places from ``first`` on, counted from there.

        Padding is none of them.
        """
        start = first * self.stride
        taken = (
            place * self.stride + tap * self.dilation - self.front for place in range(outputs) for tap in range(taps)
        )
        return frozenset(element for element in taken if 0 <= start + element < self.extent)


@dataclass(frozen=True, slots=True)
class Window:
    """The window of a kernel.

    ``slides``: along the axes that a file calls ``i`` and ``j``.  ``channels``: the iteration dim of the result's
    channels, which lies in its sticks; ``source_channels``: that in the sticks of the first operand, which a
    convolution sums over.  ``samples``: the iteration dim of the images.
    """

    form: WindowForm
    slides: tuple[Slide, Slide]
    channels: int
    source_channels: int
    samples: int = 0

    @property
    def whole_dims(self) -> frozenset[int]:
        """The iteration dims that no part of the kernel is made along: a file says of windows how many there are."""
        return frozenset(dim for slide in self.slides for dim in (slide.output, slide.tap))

    @property
    def named_dims(self) -> frozenset[int]:
        """The iteration dims that a file lists, of one element too: what others are follows from how many there are."""
        return self.whole_dims | {self.samples} if self.form is WindowForm.DEPTHWISE else self.whole_dims

    @property
    def contracted(self) -> int | None:
        """The iteration dim of the channels that are summed over."""
        return None if self.source_channels == self.channels else self.source_channels


def standing(access: Access, slides: Sequence[Slide]) -> Access:
    """Return an access to the first element of the dims that windows slide along."""
    slid = {slide.host_dim for slide in slides}
    coordinates = (Coordinate() if dim in slid else item for dim, item in enumerate(access.coordinates))
    return replace(access, coordinates=tuple(coordinates))


def sliding(access: Access, slides: Sequence[Slide]) -> Access:
    """Return the access to all that windows take, of one that stands."""
    coordinates = list(access.coordinates)
    for slide in slides:
        if slide.host_dim is None:
            continue
        steps = ((slide.stride, slide.output), (slide.dilation, slide.tap))
        terms = [Term(step, dim, 1, access.extents[dim]) for step, dim in steps if access.extents[dim] > 1]
        terms.sort(key=lambda term: (-term.coefficient, term.dim))
        coordinates[slide.host_dim] = Coordinate(-slide.front, tuple(terms))
    return replace(access, coordinates=tuple(coordinates))
