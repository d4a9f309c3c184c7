"""The results of a sweep in a directory: a line of JSON for each row, which case belongs to it, bundles, Parquet.

``rows.jsonl`` only grows.  A line is whole before the next one begins, and what was written is on the disk before the
sweep says so; a last line that a stop of the machine tore is no row.  ``sweep.json`` names the cases of the latest
sweep in their order, so that what is shown does not depend on who finished first.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from types import TracebackType
from typing import Self

import orjson

from spyrec.dataclass import dataclass
from spyrec.diagnostics import Location, SpyrecError, refuse
from spyrec.diagnostics.json_reading import load_json
from spyrec.files.file_kinds import PARQUET, RESULTS, RESULTS_FORMAT
from spyrec.files.json_form import Form, json
from spyrec.files.json_records import JsonRecord, WrongForm
from spyrec.files.reading import CHUNK_BYTES, open_regular, read_at_most
from spyrec.files.whole_file import refuse_unwritable, write_file
from spyrec.sweep.rows import ROW, Row

UNWRITABLE, NO_RESULTS = "SPY0844", "SPY0845"

INDEX_FILE, ROWS_FILE, PARQUET_FILE = "sweep.json", "rows.jsonl", "rows.parquet"
BUNDLES, MODELS = "bundles", "models"

_OWN = frozenset({INDEX_FILE, ROWS_FILE, PARQUET_FILE, BUNDLES, MODELS})
_SYNC_SECONDS = 1.0
_MOST_INDEX_BYTES = 1 << 30
_LONGEST_LINE = 1 << 20


@dataclass(frozen=True, slots=True)
class Index:
    """``sweep.json``: the sweep's name, and the keys of its cases in order."""

    name: str = field(metadata=json(Form(max_length=256)))
    cases: tuple[str, ...] = field(metadata=json(Form(each=Form(pattern="^[0-9a-f]{32}$"))))
    format: str = field(default=RESULTS_FORMAT, metadata=json(Form(pattern=f"^{RESULTS_FORMAT}$")))


_INDEX = JsonRecord(Index)


class Results:
    """A directory of results that is being written, by one sweep at a time."""

    def __init__(self, folder: Path) -> None:
        """Open the directory, or make it.  Errors: SPY0844 that is not possible, SPY0845 it is damaged."""
        self.folder = folder
        self._file = -1
        self._makes_folder = not folder.exists()
        self._makes_rows = not (folder / ROWS_FILE).exists()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._refuse_other_things()
            self._file = os.open(folder / ROWS_FILE, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
            self._lock()
        except OSError as error:
            self.close()
            raise _unwritable(folder, error) from None
        except SpyrecError:
            self.close()
            raise
        self.rows: dict[str, Row] = {}
        self._size_bytes = 0
        try:
            for row, end in _rows_in(folder / ROWS_FILE):
                self.rows[row.key] = row
                self._size_bytes = end
        except OSError as error:
            self.close()
            raise _unwritable(folder / ROWS_FILE, error) from None
        except SpyrecError:
            self.close()
            raise
        self._truncate()
        self._synced_at = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def begin(self, name: str, keys: Sequence[str]) -> None:
        """Write which cases the sweep has.  Errors: SPY0844."""
        content = orjson.dumps({"format": RESULTS_FORMAT, **_without_format(_INDEX.write(Index(name, tuple(keys))))})
        write_file(self.folder / INDEX_FILE, RESULTS, content + b"\n")

    def forget(self, keys: Iterable[str]) -> None:
        """Have no rows of these cases; of those on the disk the ones that are written later count."""
        for key in keys:
            self.rows.pop(key, None)

    def append(self, row: Row) -> None:
        """Write a row, of a key that has none.  Errors: SPY0844; the rows before it are kept then."""
        assert row.key not in self.rows, "a case is run once"
        line = orjson.dumps(ROW.write(row), option=orjson.OPT_APPEND_NEWLINE)
        try:
            self._write(line)
            if time.monotonic() - self._synced_at > _SYNC_SECONDS:
                self.sync()
        except OSError as error:
            self._truncate()
            raise _unwritable(self.folder / ROWS_FILE, error) from None
        self._size_bytes += len(line)
        self.rows[row.key] = row

    def _write(self, line: bytes) -> None:
        left = memoryview(line)
        while left:
            left = left[os.write(self._file, left) :]

    def sync(self) -> None:
        """Wait until all rows are on the disk."""
        os.fsync(self._file)
        self._synced_at = time.monotonic()

    def write_parquet(self, keys: Sequence[str]) -> None:
        """Write the rows of these cases in their order as a Parquet file.  Errors: SPY0840, SPY0844."""
        from spyrec.sweep.parquet import parquet_of  # late: pyarrow is of the extra

        rows = [self.rows[key] for key in keys if key in self.rows]
        write_file(self.folder / PARQUET_FILE, PARQUET, parquet_of(rows))

    def bundle_folder(self, name: str) -> Path:
        """Return where the bundle of a case is kept."""
        return self.folder / BUNDLES / name

    def close(self) -> None:
        """Let another sweep write here; nothing is left of one that was not begun."""
        if self._file >= 0:
            if self._makes_rows and not (self.folder / INDEX_FILE).exists() and not os.fstat(self._file).st_size:
                self._leave_nothing()
            with suppress(OSError):  # what cannot be synced was said, or is said by who writes next
                self.sync()
            os.close(self._file)
            self._file = -1

    def _refuse_other_things(self) -> None:
        """Refuse a directory that no sweep has made."""
        index = self.folder / INDEX_FILE
        is_ours = _OWN.issuperset(item.name for item in self.folder.iterdir())
        if index.exists():
            try:
                refuse_unwritable(index, RESULTS)
                is_ours = True
            except SpyrecError:  # which tells of an option that a sweep has not
                is_ours = False
        if not is_ours:
            fact = "the directory holds other things than results of a sweep"
            raise refuse(UNWRITABLE, fact, Location(str(self.folder)), hint="name a new directory")

    def _leave_nothing(self) -> None:
        """Take away what the constructor made; a folder that holds something stays."""
        with suppress(OSError):
            (self.folder / ROWS_FILE).unlink()
            if self._makes_folder:
                self.folder.rmdir()

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fact = "another sweep is writing its results there"
            raise refuse(UNWRITABLE, fact, Location(str(self.folder)), hint="wait until it has ended") from None

    def _truncate(self) -> None:
        """Take away what stands behind the last whole row."""
        with suppress(OSError):
            os.ftruncate(self._file, self._size_bytes)


def _without_format(members: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in members.items() if name != "format"}


def _unwritable(path: Path, error: OSError) -> SpyrecError:
    reason = (error.strerror or str(error)).lower()
    return refuse(UNWRITABLE, f"the results cannot be written: {reason}", Location(str(path)))


def _rows_in(path: Path) -> Iterator[tuple[Row, int]]:
    """Yield the rows of a file, and where the next one begins; what follows the last line end is no row."""
    rest, end, number = b"", 0, 0
    with open_regular(path) as file:
        while chunk := file.read(CHUNK_BYTES):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                number += 1
                end += len(line) + 1
                yield _row(line, path, number), end
            if len(rest) > _LONGEST_LINE:
                raise _damaged(f"a row has more than {_LONGEST_LINE} bytes", path, number + 1)


def _row(line: bytes, path: Path, number: int) -> Row:
    try:
        return ROW.read(orjson.loads(line))
    except WrongForm as error:
        problem = error.problems[0]
        at = "/".join(map(str, problem.tokens))
        raise _damaged(f"the row is none: {problem.fact} at /{at}", path, number) from None
    except ValueError:
        raise _damaged("the line is no JSON", path, number) from None


def _damaged(fact: str, path: Path, line: int) -> SpyrecError:
    return refuse(NO_RESULTS, fact, Location(str(path), line=line, column=1))


@dataclass(frozen=True, slots=True)
class ResultSet:
    """Results to be looked at: the rows of the latest sweep in the order of its cases."""

    folder: Path
    name: str
    rows: tuple[Row, ...]
    case_count: int


def read_results(folder: Path) -> ResultSet:
    """Return the results in a directory.  Errors: SPY0845 there are none, or they are damaged; SPY01xx no JSON."""
    path = folder / INDEX_FILE
    try:
        content = read_at_most(path, _MOST_INDEX_BYTES)
        if content is None:
            raise refuse(NO_RESULTS, f"the list of cases has more than {_MOST_INDEX_BYTES} bytes", Location(str(path)))
        index = _index(content, path)
        known = {row.key: row for row, _ in _rows_in(folder / ROWS_FILE)}
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise refuse(NO_RESULTS, f"the results cannot be read: {reason}", Location(str(folder))) from None
    rows = tuple(known[key] for key in index.cases if key in known)
    return ResultSet(folder, index.name, rows, len(index.cases))


def _index(content: bytes, path: Path) -> Index:
    data, source = load_json(content, str(path))
    try:
        return _INDEX.read(data)
    except WrongForm as error:
        problem = error.problems[0]
        place = Location(str(path), "", source=source).child(*problem.tokens)
        raise refuse(NO_RESULTS, problem.fact, place) from None
