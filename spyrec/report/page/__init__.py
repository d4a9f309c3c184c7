"""A report as one HTML file that needs nothing but itself: no network, no server, no other file.

The file holds the report as JSON, the script that draws it and its style sheet.  A Content-Security-Policy names the
hashes of these two and forbids everything else, so that a name from a stranger's file can become text and nothing more:
the JSON has no character that ends its element, and the script puts every string into text nodes.
"""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from spyrec.report.model import Report

_TEMPLATE = "page.html.jinja"
_ESCAPES = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}
"""What would end the element, begin a comment of HTML or end a line of JavaScript; all of it stands in strings only."""


def render_page(report: Report) -> str:
    """Return the whole HTML file of a report."""
    from spyrec.report.report_file import report_to_json

    return page_of(report_to_json(report), report.name)


def page_of(data: dict[str, object], name: str) -> str:
    """Return the HTML file that shows an object of ``spyrec.report/1``."""
    from jinja2 import Environment, StrictUndefined  # only where a page is made: 40 ms of a start

    from spyrec import __version__

    script, style = _asset("report.js"), _asset("report.css")
    environment = Environment(autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True)
    template = environment.from_string((files(__name__) / "templates" / _TEMPLATE).read_text(encoding="utf-8"))
    return template.render(
        title=name,
        version=__version__,
        policy=policy(script, style),
        script=script,
        style=style,
        data=escaped_json(data),
    )


def policy(script: str, style: str) -> str:
    """Return a Content-Security-Policy that lets this script and this style sheet through by hash, nothing else."""
    only = {"script-src": _hash(script), "style-src": _hash(style)}
    listed = "; ".join(f"{directive} '{value}'" for directive, value in only.items())
    return f"default-src 'none'; {listed}; base-uri 'none'; form-action 'none'"


def escaped_json(data: dict[str, object]) -> str:
    """Return JSON on one line that may stand in an HTML element: no ``<``, ``>`` or ``&``, no separator of lines."""
    return orjson.dumps(data).decode().translate(_ESCAPES)


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _asset(name: str) -> str:
    """Return a built file; what would end the element that it stands in is an error of ours."""
    text = (files(__name__) / "assets" / name).read_text(encoding="utf-8")
    assert "</script" not in text.lower(), name
    assert "</style" not in text.lower(), name
    return text
