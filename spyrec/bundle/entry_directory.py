"""``entries.json``: bundles in folders of one directory, and the file of constants beside them that all of them read.

What a path names may be such a folder; the directory above it is then read too: its ``entries.json`` and the constants.
"""

from __future__ import annotations

from pathlib import Path

from spyrec.bundle.atomic_directory import ENTRIES_FILE, MANIFEST_FILE
from spyrec.bundle.bundle_content import CONSTANTS_FILE
from spyrec.bundle.manifest_json import MALFORMED_MANIFEST, EntriesFile, read_entries_file
from spyrec.bundle.paths import MAX_JSON_BYTES, BundleFiles
from spyrec.dataclass import dataclass
from spyrec.diagnostics import Diagnostic, Location, SpyrecError

_HINT = "write the entries again"


@dataclass(frozen=True, slots=True)
class SharedConstants:
    """A file of constants that several bundles read, of which one bundle's are ``tensors``, by their names there.

    ``path`` is ``None`` where no entry has constants.
    """

    path: Path | None
    shown: str
    tensors: dict[str, str]


def read_entries(directory: Path, *, verify: bool) -> EntriesFile:
    """Read ``entries.json`` of a directory, and with ``verify`` hold the files that it lists against their hashes.

    Errors: SPY0601 to SPY0606 the files, SPY0610 the form, a file that is none of its entries', a missing hash.
    """
    text = BundleFiles(directory, None).read(ENTRIES_FILE, MAX_JSON_BYTES)
    found, where = read_entries_file(text, str(directory / ENTRIES_FILE))
    wanted = {f"{name}/{MANIFEST_FILE}" for name in found.entries}
    if any(found.entries.values()):
        wanted.add(CONSTANTS_FILE)
    wrong = sorted(wanted ^ found.files.keys())
    if wrong:
        fact = f'"files" has {", ".join(sorted(found.files)[:8])}, and of these entries it has {sorted(wanted)[:8]}'
        raise SpyrecError([Diagnostic(MALFORMED_MANIFEST, fact, where.child("files"), hint=_HINT)])
    if verify:
        problems = BundleFiles(directory, found.files).verify_all(where)
        if problems:
            raise SpyrecError(problems)
    return found


def entry_file(folder: Path, *, verify: bool = False) -> EntriesFile | None:
    """Return what ``entries.json`` beside a folder says where it lists that folder, else ``None``.

    Errors: as :func:`read_entries`.
    """
    directory = folder.absolute().parent
    if not (directory / ENTRIES_FILE).is_file() or (folder / CONSTANTS_FILE).exists():
        return None
    found = read_entries(directory, verify=False)
    if folder.absolute().name not in found.entries:
        return None
    return read_entries(directory, verify=True) if verify else found


def shared_constants(folder: Path, *, verify: bool) -> SharedConstants | None:
    """Return where the constants of the entry in a folder lie; ``None`` where the folder is none of an entry.

    Errors: as :func:`read_entries`.
    """
    found = entry_file(folder, verify=verify)
    if found is None:
        return None
    absolute = folder.absolute()
    return constants_of(found, absolute.parent, absolute.name)


def constants_of(found: EntriesFile, directory: Path, entry: str) -> SharedConstants:
    """Return where the constants of an entry lie.  Errors: SPY0601, SPY0603, SPY0605 the file."""
    shown = str(directory / CONSTANTS_FILE)
    path = BundleFiles(directory, None).resolve(CONSTANTS_FILE) if CONSTANTS_FILE in found.files else None
    return SharedConstants(path, shown, dict(found.entries[entry]))


def is_entries_directory(path: Path) -> bool:
    """Whether a directory holds entries."""
    return (path / ENTRIES_FILE).is_file() and not (path / MANIFEST_FILE).exists()


def require_folder(directory: Path, entry: str) -> Path:
    """Return the folder of an entry, which lies in the directory.  Errors: SPY0601, SPY0603, SPY0605."""
    BundleFiles(directory, None).resolve(f"{entry}/{MANIFEST_FILE}", Location(str(directory / ENTRIES_FILE)))
    return directory / entry
