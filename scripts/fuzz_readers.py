"""``fuzz_readers.py READER [SECONDS]``: fuzzing that follows coverage, for what is read by hand (extra: ``fuzz``).

Atheris tells which inputs reach new branches of the reader's modules, and goes on from these.  A reader ends with a
value or with diagnostics; any other exception is a find, which is written beside the corpus as ``crash-...``, and ends
the run.  Inputs that reach something new are kept in ``.cache/fuzz/READER``; the first ones are the committed examples.

``fuzz_readers.py READER --again FILE`` reads one file again, without Atheris: what to debug with.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from time import process_time
from typing import Any, cast

from spyrec.diagnostics import Diagnostic, SpyrecError

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT / ".cache" / "fuzz"
MOST_INPUT_BYTES = 16_384
"""Length of the longest input: what a reader does with long ones is a matter of its limits, which have tests."""
_SECONDS_OF_ONE = 5
"""Processor time of one input."""
_WALL_SECONDS = 120
"""Time after which an input hangs, however little of a processor others leave."""
_MEGABYTES = 1024


def _program(data: bytes) -> object:
    from spyrec.bundle.mlir_parser import parse_program
    from spyrec.bundle.mlir_printer import print_program

    program = parse_program(data, "bundle.mlir")
    assert parse_program(print_program(program)) == program, "what is printed is read as the same"
    return program


def _text(data: bytes) -> object:
    from spyrec.passes.chosen_passes import read_stage

    stage = read_stage(data, "text")
    again = read_stage(stage.text(None).encode(), "again")
    assert again.text(None) == stage.text(None), "what is printed is read as the same"
    return stage


def _conversion(data: bytes) -> object:
    from spyrec.diagnostics import Location
    from spyrec.diagnostics.json_reading import JsonValue, load_json
    from spyrec.layout.conversion_table import DataConversionInfo

    found, source = load_json(data, "a.h2d.json")
    table = DataConversionInfo.from_json(found, Location("a.h2d.json", "", source=source))
    assert DataConversionInfo.from_json(cast("JsonValue", table.to_json()), Location("again", "")) == table, (
        "what is written is read"
    )
    return table


def _image(data: bytes) -> object:
    from spyrec.bundle.program_image import read_image

    return read_image(data, "init.bin")


def _tensors(data: bytes) -> object:
    from spyrec.ir.tensor_file import TensorFileError, read_header

    suffix = ".npy" if data[:1] == b"\x93" else ".safetensors"
    with tempfile.NamedTemporaryFile(suffix=suffix) as file:
        file.write(data)
        file.flush()
        try:
            return read_header(Path(file.name))
        except TensorFileError as error:
            raise SpyrecError([Diagnostic(error.code, error.message)]) from None


def _json(data: bytes) -> object:
    import json

    from spyrec.diagnostics.json_reading import load_json

    found, _ = load_json(data, "a.json")
    assert json.loads(data) == found, "what is taken is what the standard library reads"
    return found


def _superdsc(data: bytes) -> object:
    from spyrec.bundle.superdsc_reader import from_json
    from spyrec.diagnostics import DiagnosticSink, Location
    from spyrec.diagnostics.json_reading import load_json

    found, source = load_json(data, "sdsc.json")
    return from_json(found, Location("sdsc.json", "", source=source), DiagnosticSink())


def _opspecs(data: bytes) -> object:
    from spyrec.codegen.opspec_capture import read_opspecs_or_capture

    return read_opspecs_or_capture(data, "specs")


def _coordinate(data: bytes) -> object:
    from spyrec.codegen.expression import parse_expression
    from spyrec.layout.index_expression import parse_index

    text = data.decode("utf-8", "replace")
    with suppress(SpyrecError):
        parse_index(text)
    return parse_expression(text)


def _plan(data: bytes) -> object:
    from spyrec.bundle.spyrecode_json import read_plan
    from spyrec.diagnostics import DiagnosticSink

    sink = DiagnosticSink()
    found = read_plan(data, "spyrecode.json", sink)
    sink.raise_if_errors()
    return found


def _arguments(data: bytes) -> object:
    from spyrec.bundle.manifest_json import read_foreign_table

    return read_foreign_table(data, "args.json")


def _manifest(data: bytes) -> object:
    from spyrec.bundle.manifest_json import read_manifest

    return read_manifest(data, "manifest.json")


def _record(data: bytes) -> object:
    from spyrec.report.record import read_record

    return read_record(data, "run.json")


def _handles(data: bytes) -> object:
    from spyrec.report.provenance import read_sidecar

    return read_sidecar(data, "handles.json")


_Content = Callable[[], Iterator[bytes]]


def _committed(*patterns: str) -> _Content:
    """Return what yields the content of committed files, the shortest first."""

    def contents() -> Iterator[bytes]:
        found = sorted({path.read_bytes() for pattern in patterns for path in ROOT.glob(pattern)}, key=len)
        yield from (content for content in found if len(content) <= MOST_INPUT_BYTES)

    return contents


def _of_seeds(reader: str) -> _Content:
    """Return what yields the files that are damaged of a reader of ``tests/support/fuzzing/readers.py``."""

    def contents() -> Iterator[bytes]:
        from tests.support.fuzzing.readers import READERS

        (chosen,) = (item for item in READERS if item.name == reader)
        with tempfile.TemporaryDirectory() as home:
            for seed in chosen.seeds(Path(home) / reader):
                for name in seed.damaged:
                    yield (seed.folder / name).read_bytes()

    return contents


def _expressions() -> Iterator[bytes]:
    yield from (b"c0", b"floor(c0/64) + 3*c1", b"Mod(4096*p0 + p1, 64)", b"IndirectAccess(t0)", b"(c0 - 1)*(2 + c1)")


def _images() -> Iterator[bytes]:
    yield from (content for content in _of_seeds("artifact")() if content[:1] != b"{")


def _tensor_files() -> Iterator[bytes]:
    yield from _of_seeds("weights")()
    yield b"\x08\0\0\0\0\0\0\0{}      "


@dataclass(frozen=True, slots=True)
class Target:
    """A reader of bytes, the modules whose branches are counted, and what to begin with."""

    read: Callable[[bytes], object]
    modules: tuple[str, ...]
    begin: _Content


TARGETS: Mapping[str, Target] = {
    "mlir": Target(_program, ("spyrec.bundle.mlir_parser",), _committed("tests/fixtures/*/*/bundle.mlir")),
    "text": Target(_text, ("spyrec.ir.text", "spyrec.passes.chosen_passes"), _of_seeds("text")),
    "coordinate": Target(_coordinate, ("spyrec.codegen.expression", "spyrec.layout.index_expression"), _expressions),
    "json": Target(_json, ("spyrec.diagnostics",), _committed("tests/fixtures/examples_args/add*.json")),
    "tensors": Target(_tensors, ("spyrec.ir.tensor_file", "spyrec.files.python_text"), _tensor_files),
    "conversion": Target(_conversion, ("spyrec.layout.conversion_table",), _committed("examples/*/golden/dci/*.json")),
    "plan": Target(_plan, ("spyrec.bundle",), _committed("examples/*/golden/**/spyrecode.json")),
    "image": Target(_image, ("spyrec.bundle",), _images),
    "superdsc": Target(_superdsc, ("spyrec.bundle",), _committed("tests/fixtures/*/*/sdsc_0.json")),
    "opspecs": Target(_opspecs, ("spyrec.codegen",), _of_seeds("capture")),
    "arguments": Target(_arguments, ("spyrec.bundle",), _committed("tests/fixtures/examples_args/*.json")),
    "record": Target(_record, ("spyrec.report",), _of_seeds("record")),
    "handles": Target(_handles, ("spyrec.report",), _of_seeds("record")),
    "manifest": Target(_manifest, ("spyrec.bundle",), _committed("examples/*/golden/manifest.json")),
}
"""What is read by hand.  Of JSON texts form and rules: the texts themselves are ``json``."""


def outcome(target: Target, data: bytes) -> str:
    """Return the codes that a reader refuses an input with, none where it takes it; what else it raises is a find."""
    try:
        target.read(data)
    except SpyrecError as error:
        found = error.diagnostics
    else:
        return ""
    assert found, "a refusal says why"
    return " ".join(sorted({item.code for item in found if item.render()}))


def main(arguments: Sequence[str]) -> int:
    """Fuzz one reader for some seconds, a minute without a number; 2 for a name that is none."""
    if not arguments or arguments[0] not in TARGETS:
        print(f"name a reader: {', '.join(TARGETS)}", file=sys.stderr)
        return 2
    name, *rest = arguments
    target = TARGETS[name]
    if rest[:1] == ["--again"]:
        print(outcome(target, Path(rest[1]).read_bytes()) or "taken")
        return 0
    atheris: Any = import_module("atheris")  # of the extra fuzz

    folder = CORPUS / name
    folder.mkdir(parents=True, exist_ok=True)
    with atheris.instrument_imports(include=list(target.modules)):
        for number, content in enumerate(target.begin()):
            (folder / f"begin-{number}").write_bytes(content)
            outcome(target, content)

    def read(data: bytes) -> None:
        begin = process_time()
        outcome(target, data)
        spent = process_time() - begin
        assert spent < _SECONDS_OF_ONE, f"{spent:.1f} s of processor time"

    limits = [f"-max_len={MOST_INPUT_BYTES}", f"-timeout={_WALL_SECONDS}", f"-rss_limit_mb={_MEGABYTES}"]
    run = [f"-max_total_time={rest[0] if rest else 60}", "-print_final_stats=1", f"-artifact_prefix={folder}-"]
    atheris.Setup([sys.argv[0], *limits, *run, str(folder)], read)
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
