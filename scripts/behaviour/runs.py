"""What is done with a program: compiled, saved, loaded, run plainly and run watched; what is raised is a fact, too."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np

import spyrec
from scripts.behaviour.facts import Arrays, Facts, input_digest
from scripts.behaviour.programs import Program, larger_inputs, random_program, without_pins
from spyrec import Bundle, RunOptions, SpyrecError
from spyrec.cli import main
from tests.support.graph_files import JsonObject

_Result = TypeVar("_Result")

MAX_EXECUTIONS = 4000
"""SuperDSCs that one run of a random or faulty program may execute."""

_PLACES = re.compile(r"(/[\w.+-]+)+/(?=[\w.+-]+)")
"""Directories of this machine in texts."""


def run_random(seed: int, facts: Facts, directory: Path) -> None:
    """Record a random program."""
    program = random_program(seed)
    facts.content("input", [input_digest([program.graph, program.compile_options], program.arrays).encode()])
    run_program(program, seed, facts, directory)


def run_program(program: Program, seed: int, facts: Facts, directory: Path) -> None:
    """Compile a program and save it; run it as it is, and once more loaded, checked and watched by all sanitizers."""
    compiled = _tried(facts, "compile", lambda: spyrec.compile(program.graph, program.compile_options))
    if compiled is None:  # most often a pin that the program cannot have
        program = replace(program, graph=without_pins(program.graph))
        compiled = _tried(facts, "unpinned", lambda: spyrec.compile(program.graph, program.compile_options))
    if compiled is None:
        return
    compiled.save(directory / "bundle")
    facts.bundle("bundle", directory / "bundle")
    arrays = program.arrays
    if program.is_launched_larger:
        manifest: JsonObject = json.loads((directory / "bundle" / "manifest.json").read_bytes())
        arrays = larger_inputs(manifest, seed)
    plain = RunOptions(numerics=program.numerics, max_executions=MAX_EXECUTIONS)
    run_twice(directory / "bundle", arrays, plain, facts, compiled)
    if seed % 20 == 0 and not program.is_launched_larger:
        run("bisect", compiled, arrays, replace(plain, bisect=True), facts)


def run_twice(directory: Path, arrays: Arrays, options: RunOptions, facts: Facts, bundle: Bundle | None = None) -> None:
    """Run a bundle with a trace, and again checked under all sanitizers."""
    trace = directory.parent / "trace.json"
    run("run", bundle or Bundle.load(directory), arrays, replace(options, trace=trace), facts)
    if trace.exists():
        facts.trace("run.trace", trace)
        trace.unlink()
    watched = replace(options, check=True, sanitize="all")
    loaded = Bundle.load(directory)
    if not run("watched", loaded, arrays, watched, facts):
        run("watched.sync", loaded, arrays, replace(watched, sanitize="sync"), facts)


def run(key: str, bundle: Bundle, arrays: Arrays, options: RunOptions, facts: Facts) -> bool:
    """Run a bundle, record the result or the refusal, and return whether there is a result."""
    result = _tried(facts, key, lambda: spyrec.run(bundle, arrays, options))
    if result is not None:
        facts.result(key, result)
    return result is not None


def _tried(facts: Facts, key: str, action: Callable[[], _Result]) -> _Result | None:
    try:
        return action()
    except SpyrecError as error:
        facts.refusal(f"{key}.refused", error)
    except Exception as error:  # noqa: BLE001 -- a crash is behaviour, too, and the other cases are to be recorded
        facts.number(f"{key}.crashed", type(error).__name__)
    return None


@dataclass(frozen=True)
class Answer:
    """What a command line did: exit code, what it printed, and the messages that it wrote as JSON."""

    exit_code: int
    text: str
    messages: str


def command(*arguments: str | Path) -> Answer:
    """Run a command line of spyrec in this process; paths of this machine are taken out of its texts."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        exit_code = main(["--diagnostics=json", *map(str, arguments)])
    messages = "" if exit_code == 70 else without_places(err.getvalue())
    return Answer(exit_code, without_places(out.getvalue()), messages)


def without_places(text: str) -> str:
    """Return a text with the directories of absolute paths left out."""
    return _PLACES.sub("", text)


def record_command(key: str, facts: Facts, *arguments: str | Path) -> int:
    """Record what a command line prints and return its exit code."""
    answer = command(*arguments)
    facts.number(f"{key}.exit", answer.exit_code)
    facts.document(f"{key}.text", answer.text)
    codes = re.findall(r"SPY\d{4}", answer.messages)
    facts.number(f"{key}.codes", ", ".join(dict.fromkeys(codes)))
    facts.document(f"{key}.messages", answer.messages)
    return answer.exit_code


def record_run(key: str, facts: Facts, directory: Path, *arguments: str | Path) -> None:
    """Record ``spyrec run --json`` in the same way, with the outputs and the totals for themselves."""
    outputs = directory / "outputs.npz"
    answer = command("run", *arguments, "--json", "--outputs", outputs)
    facts.number(f"{key}.exit", answer.exit_code)
    facts.number(f"{key}.codes", ", ".join(dict.fromkeys(re.findall(r"SPY\d{4}", answer.messages))))
    facts.document(f"{key}.messages", answer.messages)
    facts.document(f"{key}.json", answer.text)
    if answer.text.startswith("{"):
        document = json.loads(answer.text)
        for name, value in document["stats"]["total"].items():
            facts.number(f"{key}.{name}", value)
        facts.number(f"{key}.findings", len(document["sanitizer"]))
    if outputs.exists():
        with np.load(outputs) as archive:
            facts.outputs(f"{key}.outputs", {name: archive[name] for name in archive.files})
        outputs.unlink()
