"""What a data DSC moves: sticks of device memory, and bytes over the ring."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from spyrec.bundle.data_dsc import DataDsc
from spyrec.emulator.engine import Setting
from spyrec.emulator.moved_pieces import Cell, cell_offsets, cells_of, pieces_of
from spyrec.emulator.rules.binding import Binding
from spyrec.emulator.timeline.traffic import Traffic
from spyrec.hardware.cost import OperationClass, OperationRecord, Unit
from spyrec.hardware.target import STICK_BYTES
from spyrec.hardware.work_slices import ring_links

_BASE_DISTANCE = 1 << 40
"""Sticks between two memories, more than there are in one."""


def move_traffic(setting: Setting, binding: Binding, cells: Sequence[Cell], data_dsc: DataDsc) -> Traffic:
    """Return the counters of one execution: sticks with elements that move, each once, and once per receiving core."""
    pieces = [piece for piece, _ in pieces_of(data_dsc)]
    read: set[int] = set()
    by_core: dict[int, set[int]] = defaultdict(set)
    written: set[int] = set()

    def sticks(position: int, cell: Cell) -> Iterable[int]:
        base = binding.bases[position]
        if base is None:
            return ()
        offsets = cell_offsets(setting.geometries[position], pieces[position], cell.box)
        places = (binding.offsets[position][0] + offsets) // STICK_BYTES
        found: list[int] = (np.unique(places) + (base + (1 << 8)) * _BASE_DISTANCE).tolist()
        return found

    for cell in cells:
        own = set(sticks(cell.source, cell))
        read |= own
        by_core[cell.receiver] |= own
        written.update(sticks(cell.target, cell))
    core_read = sum(len(own) for own in by_core.values())
    return Traffic(STICK_BYTES * len(read), STICK_BYTES * len(written), STICK_BYTES * core_read, 0)


def move_record(data_dsc: DataDsc, traffic: Traffic) -> OperationRecord:
    """Return the cost model's record of one execution: a copy by the cores that receive."""
    placed = pieces_of(data_dsc)
    word = data_dsc.source.word_length
    received: dict[int, int] = defaultdict(int)
    ring: dict[int, int] = defaultdict(int)
    sent: dict[int, int] = defaultdict(int)
    total = 0
    for cell in cells_of(data_dsc):
        elements = int(np.prod([past - first for first, past in cell.box.values()], dtype=np.int64))
        source, target = placed[cell.source][1].core, placed[cell.target][1].core
        total += elements
        received[cell.receiver] += elements if target is not None else 0
        if source is not None:
            sent[source] += elements
            ring[cell.receiver] += elements * ring_links(source, cell.receiver)
    most = max((*received.values(), *sent.values()), default=0)
    return OperationRecord(
        operation_class=OperationClass.POINTWISE,
        unit=Unit.SFP,
        cores=len(data_dsc.core_ids),
        core_points=most,
        core_rows=0,
        element_bytes=word,
        passes=1,
        flops=0,
        result_elements=total,
        read_bytes=traffic.hbm_read_bytes,
        core_read_bytes=traffic.hbm_core_read_bytes,
        write_bytes=traffic.hbm_write_bytes,
        lx_read_bytes=word * max(sent.values(), default=0),
        lx_write_bytes=word * max(received.values(), default=0),
        ring_bytes=word * max(ring.values(), default=0),
    )
