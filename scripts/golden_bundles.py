"""The reviewed bundles of the examples, ``examples/NAME/golden``: a change in one is read before it lands.

They leave out ``constants.safetensors``, as ``spyrec diff`` allows (``spyrec/compare/diff.py``).
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import spyrec
from examples.granite_block import make_graph

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
CONSTANTS = "constants.safetensors"
NARROW_CORES = 2


def compiled(graph: Path, cores: int | None, directory: Path) -> Path:
    """Compile a graph into ``directory/bundle`` and return that path."""
    bundle = directory / "bundle"
    spyrec.compile(graph, spyrec.CompileOptions(cores=cores)).save(bundle)
    return bundle


def granite_narrow(directory: Path) -> Path:
    """Return the bundle of the narrow block; few cores, since a SuperDSC grows with them."""
    return compiled(make_graph.write(directory / "graph", make_graph.NARROW), NARROW_CORES, directory)


GOLDEN: dict[str, Callable[[Path], Path]] = {
    "digits": lambda directory: compiled(EXAMPLES / "digits" / "graph.json", None, directory),
    "granite_block": granite_narrow,
    "seed_add_mul": lambda directory: compiled(EXAMPLES / "seed_add_mul" / "graph.json", None, directory),
    "seed_tiling_default": lambda directory: compiled(EXAMPLES / "seed_tiling_default" / "graph.json", None, directory),
    "seed_tiling_rows": lambda directory: compiled(EXAMPLES / "seed_tiling_rows" / "graph.json", None, directory),
}
"""Name of an example -> function that makes its bundle below a directory and returns where."""


def without_constants(bundle: Path) -> Path:
    """Remove the constants of a bundle that was made for a comparison; return the bundle."""
    (bundle / CONSTANTS).unlink(missing_ok=True)
    return bundle


def rewrite() -> None:
    """Replace every golden bundle by what the compiler writes now."""
    for name, make in GOLDEN.items():
        golden = EXAMPLES / name / "golden"
        with tempfile.TemporaryDirectory() as directory:
            fresh = without_constants(make(Path(directory)))
            if golden.exists():
                shutil.rmtree(golden)
            shutil.copytree(fresh, golden)
