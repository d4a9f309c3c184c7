"""Reads data DSCs: entries of ``datadscs_``, in the form that public producers have."""

from __future__ import annotations

import json
from math import prod

from spyrec.bundle.data_dsc import LX_TO_LX, DataDsc, MovedTensor, Piece, PiecePlace
from spyrec.bundle.data_dsc_writer import DETAILS
from spyrec.bundle.json_cursor import CONTRADICTORY, MALFORMED, NOT_UNDERSTOOD, Cursor, is_nothing
from spyrec.bundle.superdsc_operands import read_format
from spyrec.hardware.target import STICK_BYTES, Target

NO_DATA_OPERATION = "SPY0662"
"""Code of a data operation that is not executed."""

_MOST_PIECES = 1024
"""Places of the pieces of one side: what they share is looked at pair by pair."""

_MOST_BYTES = 1 << 30
"""Of the pieces of one side, all places together."""

_MOST_DIMS = 16
_LARGEST_ADDRESS = 1 << 40


def read_data_dsc(entry: Cursor, core_ids: frozenset[int]) -> DataDsc:
    """Read one entry; ``core_ids``: those of the schedule.

    Errors: SPY0620 malformed, SPY0621 not understood, SPY0622 contradictory, SPY0662 an operation that is not executed.
    """
    name, inner = entry.only_member("data operation's name")
    operation = inner.member("op").member("name")
    if operation.text() != LX_TO_LX:
        hint = f"{LX_TO_LX} is executed; `shuffle` moves tensors between scratchpads and is specified"
        operation.refuse(NO_DATA_OPERATION, f'data operation "{operation.text()[:80]}" is not executed', hint)
    relation = inner.optional("outDimTodimRelation_")
    if relation is not None and not is_nothing(relation.value):
        relation.refuse(NOT_UNDERSTOOD, "a relation between dims is not understood (rule V14)")
    cores = inner.member("coreIdsUsed_")
    used = cores.integers(0)
    if not used or len(set(used)) != len(used) or not core_ids.issuperset(used):
        fact = f"core ids {list(used)[:40]} are not distinct ones of the schedule's {sorted(core_ids)}"
        cores.refuse(CONTRADICTORY, fact)
    dims = inner.member("dimPool_").texts()
    primaries = {
        item.member("name_").text(): item.member("dimNames").texts() for item in inner.member("primaryDs_").items()
    }
    sides = list(inner.member("labeledDs_").items())
    if len(sides) != 2:
        inner.member("labeledDs_").refuse(MALFORMED, f"{len(sides)} operands where a source and a destination are due")
    source, destination = (_read_tensor(side, frozenset(used), frozenset(dims), primaries) for side in sides)
    _require_alike(sides[1], source, destination)
    return DataDsc(name, operation.text(), used, dims, tuple(primaries.items()), source, destination)


def _require_alike(cursor: Cursor, source: MovedTensor, destination: MovedTensor) -> None:
    if source.data_format is not destination.data_format:
        fact = f"moves {source.data_format.name} to {destination.data_format.name}, bits are copied"
        cursor.member("dataformat").refuse(NOT_UNDERSTOOD, f"{fact} (rule V14)")
    if source.extents.keys() != destination.extents.keys():
        fact = f"dims {sorted(destination.extents)} of a tensor that has {sorted(source.extents)}"
        cursor.member("dimToLayoutSize_").refuse(CONTRADICTORY, fact)


def _read_tensor(
    cursor: Cursor, core_ids: frozenset[int], dims: frozenset[str], primaries: dict[str, tuple[str, ...]]
) -> MovedTensor:
    order = cursor.member("layoutDimOrder_")
    names = order.texts()
    if not 1 <= len(names) <= _MOST_DIMS or not dims.issuperset(names):
        order.refuse(CONTRADICTORY, f"dims {list(names)[:20]} are not some of {sorted(dims)}")
    primary = cursor.member("pdsName_")
    if primary.text() not in primaries or set(primaries[primary.text()]) != set(names):
        primary.refuse(CONTRADICTORY, f'"{primary.text()[:80]}" is no entry of primaryDs_ over {list(names)}')
    extents = cursor.member("dimToLayoutSize_").integers_by(names, minimum=1)
    stick_dim, stick_size = _read_stick(cursor, names)
    data_format = read_format(cursor.member("dataformat"))
    word_length = cursor.member("wordLength").integer(1, STICK_BYTES)
    if word_length * stick_size != STICK_BYTES or data_format.elements_per_stick != stick_size:
        fact = f"{stick_size} elements of {word_length} bytes and of {data_format.name} in a stick of {STICK_BYTES}"
        cursor.member("dimToStickSize_").refuse(CONTRADICTORY, f"{fact} bytes (rule V11)")
    _require_no_gaps(cursor, extents)
    found = list(cursor.member("PieceInfo").items())
    if not 1 <= len(found) <= _MOST_PIECES:
        cursor.member("PieceInfo").refuse(MALFORMED, f"{len(found)} pieces, not 1 to {_MOST_PIECES}")
    pieces = tuple(_read_piece(item, extents, core_ids) for item in found)
    sizes = [_size_bytes(item, piece, (stick_dim, stick_size)) for item, piece in zip(found, pieces, strict=True)]
    places = sum(len(piece.places) for piece in pieces)
    if places > _MOST_PIECES or sum(sizes) > _MOST_BYTES:
        fact = f"{places} places of {sum(sizes)} bytes, at most {_MOST_PIECES} of {_MOST_BYTES} are executed (rule V13)"
        cursor.member("PieceInfo").refuse(CONTRADICTORY, fact)
    details = {key: json.dumps(member.value) for key, member in cursor.members() if key in DETAILS}
    return MovedTensor(
        cursor.member("ldsName_").text(),
        primary.text(),
        data_format,
        word_length,
        names,
        extents,
        stick_dim,
        stick_size,
        pieces,
        {key: details[key] for key in DETAILS if key in details},
    )


def _read_stick(cursor: Cursor, names: tuple[str, ...]) -> tuple[str, int]:
    order = cursor.member("stickDimOrder_")
    sizes = cursor.member("dimToStickSize_").integers_by(order.texts(), minimum=1)
    if len(sizes) != 1 or not set(names).issuperset(sizes):
        order.refuse(NOT_UNDERSTOOD, f"sticks along {list(sizes)}; one dim of the layout is understood (rule V14)")
    return next(iter(sizes.items()))


def _require_no_gaps(cursor: Cursor, extents: dict[str, int]) -> None:
    gaps = cursor.optional("validGap_")
    for dim, member in () if gaps is None else gaps.entries():
        pairs = [item.integers(0) for item in member.items()]
        if dim not in extents or any(len(pair) != 2 for pair in pairs):
            member.refuse(MALFORMED, f'"{dim[:80]}": pairs of valid elements and gap are due, of {list(extents)}')
        if any(gap for _, gap in pairs):
            member.refuse(NOT_UNDERSTOOD, f'gaps along "{dim}" are not understood (rule V14)')
        if sum(valid for valid, _ in pairs) != extents[dim]:
            member.refuse(CONTRADICTORY, f'{pairs[:8]} are not the {extents[dim]} elements along "{dim}"')


def _read_piece(cursor: Cursor, whole: dict[str, int], core_ids: frozenset[int]) -> Piece:
    starts, sizes = cursor.member("dimToStartCordinate"), cursor.member("dimToSize_")
    first, extents = starts.integers_by(whole), sizes.integers_by(whole, minimum=1)
    outside = next((dim for dim in whole if first[dim] + extents[dim] > whole[dim]), None)
    if outside is not None:
        past = first[outside] + extents[outside]
        sizes.refuse(CONTRADICTORY, f'the piece ends at {past} along "{outside}", the tensor at {whole[outside]}')
    _require_no_gaps(cursor, extents)
    places = tuple(place for item in cursor.member("PlacementInfo").items() for place in _read_places(item, core_ids))
    if not 1 <= len(places) <= _MOST_PIECES:
        cursor.member("PlacementInfo").refuse(MALFORMED, f"{len(places)} places, not 1 to {_MOST_PIECES}")
    in_order = [{dim: numbers[dim] for dim in whole} for numbers in (first, extents)]
    return Piece(cursor.member("key_").text(), in_order[0], in_order[1], places)


def _read_places(cursor: Cursor, core_ids: frozenset[int]) -> list[PiecePlace]:
    kind, memories, starts = cursor.member("type"), cursor.member("memId"), cursor.member("startAddr")
    if kind.text() not in {"lx", "hbm"}:
        kind.refuse(NOT_UNDERSTOOD, f'a place of type "{kind.text()[:80]}"; lx and hbm are understood (rule V14)')
    numbers, addresses = memories.integers(-1), [item.decimal() for item in starts.items()]
    if len(numbers) != len(addresses):
        starts.refuse(CONTRADICTORY, f"{len(addresses)} addresses in {len(numbers)} memories")
    is_lx = kind.text() == "lx"
    for number, address in zip(numbers, addresses, strict=True):
        if number not in (core_ids if is_lx else {-1}):
            wanted = f"one of coreIdsUsed_ {sorted(core_ids)}" if is_lx else "-1"
            memories.refuse(CONTRADICTORY, f"memory {number} of a place in {kind.text()} is not {wanted}")
        if not 0 <= address < _LARGEST_ADDRESS:
            starts.refuse(MALFORMED, f"address {address} is not from 0 to {_LARGEST_ADDRESS}")
    return [PiecePlace(number if is_lx else None, address) for number, address in zip(numbers, addresses, strict=True)]


def _size_bytes(cursor: Cursor, piece: Piece, stick: tuple[str, int]) -> int:
    """Return the bytes of a piece at all of its places, each of which fits the memory that it is in (V8, V13)."""
    dim, size = stick
    sticks = prod(-(-extent // size) if own == dim else extent for own, extent in piece.extents.items())
    is_lx = any(place.core is not None for place in piece.places)
    limit = Target().lx_bytes if is_lx else Target().span_limit_bytes
    if sticks * STICK_BYTES > limit:
        fact = f"a piece of {sticks * STICK_BYTES} bytes in a memory of {limit} (rules V8, V13)"
        cursor.member("dimToSize_").refuse(CONTRADICTORY, fact)
    return sticks * STICK_BYTES * len(piece.places)
