"""Graph files and the golden bundles beside them: what tests, hooks and workflows of other projects run.

``python -m spyrec.golden_check GRAPH.json ...`` compiles each graph and holds it against the golden bundle beside it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from spyrec.bundle.bundle import Bundle
from spyrec.compare.diff_report import report_lines
from spyrec.compare.golden import GoldenOutcome, hold_against_golden
from spyrec.diagnostics import SpyrecError
from spyrec.front import compile as compile_graph
from spyrec.options import CompileOptions

SHOWN_PLACES = 20
"""Places of a difference that are shown; the words before them are all shown."""


def hold_bundle(bundle: Bundle, golden: Path, *, is_updated: bool = False, is_semantic: bool = False) -> GoldenOutcome:
    """Hold a bundle in memory against a golden one; as :func:`spyrec.compare.golden.hold_against_golden`."""
    with TemporaryDirectory(prefix="spyrec-golden-") as folder:
        written = Path(folder) / "bundle"
        bundle.save(written)
        if is_updated:
            golden.parent.mkdir(parents=True, exist_ok=True)
        return hold_against_golden(written, golden, is_updated=is_updated, is_semantic=is_semantic)


def failure_lines(outcome: GoldenOutcome, update: str) -> Iterator[str]:
    """Yield what is wrong and what to do; ``update``: the command that makes the golden bundle what is compiled."""
    if outcome.found is None:
        yield f"there is no golden bundle {outcome.golden}"
    else:
        yield f"what is compiled is not the golden bundle {outcome.golden}"
        yield from report_lines(outcome.found, most=SHOWN_PLACES)
    yield f"if this is meant: {update}, and read the change before it is committed"


def main(arguments: Sequence[str] | None = None) -> int:
    """Hold graph files against the golden bundles beside them; return 1 where one differs or is refused.

    A graph without a golden bundle is named, and not compared.
    """
    parser = argparse.ArgumentParser(prog="python -m spyrec.golden_check", description=main.__doc__)
    parser.add_argument("graphs", nargs="+", type=Path, metavar="GRAPH.json")
    parser.add_argument("--golden", default="golden", metavar="NAME", help="the directory beside each graph")
    parser.add_argument("--cores", type=int, help="most cores that one operation is divided among")
    parser.add_argument("--semantic", action="store_true", help="other names and numbers are no difference")
    parser.add_argument("--update-goldens", action="store_true", help="make the golden bundles what is compiled")
    given = parser.parse_args(arguments)
    for graph in given.graphs:
        if not graph.is_file():
            parser.error(f"no file {graph}")  # or a slip of the pen would pass for ever
    options = CompileOptions(cores=given.cores)
    code = 0
    for graph in given.graphs:
        golden = graph.parent / given.golden
        if not golden.exists() and not given.update_goldens:
            print(f"{graph}: not compared, there is no {golden}", file=sys.stderr)  # noqa: T201 -- a command
            continue
        try:
            bundle = compile_graph(graph, options, base_dir=graph.parent)
            outcome = hold_bundle(bundle, golden, is_updated=given.update_goldens, is_semantic=given.semantic)
        except SpyrecError as error:
            print(error, file=sys.stderr)  # noqa: T201 -- a command
            code = 1
            continue
        if not outcome.is_ok:
            cores = "" if given.cores is None else f" --cores {given.cores}"
            command = f"spyrec compile {graph} --golden {golden}{cores} --update-golden"
            print("\n".join(failure_lines(outcome, command)))  # noqa: T201 -- a command
            code = 1
        elif outcome.is_written:
            print(f"{golden}: written")  # noqa: T201 -- a command
    return code


if __name__ == "__main__":
    raise SystemExit(main())
