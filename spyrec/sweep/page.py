"""The page of a sweep: one HTML file without scripts; cases whose bundles are kept lead to the bundles' own reports."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path
from urllib.parse import quote

from spyrec.files.file_kinds import REPORT
from spyrec.files.whole_file import write_file
from spyrec.notebook import text, time_text
from spyrec.sweep.cases import folder_name
from spyrec.sweep.comparison import counts_line
from spyrec.sweep.fronts import by_graph, front
from spyrec.sweep.plots import plots
from spyrec.sweep.results import BUNDLES, ResultSet
from spyrec.sweep.rows import Row
from spyrec.sweep.summary import FORMAT, Summary

MOST_ROWS = 5000
"""Rows of the table; Parquet and JSON have all."""

_STYLE = """
:root{color-scheme:light dark}
body{font:14px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:90rem;padding:0 1rem}
table{border-collapse:collapse}th,td{padding:.15rem .6rem;text-align:left;border-bottom:1px solid #8884}
td.n{text-align:right;font-variant-numeric:tabular-nums}.bad{color:#c33}.wide{overflow-x:auto}
"""

Links = Mapping[str, str]
"""Path of a bundle's report, relative to the page, by the name of the bundle's folder."""


def write_bundle_reports(results: ResultSet, page: Path) -> Links:
    """Write a report beside each bundle that is kept, and return the links to them.

    A bundle that cannot be read has none.  Errors: SPY0853 a report cannot be written.
    """
    from spyrec.diagnostics import SpyrecError
    from spyrec.report.build import Source, build
    from spyrec.report.formats import renderer

    found: dict[str, str] = {}
    for row in results.rows:
        bundle = results.folder / BUNDLES / folder_name(row.graph, row.options)
        if not bundle.is_dir() or bundle.name in found:
            continue
        target = bundle.parent / f"{bundle.name}.html"
        try:
            content = renderer("html")(build(Source(bundle, None, None)).report)
        except SpyrecError:
            continue
        write_file(target, REPORT, content.encode())
        found[bundle.name] = os.path.relpath(target.resolve(), page.resolve().parent)
    return found


def page_of(summary: Summary, links: Links) -> str:
    """Return the HTML."""
    rows = summary.results.rows
    body = [f"<h1>{text(summary.head)}</h1>", _reasons(summary)]
    if summary.against is not None:
        body.append(_changes(summary))
    picture = plots(rows)
    if picture:
        body.append(f"<h2>Time and traffic</h2><div class=wide>{picture}</div>")
    body.append(_table(summary, links))
    return "\n".join([
        f"<!doctype html><!-- {FORMAT} -->",
        '<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">',
        f"<title>{text(summary.results.name)}</title><style>{_STYLE}</style></head><body>",
        *body,
        "</body></html>",
        "",
    ])  # fmt: skip


def _cells(*values: object) -> str:
    return "".join(f"<td>{text(value)}</td>" for value in values)


def _reasons(summary: Summary) -> str:
    lines = [f"<tr>{_cells(count, status, reason, row.name)}</tr>" for count, status, reason, row in summary.reasons()]
    if not lines:
        return ""
    head = "<tr><th>cases<th>status<th>why<th>first</tr>"
    return f"<h2>What is wrong</h2><table>{head}{''.join(lines)}</table>"


def _changes(summary: Summary) -> str:
    lines = [f"<tr>{_cells(item.verdict.value, item.name, item.said)}</tr>" for item in summary.changes[:MOST_ROWS]]
    said = counts_line(summary.changes, summary.against or "")
    return f"<h2>{text(said[:1].upper() + said[1:])}</h2><table>{''.join(lines)}</table>"


_NUMBERS: dict[str, Callable[[Row], object]] = {
    "simulated time": lambda row: None if row.simulated_us is None else time_text(row.simulated_us, None),
    "device memory, B": lambda row: row.hbm_bytes,
    "scratchpad, B": lambda row: row.lx_peak_bytes,
    "error / bound": lambda row: None if row.bound_ratio is None else f"{row.bound_ratio:.3f}",
}


def _table(summary: Summary, links: Links) -> str:
    best = {row.key for rows in by_graph(summary.results.rows).values() if len(rows) > 1 for row in front(rows)}
    names = "".join(f"<th>{name}" for name in _NUMBERS)
    lines = [f"<tr><th>case<th>status{names}<th>front<th>code</tr>"]
    lines += [
        _line(row, links.get(folder_name(row.graph, row.options)), row.key in best)
        for row in summary.results.rows[:MOST_ROWS]
    ]
    left = len(summary.results.rows) - MOST_ROWS
    beyond = f"<p>{left} more rows are in the files of the results.</p>" if left > 0 else ""
    return f"<h2>Cases</h2><div class=wide><table>{''.join(lines)}</table></div>{beyond}"


def _line(row: Row, link: str | None, is_best: bool) -> str:
    name = text(row.name)
    named = name if link is None else f'<a href="{escape(quote(link))}">{name}</a>'
    status = text(row.status) if row.is_good else f'<span class="bad">{text(row.status)}</span>'
    values = (value(row) for value in _NUMBERS.values())
    numbers = "".join(f'<td class="n">{"" if value is None else text(value)}</td>' for value in values)
    said = row.code or (row.message or "").partition("\n")[0][:200]
    return f"<tr><td>{named}</td><td>{status}</td>{numbers}<td>{'yes' if is_best else ''}</td>{_cells(said)}</tr>"
