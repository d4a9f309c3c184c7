"""A program image: one device program as the bytes that lie in device memory (``docs/program_image.md``).

An image is self-contained: program, SuperDSCs and argument table are in it, and a launch needs nothing else but
addresses and values, which arrive as a correction tensor.
"""

from __future__ import annotations

from collections.abc import Mapping

from spyrec.bundle.atomic_directory import PROGRAM_FILE
from spyrec.bundle.correction_word import UNRESOLVED, Word, WordKind
from spyrec.bundle.device_program import DeviceProgram, executes
from spyrec.bundle.image_sections import (
    DAMAGED_IMAGE,
    Bytes,
    ImageSections,
    ProgramEntry,
    code_key,
    operand_words,
    read_sections,
)
from spyrec.bundle.image_table import TABLE_FILE, ImageArgument, ImageTable, program_words, read_table
from spyrec.bundle.json_cursor import Cursor, attempt
from spyrec.bundle.known_texts import WRITTEN_PROGRAMS, WRITTEN_SUPERDSCS
from spyrec.bundle.manifest import PlanStep
from spyrec.bundle.mlir_parser import parse_program
from spyrec.bundle.mlir_printer import print_program
from spyrec.bundle.program import Program
from spyrec.bundle.superdsc import SuperDsc
from spyrec.bundle.superdsc_reader import parse_superdsc
from spyrec.bundle.superdsc_writer import to_bytes
from spyrec.bundle.validate import check_parameters, check_program
from spyrec.dataclass import dataclass
from spyrec.diagnostics import DiagnosticSink, Location, refuse
from spyrec.diagnostics.json_reading import load_json
from spyrec.files.packed_files import unpacked
from spyrec.progress import counted

__all__ = [
    "UNRESOLVED", "ImageArgument", "ProgramEntry", "ProgramImage", "Word", "WordKind", "code_key", "image_table",
    "operand_words", "program_files", "read_image",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class ProgramImage:
    """What an image holds.

    ``arguments``: by index.  ``pool_bytes``: 0 without a pool.  ``value_maxima``: the largest value of each value
    parameter, where it is known.  ``words``: what each word of an operand table, and of a correction tensor, holds; an
    argument without one lies at its baked base.  ``entries``: one for each correction slot.
    """

    program: Program
    superdscs: Mapping[str, SuperDsc]
    arguments: tuple[ImageArgument, ...]
    pool_bytes: int
    value_maxima: Mapping[str, int]
    words: tuple[Word, ...]
    entries: tuple[ProgramEntry, ...]


def program_files(program: DeviceProgram) -> dict[str, bytes]:
    """Return the files of a program by name: ``bundle.mlir``, and its SuperDSCs in order of first use."""
    if program.written is not None:
        return {name: unpacked(content) for name, content in program.written.texts.items()}
    text = print_program(program.program).encode()
    WRITTEN_PROGRAMS.remember(text, program.program)
    files = {PROGRAM_FILE: text}
    superdscs = counted(program.superdscs.items(), "SuperDSCs", len(program.superdscs))
    return files | {name: to_bytes(dsc) for name, dsc in superdscs}


def read_image(data: Bytes, file: str | None = None) -> ProgramImage:
    """Read an image; ``data`` may be longer, as memory is.  ``file``: where it comes from, for messages.

    Errors: SPY0654 no image of this version, SPY0652 damaged, SPY0653 altered code; for the program inside as for
    bundles: SPY0620 to SPY0622 and SPY0630 to SPY0635.
    """
    where = Location(file or "program image")
    sections = read_sections(data, where)
    table = image_table(sections, where)
    sink = DiagnosticSink()
    program = _read_program(sections, where, sink)
    sink.raise_if_errors()
    assert program is not None
    _check_parameters(program, table, where)
    return ProgramImage(
        program.program,
        program.superdscs,
        table.arguments,
        table.pool_bytes,
        table.value_maxima,
        table.words,
        sections.entries,
    )


def image_table(sections: ImageSections, where: Location) -> ImageTable:
    """Read ``/table.json`` of an image; errors SPY0652 it is absent or disagrees with the header, SPY0620 its form."""
    data, source = load_json(_file(sections, TABLE_FILE, where), _name(where, TABLE_FILE))
    table = read_table(Cursor(data, Location(source.file, "", source=source)))
    if len(table.words) != sections.words:
        fact = f"{TABLE_FILE} lists {len(table.words)} words, the header has {sections.words}"
        raise refuse(DAMAGED_IMAGE, fact, where)
    return table


def _check_parameters(program: DeviceProgram, table: ImageTable, where: Location) -> None:
    """Check that the table describes every parameter, and that each has its word."""
    place = Location(_name(where, PROGRAM_FILE))
    names = tuple(item.name for item in table.arguments)
    sink = DiagnosticSink()
    step = PlanStep(".", names, table.pool_bytes, values=table.value_maxima)
    check_parameters(program.program.parameters, step, place, sink)
    sink.raise_if_errors()
    words = [word for word in table.words if word.kind is not WordKind.STICK_STRIDE]
    wanted = program_words(program)
    if words != list(wanted):
        fact = f"the table's words are {', '.join(map(str, words)) or 'none'}"
        fact += f", the program takes {', '.join(map(str, wanted)) or 'none'}"
        raise refuse(DAMAGED_IMAGE, fact, place)


def _read_program(sections: ImageSections, where: Location, sink: DiagnosticSink) -> DeviceProgram | None:
    shown = _name(where, PROGRAM_FILE)
    text = _file(sections, PROGRAM_FILE, where)
    program = WRITTEN_PROGRAMS.find(text) or attempt(sink, lambda: parse_program(text, shown))
    if program is None:
        return None
    superdscs: dict[str, SuperDsc] = {}
    for name in dict.fromkeys(call.sdsc_filename for call in executes(program.body)):
        dsc = attempt(sink, lambda name=name: _superdsc(_file(sections, name, where), _name(where, name)))
        if dsc is not None:
            superdscs[name] = dsc
    found = DeviceProgram(".", program, superdscs)
    check_program(found, None, shown, sink)
    return found


def _superdsc(text: bytes, name: str) -> SuperDsc:
    return WRITTEN_SUPERDSCS.find(text) or parse_superdsc(text, name)


def _file(sections: ImageSections, name: str, where: Location) -> bytes:
    if name not in sections.files:
        raise refuse(DAMAGED_IMAGE, f'the image has no file "{name[:80]}"', where)
    return bytes(sections.files[name])


def _name(where: Location, name: str) -> str:
    return f"{where.file}:{name[:80]}"
