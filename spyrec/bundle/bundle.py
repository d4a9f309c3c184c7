"""The bundle: what the compiler hands to the runtime, as data and as a directory."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import orjson

from spyrec.bundle.atomic_directory import MANIFEST_FILE, PROGRAM_FILE, NewDirectory, atomic_directory
from spyrec.bundle.bundle_content import CONSTANTS_FILE, GRAPH_FILE, BundleContent, constant_forms
from spyrec.bundle.bundle_reader import read_bundle, read_foreign_bundle
from spyrec.bundle.constants import write_constants
from spyrec.bundle.device_program import DeviceProgram
from spyrec.bundle.manifest_json import write_manifest
from spyrec.bundle.mlir_printer import print_program
from spyrec.bundle.superdsc_writer import to_bytes

__all__ = ["Bundle", "DeviceProgram", "load_foreign", "write_program"]


@dataclass(frozen=True, slots=True, eq=False)
class Bundle(BundleContent):
    """A compiled graph, with the reading and writing of its directory."""

    def save(self, path: str | os.PathLike[str], force: bool = False) -> None:
        """Write the bundle's directory: complete, or not at all; the same bundle gives the same bytes.

        ``force`` replaces an existing bundle, and nothing else.  Errors: SPY0612 to SPY0614.
        """
        with atomic_directory(Path(path), force=force) as directory:
            for program in self.programs:
                write_program(directory, program)
            for name in sorted(self.dci):
                directory.write(name, orjson.dumps(self.dci[name].to_json(), option=orjson.OPT_INDENT_2))
            if self.constants:
                with directory.stream(CONSTANTS_FILE) as write:
                    write_constants(write, self.constants, constant_forms(self.manifest))
            if self.graph_json is not None:
                directory.write(GRAPH_FILE, self.graph_json)
            directory.write(MANIFEST_FILE, write_manifest(self.manifest, directory.digests))

    @classmethod
    def load(cls, path: str | os.PathLike[str], verify: bool = True) -> Bundle:
        """Read a bundle's directory and check that its files agree with each other.

        ``verify`` compares every file with its hash.  All problems are collected.  Errors: SPY0601 to SPY0606 (files
        missing, altered, outside, too large, unreadable, not listed), SPY0610 and SPY0611 (manifest), SPY0615 (no
        manifest), SPY0616 (constants), SPY0620 to SPY0635 (program files), SPY0316 (conversion tables).
        """
        return _with_methods(read_bundle(Path(path), verify=verify))


def load_foreign(path: str | os.PathLike[str], args: str | os.PathLike[str]) -> Bundle:
    """Read a bundle written by others: ``bundle.mlir`` and its SuperDSCs, with a ``spyrec.args/1`` table beside it.

    Further files in the directory are ignored.  Errors: SPY0617 (the table contradicts itself), else as
    :meth:`Bundle.load`.
    """
    return _with_methods(read_foreign_bundle(Path(path), Path(args)))


def write_program(directory: NewDirectory, program: DeviceProgram) -> None:
    """Write ``bundle.mlir`` and the SuperDSCs of one program into its directory."""
    directory.write(program.path(PROGRAM_FILE), print_program(program.program).encode())
    for name, dsc in program.superdscs.items():
        directory.write(program.path(name), to_bytes(dsc))


def _with_methods(content: BundleContent) -> Bundle:
    return Bundle(
        content.manifest, content.programs, content.constants, content.dci, content.graph_json, root=content.root
    )
