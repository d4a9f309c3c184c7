"""docs/program_image.md: its tables, read as a specification, describe the bytes that are written."""

from __future__ import annotations

import doctest
import hashlib
import re
from pathlib import Path

import pytest

import spyrec
from spyrec.bundle.correction_word import UNRESOLVED, WordKind
from spyrec.bundle.host_compute import HostComputeInputs, HostComputeSpec, evaluate
from spyrec.bundle.image_sections import MAX_SLOTS
from spyrec.diagnostics.codes import CODES
from tests.support.artifacts import artifact, example, number

PAGE = Path(spyrec.__file__).parent.parent / "docs" / "program_image.md"
TEXT = PAGE.read_text(encoding="utf-8")
Table = dict[str, tuple[int, int]]


def test_the_examples_of_the_document_give_what_it_says() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(PAGE.parent.parent)
        failures, examples = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert (failures, examples > 8) == (0, True)


def rows(title: str) -> list[list[str]]:
    """Return the cells of the table under a title."""
    section = TEXT.split(f"# {title}\n", 1)[1].split("\n#", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[1:]]


def table(title: str) -> list[tuple[int, int, str]]:
    return [(int(offset), int(size), field) for offset, size, field in rows(title)]


def test_the_tables_leave_no_byte_out_and_fill_a_stick() -> None:
    for title, size in (("Header", 128), ("Entries", 128), ("The correction tensor", 128), ("Code section", 32)):
        ends = [(offset, offset + size) for offset, size, _ in table(title)]
        assert ends[0][0] == 0
        assert [end for _, end in ends[:-1]] == [begin for begin, _ in ends[1:]], title
        assert ends[-1][1] == size


def by_field(title: str) -> Table:
    return {re.split(r"[:,`]", field)[0].strip(): (offset, size) for offset, size, field in table(title)}


def magic(title: str) -> bytes:
    return table(title)[0][2].split("`")[1].encode()


def test_the_document_reads_an_image(tmp_path: Path) -> None:
    made = artifact(example("pool_symbolic", tmp_path), 3)
    data = made.files["init.bin"]
    header = by_field("Header")
    read = {field: number(data, *place) for field, place in header.items()}
    assert data[:8] == magic("Header") == b"SPYREPRG"
    assert (read["version"], read["bytes of the header"], read["bytes of the image"]) == (1, 128, len(data))
    begin, size = read["offset of the code section"], read["bytes of the code section"]
    offset, digest_bytes = header["SHA-256 of the code section"]
    code = data[begin : begin + size]
    assert data[offset : offset + digest_bytes] == hashlib.sha256(code).digest()
    assert all(not any(data[offset : offset + size]) for offset, size, field in table("Header") if field == "0")
    words = read["words of each operand table"]
    entry = by_field("Entries")
    assert read["number of entries"] == len(made.slots) == 3
    for slot, place in enumerate(made.slots):
        at = 128 + 128 * slot
        assert place.job_bin_ptr == 0x1C00000000 + at
        assert data[at : at + 8] == magic("Entries")
        found = {field: number(data, at + begin, size) for field, (begin, size) in entry.items()}
        assert (found["slot"], found["words of the operand table"]) == (slot, words)
        assert found["correction pointer"] == place.dev_ptr
        start = found["offset of the slot's operand table in the image"]
        assert {number(data, start + 8 * index, 8) for index in range(words)} == {UNRESOLVED}
    record = by_field("Code section")
    names: set[bytes] = set()
    for index in range(number(code, 0, 8)):
        part = {field: number(code, 8 + 32 * index + begin, size) for field, (begin, size) in record.items()}
        name = part["offset of the name (UTF-8)"]
        names.add(code[name : name + part["bytes of the name"]])
        assert part["offset of the content"] % 128 == 0
    assert {b"bundle.mlir", b"/table.json"} < names


def test_the_document_reads_a_correction_tensor(tmp_path: Path) -> None:
    host = artifact(example("add_symbolic", tmp_path)).execution[0]
    specification: HostComputeSpec = getattr(host, "specification")  # noqa: B009 -- a step of several kinds
    tensor = evaluate(specification, HostComputeInputs((5, 6, 7)))
    fields = by_field("The correction tensor")
    assert tensor[:8] == magic("The correction tensor")
    assert number(tensor, *fields["version"]) == 1
    assert number(tensor, *fields["number of words"]) == 3
    assert [number(tensor, 128 + 8 * index, 8) for index in range(3)] == [5, 6, 7]
    assert len(tensor) == 256


def test_the_document_lists_every_rule_with_its_code_and_every_kind_of_word() -> None:
    rules = [row for row in rows("spyrecode.json") if re.fullmatch(r"J\d+", row[0])]
    assert [(row[0], row[1]) for row in rules] == [(f"J{index}", f"SPY{640 + index:04d}") for index in range(1, 12)]
    for rule, code, _ in rules:
        assert f"Rule {rule}: " in CODES[code].explanation
    assert [row[0].strip("`") for row in rows("Operand tables")] == [kind.value for kind in WordKind]
    assert f"1 to {MAX_SLOTS} *correction slots*" in TEXT
