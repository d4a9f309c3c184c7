"""Entries by key: whole or absent, within their bytes, filled by many processes at once."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spyrec.files.entry_store import EntryStore
from spyrec.files.packed_files import DamagedPackError, PackedFiles, digest_of, pack
from tests.support.examples import examples

HEAD_BYTES = 79


def _key(name: str) -> str:
    return sha256(name.encode()).hexdigest()


def _entry(folder: Path, name: str) -> Path:
    return folder / f"{_key(name)}.entry"


def test_what_is_kept_is_found_under_its_key_alone(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "store"
    store = EntryStore(folder, 10_000)
    store.keep(_key("a"), b"content")
    assert EntryStore(folder, 10_000).find(_key("a")) == b"content"
    assert store.find(_key("b")) is None
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [item.name for item in folder.iterdir()] == [f"{_key('a')}.entry"]


def test_an_entry_takes_its_own_bytes_and_not_the_most_of_the_store(tmp_path: Path) -> None:
    store = EntryStore(tmp_path / "store", 1 << 30)
    store.keep(_key("a"), b"content")
    tracemalloc.start()
    try:
        assert store.find(_key("a")) == b"content"
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("place", [0, 20, 50, HEAD_BYTES, -1])
def test_no_changed_byte_is_ever_used(tmp_path: Path, place: int) -> None:
    store = EntryStore(tmp_path, 10_000)
    store.keep(_key("a"), bytes(range(200)))
    path = _entry(tmp_path, "a")
    text = bytearray(path.read_bytes())
    text[place] ^= 1
    path.write_bytes(text)
    assert store.find(_key("a")) is None
    store.keep(_key("a"), b"new")
    assert store.find(_key("a")) == b"new"


def test_cut_lengthened_and_renamed_entries_are_none(tmp_path: Path) -> None:
    store = EntryStore(tmp_path, 10_000)
    store.keep(_key("a"), bytes(200))
    path = _entry(tmp_path, "a")
    text = path.read_bytes()
    for length in (0, 10, HEAD_BYTES, len(text) - 1):
        path.write_bytes(text[:length])
        assert store.find(_key("a")) is None, length
    path.write_bytes(text + b"\0")
    assert store.find(_key("a")) is None
    path.write_bytes(text)
    path.rename(_entry(tmp_path, "b"))
    assert store.find(_key("b")) is None


def test_links_pipes_and_directories_are_no_entries(tmp_path: Path) -> None:
    store, outside = EntryStore(tmp_path / "store", 10_000), EntryStore(tmp_path / "outside", 10_000)
    outside.keep(_key("a"), b"content")
    path, target = _entry(tmp_path / "store", "a"), _entry(tmp_path / "outside", "a")
    path.symlink_to(target)
    assert store.find(_key("a")) is None
    store.keep(_key("a"), b"own")
    assert (store.find(_key("a")), outside.find(_key("a"))) == (b"own", b"content")
    path.unlink()
    os.mkfifo(path)
    assert store.find(_key("a")) is None
    path.unlink()
    path.mkdir()
    assert store.find(_key("a")) is None
    with pytest.raises(OSError, match="directory"):
        store.keep(_key("a"), b"own")


def test_what_was_used_least_recently_goes_and_other_files_stay(tmp_path: Path) -> None:
    store = EntryStore(tmp_path, 3 * (HEAD_BYTES + 100))
    (tmp_path / "notes.txt").write_bytes(bytes(1000))
    for age, name in enumerate("abc"):
        store.keep(_key(name), bytes(100))
        os.utime(_entry(tmp_path, name), (age, age))
    assert store.find(_key("a")) == bytes(100)
    store.keep(_key("d"), bytes(100))
    assert [name for name in "abcd" if store.find(_key(name)) is not None] == ["a", "c", "d"]
    store.keep(_key("large"), bytes(1000))
    assert store.find(_key("large")) is None
    assert [name for name in "abcd" if store.find(_key(name)) is not None] == ["a", "c", "d"]
    assert (tmp_path / "notes.txt").exists()


def test_a_directory_that_others_can_write_to_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(PermissionError, match="others can write to it"):
        EntryStore(tmp_path / "open", 100)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OSError, match="exists"):
        EntryStore(tmp_path / "file", 100)


_FILLER = """
import sys
from hashlib import sha256
from pathlib import Path
from spyrec.files.entry_store import EntryStore
store = EntryStore(Path(sys.argv[1]), 6000)
for turn in range(40):
    for number in range(12):
        key = sha256(str(number).encode()).hexdigest()
        found = store.find(key)
        assert found in (None, bytes([number]) * 1000), number
        if found is None or turn % 3 == 0:
            store.keep(key, bytes([number]) * 1000)
"""


def test_processes_that_fill_it_at_once_find_whole_entries_only(tmp_path: Path) -> None:
    running = [subprocess.Popen([sys.executable, "-c", _FILLER, str(tmp_path)]) for _ in range(3)]
    assert [process.wait() for process in running] == [0, 0, 0]
    left = list(tmp_path.iterdir())
    assert {item.suffix for item in left} == {".entry"}
    assert sum(item.stat().st_size for item in left) <= 6000


@examples(50)
@given(st.dictionaries(st.text(max_size=5), st.binary(max_size=300) | st.just(bytes(5000)), max_size=8))
def test_packed_files_are_the_files(files: dict[str, bytes]) -> None:
    text = pack(files)
    found = PackedFiles(text)
    assert list(found.items()) == list(files.items())
    assert pack(dict(found)) == text


@examples(100)
@given(st.data())
def test_a_text_that_is_no_pack_is_refused_or_read_never_anything_else(data: st.DataObject) -> None:
    text = bytearray(pack({"a": b"x" * 50, "b": b"x" * 50, "c": bytes(300)}))
    for _ in range(data.draw(st.integers(1, 4))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    try:
        dict(PackedFiles(bytes(text)[: data.draw(st.integers(0, len(text)))]))
    except DamagedPackError:
        return


def test_what_is_packed_is_taken_as_it_stands_and_told_by_its_digest() -> None:
    text = pack({"a": b"x" * 50, "b": b"y" * 70})
    found = PackedFiles(text)
    assert pack({name: found.packed(name) for name in found}) == text
    assert digest_of(found.packed("b")) == sha256(b"y" * 70).hexdigest()
    for other in (replace(found.packed("b"), digest=digest_of(b"y")), replace(found.packed("b"), size_bytes=71)):
        with pytest.raises(DamagedPackError, match="is not the"):
            other.unpacked()
