"""Join the modules of the report's page to one script and one style sheet, and write both (``make report-assets``).

What is joined stands in ``spyrec/report/page/assets``: ``src/*.js`` are plain modules of the page,
``vendor/NAME-VERSION/`` are libraries as their authors publish them.  No JavaScript tool is needed: a module becomes a
function whose result is what it exports, in an order in which each comes behind those that it imports.  The first line
of either file holds the hash of all that it was made of; ``--check`` compares that hash and writes nothing.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ASSETS = Path(__file__).resolve().parent.parent / "spyrec" / "report" / "page" / "assets"
LIBRARIES = ("vendor/dagre-3.1.3/dagre.min.js",)
"""Scripts that stand before the page's own; each defines one global name."""

_ENTRY = "main.js"
_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w]+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const|let) (\w+))", re.MULTILINE)
_LEFT = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)
_SOURCE_MAP = re.compile(r"^//# sourceMappingURL=.*\n?", re.MULTILINE)


def source_hash(assets: Path = ASSETS) -> str:
    """Return the hash of all that the built files are made of: sources, libraries and this script."""
    digest = hashlib.sha256()
    files = [*sorted((assets / "src").iterdir()), *(assets / name for name in LIBRARIES), Path(__file__)]
    for file in files:
        digest.update(f"{file.name}\0".encode() + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def script(assets: Path = ASSETS) -> str:
    """Return the page's script; errors: ``ValueError`` for what this joining does not know and circles of imports."""
    modules = {file.name: file.read_text(encoding="utf-8") for file in sorted((assets / "src").glob("*.js"))}
    needs = {name: {match[2] for match in _IMPORT.finditer(text)} for name, text in modules.items()}
    missing = {f"{name} imports {other}" for name, others in needs.items() for other in others if other not in modules}
    if missing:
        raise ValueError(f"no such module: {', '.join(sorted(missing))}")
    try:
        order = list(TopologicalSorter({name: sorted(needs[name]) for name in sorted(needs)}).static_order())
    except CycleError as error:
        raise ValueError(f"modules import each other: {' -> '.join(error.args[1])}") from error
    libraries = [_SOURCE_MAP.sub("", (assets / name).read_text(encoding="utf-8")).strip() for name in LIBRARIES]
    joined = "\n".join(_module(name, modules[name], name == _ENTRY) for name in order)
    return "\n".join(
        [f"/* sources: {source_hash(assets)} */", *libraries, f'(() => {{\n"use strict";\n{joined}}})();', ""]
    )


def style(assets: Path = ASSETS) -> str:
    """Return the page's style sheet."""
    sheets = [file.read_text(encoding="utf-8") for file in sorted((assets / "src").glob("*.css"))]
    return "\n".join([f"/* sources: {source_hash(assets)} */", *sheets])


def _module(name: str, text: str, is_entry: bool) -> str:
    """Return a module as a function that is called at once.

    ``import { a } from "./b.js"; export function c() {}``  -->
    ``const module_d = (() => { const { a } = module_b; function c() {} return { c }; })();``
    """
    exported = _EXPORT.findall(text)
    body = _IMPORT.sub(lambda match: f"const {{{_renamed(match[1])}}} = {_variable(match[2])};\n", text)
    body = _EXPORT.sub("", body)
    left = _LEFT.search(body)
    if left:
        raise ValueError(f"{name}: an import or export in a form that is not known: {left[0]}")
    result = "" if is_entry else f"return {{ {', '.join(exported)} }};\n"
    kept = "" if is_entry else f"const {_variable(name)} = "
    return f"// {name}\n{kept}(() => {{\n{body}{result}}})();\n"


def _renamed(names: str) -> str:
    return re.sub(r"(\w+) as (\w+)", r"\1: \2", names)


def _variable(name: str) -> str:
    return f"module_{name.removesuffix('.js')}"


def main() -> int:
    """Write ``report.js`` and ``report.css``, or with ``--check`` say whether they are fresh; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="write nothing, fail where a file is stale")
    built = {"report.js": script, "report.css": style}
    if parser.parse_args().check:
        mark = f"/* sources: {source_hash()} */"
        stale = [name for name in built if (ASSETS / name).read_text(encoding="utf-8").partition("\n")[0] != mark]
        print("\n".join(f"stale: {name} (make report-assets)" for name in stale) or "the report's assets are fresh")
        return 1 if stale else 0
    for name, make in built.items():
        text = make()
        (ASSETS / name).write_text(text, encoding="utf-8")
        print(f"{name}: {len(text.encode()):,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
