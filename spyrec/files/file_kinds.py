"""The kinds of files that verbs write, and the marks by which spyrec knows its own.

A file without its kind's mark is somebody's: it is replaced by ``--force`` alone.
"""

from __future__ import annotations

import os
import re
from typing import IO

from spyrec.diagnostics import SpyrecError
from spyrec.diagnostics.json_reading import load_json
from spyrec.files.whole_file import FileKind

OUTPUTS_MARK = "spyrec.outputs/1"
"""The comment of an ``.npz`` archive of outputs, and ``format`` in the metadata of a ``.safetensors`` file of them."""

TRACE_FORMAT = "spyrec.trace/1"
"""The first member of a trace, ``format``."""

PROFILE_FORMAT = "spyrec.profile/1"
"""The first member of a timing profile, ``format``."""

SWEEP_FORMAT = "spyrec.sweep/1"
"""What ``format`` says in a sweep file."""

RESULTS_FORMAT = "spyrec.results/1"
"""The first member of ``sweep.json`` among the results of a sweep, ``format``."""

PICTURE_MARK = "<!-- spyrec.picture/1 -->"
"""The first line of a picture, an SVG."""

RECORD_FORMAT = "spyrec.record/1"
"""The first member of a record of a run, ``format``."""

_REPORT_MARKS = (b"spyrec.report/1", b"spyrec.sweep-report/1", b"spyrec.provenance/1", TRACE_FORMAT.encode())
"""What stands in the head of whatever a report is written as, in the comments of its language."""

_HEAD_BYTES = 256
_MOST_METADATA_BYTES = 1 << 20
_PROFILE_HEAD = re.compile(rb'\s*\{\s*"format"\s*:\s*"' + re.escape(PROFILE_FORMAT.encode()) + rb'"')
_RECORD_HEAD = re.compile(rb'\s*\{\s*"format"\s*:\s*"' + re.escape(RECORD_FORMAT.encode()) + rb'"')
_RESULTS_HEAD = re.compile(rb'\s*\{\s*"format"\s*:\s*"' + re.escape(RESULTS_FORMAT.encode()) + rb'"')
_TRACE_HEAD = re.compile(rb'\s*\{\s*"format"\s*:\s*"' + re.escape(TRACE_FORMAT.encode()) + rb'"')


def _is_outputs(file: IO[bytes]) -> bool:
    return _has_zip_comment(file) or _has_safetensors_metadata(file)


def _has_zip_comment(file: IO[bytes]) -> bool:
    """Whether a zip archive ends with our comment: a comment is what an archive ends with."""
    mark = OUTPUTS_MARK.encode()
    if file.seek(0, os.SEEK_END) < len(mark):
        return False
    file.seek(-len(mark), os.SEEK_END)
    has_mark = file.read() == mark
    file.seek(0)
    return has_mark and file.read(2) == b"PK"


def _has_safetensors_metadata(file: IO[bytes]) -> bool:
    size_bytes = file.seek(0, os.SEEK_END)
    file.seek(0)
    length = int.from_bytes(file.read(8), "little")
    if size_bytes < 8 or length > min(size_bytes - 8, _MOST_METADATA_BYTES):
        return False
    try:
        header = load_json(file.read(length))[0]
    except SpyrecError:
        return False
    metadata = header.get("__metadata__") if isinstance(header, dict) else None
    return isinstance(metadata, dict) and metadata.get("format") == OUTPUTS_MARK


def _is_trace(file: IO[bytes]) -> bool:
    return _TRACE_HEAD.match(file.read(_HEAD_BYTES)) is not None


def _is_profile(file: IO[bytes]) -> bool:
    return _PROFILE_HEAD.match(file.read(_HEAD_BYTES)) is not None


def _is_results(file: IO[bytes]) -> bool:
    return _RESULTS_HEAD.match(file.read(_HEAD_BYTES)) is not None


def _is_parquet(file: IO[bytes]) -> bool:
    """Whether it is a Parquet file: one among results is ours."""
    return file.read(4) == b"PAR1"


def _is_picture(file: IO[bytes]) -> bool:
    return file.read(_HEAD_BYTES).startswith(PICTURE_MARK.encode())


def _is_record(file: IO[bytes]) -> bool:
    return _RECORD_HEAD.match(file.read(_HEAD_BYTES)) is not None


def _is_nobodys(_: IO[bytes]) -> bool:
    """Whether a graph file is ours: nothing in one says who wrote it."""
    return False


def _is_report(file: IO[bytes]) -> bool:
    head = file.read(_HEAD_BYTES)
    return any(mark in head for mark in _REPORT_MARKS)


OUTPUTS = FileKind("the outputs", "SPY0766", _is_outputs)
TRACE = FileKind("the trace", "SPY0751", _is_trace)
PROFILE = FileKind("the profile", "SPY0792", _is_profile)
PICTURE = FileKind("the picture", "SPY0322", _is_picture)
RECORD = FileKind("the record", "SPY0853", _is_record)
RESULTS = FileKind("the results", "SPY0844", _is_results)
PARQUET = FileKind("the Parquet file", "SPY0844", _is_parquet)
GRAPH = FileKind("the tuned graph", "SPY0848", _is_nobodys)
REPORT = FileKind("the report", "SPY0853", _is_report)
