"""Where the elements that a kernel stores lie: as compiled, whatever a SuperDSC says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from spyrec.compare.device_values import host_order
from spyrec.compare.one_kernel import is_pair
from spyrec.dataclass import dataclass
from spyrec.hardware.work_slices import slice_order
from spyrec.ir.device_access import DeviceDim, VariablePart
from spyrec.ir.kernel import Kernel, KernelBuffer
from spyrec.ir.kernel_form import Rule
from spyrec.runtime.observer import Execution

Integers = npt.NDArray[np.int64]
Patterns = npt.NDArray[np.unsignedinteger]


def bytes_of(buffer: KernelBuffer) -> int:
    """Return the bytes of one element on the device."""
    bits = buffer.device_format.bits
    assert bits is not None
    return bits // 8


@dataclass(frozen=True, slots=True)
class LxPlaces:
    """Where the output of a kernel lies in LX: the core and the byte address there, over the extents it keeps."""

    cores: Integers
    addresses: Integers

    def found(self, core_ids: Sequence[int], cores: Integers, addresses: Integers) -> Integers:
        """Return which place each store is, by the row of its core in ``core_ids`` and its address; -1 for none."""
        own = self.cores.reshape(-1) * _LX_SPAN + self.addresses.reshape(-1)
        order = np.argsort(own, kind="stable")
        wanted = np.array(core_ids, np.int64)[cores] * _LX_SPAN + addresses
        near = order[np.minimum(np.searchsorted(own[order], wanted), own.size - 1)]
        return np.where(own[near] == wanted, near, -1)


_LX_SPAN = 1 << 40
"""More than any address in LX."""


def lx_places(kernel: Kernel, offset: int, buffer: KernelBuffer) -> LxPlaces:
    """Return where the elements that a kernel writes lie in LX, by their index over the kept extents.

    A core holds its slice of every device dim, densely, from ``offset`` on.
    """
    form = kernel.placed
    operand = form.operands[-1]
    division = kernel.division or (1,) * len(form.variables)
    extents = tuple(1 if dim in kernel.reduced else extent for dim, extent in enumerate(kernel.extents))
    values = [_value(variable.dim, variable.divisor, variable.size, extents) for variable in form.variables]
    slices = [np.zeros((), np.int64) for _ in form.variables]
    position: Integers = np.zeros((), np.int64)
    for dim in operand.dims[:-1]:
        count = 1 if dim.variable is None else division[dim.variable]
        own = dim.extent // count
        walk = _walk(dim, values, operand.lane_extent)
        if dim.variable is not None and count > 1:
            slices[dim.variable] = walk // own
        position = position * own + walk % own
    lane = values[operand.lane] % operand.lane_extent if operand.lane is not None else np.zeros((), np.int64)
    addresses = offset + (position * operand.lane_extent + lane) * bytes_of(buffer)
    cores: Integers = np.zeros((), np.int64)
    stride = 1
    contracts = kernel.rule is Rule.CONTRACTION
    order = kernel.owners[-1].order if kernel.owners else slice_order(division, contracts=contracts)
    for index in order:
        cores = cores + slices[index] * stride
        stride *= division[index]
    if is_pair(kernel, len(kernel.inputs)):
        addresses = addresses[..., None] + np.arange(2) * bytes_of(buffer)
        cores, extents = cores[..., None], (*extents, 2)
    return LxPlaces(np.broadcast_to(cores, extents), np.broadcast_to(addresses, extents))


def _value(dim: int, divisor: int, size: int, extents: Sequence[int]) -> Integers:
    shape = [1] * len(extents)
    shape[dim] = extents[dim]
    return (np.arange(extents[dim], dtype=np.int64) // divisor % size).reshape(shape)


def _walk(dim: DeviceDim, values: Sequence[Integers], lanes: int) -> Integers:
    if dim.variable is None:
        return np.full((), dim.offset, np.int64)
    walk = values[dim.variable]
    return dim.offset + (walk // lanes if dim.part is VariablePart.TILE else walk)


def lx_patterns(places: LxPlaces, execution: Execution, position: int, lanes: int) -> tuple[Patterns, Integers]:
    """Return the bits that an execution has stored at ``places``, and the row of the core that did, -1 where none.

    ``lanes``: how many neighbours it stores at each of its addresses.
    """
    dims = execution.dims_of(position)
    word = execution.superdsc.operands[position].word_length
    addresses = execution.addresses(position, dims)[..., None] + np.arange(lanes) * word
    patterns = np.stack([execution.patterns(position, dims, lane) for lane in range(lanes)], axis=-1)
    rows = np.broadcast_to(np.arange(len(addresses)).reshape(-1, *(1,) * (addresses.ndim - 1)), addresses.shape)
    found = places.found(execution.superdsc.core_ids, rows.reshape(-1), addresses.reshape(-1))
    is_found = found >= 0
    bits = np.zeros(places.cores.size, patterns.dtype)
    owners = np.full(places.cores.size, -1, np.int64)
    bits[found[is_found]] = patterns.reshape(-1)[is_found]
    owners[found[is_found]] = rows.reshape(-1)[is_found]
    return bits.reshape(places.cores.shape), owners.reshape(places.cores.shape)


class ElementTables:
    """Which element of a buffer stands at each of its device elements, -1 for padding."""

    def __init__(self, buffers: Mapping[str, KernelBuffer]) -> None:
        self._buffers = buffers
        self._tables: dict[str, Integers] = {}

    def of(self, name: str) -> Integers:
        """Return the table of a buffer."""
        if name not in self._tables:
            buffer = self._buffers[name]
            count = int(np.prod(buffer.placed.device.device_size, dtype=np.int64))
            order = host_order(np.arange(count, dtype=np.uint64), buffer.placed, buffer.type.shape).reshape(-1)
            table = np.full(count, -1, np.int64)
            table[order.astype(np.int64)] = np.arange(order.size)
            self._tables[name] = table
        return self._tables[name]
