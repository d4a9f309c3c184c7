"""Write the files that are generated, or check that they are fresh.

``python scripts/generated_files.py`` rewrites schemas, pages of docs/ (ops, passes, codes), stubs, the public surface,
golden bundles, error cases, what is said of August's bundles, what the READMEs show and the README's picture.
``--check`` rewrites nothing and names the texts that are stale (consoles, bundles and cases are compared by ``make
test``).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from spyrec.bundle import preflight
from spyrec.bundle.manifest_json import bundle_schema
from spyrec.bundle.spyrecode_schema import spyrecode_schema
from spyrec.bundle.superdsc_schema import superdsc_schema
from spyrec.codegen.opspec_json import opspec_schema
from spyrec.diagnostics import explanations
from spyrec.frontends.op_parameters import stub_text
from spyrec.ir.op_docs import docs_page
from spyrec.ir.schema import graph_schema
from spyrec.passes import pass_docs
from spyrec.sweep.settings import sweep_schema

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # scripts and examples are no installed packages


def _public_surface() -> str:
    from scripts.public_surface import surface_text  # late: it needs the path set above

    return surface_text()


def _diagnostics() -> str:
    from scripts.error_cases import codes, example_of  # late, as above

    return explanations.docs_page({code: example_of(code) for code in codes()})


def _readme() -> str:
    from scripts.readme_picture import readme_text  # late, as above

    return readme_text()


TEXTS: dict[str, Callable[[], str]] = {
    "README.md": _readme,
    "docs/diagnostics.md": _diagnostics,
    "docs/ops.md": docs_page,
    "docs/preflight.md": preflight.docs_page,
    "docs/passes.md": pass_docs.docs_page,
    "schemas/bundle.schema.json": bundle_schema,
    "schemas/graph.schema.json": graph_schema,
    "schemas/opspec.schema.json": opspec_schema,
    "schemas/spyrecode.schema.json": spyrecode_schema,
    "schemas/superdsc.schema.json": superdsc_schema,
    "schemas/sweep.schema.json": sweep_schema,
    "spyrec/frontends/op_methods.pyi": stub_text,
    "tests/fixtures/public_surface.txt": _public_surface,
}
"""Path from the root -> function that returns the text."""


def stale() -> list[str]:
    """Return the paths whose text is not what the code generates now, sorted."""
    return [
        path
        for path, text in sorted(TEXTS.items())
        if not (ROOT / path).exists() or (ROOT / path).read_text(encoding="utf-8") != text()
    ]


def main() -> int:
    """Rewrite everything, or with ``--check`` list what is stale and return 1 where there is any."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="write nothing, fail where a text is stale")
    if parser.parse_args().check:
        found = stale()
        print("\n".join(f"stale: {path} (make cases)" for path in found) or f"{len(TEXTS)} generated texts are fresh")
        return 1 if found else 0
    from scripts import (
        august_outcomes,
        console_blocks,
        error_cases,
        golden_bundles,
    )  # late: they need the path set above

    error_cases.rewrite(error_cases.codes())
    for path, text in TEXTS.items():
        (ROOT / path).write_text(text(), encoding="utf-8")
    golden_bundles.rewrite()
    august_outcomes.rewrite()
    return console_blocks.main()


if __name__ == "__main__":
    sys.exit(main())
