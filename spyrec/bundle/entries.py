"""Bundles of several programs of one model, by entry, whose equal constants are stored once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from spyrec.bundle.atomic_directory import ENTRIES_FILE, MANIFEST_FILE, NewDirectory, atomic_directory
from spyrec.bundle.bundle import Bundle, with_methods
from spyrec.bundle.bundle_content import CONSTANTS_FILE, constant_forms
from spyrec.bundle.bundle_reader import read_bundle
from spyrec.bundle.constants import ConstantForm, HostArray, write_constants
from spyrec.bundle.entry_directory import constants_of, read_entries, require_folder
from spyrec.bundle.json_cursor import attempt
from spyrec.bundle.manifest_json import ENTRY_NAME, MALFORMED_MANIFEST, write_entries_file, write_manifest
from spyrec.dataclass import dataclass
from spyrec.diagnostics import DiagnosticSink, Location, refuse
from spyrec.files.array_memory import digest
from spyrec.files.packed_files import Content

__all__ = ["ENTRY_NAME", "BundleEntries"]


@dataclass(frozen=True, slots=True, eq=False)
class BundleEntries:
    """The bundles of one model by entry, as :func:`spyrec.compile_entries` makes them; one directory holds all.

    ``tensors``: by entry, which tensor each of its constants is.  Two constants are one tensor where their numbers are
    the same: it is stored once, and a loaded model has it on the device once for each layout that it lies in.
    """

    bundles: Mapping[str, Bundle]
    tensors: Mapping[str, Mapping[str, str]]

    @classmethod
    def of(cls, bundles: Mapping[str, Bundle]) -> BundleEntries:
        """Return bundles as entries: their constants are read, and those with equal numbers found."""
        names = _TensorNames()
        return cls(dict(bundles), {entry: names.of(entry, bundle) for entry, bundle in bundles.items()})

    def save(self, path: str | os.PathLike[str], force: bool = False) -> None:
        """Write all bundles into one directory: complete, or not at all; the same bundles give the same bytes.

        ``force`` replaces an existing bundle or entries, and nothing else.  Errors: SPY0612 to SPY0614.
        """
        arrays: dict[str, HostArray] = {}
        forms: dict[str, ConstantForm] = {}
        for entry, bundle in self.bundles.items():
            known = constant_forms(bundle.manifest)
            for name, tensor in self.tensors[entry].items():
                if tensor not in forms:
                    arrays[tensor], forms[tensor] = bundle.constants[name], known[name]
        with atomic_directory(Path(path), force=force) as directory:
            files: dict[str, str] = {}
            if forms:
                with directory.stream(CONSTANTS_FILE) as write:
                    write_constants(write, arrays, forms)
                files[CONSTANTS_FILE] = directory.digests[CONSTANTS_FILE]
            for entry, bundle in self.bundles.items():
                folder = _Folder(directory, entry)
                bundle.write_files(folder)
                folder.write(MANIFEST_FILE, write_manifest(bundle.manifest, folder.digests))
                files[f"{entry}/{MANIFEST_FILE}"] = folder.digests[MANIFEST_FILE]
            directory.write(ENTRIES_FILE, write_entries_file(self.tensors, files))

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        verify: bool = True,
        *,
        strict: bool = False,
        warnings: DiagnosticSink | None = None,
    ) -> BundleEntries:
        """Read the directory of all bundles; the problems of all of them are told.  Errors: as :meth:`Bundle.load`."""
        directory = Path(path)
        found = read_entries(directory, verify=verify)
        sink = DiagnosticSink()
        bundles: dict[str, Bundle] = {}

        def read(entry: str) -> Bundle:
            folder, shared = require_folder(directory, entry), constants_of(found, directory, entry)
            return with_methods(read_bundle(folder, verify=verify, strict=strict, warnings=warnings, shared=shared))

        for entry in found.entries:
            bundle = attempt(sink, lambda entry=entry: read(entry))
            if bundle is not None:
                bundles[entry] = bundle
        sink.raise_if_errors()
        _refuse_several_targets(bundles, directory)
        return cls(bundles, found.entries)


class _TensorNames:
    """Names the tensors of all entries, the same numbers by one name."""

    def __init__(self) -> None:
        self._by_content: dict[object, list[str]] = {}
        self._taken: set[str] = set()

    def of(self, entry: str, bundle: Bundle) -> dict[str, str]:
        """Return the tensors of a bundle's constants by name; no two of them are one."""
        forms = constant_forms(bundle.manifest)
        found: dict[str, str] = {}
        used: set[str] = set()
        for name in sorted(bundle.constants):
            equal = self._by_content.setdefault((forms[name], digest(bundle.constants[name])), [])
            known = [tensor for tensor in equal if tensor not in used]
            tensor = name if name in known else known[0] if known else self._new(entry, name)
            if not known:
                equal.append(tensor)
            used.add(tensor)
            found[name] = tensor
        return found

    def _new(self, entry: str, name: str) -> str:
        """Return a name that no tensor has: the constant's, or that with the entry's before it."""
        own = name if name not in self._taken else f"{entry}.{name}"[:_LONGEST_NAME]
        while own in self._taken:
            own = f"{own[: _LONGEST_NAME - 8]}.{len(self._taken)}"
        self._taken.add(own)
        return own


_LONGEST_NAME = 128


@dataclass(frozen=True, slots=True)
class _Folder:
    """The folder of an entry in a directory that is written."""

    directory: NewDirectory
    name: str

    def write(self, name: str, content: Content, *, is_shared: bool = False) -> None:
        """Take a file of the folder; ``is_shared``: further files will have the very same content."""
        self.directory.write(f"{self.name}/{name}", content, is_shared=is_shared)

    @property
    def digests(self) -> dict[str, str]:
        """SHA-256 of the folder's files, by their names in it."""
        start = f"{self.name}/"
        return {
            file.removeprefix(start): found for file, found in self.directory.digests.items() if file.startswith(start)
        }


def _refuse_several_targets(bundles: Mapping[str, Bundle], directory: Path) -> None:
    targets = {entry: bundle.manifest.target for entry, bundle in bundles.items()}
    first = next(iter(targets))
    for entry, target in targets.items():
        if target != targets[first]:
            fact = f'entry "{first}" is for {targets[first].cores} cores of "{targets[first].name}", "{entry}" for '
            fact += f'{target.cores} of "{target.name}"'
            raise refuse(MALFORMED_MANIFEST, fact, Location(str(directory)), hint="compile them with one target")
