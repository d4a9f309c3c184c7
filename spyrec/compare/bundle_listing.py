"""Which files of a directory make up a bundle, whoever wrote it, and which a bundle kept as a reference leaves out."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path

from spyrec.bundle.bundle_content import CONSTANTS_FILE
from spyrec.bundle.device_program import executes
from spyrec.bundle.known_texts import read_program
from spyrec.bundle.paths import CHUNK_BYTES, MAX_PROGRAM_BYTES, BundleFiles, is_inside, read_whole
from spyrec.bundle.program import Program
from spyrec.diagnostics import SpyrecError
from spyrec.files.reading import open_regular

PROGRAM_FILE = "bundle.mlir"

LEFT_OUT_FILE = "left_out.txt"
"""Names the files that a golden bundle leaves out, one path a line; their hashes stand in its manifest."""

_TOP = re.compile(r"manifest\.json|graph\.json|constants\.safetensors|dci/[^/]+\.json")
_PROGRAM = re.compile(r"(kernels/[0-9]+/)?(bundle\.mlir|sdsc_[0-9]+\.json|spyreCodeDir/[^/]+)")


def bundle_files(root: Path) -> set[str]:
    """Return the relative paths of the files that belong to a bundle; empty where there is none.

    A link that leaves the directory is refused: errors SPY0603, SPY0605.
    """
    found = {name for name in _candidates(root) if _TOP.fullmatch(name) or _PROGRAM.fullmatch(name)}
    programs = [name for name in found if name.endswith(PROGRAM_FILE)]
    for name in programs:
        found.update(_named_by(root, name, found))
    files = BundleFiles(root, None)
    for name in found:
        files.resolve(name)
    return found if programs or "manifest.json" in found else set()


def left_out_files(root: Path) -> frozenset[str]:
    """Return the paths that may be missing because the bundle leaves them out: its constants, and what it lists.

    Errors: SPY0603 to SPY0605 a list that cannot be read safely.
    """
    path = root / LEFT_OUT_FILE
    listed = read_whole(path, MAX_PROGRAM_BYTES).decode("utf-8", "replace") if path.exists() else ""
    return frozenset({CONSTANTS_FILE, *listed.split("\n")} - {""})


def _candidates(root: Path) -> Iterator[str]:
    """Yield the relative paths of what is no directory, at the depths where a bundle has any."""
    folders = ["", "dci/", "spyreCodeDir/"]
    for kernel in _names(root, "kernels/", are_folders=True):
        folders += [f"kernels/{kernel}/", f"kernels/{kernel}/spyreCodeDir/"]
    for folder in folders:
        yield from (folder + name for name in _names(root, folder, are_folders=False))


def _names(root: Path, folder: str, *, are_folders: bool) -> list[str]:
    """Return the names in a folder, of folders or of anything else; none where there is no such folder."""
    try:
        with os.scandir(root / folder) as items:
            return [item.name for item in items if item.is_dir() is are_folders]
    except OSError:
        return []


def _named_by(root: Path, program: str, known: Collection[str]) -> Iterator[str]:
    """Yield the SuperDSC files that a ``bundle.mlir`` names, under whatever name, where they exist."""
    folder = program.removesuffix(PROGRAM_FILE)
    parsed = _program(root / program)
    if parsed is None:
        return  # a damaged program is compared as text
    for call in executes(parsed.body):
        name = folder + call.sdsc_filename
        if name not in known and is_inside(name) and (root / name).is_file():
            yield name


def programs_below(root: Path) -> list[Program]:
    """Return the programs of a bundle, or of a directory of several, that can be read: who holds them reads each once.

    See :func:`spyrec.bundle.known_texts.read_program`.
    """
    patterns = (PROGRAM_FILE, f"kernels/*/{PROGRAM_FILE}", f"*/{PROGRAM_FILE}", f"*/kernels/*/{PROGRAM_FILE}")
    found = (_program(path) for pattern in patterns for path in sorted(root.glob(pattern)))
    return [program for program in found if program is not None]


def _program(path: Path) -> Program | None:
    """Read a ``bundle.mlir``; ``None`` where it is damaged."""
    try:
        return read_program(read_whole(path, MAX_PROGRAM_BYTES))
    except SpyrecError:
        return None


def same_content(left: Path, right: Path) -> bool:
    """Whether two files hold the same bytes, read in pieces."""
    if left.stat().st_size != right.stat().st_size:
        return False
    with open_regular(left) as first, open_regular(right) as second:
        while piece := first.read(CHUNK_BYTES):
            if piece != second.read(CHUNK_BYTES):
                return False
    return True
