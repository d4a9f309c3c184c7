"""Who touched what of a region of memory, as far as somebody may still race with it.

Of sticks that are touched as one range is kept who wrote them last, and who has read them since.  Windows stay windows,
each with the last operation of a stream on it: so one of many chunks costs no more than one of few.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import NamedTuple

from spyrec.dataclass import dataclass
from spyrec.runtime.memory.windows import Sticks, meet, stretch_of
from spyrec.runtime.streams.control_block import Kind, Origin
from spyrec.runtime.streams.interval_map import IntervalMap
from spyrec.runtime.streams.stream_queue import Entry, described


@dataclass(frozen=True, slots=True)
class PastOperation:
    """What is known of an operation when it is over: the operation itself would keep tensors and host buffers."""

    sequence: int
    stream_id: int
    ticket: int
    origin: Origin
    kind: Kind
    site: str
    is_upload: bool
    entry: weakref.ref[Entry]

    @classmethod
    def of(cls, entry: Entry) -> PastOperation:
        """Return what is kept of an operation."""
        block, stream_id, here = entry.block, entry.queue.stream_id, weakref.ref(entry)
        return cls(entry.sequence, stream_id, entry.ticket, block.origin, block.kind, entry.site, block.is_upload, here)

    @property
    def is_over(self) -> bool:
        """Whether it is done, failed or skipped."""
        entry = self.entry()
        return entry is None or entry.is_over

    def __str__(self) -> str:
        return described(self.kind, self.origin, self.stream_id, self.site)


class PastUse(NamedTuple):
    """An operation, and whether it wrote the sticks in question."""

    is_write: bool
    by: PastOperation


@dataclass(slots=True)
class _History:
    """Who wrote these sticks last, and, by stream, who read them last since."""

    write: PastOperation | None = None
    reads: dict[int, PastOperation] = field(default_factory=dict[int, PastOperation])

    def copied(self) -> _History:
        return _History(self.write, dict(self.reads))

    def uses(self) -> list[PastUse]:
        uses = [PastUse(False, reader) for reader in self.reads.values()]
        return uses if self.write is None else [*uses, PastUse(True, self.write)]

    def unordered(self, clock: Mapping[int, int], *, is_write: bool) -> list[PastUse]:
        readers = self.reads.values() if is_write else ()
        uses = [PastUse(False, reader) for reader in readers if reader.ticket > clock.get(reader.stream_id, 0)]
        writer = self.write
        if writer is not None and writer.ticket > clock.get(writer.stream_id, 0):
            uses.append(PastUse(True, writer))
        return uses


class _WindowUse(NamedTuple):
    sticks: tuple[Sticks, ...]
    is_write: bool


@dataclass(slots=True)
class _Windows:
    """Windows that lie in and out of each other: by stream, who used each of them last, the newest use last."""

    users: dict[int, dict[_WindowUse, PastOperation]] = field(
        default_factory=dict[int, dict[_WindowUse, PastOperation]]
    )

    @classmethod
    def joined(cls, several: Sequence[_Windows]) -> _Windows:
        users: dict[int, dict[_WindowUse, PastOperation]] = {}
        for windows in several:
            for stream_id, known in windows.users.items():
                users.setdefault(stream_id, {}).update(known)
        return cls({key: dict(sorted(known.items(), key=_ticket)) for key, known in users.items()})

    def itself(self) -> _Windows:
        """Return what both halves of a stretch have that is cut: memory is given back in blocks, which cuts none."""
        return self

    def keep(self, sticks: tuple[Sticks, ...], user: PastOperation, *, is_write: bool) -> None:
        """Let an operation be the last on a window; who writes it takes the place of all that used this very one."""
        if is_write:
            for known in self.users.values():
                known.pop(_WindowUse(sticks, True), None)
                known.pop(_WindowUse(sticks, False), None)
        known, use = self.users.setdefault(user.stream_id, {}), _WindowUse(sticks, is_write)
        known.pop(use, None)  # what is put into a dict again comes last
        known[use] = user

    def unordered(self, sticks: tuple[Sticks, ...], clock: Mapping[int, int], *, is_write: bool) -> Iterator[PastUse]:
        """Yield what :meth:`RegionHistory.unordered` says."""
        for stream_id, known in self.users.items():
            over = clock.get(stream_id, 0)
            for use, user in reversed(known.items()):
                if user.ticket <= over:
                    break
                if (is_write or use.is_write) and meet(use.sticks, sticks):
                    yield PastUse(use.is_write, user)

    def everybody(self) -> Iterator[PastOperation]:
        for known in self.users.values():
            yield from known.values()


def _ticket(item: tuple[_WindowUse, PastOperation]) -> int:
    return item[1].ticket


class RegionHistory:
    """Told of every use of a region's sticks, by operations in the order in which they are enqueued."""

    def __init__(self) -> None:
        self._stretches = IntervalMap[_History](_History, _History.copied)
        self._windows = IntervalMap[_Windows](_Windows, _Windows.itself)

    def unordered(self, sticks: tuple[Sticks, ...], clock: Mapping[int, int], *, is_write: bool) -> list[PastUse]:
        """Return the uses of sticks that the owner of a clock is not ordered behind, some more than once.

        To whom only reads the sticks those matter that wrote them.
        """
        first, past = stretch_of(sticks)
        found: list[PastUse] = []
        for start, end, history in self._stretches.known(first, past):
            late = history.unordered(clock, is_write=is_write)
            if late and (_is_stretch(sticks) or meet(sticks, (Sticks(start, end - start),))):
                found += late
        if len(self._windows):
            for _, _, windows in self._windows.known(first, past):
                found += windows.unordered(sticks, clock, is_write=is_write)
        return found

    def keep(self, sticks: tuple[Sticks, ...], user: PastOperation, *, is_write: bool) -> None:
        """Let an operation have used sticks."""
        first, past = stretch_of(sticks)
        if not _is_stretch(sticks):
            self._windows_around(first, past).keep(sticks, user, is_write=is_write)
        elif is_write:
            # one stretch again: a tensor that is written as a whole costs one entry, whatever was read of it
            self._stretches.replace(first, past, _History(user))
            self._forget_windows(first, past)
        else:
            for history in self._stretches.covering(first, past):
                history.reads[user.stream_id] = user

    def forget(self, first: int, past: int) -> dict[int, PastOperation]:
        """Forget all of a block of memory; return who used it, by sequence."""
        histories = [history for _, _, history in self._stretches.known(first, past)]
        windows = [item for _, _, item in self._windows.known(first, past)]
        users = [use.by for history in histories for use in history.uses()]
        users += [user for item in windows for user in item.everybody()]
        self._stretches.forget(first, past)
        self._windows.forget(first, past)
        return {user.sequence: user for user in users}

    def _windows_around(self, first: int, past: int) -> _Windows:
        """Return the windows that a new one from ``first`` to ``past`` belongs to: all that lie across it."""
        known = self._windows.known(first, past)
        if len(known) == 1 and known[0][0] <= first and past <= known[0][1]:
            return known[0][2]
        first, past = min([first, *[start for start, _, _ in known]]), max([past, *[end for _, end, _ in known]])
        windows = known[0][2] if len(known) == 1 else _Windows.joined([item for _, _, item in known])
        self._windows.replace(first, past, windows)
        return windows

    def _forget_windows(self, first: int, past: int) -> None:
        """Forget the windows that lie in what was overwritten as a whole."""
        for start, end, _ in self._windows.known(first, past) if len(self._windows) else ():
            if first <= start and end <= past:
                self._windows.forget(start, end)


def _is_stretch(sticks: tuple[Sticks, ...]) -> bool:
    return len(sticks) == 1 and not sticks[0].loops
