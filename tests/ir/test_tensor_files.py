"""Constants in files: only what the graph says, from where it may, checked before a number is read."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import spyrec
from spyrec.diagnostics import DiagnosticSink, Severity, SpyrecError
from spyrec.hardware.dtypes import DType
from spyrec.ir.constants import load_constant
from spyrec.ir.reader import read_graph, read_graph_data
from tests.ir.graphs import codes_of, write_safetensors


def graph(file: str, tensor: str | None = None, shape: tuple[int, ...] = (2, 3), dtype: str = "float16") -> object:
    data = {"file": file} if tensor is None else {"file": file, "tensor": tensor}
    return {
        "format": "spyrec.graph/1",
        "constants": [{"name": "k", "shape": list(shape), "dtype": dtype, "data": data}],
        "outputs": ["k"],
    }


ARRAY = np.arange(6).reshape(2, 3)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A graph's directory with a stranger beside it."""
    inside = tmp_path / "inside"
    inside.mkdir()
    np.save(tmp_path / "stranger.npy", ARRAY.astype(np.float16))
    np.save(inside / "k.npy", ARRAY.astype(np.float16))
    np.save(inside / "fortran.npy", np.asfortranarray(ARRAY.astype(np.float16)))
    bits = (ARRAY.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    arrays = {"k": ARRAY.astype(np.float16), "b": bits, "t": ARRAY > 2, "u": ARRAY.astype(np.uint8)}
    write_safetensors(inside / "k.safetensors", arrays, {"u": "F8_E4M3"})
    (inside / "link.npy").symlink_to(tmp_path / "stranger.npy")
    (inside / "good_link.npy").symlink_to(inside / "k.npy")
    (inside / "loop.npy").symlink_to(inside / "loop.npy")
    (inside / "folder.npy").mkdir()
    return inside


@pytest.mark.parametrize(
    ("file", "tensor", "dtype", "wanted"),
    [
        ("k.npy", None, "float16", ARRAY.astype(np.float16)),
        ("fortran.npy", None, "float16", ARRAY.astype(np.float16)),
        ("good_link.npy", None, "float16", ARRAY.astype(np.float16)),
        ("k.safetensors", "k", "float16", ARRAY.astype(np.float16)),
        ("k.safetensors", "t", "bool", ARRAY > 2),
        ("k.safetensors", "u", "float8_e4m3fn", ARRAY.astype(np.uint8)),
    ],
)
def test_tensors_are_read_as_they_were_written(
    folder: Path, file: str, tensor: str | None, dtype: str, wanted: np.ndarray[tuple[int, ...], np.dtype[np.generic]]
) -> None:
    read = read_graph_data(graph(file, tensor, dtype=dtype), None, folder)
    np.testing.assert_array_equal(np.asarray(load_constant(read, "k")), np.asarray(wanted))


@pytest.mark.parametrize(
    ("file", "tensor", "code"),
    [
        ("../stranger.npy", None, "SPY0129"),
        ("link.npy", None, "SPY0129"),
        ("/etc/hosts.npy", None, "SPY0129"),
        ("absent.npy", None, "SPY0130"),
        ("folder.npy", None, "SPY0130"),
        ("loop.npy", None, "SPY0130"),
        ("a\0b.npy", None, "SPY0130"),
        ("k.npy", "k", "SPY0131"),
        ("k.safetensors", None, "SPY0131"),
        ("k.safetensors", "z", "SPY0131"),
        ("k.safetensors", "b", "SPY0131"),
        ("k.safetensors", "__metadata__", "SPY0131"),
        ("k.bin", None, "SPY0132"),
    ],
)
def test_files_that_do_not_hold_the_tensor_are_refused(folder: Path, file: str, tensor: str | None, code: str) -> None:
    assert codes_of(graph(file, tensor), folder) == [(code, "/constants/0/data")]


def test_shape_and_dtype_must_be_those_of_the_graph(folder: Path) -> None:
    assert codes_of(graph("k.npy", shape=(3, 2)), folder)[0][0] == "SPY0131"
    assert codes_of(graph("k.npy", dtype="bfloat16"), folder)[0][0] == "SPY0131"
    assert codes_of(graph("k.npy", dtype="float32"), folder)[0][0] == "SPY0131"


Damage = Callable[[bytes], bytes]
DAMAGES: list[Damage] = [
    lambda text: text[:-1],
    lambda text: text[:7],
    lambda text: b"",
    lambda text: (2**62).to_bytes(8, "little") + text[8:],
    lambda text: text.replace(b"[0, 12]", b"[0, 99]"),
    lambda text: text.replace(b"[0, 12]", b"[-9, 3]"),
    lambda text: text.replace(b'"F16"', b'["F"]'),
    lambda text: text.replace(b"[2, 3]", b'{"":0}'),
    lambda text: text.replace(b'{"__', b'["__'),
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_safetensors_file_is_refused(folder: Path, damage: Damage) -> None:
    write_safetensors(folder / "one.safetensors", {"k": ARRAY.astype(np.float16)})
    text = (folder / "one.safetensors").read_bytes()
    assert damage(text) != text
    (folder / "one.safetensors").write_bytes(damage(text))
    assert codes_of(graph("one.safetensors", "k"), folder) == [("SPY0131", "/constants/0/data")]


def test_every_truncation_and_every_flipped_header_byte_of_npy_gives_a_diagnostic_or_a_tensor(folder: Path) -> None:
    text = (folder / "k.npy").read_bytes()
    variants = [text[:length] for length in range(0, len(text), 7)]
    variants += [text[:place] + bytes([text[place] ^ 0x15]) + text[place + 1 :] for place in range(128)]
    for variant in variants:
        (folder / "x.npy").write_bytes(variant)
        assert {code for code, _ in codes_of(graph("x.npy"), folder)} <= {"SPY0131"}


def test_pickled_objects_are_never_loaded(folder: Path) -> None:
    np.save(folder / "objects.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    (folder / "plain.npy").write_bytes(pickle.dumps([1]))
    assert codes_of(graph("objects.npy"), folder)[0][0] == "SPY0131"
    assert codes_of(graph("plain.npy"), folder)[0][0] == "SPY0131"


def test_a_file_that_changed_since_it_was_read_is_refused(folder: Path) -> None:
    read = read_graph_data(graph("k.npy"), None, folder)
    np.save(folder / "k.npy", np.zeros((4, 4), np.float16))
    with pytest.raises(SpyrecError) as caught:
        load_constant(read, "k")
    assert caught.value.diagnostics[0].code == "SPY0131"


def _wide_graph(**constant: object) -> dict[str, object]:
    return {
        "format": "spyrec.graph/1",
        "name": "g",
        "inputs": [{"name": "x", "shape": [3], "dtype": "float32"}],
        "constants": [{"name": "w", "shape": [3], "dtype": "float64", **constant}],
        "nodes": [{"name": "y", "op": "add", "inputs": ["x", "w"]}],
        "outputs": ["y"],
    }


_WIDE = np.array([1e300, 1e-300, 0.1])


def _stored_wide(folder: Path, name: str) -> dict[str, object]:
    if name == "value":
        return {"value": _WIDE.tolist()}
    if name == "w.npy":
        np.save(folder / name, _WIDE)
        return {"data": {"file": name}}
    header = json.dumps({"w": {"dtype": "F64", "shape": [3], "data_offsets": [0, 24]}}).encode()
    (folder / name).write_bytes(len(header).to_bytes(8, "little") + header + _WIDE.tobytes())
    return {"data": {"file": name, "tensor": "w"}}


@pytest.mark.parametrize("name", ["value", "w.npy", "w.safetensors"])
def test_a_float64_constant_is_narrowed_once_and_said_to_be(tmp_path: Path, name: str) -> None:
    graph = _wide_graph(**_stored_wide(tmp_path, name))
    with pytest.warns(RuntimeWarning, match="of its 3 numbers 1 overflow to an infinity, and 1 are lost to 0"):
        bundle = spyrec.compile(graph, base_dir=tmp_path)
    found = spyrec.run(bundle, {"x": np.zeros(3, np.float32)}, spyrec.RunOptions(check=True))
    np.testing.assert_array_equal(found.outputs["y"], np.array([np.inf, 0, 0.1], np.float32))
    (tmp_path / "g.json").write_text(json.dumps(graph))
    sink = DiagnosticSink()
    read_graph(tmp_path / "g.json", warnings=sink)
    assert [(item.code, item.severity) for item in sink.diagnostics] == [("SPY0152", Severity.WARNING)]


def test_one_float64_number_for_a_large_constant_takes_no_memory() -> None:
    graph = _wide_graph(value=1e-300)
    graph["constants"] = [{"name": "w", "shape": [2**40], "dtype": "float64", "value": 1e-300}]
    graph["inputs"], graph["nodes"], graph["outputs"] = [], [], ["w"]
    sink = DiagnosticSink()
    read_graph_data(graph, warnings=sink)
    assert f"of its {2**40} numbers 0 overflow to an infinity, and {2**40} are lost to 0" in sink.diagnostics[0].message


@pytest.mark.parametrize(
    ("constant", "code"),
    [({"value": 10**400}, "SPY0128"), ({"value": [1, True, 2]}, "SPY0128"), ({"data": {"file": "w.npy"}}, "SPY0131")],
)
def test_what_is_no_float64_is_refused(tmp_path: Path, constant: dict[str, object], code: str) -> None:
    np.save(tmp_path / "w.npy", np.ones(3, np.float32))
    with pytest.raises(SpyrecError, match=code):
        read_graph_data(_wide_graph(**constant), None, tmp_path)


@pytest.mark.parametrize("dtype", [None, "float64"])
def test_a_builder_narrows_float64_too(dtype: str | None) -> None:
    builder = spyrec.GraphBuilder("g")
    with pytest.warns(RuntimeWarning, match=r"SPY0152.*1 overflow to an infinity, and 1 are lost to 0"):
        w = builder.constant("w", _WIDE, dtype=dtype)
    builder.output(w)
    graph = builder.build()
    assert graph.type_of("w").dtype is DType.FLOAT32
    np.testing.assert_array_equal(load_constant(graph, "w"), np.array([np.inf, 0, 0.1], np.float32))
