"""The pipeline as records and as a page: what ``spyrec passes`` prints and ``docs/passes.md`` holds."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterable

from spyrec.passes.base import Facet
from spyrec.passes.pass_options import PassOption, options_of
from spyrec.passes.pipelines import AUTO_TILE, FORM, PLAN, AnyPass, Search

STEPS: tuple[AnyPass | Search, ...] = (*FORM, AUTO_TILE, *PLAN)
"""All that runs, in order; the passes after the search are those that it plans with."""

_COLUMNS = 60


def _facets(found: Iterable[Facet]) -> list[Facet]:
    chosen = set(found)
    return [facet for facet in Facet if facet in chosen]


def _requires(step: AnyPass | Search) -> list[Facet]:
    return [Facet.KERNELS] if isinstance(step, Search) else _facets(step.requires)


def _establishes(step: AnyPass | Search) -> list[Facet]:
    if isinstance(step, Search):
        return _facets(facet for item in step.passes for facet in item.establishes)
    return _facets(step.establishes)


def _described(step: AnyPass | Search) -> str:
    """Return what its function says of itself, as text of one indentation."""
    return inspect.cleandoc(step.run.__doc__ or "")


def record(step: AnyPass | Search) -> dict[str, object]:
    """Return what is declared about a pass, as JSON data."""
    return {
        "name": step.name,
        "summary": step.summary,
        "kind": "search" if isinstance(step, Search) else "pass",
        "requires": [facet.name.lower() for facet in _requires(step)],
        "establishes": [facet.name.lower() for facet in _establishes(step)],
        "options": [
            {"name": item.name, "values": item.values, "default": item.default, "summary": item.summary}
            for item in options_of(step.options)
        ],
        "cost": step.cost,
        "description": _described(step),
    }


def listing() -> str:
    """Return what ``spyrec passes`` prints: every step in order; what the search plans with stands indented."""
    width = max(len(step.name) for step in STEPS) + 2
    lines: list[str] = []
    for step in STEPS:
        indent = "  " if not isinstance(step, Search) and step in PLAN else ""
        lines.append(f"{indent + step.name:{width}}  {step.summary}")
    return "\n".join(lines)


def details(step: AnyPass | Search) -> str:
    """Return what ``spyrec passes NAME`` prints."""
    lines = [step.name, *_wrapped(step.summary)]
    for title, facets in (("requires", _requires(step)), ("establishes", _establishes(step))):
        lines += ["", f"  {title}", *(_facet_line(facet) for facet in facets)] if facets else []
    if step.options:
        lines += ["", "  options", *(line for item in options_of(step.options) for line in _option_lines(item))]
    lines += ["", "  cost", *_wrapped(step.cost, "    "), "", "  what it does"]
    return "\n".join([*lines, *_prose(_described(step))])


def _prose(text: str) -> list[str]:
    """Return a docstring as lines for a terminal: paragraphs filled anew, an example or a list as it stands."""
    lines: list[str] = []
    for paragraph in text.split("\n\n"):
        begun = paragraph.splitlines()
        is_prose = not any(line.startswith((" ", "*", "-")) or "-->" in line for line in begun)
        lines += (
            _wrapped(" ".join(paragraph.split()), "    ") if is_prose else [f"    {line}".rstrip() for line in begun]
        )
        lines.append("")
    return lines[:-1]


def _facet_line(facet: Facet) -> str:
    return f"    {facet.name.lower():14}{facet.value}"


def _option_lines(option: PassOption) -> list[str]:
    values = option.values.replace("|", " | ")
    return [f"    {option.name} ({values}; {option.default})", *_wrapped(option.summary, "      ")]


def _wrapped(text: str, indent: str = "  ") -> list[str]:
    return [indent + line for line in textwrap.wrap(text, _COLUMNS - len(indent), break_on_hyphens=False)]


def docs_page() -> str:
    """Return ``docs/passes.md``."""
    lines = [
        "# The passes",
        "",
        "Generated from `spyrec/passes/pipelines.py` by `make cases`; `spyrec passes` lists them, `spyrec passes NAME`",
        "prints one, `spyrec opt` runs some ([the text that it reads and prints](ir_text.md)). How long each takes on",
        "a graph of one's own, `spyrec opt GRAPH --time-passes` says.",
        "",
        "A pass needs what other passes established before it, and says what holds when it is done:",
        "",
        "| facet | means |",
        "|---|---|",
        *(f"| `{facet.name.lower()}` | {facet.value} |" for facet in Facet),
        "",
        "| pass | what it does | requires | establishes |",
        "|---|---|---|---|",
    ]
    for step in STEPS:
        cells = (_quoted(_requires(step)), _quoted(_establishes(step)))
        lines.append(f"| [{step.name}](#{step.name}) | {step.summary} | {cells[0]} | {cells[1]} |")
    for step in STEPS:
        lines += ["", *_section(step)]
    return "\n".join(lines) + "\n"


def _quoted(facets: Iterable[Facet]) -> str:
    return ", ".join(f"`{facet.name.lower()}`" for facet in facets)


def _section(step: AnyPass | Search) -> list[str]:
    lines = [f"## {step.name}", "", "```text", *_described(step).splitlines(), "```", "", f"Cost: {step.cost}."]
    if step.options:
        lines += ["", "| option | values | default | means |", "|---|---|---|---|"]
    for item in options_of(step.options):
        values = item.values.replace("|", " or ")
        lines.append(f"| `{item.name}` | {values} | {item.default} | {item.summary} |")
    return lines
