"""A report as JSON text, written and read; and how the files of this package are read: as a stranger's."""

from __future__ import annotations

from typing import TypeVar

import orjson

from spyrec.diagnostics import Diagnostic, Location, SpyrecError, capped, standing_for
from spyrec.diagnostics.json_reading import load_json
from spyrec.files.json_records import JsonRecord, WrongForm
from spyrec.report.model import Report
from spyrec.report.numbers import WRONG_FORM

REPORT_FORMAT = "spyrec.report/1"

_HINT = "docs/report_data.md describes the form"

Read = TypeVar("Read")

_REPORT = JsonRecord(Report)


def report_to_json(report: Report) -> dict[str, object]:
    """Return the object of ``spyrec.report/1``."""
    return {"format": REPORT_FORMAT, **_REPORT.write(report)}


def report_text(report: Report) -> str:
    """Return a report as one line of JSON, ending in a newline: what ``spyrec report --json`` prints."""
    return orjson.dumps(report_to_json(report), option=orjson.OPT_APPEND_NEWLINE).decode()


def read_report(text: bytes, file: str) -> Report:
    """Read a report; errors SPY0101 to SPY0104 for the text, SPY0850 for another form."""
    return read_form(_REPORT, text, file, REPORT_FORMAT)


def read_form(record: JsonRecord[Read], text: bytes, file: str, version: str) -> Read:
    """Read a file whose first member says what it is; errors SPY0101 to SPY0104, SPY0850."""
    data, source = load_json(text, file)
    location = Location(file, "", source=source)
    found = data.get("format") if isinstance(data, dict) else None
    if found != version or not isinstance(data, dict):
        shown = f'"{found[:80]}"' if isinstance(found, str) else "absent or no text"
        place = location if found is None else location.child("format")
        hint = "the file is of another kind, or of another version of spyrec"
        raise SpyrecError([Diagnostic(WRONG_FORM, f'format is {shown}, expected "{version}"', place, hint=hint)])
    try:
        return record.read({key: value for key, value in data.items() if key != "format"}, location)
    except WrongForm as error:
        problems = capped(error.problems, lambda item: item.kind)
        raise SpyrecError(
            [
                standing_for(Diagnostic(WRONG_FORM, item.fact, item.place(location), hint=_HINT), count)
                for item, count in problems
            ]
        ) from None
