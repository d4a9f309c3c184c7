"""The bundle: what the compiler hands to the runtime, as data and as a directory."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import orjson

from spyrec.bundle.atomic_directory import MANIFEST_FILE, atomic_directory
from spyrec.bundle.bundle_content import (
    CONSTANTS_FILE,
    GRAPH_FILE,
    OPSPECS_FILE,
    BundleContent,
    KeptFiles,
    constant_forms,
    unreadable,
)
from spyrec.bundle.constants import write_constants
from spyrec.bundle.device_program import DeviceProgram
from spyrec.bundle.launch_plan import LaunchArtifact
from spyrec.bundle.manifest_json import with_files, write_manifest
from spyrec.bundle.program_image import program_files
from spyrec.bundle.spyrecode import CODE_DIRECTORY, PLAN_FILE
from spyrec.bundle.spyrecode_json import write_plan
from spyrec.dataclass import dataclass
from spyrec.diagnostics import DiagnosticSink
from spyrec.files.packed_files import Content, DamagedPackError
from spyrec.garbage import rarely_searched

__all__ = ["Bundle", "DeviceProgram", "load_foreign", "with_methods", "write_artifact", "write_files"]


@dataclass(frozen=True, slots=True, eq=False)
class Bundle(BundleContent):
    """A compiled graph, with the reading and writing of its directory."""

    @rarely_searched()
    def save(self, path: str | os.PathLike[str], force: bool = False) -> None:
        """Write the bundle's directory: complete, or not at all; the same bundle gives the same bytes.

        ``force`` replaces an existing bundle, and nothing else.  Errors: SPY0612 to SPY0614.
        """
        with atomic_directory(Path(path), force=force) as directory:
            self.write_files(directory)
            if self.constants:
                with directory.stream(CONSTANTS_FILE) as write:
                    write_constants(write, self.constants, constant_forms(self.manifest))
            directory.write(MANIFEST_FILE, self._manifest_text(directory.digests))

    def _manifest_text(self, files: Mapping[str, str]) -> bytes:
        if self.kept_files is not None and self.kept_files.are_of(self):
            return with_files(self.kept_files.manifest_text, files)
        return write_manifest(self.manifest, files)

    def with_kept_files(self) -> Bundle:
        """Return the bundle with its files in memory, those of constants and the manifest apart."""
        written = _WrittenFiles({})
        self.write_files(written)
        return self.keeping(written.files)

    def keeping(self, files: Mapping[str, Content], manifest_text: bytes | None = None) -> Bundle:
        """Return the bundle with what is written of it, constants apart; the manifest is that without files."""
        text = write_manifest(self.manifest, {}) if manifest_text is None else manifest_text
        return replace(self, kept_files=KeptFiles.of(self, files, text))

    def write_files(self, directory: FileSink) -> None:
        """Write all files but constants and the manifest.

        Errors: SPY0775 where what was kept of it is not what it was when it was packed.
        """
        try:
            self._write_files(directory)
        except DamagedPackError as error:
            raise unreadable(error) from None

    def _write_files(self, directory: FileSink) -> None:
        if self.kept_files is not None and self.kept_files.are_of(self):
            for name, content in self.kept_files.files.items():
                directory.write(name, content)
            return
        written: dict[tuple[int, int], dict[str, bytes]] = {}
        for program in self.programs:
            known = self.artifacts.written_of(program.directory) if program.directory in self.artifacts else None
            if program.written is not None and known is not None:
                write_files(directory, program.directory, program.written.texts, are_shared=True)
                write_files(directory, program.directory, known)
                continue
            code = id(program.program), id(program.superdscs)  # layers repeat, and share the code of their programs
            if code not in written:
                written[code] = program_files(program)
            files = written[code]
            write_files(directory, program.directory, files, are_shared=True)
            if program.directory in self.artifacts:
                write_artifact(directory, program.directory, self.artifacts.made_of(program.directory, files))
        for name in sorted(self.dci):
            directory.write(name, orjson.dumps(self.dci[name].to_json(), option=orjson.OPT_INDENT_2))
        if self.graph_json is not None:
            directory.write(GRAPH_FILE, self.graph_json)
        if self.opspecs_json is not None:
            directory.write(OPSPECS_FILE, self.opspecs_json)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: programs, arguments, and what the plan is expected to cost."""
        from spyrec.bundle.bundle_html import bundle_html  # late: notebooks alone ask

        return bundle_html(self)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        verify: bool = True,
        *,
        strict: bool = False,
        warnings: DiagnosticSink | None = None,
    ) -> Bundle:
        """Read a bundle's directory and check that its files agree with each other.

        ``verify`` compares every file with its hash.  ``strict``: an unknown key of a SuperDSC that holds nothing is an
        error (SPY0626) and not one of the ``warnings``.  All problems are collected.  Errors: SPY0601 to SPY0606 (files
        missing, altered, outside, too large, unreadable, not listed), SPY0610 and SPY0611 (manifest), SPY0615 (no
        manifest), SPY0616 (constants), SPY0620 to SPY0635 (program files), SPY0640 to SPY0657 (launch artefacts),
        SPY0316 (conversion tables), SPY0784 (several entries).

        The directory may be an entry's, ``DIR/NAME`` where ``DIR/entries.json`` lists it: its constants lie in ``DIR``.
        """
        from spyrec.bundle.bundle_reader import read_bundle
        from spyrec.bundle.entry_directory import shared_constants

        root = Path(path)
        shared = shared_constants(root, verify=verify)
        return with_methods(read_bundle(root, verify=verify, strict=strict, warnings=warnings, shared=shared))


def load_foreign(
    path: str | os.PathLike[str],
    args: str | os.PathLike[str],
    *,
    strict: bool = False,
    warnings: DiagnosticSink | None = None,
) -> Bundle:
    """Read a bundle written by others: ``bundle.mlir`` and its SuperDSCs, with a ``spyrec.args/1`` table beside it.

    Further files in the directory are ignored.  Errors: SPY0617 (the table contradicts itself), else as
    :meth:`Bundle.load`.
    """
    from spyrec.bundle.bundle_reader import read_foreign_bundle

    return with_methods(read_foreign_bundle(Path(path), Path(args), strict=strict, warnings=warnings))


class FileSink(Protocol):
    """What takes the files of a bundle: a directory, or memory."""

    def write(self, name: str, content: Content, *, is_shared: bool = False) -> None:
        """Take one file; ``name`` is relative, ``/`` between its parts.

        ``is_shared``: other files may have the very same content.
        """
        ...


@dataclass(frozen=True, slots=True)
class _WrittenFiles:
    """Files that are written to memory."""

    files: dict[str, Content]

    def write(self, name: str, content: Content, *, is_shared: bool = False) -> None:  # noqa: ARG002 -- held in any case
        """Take one file."""
        self.files[name] = content


def write_files(directory: FileSink, folder: str, files: Mapping[str, Content], *, are_shared: bool = False) -> None:
    """Write files into a program's directory inside the bundle, ``"."`` or ``"kernels/N"``.

    ``are_shared``: other programs may have the very same files.
    """
    for name, content in files.items():
        directory.write(name if folder == "." else f"{folder}/{name}", content, is_shared=are_shared)


def write_artifact(directory: FileSink, folder: str, artifact: LaunchArtifact) -> None:
    """Write the launch artefact of a program into its directory inside the bundle."""
    files = {PLAN_FILE: write_plan(artifact), **artifact.files}
    write_files(directory, folder, {f"{CODE_DIRECTORY}/{name}": content for name, content in files.items()})


def with_methods(content: BundleContent) -> Bundle:
    """Return what was read of a directory as a bundle."""
    return Bundle(
        content.manifest,
        content.programs,
        content.constants,
        content.dci,
        content.graph_json,
        root=content.root,
        correction_slots=content.correction_slots,
        read_artifacts=content.read_artifacts,
        opspecs_json=content.opspecs_json,
    )
