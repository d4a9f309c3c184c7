"""Every code has a case, ``tests/cases/errors/<code>.txt``, and prints what stands there, or a reason why it has none.

``python scripts/error_cases.py`` writes what the cases print now.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts.error_cases import FOLDER, codes, example_of, printed_by
from spyrec.cli._console import wrapped
from spyrec.diagnostics.codes import CODES
from spyrec.diagnostics.examples import Example

ROOT = Path(__file__).resolve().parents[2]

WITHOUT = {
    "SPY0164": ("a model that its own library does not read, which this test does not need installed", "frontends"),
    "SPY0165": ("torch has to read for minutes, or run out of memory", "frontends/torch_export"),
    "SPY0422": ("an answer between passes: the compiler parts the loop and tries again", "passes"),
    "SPY0435": ("an assertion on the order of the passes, which no input changes", "passes"),
    "SPY0702": ("bytes that the device's own callers ask for", "emulator"),
    "SPY0703": ("programs are launched with the arguments that their image lists", "emulator"),
    "SPY0704": ("the reader of bundle.mlir refuses such a program first", "emulator"),
    "SPY0707": ("the run counts executions first (SPY0767)", "emulator"),
    "SPY0719": ("the reader of bundles finds such symbols first (SPY0633)", "emulator"),
    "SPY0732": ("a finding of a sanitizer in a program that rules V1 to V14 would refuse", "sanitizers"),
    "SPY0733": ("a finding of a sanitizer in a program that rules V1 to V14 would refuse", "sanitizers"),
    "SPY0734": ("a finding of a sanitizer in a program that rules V1 to V14 would refuse", "sanitizers"),
    "SPY0753": ("another processor, or a variable of the environment", "emulator"),
    "SPY0754": ("a home directory that cannot be used", "emulator"),
    "SPY0759": ("what data DSCs find in memory, which no bundle with arguments alone puts there", "emulator"),
    "SPY0796": ("a broken installation of numba", "cli"),
    "SPY0802": ("a bundle whose constants were taken away in memory", "compare"),
    "SPY0822": ("needs the extra mlir", "compare"),
    "SPY0841": ("nobody answers at an address, which takes its time to be sure of", "sweep"),
    "SPY0842": ("workers of another version", "sweep"),
    "SPY0846": ("needs Dask, and no Optuna", "sweep"),
    "SPY0847": ("needs the extra sweep, to measure anything", "sweep"),
    "SPY0849": ("a mistake of the search, or a cluster that cannot try the planner's own plan", "sweep"),
    "SPY0929": ("a fault of the emulator's own, planted", "runtime"),
    "SPY0966": ("a control block without the copy before it, which jobs never make", "runtime"),
    "SPY0967": ("a control block that declares other operands than its program has", "runtime"),
    "SPY0969": ("memory of a launch in another segment than its program was made for", "runtime"),
    "SPY0983": ("strides that the compiler's contracts exclude", "emulator"),
    "SPY0991": ("memory given back by hand while the device reads it", "runtime"),
    "SPY9901": ("a mistake of spyrec itself: it names a report in the temporary directory", "cli"),
}
"""Code -> why no input of a user's raises it in a test of this kind, and the folder of tests that raises it."""

NOTHING_NAMES = {"SPY0733", "SPY0734", "SPY0732", "SPY0966", "SPY0967", "SPY0969", "SPY0165"}
"""Codes of these that tests raise by the name of a class or of a sanitizer, or not at all."""


def test_every_code_has_a_case_or_a_reason_and_none_has_both() -> None:
    assert set(codes()) | set(WITHOUT) == set(CODES)
    assert not set(codes()) & set(WITHOUT)


@pytest.mark.parametrize("code", sorted(set(WITHOUT) - NOTHING_NAMES))
def test_a_code_without_a_case_is_raised_elsewhere(code: str) -> None:
    folder = ROOT / "tests" / WITHOUT[code][1]
    assert any(code in file.read_text(encoding="utf-8") for file in folder.rglob("*.py"))


def test_every_code_is_raised_somewhere() -> None:
    sources = [
        file.read_text(encoding="utf-8")
        for file in (ROOT / "spyrec").rglob("*.py")
        if file.parent != ROOT / "spyrec" / "diagnostics" / "codes"
    ]
    text = "\n".join(sources)
    assert {code for code, row in CODES.items() if row.rule is None and code not in text} == set()  # or by its rule


@pytest.mark.parametrize("code", codes())
def test_a_case_prints_what_stands_in_it(code: str) -> None:
    example = example_of(code)
    assert example.text() == (FOLDER / f"{code}.txt").read_text(encoding="utf-8")
    assert f"[{code}]" in example.printed or f'"code": "{code}"' in example.printed
    assert printed_by(example) == example.printed, "python scripts/error_cases.py writes it anew"


@pytest.mark.parametrize("code", codes())
def test_a_message_says_what_to_do_and_reads_as_others(code: str) -> None:
    printed = example_of(code).printed
    if "--diagnostics=json" in example_of(code).commands[-1]:
        return
    heads = list(re.finditer(r"^(?:error|warning)\[(SPY\d+)\]: (.*)$", printed, re.MULTILINE))
    assert heads
    for head, after in zip(heads, [*heads[1:], None], strict=True):
        whole = printed[head.end() : len(printed) if after is None else after.start()]
        assert "   = hint: " in whole, f"{head[1]}: no hint"
        assert not head[2].endswith("."), head[2]
        assert "Traceback" not in whole
        assert not re.search(r"<[\w.]+ object at|0x7f", head[0] + whole)


@pytest.mark.parametrize("columns", [60, 80])
def test_every_message_fits_a_narrow_terminal(columns: int) -> None:
    for code in codes():
        if "--diagnostics=json" in example_of(code).commands[-1]:
            continue
        for line in example_of(code).printed.splitlines():
            parts = wrapped(line, columns)
            assert max(map(len, parts), default=0) <= columns, (code, line)
            assert "".join("".join(parts).split()) == "".join(line.split())


def test_an_example_is_its_text() -> None:
    text = "== a.txt\none\n\n== b/c.txt\n== d\n== shown\n$ spyrec ops\n$ spyrec opt x\nerror\n$ no command\n"
    example = Example.read(text)
    assert example.files == (("a.txt", "one\n\n"), ("b/c.txt", ""), ("d", ""))
    assert example.commands == ("spyrec ops", "spyrec opt x")
    assert example.printed == "error\n$ no command\n"
    assert example.text() == text
