"""A ``.pt2`` file is read without torch: tables are checked against the bytes, and nothing is unpickled."""

from __future__ import annotations

import json
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from spyrec.diagnostics import SpyrecError
from spyrec.frontends.torch_export.archive import read_archive
from spyrec.frontends.torch_export.program import read_program

_FLOAT32 = 7


def _row(path: str, sizes: list[int], strides: list[int], **more: object) -> dict[str, object]:
    meta: dict[str, object] = {
        "dtype": _FLOAT32,
        "sizes": [{"as_int": size} for size in sizes],
        "strides": [{"as_int": stride} for stride in strides],
        "storage_offset": {"as_int": 0},
        "requires_grad": False,
        "device": {"type": "cpu", "index": None},
        "layout": 7,
    }
    row: dict[str, object] = {"path_name": path, "is_param": True, "use_pickle": False, "tensor_meta": meta}
    meta.update({key: value for key, value in more.items() if key in meta})
    row.update({key: value for key, value in more.items() if key not in meta})
    return row


def _write(
    path: Path, rows: Mapping[str, object], entries: Mapping[str, bytes], *, compressed: bool = False, model: str = "{}"
) -> Path:
    kind = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with zipfile.ZipFile(path, "w", kind) as archive:
        archive.writestr("m/models/model.json", model)
        archive.writestr("m/data/weights/model_weights_config.json", json.dumps({"config": rows}))
        archive.writestr("m/data/constants/model_constants_config.json", json.dumps({"config": {}}))
        for name, content in entries.items():
            archive.writestr(f"m/{name}", content)
    return path


def _refused(path: Path) -> tuple[str, str]:
    with pytest.raises(SpyrecError) as raised:
        read_archive(path)
    (found,) = raised.value.diagnostics
    return found.code, found.message


def test_tensors_are_read_where_they_lie(tmp_path: Path) -> None:
    numbers = np.arange(24, dtype=np.float32)
    rows = {
        "whole": _row("weight_0", [4, 6], [6, 1]),
        "turned": _row("weight_0", [6, 4], [1, 6]),
        "part": _row("weight_0", [2, 3], [6, 1], storage_offset={"as_int": 7}),
        "none": _row("weight_1", [0, 3], [3, 1]),
    }
    entries = {"data/weights/weight_0": numbers.tobytes(), "data/weights/weight_1": b""}
    weights = read_archive(_write(tmp_path / "a.pt2", rows, entries)).weights()
    table = numbers.reshape(4, 6)
    assert np.array_equal(weights["whole"].read(), table)
    assert np.array_equal(weights["turned"].read(), table.T)
    assert np.array_equal(weights["part"].read(), table[1:3, 1:4])
    assert weights["none"].read().shape == (0, 3)
    assert not weights["whole"].read().flags.writeable


def _with_directory(path: Path, first: int, content: bytes) -> Path:
    """Write into the archive's last record, ``first`` bytes behind its begin."""
    whole = bytearray(path.read_bytes())
    begin = whole.rindex(b"PK\x01\x02") + first
    whole[begin : begin + len(content)] = content
    path.write_bytes(whole)
    return path


def test_an_entry_takes_no_memory_that_the_file_does_not_have(tmp_path: Path) -> None:
    """zipfile takes the stored size of an entry at once: a gibibyte for a file of 1,554 bytes (a find of fuzzing)."""
    rows = {"whole": _row("weight_0", [2, 3], [3, 1])}
    for stored in (struct.pack("<I", 1 << 30), struct.pack("<I", 23)):
        path = _write(tmp_path / "a.pt2", rows, {"data/weights/weight_0": bytes(24)})
        code, message = _refused(_with_directory(path, 20, stored))
        assert code == "SPY0161"
        assert f"24 bytes in {struct.unpack('<I', stored)[0]} of a file of" in message


def test_a_name_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = _write(tmp_path / "a.pt2", {}, {"data/weights/weight_0": b""})
    _with_directory(path, 8, struct.pack("<H", 0x800))
    code, message = _refused(_with_directory(path, 46, b"\xec"))
    assert (code, "utf-8" in message) == ("SPY0161", True)


def test_the_copy_for_torch_holds_no_numbers(tmp_path: Path) -> None:
    secret = b"\x01\x02\x03\x04" * 6
    tree = '[1, {"type": "some.module.Output", "context": "[\\"a\\"]", "children_spec": []}]'
    model = {"graph_module": {"module_call_graph": [{"fqn": "", "signature": {"in_spec": tree, "out_spec": tree}}]}}
    rows = {"w": _row("weight_0", [2, 3], [3, 1])}
    path = _write(tmp_path / "a.pt2", rows, {"data/weights/weight_0": secret}, model=json.dumps(model))
    target = tmp_path / "stripped.pt2"
    read_archive(path).write_stripped(target)
    assert secret[:4] not in target.read_bytes()
    assert b"some.module" not in target.read_bytes()
    with zipfile.ZipFile(target) as archive:
        table = json.loads(archive.read("stripped/data/weights/model_weights_config.json"))
    assert table["config"]["w"]["tensor_meta"]["strides"] == [{"as_int": 0}, {"as_int": 0}]
    assert np.array_equal(read_archive(target).weights()["w"].read(), np.zeros((2, 3), np.float32))


@pytest.mark.parametrize(
    ("rows", "entries", "code"),
    [
        ({"w": _row("weight_0", [1], [1], use_pickle=True)}, {"data/weights/weight_0": b"\0" * 4}, "SPY0162"),
        ({}, {"data/constants/custom_obj_0": b""}, "SPY0162"),
        ({}, {"data/weights/model.pt": b""}, "SPY0162"),
        ({}, {"data/aotinductor/model.so": b""}, "SPY0162"),
        ({"w": _row("weight_0", [2], [1])}, {"data/weights/weight_0": b"\0" * 7}, "SPY0161"),
        ({"w": _row("weight_0", [2], [2**40])}, {"data/weights/weight_0": b"\0" * 8}, "SPY0161"),
        ({"w": _row("weight_0", [2], [1])}, {}, "SPY0161"),
        ({"w": _row("../weight_0", [2], [1])}, {}, "SPY0161"),
        ({"w": _row("weight_0", [-1], [1])}, {"data/weights/weight_0": b""}, "SPY0161"),
        ({"w": {"use_pickle": False}}, {}, "SPY0161"),
    ],
)
def test_what_is_wrong_is_refused(
    tmp_path: Path, rows: Mapping[str, object], entries: Mapping[str, bytes], code: str
) -> None:
    assert _refused(_write(tmp_path / "a.pt2", rows, entries))[0] == code


def test_compressed_weights_are_refused(tmp_path: Path) -> None:
    rows = {"w": _row("weight_0", [2], [1])}
    path = _write(tmp_path / "a.pt2", rows, {"data/weights/weight_0": b"\0" * 8}, compressed=True)
    assert _refused(path) == ("SPY0161", 'the archive has no stored entry "data/weights/weight_0"')


def _damaged(path: Path, content: bytes) -> None:
    """Turn one bit of the middle of ``content``, which stands in the file once."""
    data = bytearray(path.read_bytes())
    assert data.count(content) == 1
    data[data.index(content) + len(content) // 2] ^= 1
    path.write_bytes(data)


def test_a_changed_bit_of_a_tensor_is_refused_with_the_name_of_its_entry(tmp_path: Path) -> None:
    random = np.random.default_rng(14)
    contents = [random.standard_normal(600_000).astype(np.float32).tobytes() for _ in range(3)]  # more than two pieces
    rows = {f"layer.{index}": _row(f"weight_{index}", [600_000], [1]) for index in range(3)} | {
        "tied": _row("weight_1", [300_000], [2])
    }
    entries = {f"data/weights/weight_{index}": content for index, content in enumerate(contents)}
    path = _write(tmp_path / "a.pt2", rows, {**entries, "data/sample_inputs/model.pt": b"example inputs"})
    read_archive(path).check_contents()
    _damaged(path, contents[1])
    with pytest.raises(SpyrecError, match=r'"data/weights/weight_1" has the checksum [0-9a-f]{8}, and') as raised:
        read_program(path, {})
    assert raised.value.diagnostics[0].code == "SPY0161"
    assert "layer.1" in str(raised.value.diagnostics[0].hint)
    _damaged(path, b"example inputs")
    with pytest.raises(SpyrecError, match="the example inputs are damaged") as raised:
        read_archive(path).samples()
    assert raised.value.diagnostics[0].code == "SPY0161"


def test_other_files_are_no_archives(tmp_path: Path) -> None:
    (tmp_path / "a.pt2").write_bytes(b"PK\x03\x04 nothing")
    assert _refused(tmp_path / "a.pt2")[0] == "SPY0161"
    with zipfile.ZipFile(tmp_path / "b.pt2", "w") as archive:
        archive.writestr("readme", "x")
    assert "models/model.json" in _refused(tmp_path / "b.pt2")[1]
    assert _refused(tmp_path / "absent.pt2")[0] == "SPY0160"
