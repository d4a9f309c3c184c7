"""The cases by name: examples, reference examples, tiling cases, launches, faulty programs, random programs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

import spyrec
from examples.granite_block import make_graph
from scripts.behaviour.facts import Arrays, Facts
from scripts.behaviour.faults import REFERENCES, ROOT, TABLES, run_faulty_program, run_faulty_reference
from scripts.behaviour.launches import run_launch, run_race
from scripts.behaviour.programs import Program, drawn_inputs
from scripts.behaviour.runs import record_command, record_run, run_program, run_random, run_twice
from tests.support.tiling_cases import CASES

Case = Callable[[Facts, Path], None]
"""Records one case; the directory is empty, and gone afterwards."""

EXAMPLES = ROOT / "examples"
NUMERICS = ("dl16", "ieee", "f32")


def cases(programs: int) -> Iterator[tuple[str, Case]]:
    """Return every case with its name; ``programs``: how many random ones."""
    for name in ("digits", "seed_add_mul", "seed_tiling_default", "seed_tiling_rows"):
        yield f"example/{name}", partial(_example, EXAMPLES / name / "graph.json")
    yield "example/granite_narrow", _granite
    yield "example/foreign", _foreign
    for table in sorted(TABLES.glob("*.json")):
        yield f"reference/{table.stem}", partial(_reference, table)
    for folder in sorted(REFERENCES.iterdir()):
        yield f"codegen/{folder.name}", partial(_codegen, folder / "opspecs.json")
    for name in CASES:
        yield f"tiling/{name}", partial(_tiling, name)
    for number in range(40):
        yield f"launch/{number}", _without_directory(run_launch, number)
    for number in range(10):
        yield f"race/{number}", _without_directory(run_race, number)
    for number in range(100):
        yield f"fault/reference/{number}", partial(_of_number, run_faulty_reference, number)
    for number in range(80):
        yield f"fault/program/{number}", partial(_of_number, run_faulty_program, number)
    for seed in range(programs):
        yield f"random/{seed}", partial(_of_number, run_random, seed)


def _of_number(run: Callable[[int, Facts, Path], None], number: int, facts: Facts, directory: Path) -> None:
    run(number, facts, directory)


def _without_directory(run: Callable[[int, Facts], None], number: int) -> Case:
    return lambda facts, _: run(number, facts)


def _example(graph: Path, facts: Facts, directory: Path) -> None:
    """Compile an example on the command line, run it in all numerics, watch, check and bisect it."""
    bundle = directory / "bundle"
    record_command("compile", facts, "compile", graph, "-o", bundle, "--explain-plan")
    facts.bundle("bundle", bundle)
    record_command("lx", facts, "inspect-layout", bundle, "--lx")
    for numerics in NUMERICS:
        record_run(numerics, facts, directory, bundle, "--random", "7", "--numerics", numerics, "--check")
    record_run("watched", facts, directory, bundle, "--random", "7", "--sanitize", "all")
    record_run("bisect", facts, directory, bundle, "--random", "7", "--bisect")
    record_command("text", facts, "run", bundle, "--random", "7", "--stats")
    only = "sdsc_0.json" if (bundle / "sdsc_0.json").exists() else "kernels/0/sdsc_0.json"
    record_run("only", facts, directory, bundle, "--random", "7", "--only", only)
    data = json.loads((bundle / "graph.json").read_bytes())
    run_twice(bundle, _inputs_of(graph, data), spyrec.RunOptions(), facts)
    for cores, options in ((1, ()), (7, ("--fixed-io-layouts",)), (16, ("--no-symbolic-args", "--loops", "unroll"))):
        other = directory / f"bundle{cores}"
        record_command(f"cores{cores}", facts, "compile", graph, "-o", other, "--cores", str(cores), *options)
        facts.bundle(f"cores{cores}", other)
    record_command("diff", facts, "diff", bundle, directory / "bundle7", "--stat")


def _inputs_of(graph: Path, data: dict[str, object]) -> Arrays:
    if graph.parent.name != "digits":
        return drawn_inputs(data, 7)
    with np.load(graph.parent / "heldout.npz") as archive:
        return {"images": archive["images"]}


def _granite(facts: Facts, directory: Path) -> None:
    _example(make_graph.write(directory / "graph", make_graph.NARROW), facts, directory)


def _foreign(facts: Facts, directory: Path) -> None:
    """Make the example that others made, and run it with its table."""
    example, bundle = EXAMPLES / "foreign_bundle", directory / "bundle"
    record_command("codegen", facts, "codegen", example / "opspecs.json", "-o", bundle, "--compat", "torch-spyre")
    facts.bundle("bundle", bundle)
    record_run("run", facts, directory, bundle, "--args", example / "args.json", "--random", "1")


def _reference(table: Path, facts: Facts, directory: Path) -> None:
    """Run a reference example with a table of its arguments, plainly with a trace, and watched."""
    name, _, rest = table.name.partition(".")
    options = ("--only", f"{rest.partition('.')[0]}.json") if rest.startswith("sdsc_") else ()
    bundle, trace = directory / "program", directory / "trace.json"
    shutil.copytree(REFERENCES / name, bundle)
    common = (bundle, "--args", table, "--random", "1", *options)
    record_run("run", facts, directory, *common, "--trace", trace)
    if trace.exists():
        facts.trace("run.trace", trace)
    record_run("watched", facts, directory, *common, "--sanitize", "all")
    record_run("f32", facts, directory, *common, "--numerics", "f32")


def _codegen(opspecs: Path, facts: Facts, directory: Path) -> None:
    """Emit a reference example from its operations in every way."""
    ways = {
        "plain": (),
        "compat": ("--compat", "torch-spyre"),
        "baked": ("--no-symbolic-args",),
        "symbolic": ("--symbolic-args", "--loops", "keep", "--correction-slots", "2"),
        "unrolled": ("--loops", "unroll"),
    }
    for way, options in ways.items():
        if record_command(way, facts, "codegen", opspecs, "-o", directory / way, *options) == 0:
            facts.bundle(way, directory / way)


def _tiling(name: str, facts: Facts, directory: Path) -> None:
    graph = CASES[name]()
    number = list(CASES).index(name)
    options = spyrec.CompileOptions(cores=None if number % 2 else 6, symbolic_strides=number % 3 == 0)
    run_program(Program(graph, drawn_inputs(graph, number), options), 1, facts, directory)
