"""One execution of a SuperDSC: what a core loads and stores, and which cores share a result."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from spyrec.bundle.superdsc import Indirection, SuperDsc
from spyrec.diagnostics import Location, refuse
from spyrec.emulator.reference.memory import (
    CARRIERS,
    Bytes,
    Flags,
    Floating,
    Floats,
    Integers,
    Machine,
    Patterns,
    Starts,
    constant_value,
    decode,
    encode,
    index_values,
)
from spyrec.emulator.reference.operands import at_axis, box_of, row_dim_of, view_of, walked
from spyrec.emulator.reference.windows import slid_axis
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.runtime.device import TableEntry


class DefinedExecution:
    """One execution of a SuperDSC: loads and stores whole operands of one core, an axis per dim of the box."""

    def __init__(  # noqa: PLR0913 -- an operation, and all that a call binds it to
        self,
        file: str,
        superdsc: SuperDsc,
        machine: Machine,
        starts: Starts,
        entries: Mapping[int, TableEntry],
        sizes: Mapping[str, int],
    ) -> None:
        self.file, self.superdsc, self.machine = file, superdsc, machine
        self._starts, self._entries = starts, entries
        regions = [places[0].region for places in starts]
        arguments = [None if region is None else entries.get(region) for region in regions]
        self.views = [view_of(superdsc, *pair) for pair in zip(superdsc.operands, arguments, strict=True)]
        # A dynamic dim ends where the launch says, in a buffer of the largest size; no other core has a part of it.
        self.box = {dim: min(extent, sizes.get(dim, extent)) for dim, extent in box_of(superdsc, self.views).items()}
        self.iteration = {dim: min(extent, sizes.get(dim, extent)) for dim, extent in superdsc.iteration.items()}
        self.cores = range(len(superdsc.core_ids))
        compute = superdsc.compute
        (self.output,) = compute.outputs
        self.inputs = [t for t in compute.inputs if t != self.output and t not in compute.indirect_access_indices]
        self.constants = {item.name: constant_value(item.data_format, item.bits) for item in superdsc.constants}

    def stored(self, position: int) -> DeviceFormat:
        """Return the format that memory really holds."""
        data_format = self.views[position].data_format
        return self.machine.half if data_format is DeviceFormat.SEN169_FP16 else data_format

    def extends(self, position: int, dim: str) -> bool:
        """Whether an operand extends along a dim; along others it has one element, which stands for all."""
        return dim in self.views[position].strides

    def patterns(self, position: int, core: int, offsets: Integers) -> Patterns:
        """Return what stands ``offsets`` behind the start of an operand on a core."""
        memory, places = self._bytes(position, core, offsets)
        return np.ascontiguousarray(memory[places]).view(CARRIERS[places.shape[-1]])[..., 0]

    def offsets(self, position: int, core: int) -> Integers:
        """Return the bytes from the start of an operand to each of its elements, an axis per dim of the box.

        Of a table, which one side of a gather or scatter is, the index names the rows, counted from its start.
        """
        superdsc, view = self.superdsc, self.views[position]
        operand = superdsc.operands[position]
        if operand.indirection is not Indirection.VALUE:
            return view.offsets(self.box)
        row_dim = row_dim_of(superdsc, operand)
        count = 1 if row_dim is None else view.extents[row_dim] * (view.stick_size if row_dim == view.stick_dim else 1)
        index = (
            superdsc.compute.indirect_access_indices[0] if operand.related_operand is None else operand.related_operand
        )
        numbers = self.patterns(index, core, self.views[index].offsets(self.box))
        rows = index_values(self.stored(index), numbers)
        for row in rows.flat:
            if not 0 <= row < count:
                raise refuse("SPY0706", f"row {row} of a table of {count} rows", Location(self.file))
        return view.offsets(self.box, but=row_dim) + view.along(row_dim, rows)

    def values(self, position: int, core: int, lane: int = 0) -> Floats:
        """Return the values of an operand on a core, or of those ``lane`` elements behind."""
        offsets = self.offsets(position, core) + lane * self.views[position].element_bytes
        return decode(self.stored(position), self.patterns(position, core, offsets))

    def slid_values(self, core: int) -> Floats:
        """Return the values of the first input on a core, an axis per dim of the box, those of the window too.

        Which element stands where a window slides is said in ``windows``; padding counts as zero.
        """
        superdsc, position = self.superdsc, self.inputs[0]
        view = self.views[position]
        axes = [axis for axis in superdsc.padding_sizes if axis in view.strides]
        offsets = view.offsets({dim: 1 if dim in axes else extent for dim, extent in self.box.items()})
        is_inside = np.ones([1] * len(self.box), bool)
        for axis in axes:
            slid = slid_axis(superdsc, axis, view.extents[axis], core, self.box)
            offsets = offsets + view.along(axis, slid.elements)
            is_inside = is_inside & slid.is_inside
        return np.where(is_inside, decode(self.stored(position), self.patterns(position, core, offsets)), np.float32(0))

    def store(self, core: int, patterns: Patterns, lane: int = 0) -> None:
        """Store the output of a core: each element that it extends to, and nothing else of its sticks."""
        offsets = self.offsets(self.output, core) + lane * self.views[self.output].element_bytes
        self.store_at(core, offsets, patterns)

    def store_at(self, core: int, offsets: Integers, patterns: Patterns) -> None:
        """Store elements of the output of a core, ``offsets`` bytes behind its start, in the order of the box.

        Of rows that an index names twice the later one stays.
        """
        memory, places = self._bytes(self.output, core, offsets)
        whole = np.broadcast_to(patterns, offsets.shape).astype(CARRIERS[places.shape[-1]])
        octets = np.ascontiguousarray(whole)[..., None].view(np.uint8)
        memory[places.reshape(-1)] = octets.reshape(-1)  # flat, where NumPy keeps the order

    def store_rounded(self, core: int, values: Floating, lane: int = 0) -> None:
        """Round and store the output of a core."""
        self.store(core, encode(self.stored(self.output), values), lane)

    def _bytes(self, position: int, core: int, offsets: Integers) -> tuple[Bytes, Integers]:
        """Return a memory, and where in it the bytes of elements stand that lie ``offsets`` behind the start."""
        start, bits = self._starts[position][core], self.stored(position).bits
        assert bits is not None
        if start.region is None:
            memory, places = self.machine.scratchpads[self.superdsc.core_ids[core]], start.offset + offsets
        else:
            memory = self.machine.regions[start.region]
            places = walked(start.offset + offsets, self._entries.get(start.region))
        every = self.machine.expansion * places[..., None] + np.arange(bits // 8)
        assert every.min() >= 0, "an operand begins before its memory"
        return memory, every

    def cohorts(self, folded: Sequence[str]) -> list[list[int]]:
        """Return the cores that share a result, because they differ in slices of ``folded`` dims only, in slice order.

        A file says so by nothing but equal addresses.  Slices of the dims count in the order of the dims.
        """
        groups: dict[tuple[int, ...], list[tuple[tuple[int, ...], int]]] = defaultdict(list)
        for core, slices in enumerate(self.superdsc.core_work_slices):
            key = tuple(slices[dim] for dim in self.box if dim not in folded)
            groups[key].append((tuple(slices[dim] for dim in folded), core))
        return [[core for _, core in sorted(members)] for members in groups.values()]

    def folded_first(self, array: npt.NDArray[np.generic], folded: Sequence[str]) -> npt.NDArray[np.generic]:
        """Return ``[folded point, *box]``: folded dims in the order of the file, the last one fastest, then 1 long."""
        axes = [axis for axis, dim in enumerate(self.box) if dim in folded]
        shape = [extent if dim in folded else array.shape[axis] for axis, (dim, extent) in enumerate(self.box.items())]
        rest = [1 if axis in axes else extent for axis, extent in enumerate(shape)]
        return np.moveaxis(np.broadcast_to(array, shape), axes, range(len(axes))).reshape(-1, *rest)


def masked(execution: DefinedExecution, core: int, dims: Sequence[str]) -> Flags:
    """Return which elements a mask hides along these dims: it counts in coordinates of the whole iteration."""
    superdsc, box = execution.superdsc, execution.box
    hidden = np.zeros([1] * len(box), bool)
    for axis, (dim, extent) in enumerate(box.items()):
        place = superdsc.core_work_slices[core][dim] * superdsc.core_extent[dim] + np.arange(extent)
        for first, count in superdsc.coordinate_masking.get(dim, ()) if dim in dims else ():
            hidden = hidden | at_axis(axis, box, (first <= place) & (place < first + count))
    return hidden


def mask_value(execution: DefinedExecution) -> np.float32:
    """The constant of that name; the id beside the mask counts only where there is none."""
    superdsc = execution.superdsc
    if "samv-maskvalue" in execution.constants or not superdsc.coordinate_masking:
        return np.float32(execution.constants.get("samv-maskvalue", 0.0))
    entry = superdsc.constants[superdsc.masking_constant_id]
    return np.float32(constant_value(entry.data_format, entry.bits))
