"""Program images: read as they were built, taken apart by the document's numbers, refused when they are altered."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import spyrec
from examples.granite_block import make_graph
from spyrec.bundle.argument_uses import AddressSpan, argument_uses
from spyrec.bundle.bundle import Bundle
from spyrec.bundle.correction_word import UNRESOLVED, Word, WordKind
from spyrec.bundle.device_program import DeviceProgram
from spyrec.bundle.host_compute import HostComputeInputs, HostComputeSpec, correction_words, evaluate
from spyrec.bundle.image_sections import pack_code, pack_image, read_sections
from spyrec.bundle.image_table import ImageArgument, ImageTable, ImageTables
from spyrec.bundle.manifest import PlanStep, Role
from spyrec.bundle.program_image import code_key, operand_words, program_files, read_image
from spyrec.bundle.spyrecode import artifact_of
from spyrec.diagnostics import Location, SpyrecError
from spyrec.hardware.dtypes import DeviceFormat
from tests.support.artifacts import artifact, artifact_of_step, dissect, example
from tests.support.random_graphs import random_graph

EXAMPLES = Path(spyrec.__file__).parent.parent / "examples"
REFERENCE = ("add_symbolic", "pool_symbolic", "nested_loop_symbolic", "softmax_lx_symbolic", "matmul", "where3")
WHERE = Location("image")


def programs(bundle: Bundle) -> Iterator[tuple[DeviceProgram, PlanStep]]:
    by_directory = {item.directory: item for item in bundle.programs}
    for step in bundle.manifest.plan:
        yield by_directory[step.program], step


@cache
def compiled(name: str) -> Bundle:
    return spyrec.compile(EXAMPLES / name / "graph.json")


def check_image(bundle: Bundle, program: DeviceProgram, step: PlanStep, slots: int) -> None:
    made = artifact_of_step(program, bundle.manifest, step, slots)
    (data,) = made.files.values()
    image = read_image(data + bytes(256), "device memory")
    assert image.program == program.program
    assert image.superdscs == program.superdscs
    assert image.pool_bytes == step.pool_bytes
    assert [item.name for item in image.arguments] == list(step.arguments)
    assert [word.kind is WordKind.VALUE for word in image.words] == [
        item.name.endswith("_value") for item in program.program.parameters
    ]
    parts = dissect(data)
    files = program_files(program)
    assert {name: parts.files[name] for name in files} == files
    assert parts.files.keys() - files.keys() == {"/table.json"}
    pointers = [slot.dev_ptr for slot in made.slots] or [0]
    assert parts.tables == [
        (number, pointer, [UNRESOLVED] * len(image.words)) for number, pointer in enumerate(pointers)
    ]
    assert [(item.slot, item.correction_pointer) for item in image.entries] == list(enumerate(pointers))


@pytest.mark.parametrize("name", ["digits", "seed_add_mul", "seed_tiling_default", "seed_tiling_rows"])
def test_the_image_of_every_example_is_read_as_it_was_built(name: str) -> None:
    bundle = compiled(name)
    for program, step in programs(bundle):
        for slots in (1, 2, 16):
            check_image(bundle, program, step, slots)


@pytest.mark.parametrize("name", REFERENCE)
def test_the_image_of_foreign_programs_is_read_as_it_was_built(name: str, tmp_path: Path) -> None:
    bundle = example(name, tmp_path)
    for program, step in programs(bundle):
        check_image(bundle, program, step, 2)


def test_the_images_of_a_transformer_block_are_read_as_they_were_built(tmp_path: Path) -> None:
    graph = make_graph.write(tmp_path, make_graph.NARROW)
    bundle = spyrec.compile(graph, spyrec.CompileOptions(cores=2))
    assert len(bundle.programs) > 1
    for program, step in programs(bundle):
        check_image(bundle, program, step, 1)


@pytest.mark.parametrize("seed", range(12))
def test_the_images_of_random_graphs_are_read_as_they_were_built(seed: int) -> None:
    bundle = spyrec.compile(random_graph(seed)[0])
    for program, step in programs(bundle):
        check_image(bundle, program, step, 1)


def test_an_image_is_the_same_for_the_same_program_and_its_key_says_what_it_computes() -> None:
    bundle = compiled("seed_add_mul")
    ((program, step),) = programs(bundle)
    one, again, two = (artifact_of_step(program, bundle.manifest, step, slots).files["init.bin"] for slots in (1, 1, 2))
    assert one == again
    assert one != two
    assert code_key(one) == code_key(two)
    assert code_key(one) != code_key(artifact(compiled("seed_tiling_rows")).files["init.bin"])


def test_operand_tables_may_hold_anything_and_are_read_back() -> None:
    data = bytearray(artifact(compiled("seed_add_mul"), 2).files["init.bin"])
    image = read_image(bytes(data))
    struct.pack_into("<4Q", data, image.entries[1].operand_offset, 1, 2, 3, 4)
    patched = read_image(bytes(data))
    assert patched.program == image.program
    assert operand_words(bytes(data), patched.entries[1], 4) == (1, 2, 3, 4)
    assert operand_words(bytes(data), patched.entries[0], 4) == (UNRESOLVED,) * 4


# --- uses of arguments ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["digits", "seed_add_mul", "seed_tiling_default"])
def test_inputs_and_constants_are_read_and_outputs_written(name: str) -> None:
    """Against the manifest's roles, which come from the graph and not from operands."""
    bundle = compiled(name)
    roles = {item.name: item.role for item in bundle.manifest.arguments}
    for program, step in programs(bundle):
        for item in ImageTables(bundle.manifest).of(program, step).arguments:
            assert item.is_read or item.is_written
            if roles[item.name] in {Role.INPUT, Role.CONSTANT}:
                assert (item.is_read, item.is_written) == (True, False), item.name
            if roles[item.name] is Role.OUTPUT:
                assert item.is_written, item.name


@pytest.mark.parametrize("name", ["add", "matmul", "where3", "softmax_lx", "layernorm", "max_nonstick"])
def test_baked_programs_use_their_arguments_as_their_table_says(name: str, tmp_path: Path) -> None:
    bundle = example(name, tmp_path)
    ((program, step),) = programs(bundle)
    roles = {item.name: item.role for item in bundle.manifest.arguments}
    for item in ImageTables(bundle.manifest).of(program, step).arguments:
        assert item.is_written == (roles[item.name] is Role.OUTPUT), item.name
        assert item.is_read or item.is_written


def test_symbolic_and_baked_programs_of_one_graph_use_the_same_arguments() -> None:
    graph = EXAMPLES / "digits" / "graph.json"
    baked = spyrec.compile(graph, spyrec.CompileOptions(symbolic_args=False))
    for (program, step), (other, _) in zip(programs(baked), programs(compiled("digits")), strict=True):
        table, symbolic = (ImageTables(baked.manifest).of(item, step) for item in (program, other))
        assert table.arguments == symbolic.arguments
        assert table.words == ()
        assert [word.kind for word in symbolic.words].count(WordKind.ARGUMENT) == len(step.arguments)


def test_a_name_that_two_loops_define_means_the_argument_of_its_own_loop(tmp_path: Path) -> None:
    from spyrec.bundle.mlir_parser import parse_program

    bundle = example("add_symbolic", tmp_path)
    ((program, _),) = programs(bundle)
    (dsc,) = program.superdscs.values()
    ids = [start for operand in dsc.operands for start in operand.start_addresses]
    calls = [
        f"""scf.for %i = %c0 to %c1 step %c1 {{
              %a = affine.apply #m(%i)[%x{number}]
              sdscbundle.sdsc_execute ({", ".join(["%a"] * len(ids))}) {{sdsc_filename="sdsc_0.json",
                                                                            "symbol_ids"={ids}}}
            }}"""
        for number in (0, 1)
    ]
    text = f"""#m = affine_map<(d0)[s0] -> (s0 + 128*d0)>
    module {{ func.func @sdsc_bundle(%arg_0_base_addr: !sdscbundle.input_arg<index>,
                                     %arg_1_base_addr: !sdscbundle.input_arg<index>) {{
      %x0 = sdscbundle.input_arg_extract value from %arg_0_base_addr : !sdscbundle.input_arg<index> -> index
      %x1 = sdscbundle.input_arg_extract value from %arg_1_base_addr : !sdscbundle.input_arg<index> -> index
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      {calls[0]}
      {calls[1]}
      return }} }}"""
    uses = argument_uses(parse_program(text), program.superdscs, ())
    assert uses.read == uses.written == {0, 1}


def test_a_span_holds_its_bytes_and_no_others() -> None:
    span = AddressSpan(256, 128)
    assert [span.holds(address) for address in (255, 256, 383, 384)] == [False, True, True, False]


# --- alterations ----------------------------------------------------------------------------------------------------


def refused(data: bytes) -> str:
    with pytest.raises(SpyrecError) as caught:
        read_image(data, "init.bin")
    (item,) = caught.value.diagnostics
    assert item.location is not None
    assert item.advice
    return item.code


SMALL = pack_image(pack_code({"bundle.mlir": b"module", "sdsc_0.json": b"{}" * 90}), 3, [7 << 34, (7 << 34) + 256])


def test_every_altered_byte_of_the_code_section_is_refused() -> None:
    code = struct.unpack_from("<Q", SMALL, 24)[0]
    assert code < len(SMALL)
    rng = random.Random(1)
    for place in range(code, len(SMALL)):
        data = bytearray(SMALL)
        data[place] ^= rng.randrange(1, 256)
        assert refused(bytes(data)) == "SPY0653"


def test_every_altered_byte_of_header_and_entries_is_refused_or_harmless() -> None:
    sections = read_sections(SMALL, WHERE)
    table = sections.entries[0].operand_offset
    rng = random.Random(2)
    for place in range(table):
        data = bytearray(SMALL)
        data[place] ^= rng.randrange(1, 256)
        pointer = any(128 + 128 * slot + 16 <= place < 128 + 128 * slot + 24 for slot in range(2))
        if pointer:  # a plan's rules hold it against the slots (J11)
            found = read_sections(bytes(data), WHERE)
            assert found.entries != sections.entries
            assert found.files == sections.files
        else:
            assert refused(bytes(data)) in {"SPY0652", "SPY0653", "SPY0654"}, place


def test_every_truncated_image_is_refused() -> None:
    for size in range(len(SMALL)):
        assert refused(SMALL[:size]) in {"SPY0652", "SPY0654"}


def test_altered_bytes_of_a_compiled_image_are_refused() -> None:
    data = artifact(compiled("seed_add_mul")).files["init.bin"]
    begin = struct.unpack_from("<Q", data, 24)[0]
    rng = random.Random(3)
    for _ in range(200):
        altered = bytearray(data)
        altered[rng.randrange(begin, len(data))] ^= 1 << rng.randrange(8)
        assert refused(bytes(altered)) == "SPY0653"
        assert refused(data[: rng.randrange(len(data))]) in {"SPY0652", "SPY0654"}


def resealed(code: bytes, words: int = 0, pointers: tuple[int, ...] = (0,)) -> bytes:
    return pack_image(code, words, pointers)


@given(st.integers(0, 31), st.integers(0, 8), st.integers(0, (1 << 64) - 1))
def test_a_resealed_code_section_with_any_number_in_its_records_gives_codes_only(
    record: int, at: int, value: int
) -> None:
    """The hash is no defence against who writes the file: sizes are checked, whatever the digest says."""
    code = bytearray(pack_code({"bundle.mlir": b"module {}", "sdsc_0.json": b"{}", "/table.json": b"{}"}))
    place = min(8 * at + 32 * (record % 3), len(code) - 8)
    struct.pack_into("<Q", code, place, value)
    with pytest.raises(SpyrecError):
        read_image(resealed(bytes(code)))


@pytest.mark.parametrize("at", [8, 16, 24, 32])
@pytest.mark.parametrize("value", [129, 1 << 32, (1 << 64) - 1])
def test_a_file_that_reaches_beyond_the_code_section_is_refused_as_damage(at: int, value: int) -> None:
    code = bytearray(pack_code({"bundle.mlir": b""})[:128])
    struct.pack_into("<Q", code, at, value)
    assert refused(resealed(bytes(code))) == "SPY0652"
    with pytest.raises(SpyrecError, match="lies outside"):
        read_sections(resealed(bytes(code)), WHERE)


@given(st.binary(max_size=700))
def test_any_bytes_after_a_magic_give_codes_only(tail: bytes) -> None:
    for data in (tail, b"SPYREPRG" + tail, b"SPYREPRG" + struct.pack("<II", 1, 128) + tail, SMALL[:128] + tail):
        with pytest.raises(SpyrecError):
            read_image(data)


def rebuilt(bundle: Bundle, replaced: dict[str, bytes]) -> bytes:
    """An image whose hash is right and some of whose files are others."""
    data = artifact(bundle).files["init.bin"]
    sections = read_sections(data, WHERE)
    files = {name: replaced.get(name, bytes(content)) for name, content in sections.files.items()}
    files = {name: content for name, content in files.items() if content != b"gone"}
    return pack_image(pack_code(files), sections.words, [item.correction_pointer for item in sections.entries])


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("bundle.mlir", b"gone", "SPY0652"),
        ("sdsc_1.json", b"gone", "SPY0652"),
        ("/table.json", b"gone", "SPY0652"),
        ("bundle.mlir", b"module { nonsense }", "SPY0630"),
        ("sdsc_1.json", b"[]", "SPY0620"),
        ("/table.json", b"{", "SPY0101"),
        ("/table.json", b'{"arguments": [], "pool_bytes": 0, "value_maxima": {}, "words": []}', "SPY0652"),
        ("/table.json", b'{"arguments": 3, "pool_bytes": 0, "value_maxima": {}, "words": []}', "SPY0620"),
    ],
)
def test_an_image_with_a_right_hash_and_wrong_files_is_refused(name: str, content: bytes, code: str) -> None:
    assert refused(rebuilt(compiled("seed_add_mul"), {name: content})) == code


def test_an_image_whose_table_leaves_out_what_the_program_takes_is_refused() -> None:
    bundle = compiled("seed_add_mul")
    ((program, step),) = programs(bundle)
    table = ImageTables(bundle.manifest).of(program, step)
    swapped = ImageTable(table.arguments, table.pool_bytes, table.value_maxima, tuple(reversed(table.words)))
    shorter = ImageTable(table.arguments[:3], table.pool_bytes, table.value_maxima, table.words[:3])
    wrong = ImageTable(table.arguments, table.pool_bytes, table.value_maxima, (*table.words[:3], Word(WordKind.POOL)))
    files = program_files(program)
    assert refused(artifact_of(files, swapped).files["init.bin"]) == "SPY0652"
    assert refused(artifact_of(files, shorter).files["init.bin"]) == "SPY0634"
    assert refused(artifact_of(files, wrong).files["init.bin"]) == "SPY0620"


# --- corrections ----------------------------------------------------------------------------------------------------

WORDS = (
    Word(WordKind.POOL),
    Word(WordKind.ARGUMENT, 1),
    Word(WordKind.ARGUMENT, 0),
    Word(WordKind.VALUE, name="S_value"),
    Word(WordKind.STICK_STRIDE, 0, 1),
)


def test_a_correction_tensor_has_the_bytes_of_the_document() -> None:
    inputs = HostComputeInputs((11, 22), 33, {"S_value": 44}, {0: (55, 66)})
    tensor = evaluate(HostComputeSpec(WORDS), inputs)
    wanted = b"SPYRCORR" + struct.pack("<II", 1, 5) + bytes(112) + struct.pack("<5Q", 33, 22, 11, 44, 66) + bytes(88)
    assert tensor == wanted
    assert correction_words(tensor, 5) == (33, 22, 11, 44, 66)


def test_what_is_no_correction_tensor_has_no_words() -> None:
    tensor = evaluate(HostComputeSpec(WORDS[:1]), HostComputeInputs((), 1))
    assert correction_words(tensor, 1) == (1,)
    assert correction_words(bytes(8) + tensor[8:], 1) is None
    assert correction_words(tensor, 2) is None
    assert correction_words(tensor[:-1], 1) is None


@pytest.mark.parametrize(
    ("word", "inputs"),
    [
        (Word(WordKind.ARGUMENT, 2), HostComputeInputs((1, 2))),
        (Word(WordKind.POOL), HostComputeInputs((1, 2))),
        (Word(WordKind.VALUE, name="n_value"), HostComputeInputs((), values={"m_value": 1})),
        (Word(WordKind.STICK_STRIDE, 0, 2), HostComputeInputs((1,), stick_strides={0: (1, 1)})),
        (Word(WordKind.ARGUMENT, 0), HostComputeInputs((-1,))),
        (Word(WordKind.ARGUMENT, 0), HostComputeInputs((UNRESOLVED,))),
        (Word(WordKind.ARGUMENT, 0), HostComputeInputs((1 << 70,))),
    ],
)
def test_a_number_that_is_not_given_or_does_not_fit_is_refused(word: Word, inputs: HostComputeInputs) -> None:
    with pytest.raises(SpyrecError) as caught:
        evaluate(HostComputeSpec((word,)), inputs)
    assert [item.code for item in caught.value.diagnostics] == ["SPY0658"]


def test_an_argument_that_takes_strides_has_a_word_for_each_device_dim_but_the_last() -> None:
    from dataclasses import replace

    bundle = compiled("seed_add_mul")
    ((program, step),) = programs(bundle)
    contract = bundle.manifest.tile_contracts.get(step.program)
    if contract is None:
        pytest.skip("the bundle has no tile contract")
    first = replace(contract.arguments[0], takes_strides=True)
    changed = replace(contract, arguments=(first, *contract.arguments[1:]))
    manifest = replace(bundle.manifest, tile_contracts={step.program: changed})
    words = ImageTables(manifest).of(program, step).words
    index = step.arguments.index(first.name)
    assert words[4:] == (Word(WordKind.STICK_STRIDE, index, 0), Word(WordKind.STICK_STRIDE, index, 1))
    image = read_image(artifact_of_step(program, manifest, step).files["init.bin"])
    assert image.words == words


def test_the_size_of_an_argument_counts_whole_sticks() -> None:
    argument = ImageArgument("x", (3, 5, 64), DeviceFormat.SEN169_FP16, 0, is_read=True, is_written=False)
    assert argument.size_bytes == 3 * 5 * 128
