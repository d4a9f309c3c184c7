"""Launch artefacts to plant faults in, and an image taken apart by the numbers of docs/program_image.md alone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spyrec.bundle.atomic_directory import atomic_directory
from spyrec.bundle.bundle import Bundle, load_foreign, write_artifact
from spyrec.bundle.device_program import DeviceProgram
from spyrec.bundle.image_table import ImageTables
from spyrec.bundle.json_cursor import attempt
from spyrec.bundle.launch_plan import LaunchArtifact
from spyrec.bundle.manifest import Manifest, PlanStep
from spyrec.bundle.program_image import program_files
from spyrec.bundle.spyrecode import artifact_of
from spyrec.bundle.spyrecode_reader import read_artifact
from spyrec.diagnostics import DiagnosticSink
from tests.foreign import EXAMPLES, argument_table, write_table

STICK = 128


def example(name: str, directory: Path) -> Bundle:
    """Return a reference bundle."""
    return load_foreign(EXAMPLES / name, write_table(directory, argument_table(name)))


def artifact(bundle: Bundle, slots: int = 1) -> LaunchArtifact:
    """Return the launch artefact of the only program of a bundle."""
    (program,) = bundle.programs
    (step,) = bundle.manifest.plan
    return artifact_of_step(program, bundle.manifest, step, slots)


def artifact_of_step(program: DeviceProgram, manifest: Manifest, step: PlanStep, slots: int = 1) -> LaunchArtifact:
    """Return the launch artefact of one step of a plan."""
    return artifact_of(program_files(program), ImageTables(manifest).of(program, step), slots)


def write(made: LaunchArtifact, directory: Path) -> Path:
    """Write an artefact below ``directory`` and return its ``spyreCodeDir``."""
    with atomic_directory(directory) as new:
        write_artifact(new, ".", made)
    return directory / "spyreCodeDir"


def edit_plan(folder: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    """Change the parsed ``spyrecode.json`` of a directory."""
    plan = json.loads((folder / "spyrecode.json").read_bytes())
    edit(plan)
    (folder / "spyrecode.json").write_text(json.dumps(plan))


def codes(folder: Path) -> list[str]:
    """Return the codes that reading a ``spyreCodeDir`` gives: of errors, or else of warnings."""
    sink = DiagnosticSink()
    attempt(sink, lambda: read_artifact(folder, sink))
    assert all(item.location is not None and item.advice for item in sink.diagnostics)
    return [item.code for item in sink.errors or sink.diagnostics]


def number(data: bytes, offset: int, size_bytes: int) -> int:
    """Return a little-endian number."""
    return int.from_bytes(data[offset : offset + size_bytes], "little")


@dataclass(frozen=True)
class Dissected:
    """An image taken apart: (slot, correction pointer, words of its table), and the files by name."""

    tables: list[tuple[int, int, list[int]]]
    files: dict[str, bytes]


def dissect(data: bytes) -> Dissected:
    """Take an image apart by the offsets that docs/program_image.md states; assert what the document promises."""
    assert data[:8] == b"SPYREPRG"
    assert (number(data, 8, 4), number(data, 12, 4)) == (1, 128)
    assert number(data, 16, 8) == len(data)
    begin, size = number(data, 24, 8), number(data, 32, 8)
    slots, words = number(data, 40, 4), number(data, 44, 4)
    code = data[begin : begin + size]
    assert data[64:96] == hashlib.sha256(code).digest()
    assert not any(data[48:64] + data[96:128])
    assert begin % STICK == size % STICK == 0
    assert begin + size == len(data)
    tables: list[tuple[int, int, list[int]]] = []
    for slot in range(slots):
        at = 128 + 128 * slot
        assert data[at : at + 8] == b"SPYENTRY"
        assert number(data, at + 12, 4) == words
        table = number(data, at + 24, 8)
        assert table % STICK == 0
        assert 128 + 128 * slots <= table
        assert table + 8 * words <= begin
        numbers = [number(data, table + 8 * index, 8) for index in range(words)]
        tables.append((number(data, at + 8, 4), number(data, at + 16, 8), numbers))
    files: dict[str, bytes] = {}
    for index in range(number(code, 0, 8)):
        name, name_bytes, content, content_bytes = (number(code, 8 + 32 * index + 8 * item, 8) for item in range(4))
        assert content % STICK == 0
        files[code[name : name + name_bytes].decode()] = code[content : content + content_bytes]
    return Dissected(tables, files)
