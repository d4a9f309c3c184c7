"""Run inputs: names, shapes, dtypes, random draws, and the files they come from."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import safetensors.numpy

from spyrec.diagnostics import SpyrecError
from spyrec.runtime.inputs.binding import ExpectedInput, checked_inputs
from spyrec.runtime.inputs.random_inputs import random_inputs
from spyrec.runtime.inputs.tensor_files import read_inputs, write_npz

HostArray = npt.NDArray[np.generic]
CARRIERS = {"bfloat16": "uint16"}


def expected(name: str, shape: tuple[int, ...], dtype: str = "float16", *, is_required: bool = True) -> ExpectedInput:
    return ExpectedInput(name, shape, dtype, np.dtype(CARRIERS.get(dtype, dtype)), is_required)


X = expected("x", (2, 3))
MASK = expected("mask", (4,), "bool")
UNUSED = expected("unused", (), "float32", is_required=False)


def codes_of(error: pytest.ExceptionInfo[SpyrecError]) -> list[str]:
    return sorted(item.code for item in error.value.diagnostics)


def good() -> dict[str, HostArray]:
    return {"x": np.arange(6, dtype=np.float16).reshape(2, 3), "mask": np.array([True, False, True, True])}


def test_inputs_come_in_graph_order_and_native_byte_order() -> None:
    given = {"mask": good()["mask"], "x": good()["x"].astype(">f2")}
    checked = checked_inputs(given, [X, UNUSED, MASK])
    assert list(checked) == ["x", "mask"]
    assert checked["x"].dtype == np.float16
    np.testing.assert_array_equal(checked["x"], good()["x"])


def test_all_problems_of_names_are_reported_at_once_with_a_near_name() -> None:
    with pytest.raises(SpyrecError) as caught:
        checked_inputs({"maks": np.zeros(4, bool)}, [X, MASK])
    assert codes_of(caught) == ["SPY0760", "SPY0760", "SPY0761"]
    assert caught.value.diagnostics[0].hint == 'did you mean "mask"?'


def test_all_problems_of_arrays_are_reported_at_once() -> None:
    with pytest.raises(SpyrecError) as caught:
        checked_inputs({"x": np.zeros((3, 2), np.float16), "mask": np.zeros(4, np.int8)}, [X, MASK])
    assert codes_of(caught) == ["SPY0762", "SPY0763"]
    assert "[3, 2]" in caught.value.diagnostics[0].message
    assert "[2, 3]" in caught.value.diagnostics[0].message


def test_random_inputs_are_one_pcg64_stream_in_graph_order() -> None:
    drawn = random_inputs([X, MASK, expected("i", (5,), "int64"), expected("s", ())], 7)
    generator = np.random.Generator(np.random.PCG64(7))
    np.testing.assert_array_equal(drawn["x"], generator.standard_normal((2, 3), dtype=np.float32).astype(np.float16))
    np.testing.assert_array_equal(drawn["mask"], generator.random(4) < 0.5)
    integers = generator.integers(-(2**31), 2**31, 5)
    np.testing.assert_array_equal(drawn["i"], integers)
    assert drawn["s"].shape == ()


def test_random_bfloat16_is_the_nearest_bfloat16() -> None:
    (bits,) = random_inputs([expected("b", (4096,), "bfloat16")], 3).values()
    exact = np.random.Generator(np.random.PCG64(3)).standard_normal(4096, dtype=np.float32).astype(np.float64)
    value = (bits.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    for step in (-1, 1):
        neighbour = ((bits.astype(np.int64) + step).astype(np.uint32) << np.uint32(16)).view(np.float32)
        assert np.all(np.abs(value - exact) <= np.abs(neighbour.astype(np.float64) - exact))


def test_random_values_of_a_dtype_without_a_rule_are_refused() -> None:
    with pytest.raises(SpyrecError) as caught:
        random_inputs([ExpectedInput("f", (2,), "float8_e4m3fn", np.dtype(np.uint8), is_required=True)], 1)
    assert codes_of(caught) == ["SPY0772"]


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_files_give_the_arrays_that_were_written(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"inputs{suffix}"
    arrays = good() | {"unused": np.array(2.5, np.float32)}
    if suffix == ".npz":
        np.savez_compressed(path, x=np.asfortranarray(arrays["x"]), mask=arrays["mask"], unused=arrays["unused"])
    else:
        safetensors.numpy.save_file(arrays, path)
    read = read_inputs(path, [X, MASK, UNUSED])
    for name, array in arrays.items():
        np.testing.assert_array_equal(read[name], array)
        assert read[name].dtype == array.dtype
        assert read[name].shape == array.shape
        assert read[name].flags.writeable


def test_bfloat16_is_read_as_raw_bits_from_safetensors(tmp_path: Path) -> None:
    header = json.dumps({"b": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}).encode()
    path = tmp_path / "b.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + np.array([0x3F80, 0xC000], np.uint16).tobytes())
    read = read_inputs(path, [expected("b", (2,), "bfloat16")])
    assert read["b"].tolist() == [0x3F80, 0xC000]


def npy(array: HostArray, *, allow_pickle: bool = False) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, allow_pickle=allow_pickle)
    return stream.getvalue()


def npz(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
    return path


def npy_with_shape(shape: str, data: bytes) -> bytes:
    header = f"{{'descr': '<f2', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data


BOMB_BYTES = 1 << 25


@pytest.mark.parametrize(
    ("member", "code"),
    [
        (npy(np.array([[{}] * 3] * 2, object), allow_pickle=True), "SPY0765"),
        (npy_with_shape("(2, 3)", b"\0" * 11), "SPY0765"),
        (npy_with_shape("(2, 3)", b"\0" * BOMB_BYTES), "SPY0765"),
        (npy_with_shape("(100000, 100000)", b"\0" * 12), "SPY0762"),
        (npy_with_shape("(2, -3)", b"\0" * 12), "SPY0765"),
        (npy_with_shape("__import__('os')", b"\0" * 12), "SPY0765"),
        (npy(np.zeros((2, 3), np.float32)), "SPY0763"),
        (b"", "SPY0765"),
        (b"not an array", "SPY0765"),
    ],
    ids=["pickle", "short", "bomb", "huge", "negative", "code", "dtype", "empty", "garbage"],
)
def test_a_bad_npz_member_is_refused(tmp_path: Path, member: bytes, code: str) -> None:
    path = npz(tmp_path / "x.npz", x=member)
    with pytest.raises(SpyrecError) as caught:
        read_inputs(path, [X])
    assert codes_of(caught) == [code]
    assert caught.value.diagnostics[0].hint


def damaged(data: bytes, how: str) -> bytes:
    match how:
        case "truncated":
            return data[: len(data) // 2]
        case "altered":
            middle = data.index(b"\x93NUMPY") + 130
            return data[:middle] + bytes([data[middle] ^ 0xFF]) + data[middle + 1 :]
        case "empty":
            return b""
        case "name":  # a name in UTF-8, says its flag, and it is not
            record = data.rindex(b"PK\x01\x02")
            named = data[record : record + 8] + b"\x00\x08" + data[record + 10 : record + 46] + b"\xec"
            return data[:record] + named + data[record + 47 :]
        case _:
            return b"\xff" * 64


@pytest.mark.parametrize("how", ["truncated", "altered", "empty", "name", "garbage"])
def test_a_damaged_npz_is_refused(tmp_path: Path, how: str) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, x=good()["x"])
    path.write_bytes(damaged(path.read_bytes(), how))
    with pytest.raises(SpyrecError) as caught:
        read_inputs(path, [X])
    assert codes_of(caught) == ["SPY0764"]


def test_no_damage_to_a_file_gives_anything_but_a_diagnostic_or_the_arrays(tmp_path: Path) -> None:
    """Every single byte of both kinds of file is altered in turn."""
    np.savez(tmp_path / "x.npz", x=good()["x"])
    safetensors.numpy.save_file({"x": good()["x"]}, tmp_path / "x.safetensors")
    for path in sorted(tmp_path.iterdir()):
        whole = path.read_bytes()
        for position in range(len(whole)):
            for flip in (0x01, 0x80):
                path.write_bytes(whole[:position] + bytes([whole[position] ^ flip]) + whole[position + 1 :])
                try:
                    assert read_inputs(path, [X])["x"].shape == (2, 3)
                except SpyrecError as error:
                    assert error.diagnostics  # noqa: PT017 -- either outcome is right


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"[]",
        b"{",
        b'{"x": 3}',
        b'{"x": {"dtype": "F16", "shape": [2, "3"], "data_offsets": [0, 12]}}',
        b'{"x": {"dtype": "F16", "shape": [2, 3], "data_offsets": [4, 16]}}',
        b'{"x": {"dtype": "F16", "shape": [2, 3], "data_offsets": [-12, 0]}}',
        b'{"x": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}',
        b'{"x": {"dtype": "F16", "shape": [2, 3], "data_offsets": [0, 12]}, "y": {}}',
    ],
)
def test_a_bad_safetensors_header_is_refused(tmp_path: Path, header: bytes) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"\0" * 12)
    with pytest.raises(SpyrecError):
        read_inputs(path, [X])


def test_a_header_longer_than_the_file_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes((1 << 62).to_bytes(8, "little") + b"{}")
    with pytest.raises(SpyrecError) as caught:
        read_inputs(path, [X])
    assert codes_of(caught) == ["SPY0764"]


def test_outputs_are_written_whole_and_deterministically(tmp_path: Path) -> None:
    path = tmp_path / "y.npz"
    write_npz(path, good())
    first = path.read_bytes()
    write_npz(path, good())
    assert path.read_bytes() == first
    assert [item.name for item in tmp_path.iterdir()] == ["y.npz"]
    with np.load(path, allow_pickle=False) as archive:
        np.testing.assert_array_equal(archive["x"], good()["x"])


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "y.npz"
    write_npz(path, good())
    before = path.read_bytes()

    def full_disk(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np.lib.format, "write_array", full_disk)
    with pytest.raises(SpyrecError) as caught:
        write_npz(path, good())
    assert codes_of(caught) == ["SPY0766"]
    assert [item.read_bytes() for item in tmp_path.iterdir()] == [before]


def test_outputs_into_a_missing_directory_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SpyrecError) as caught:
        write_npz(tmp_path / "absent" / "y.npz", good())
    assert codes_of(caught) == ["SPY0766"]


@pytest.mark.parametrize("names", [("x.npy", "x.npy"), ("x", "x.npy")], ids=["twice", "with and without suffix"])
@pytest.mark.filterwarnings("ignore:Duplicate name")  # zipfile, of the file that this test writes
def test_an_array_that_stands_twice_in_an_archive_is_refused(names: tuple[str, str], tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for number, name in enumerate(names):
            data = io.BytesIO()
            np.save(data, np.full((2, 3), number, np.float16))
            archive.writestr(name, data.getvalue())
    with pytest.raises(SpyrecError) as caught:
        read_inputs(path, [X])
    assert codes_of(caught) == ["SPY0765"]
    assert '"x" twice' in caught.value.diagnostics[0].message


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
@pytest.mark.parametrize(
    ("given", "codes"),
    [
        ({"maks": np.zeros(4, bool)}, {"SPY0760", "SPY0761"}),
        ({"x": np.zeros((3, 2), np.float16), "mask": np.zeros(4, bool)}, {"SPY0762"}),
        ({"x": np.zeros((2, 3), np.float32), "mask": np.zeros(4, bool)}, {"SPY0763"}),
    ],
    ids=["names", "shape", "dtype"],
)
def test_what_is_wrong_with_inputs_of_a_file_names_the_file(
    suffix: str, given: dict[str, HostArray], codes: set[str], tmp_path: Path
) -> None:
    path = tmp_path / f"x{suffix}"
    if suffix == ".npz":
        write_npz(path, given)
    else:
        safetensors.numpy.save_file(given, path)
    with pytest.raises(SpyrecError) as caught:
        read_inputs(path, [X, MASK])
    assert {item.code for item in caught.value.diagnostics} == codes
    assert {item.location.file for item in caught.value.diagnostics if item.location} == {str(path)}
    assert all(item.location for item in caught.value.diagnostics)
