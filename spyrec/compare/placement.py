"""Which elements of its buffer an operand of an execution is: found from addresses, or in LX from how they came there.

In device memory an address is an element of the buffer's layout.  LX says nothing of that kind: what a core stores
there are the elements that it computed, and which those are follows from the elements of its operands and from the
kernel's accesses.  What is read there later is looked up by address.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spyrec.bundle.superdsc import Indirection
from spyrec.compare.device_values import host_order
from spyrec.compare.provenance import CompiledCall, Provenance, program_of
from spyrec.diagnostics import Location, refuse
from spyrec.ir.access import Access
from spyrec.ir.kernel import Buffer
from spyrec.runtime.observer import Execution

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Slices:
    """A tensor in LX: the elements ``[core, n]`` of its buffer at sorted byte ``addresses[n]`` of each of the cores."""

    core_ids: tuple[int, ...]
    addresses: Integers
    elements: Integers

    def at(self, core_ids: Sequence[int], addresses: Integers) -> Integers:
        """Return the elements at the addresses ``[core, ...]``, -1 where none of them lies."""
        rows = [self.core_ids.index(core) if core in self.core_ids else -1 for core in core_ids]
        places = np.minimum(np.searchsorted(self.addresses, addresses), len(self.addresses) - 1)
        own = np.array(rows, np.int64).reshape(-1, *(1,) * (addresses.ndim - 1))
        found = self.elements[np.maximum(own, 0), places]
        return np.where((self.addresses[places] == addresses) & (own >= 0), found, -1)


class Placement:
    """Knows the buffers of a compilation by address, and what has been stored in LX."""

    def __init__(self, known: Provenance) -> None:
        self._known = known
        self._tables: dict[str, Integers] = {}
        self._inverses: dict[tuple[str, int], Integers | None] = {}
        self.slices: dict[str, Slices] = {}

    def elements(self, call: CompiledCall, execution: Execution, position: int, dims: Sequence[str]) -> Integers:
        """Return the elements of an input's or of an HBM output's buffer, ``[core, *dims]``; -1 is none of them."""
        name = call.kernel.uses[min(position, len(call.kernel.inputs))].buffer
        addresses = execution.addresses(position, dims)
        base = execution.base_of(position)
        if base is None:
            known = self.slices.get(name)
            core_ids = execution.superdsc.core_ids
            return np.full(addresses.shape, -1, np.int64) if known is None else known.at(core_ids, addresses)
        return self.in_memory(call, name, base, addresses)

    def in_memory(self, call: CompiledCall, name: str, base: int, addresses: Integers) -> Integers:
        """Return which elements of a buffer lie at ``addresses`` from an argument or (``base`` < 0) from the pool."""
        program, buffer = program_of(self._known, call), self._known.kernels.buffers[name]
        nothing = np.full(addresses.shape, -1, np.int64)
        if name in program.arguments:
            if base < 0 or program.arguments[base] != name:
                return nothing
            inside = addresses
        elif base >= 0:
            return nothing
        else:
            inside = addresses - program.pool_offsets[name]
        table = self._table(buffer)
        bits = buffer.device_format.bits
        assert bits is not None
        numbers = inside * 8 // bits
        is_inside = (inside >= 0) & (numbers < len(table))
        return np.where(is_inside, table[np.where(is_inside, numbers, 0)], -1)

    def _table(self, buffer: Buffer) -> Integers:
        """Return which element of the buffer stands at each device element, -1 for padding."""
        if buffer.name not in self._tables:
            count = int(np.prod(buffer.placed.device.device_size, dtype=np.int64))
            order = host_order(np.arange(count, dtype=np.uint64), buffer.placed, buffer.type.shape).reshape(-1)
            table = np.full(count, -1, np.int64)
            table[order.astype(np.int64)] = np.arange(order.size)
            self._tables[buffer.name] = table
        return self._tables[buffer.name]

    def computed(self, call: CompiledCall, execution: Execution) -> Integers:
        """Return which elements of its output an execution that stores to LX computes, ``[core, *dims]``.

        Errors: SPY0804 where the operands do not tell.
        """
        output = execution.superdsc.compute.outputs[0]
        dims = execution.dims_of(output)
        access = call.kernel.output.access
        points, is_inside = self._points(call, execution, dims)
        shape = self._known.kernels.buffers[call.kernel.output.buffer].type.shape
        wanted = [dim for dim in dims_of(access) if dim not in points]
        if wanted:
            message = f"its operands do not tell which elements along dim {wanted[0]} it computes into LX"
            raise refuse("SPY0804", message, Location(call.file))
        size = tuple(execution.addresses(output, dims).shape)
        is_inside = is_inside & _is_first_of_cohort(execution, dims, size)
        return np.where(is_inside, _element(access, points, shape, size), -1)

    def keep(self, call: CompiledCall, execution: Execution, elements: Integers) -> None:
        """Take note of what an execution has stored in LX."""
        output = execution.superdsc.compute.outputs[0]
        addresses = execution.addresses(output, execution.dims_of(output))[0].reshape(-1)
        order = np.argsort(addresses, kind="stable")
        rows = elements.reshape(len(elements), -1)[:, order]
        self.slices[call.kernel.output.buffer] = Slices(execution.superdsc.core_ids, addresses[order], rows)

    def _points(
        self, call: CompiledCall, execution: Execution, dims: Sequence[str]
    ) -> tuple[dict[int, Integers], Mask]:
        """Return the indices in those of the kernel's dims that its inputs tell, and where all inputs have elements.

        Both are ``[core, *dims]``; an index is -1 where its input has none.
        """
        points: dict[int, Integers] = {}
        is_inside: Mask = np.ones((), np.bool_)
        for position, use in enumerate(call.kernel.inputs):
            inverse = self._inverse(call, position)
            if inverse is None or execution.superdsc.operands[position].indirection is not Indirection.NONE:
                continue
            elements = self.elements(call, execution, position, dims)
            flat = np.where(elements >= 0, inverse[np.maximum(elements, 0)], -1)
            if not (flat >= 0).any():
                continue
            is_inside = is_inside & (flat >= 0)
            walked = dims_of(use.access)
            extents = [call.kernel.extents[dim] for dim in walked]
            indices = np.unravel_index(np.maximum(flat, 0).reshape(-1), extents) if walked else ()
            for dim, index in zip(walked, indices):
                points.setdefault(dim, np.where(flat >= 0, index.reshape(flat.shape), -1))
        return points, is_inside

    def _inverse(self, call: CompiledCall, position: int) -> Integers | None:
        """Return which point each element of an input belongs to, ``None`` where several points share an element."""
        key = (call.file, position)
        if key not in self._inverses:
            use = call.kernel.inputs[position]
            shape = self._known.kernels.buffers[use.buffer].type.shape
            self._inverses[key] = _inverse_of(use.access, call.kernel.extents, shape)
        return self._inverses[key]


def dims_of(access: Access) -> tuple[int, ...]:
    """Return the iteration dims that an access depends on."""
    return tuple(sorted({term.dim for coordinate in access.coordinates for term in coordinate.terms}))


def _inverse_of(access: Access, extents: Sequence[int], shape: Sequence[int]) -> Integers | None:
    walked = dims_of(access)
    sizes = tuple(extents[dim] for dim in walked)
    grid = np.indices(sizes, np.int64) if walked else np.zeros((0,), np.int64)
    points = {dim: grid[place] for place, dim in enumerate(walked)}
    elements = _element(access, points, shape, sizes).reshape(-1)
    result = np.full(int(np.prod(shape, dtype=np.int64)), -1, np.int64)
    result[elements] = np.arange(elements.size)
    return result if np.count_nonzero(result >= 0) == elements.size else None


def _element(access: Access, points: Mapping[int, Integers], shape: Sequence[int], size: tuple[int, ...]) -> Integers:
    """Return the flat element of a buffer at points of the iteration, -1 where a coordinate is -1 (padding)."""
    total = np.zeros(size, np.int64)
    is_known = np.ones(size, np.bool_)
    for coordinate, extent in zip(access.coordinates, shape, strict=True):
        here = np.full(size, coordinate.offset, np.int64)
        for term in coordinate.terms:
            index = points[term.dim]
            is_known &= index >= 0
            here += term.coefficient * (index // term.divisor % term.modulus)
        total = total * extent + here
    return np.where(is_known, total, -1)


def _is_first_of_cohort(execution: Execution, dims: Sequence[str], size: tuple[int, ...]) -> Mask:
    """Of cores that combine partial results into one the first holds it; cores that share no result are all first."""
    slices = execution.superdsc.core_work_slices
    first = [all(index == 0 for dim, index in own.items() if dim not in dims) for own in slices]
    return np.broadcast_to(np.array(first).reshape(-1, *(1,) * (len(size) - 1)), size)
