"""Files of a bundle that somebody else wrote: no path leaves the directory, no file costs unexpected memory."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from spyrec.diagnostics import Diagnostic, Location, SpyrecError, refuse
from spyrec.files.reading import CHUNK_BYTES, open_named, open_regular, read_up_to
from spyrec.progress import BYTES, count_of

MISSING = "SPY0601"
ALTERED = "SPY0602"
OUTSIDE = "SPY0603"
TOO_LARGE = "SPY0604"
UNREADABLE = "SPY0605"
NOT_LISTED = "SPY0606"

_SHOWN_DIGITS = 12
"""Of a SHA-256 that is not the one due."""

MAX_JSON_BYTES = 1 << 26
"""Longest SuperDSC, DCI table or manifest that is read: 64 MiB."""

MAX_PROGRAM_BYTES = 1 << 28
"""Longest ``bundle.mlir`` or ``graph.json`` that is read: 256 MiB."""


_KEEP_INSIDE = "name a file below the bundle's own directory"
_WRITE_AGAIN = "write the bundle again, or restore the file from where it was copied"
_CHECK_PERMISSIONS = "check that the file may be read"


def is_inside(name: str) -> bool:
    """Whether a relative path (with ``/`` between parts) stays below the directory it starts from."""
    parts = [part for part in name.split("/") if part not in ("", ".")]  # a bundle has thousands of names
    is_plain = not name.startswith("/") and ".." not in parts and "\\" not in name and "\0" not in name
    return bool(parts) and is_plain and ":" not in parts[0]


class BundleFiles:
    """The files below one directory.

    ``digests`` are SHA-256 by relative path: what is read is compared with them, and a file they do not list is
    refused.  ``None`` where nothing is verified.
    """

    def __init__(self, root: Path, digests: Mapping[str, str] | None) -> None:
        self.root = root
        self._real_root = os.path.realpath(root)
        self._digests = digests
        self._tried: set[str] = set()
        self.read_digests: dict[str, str] = {}
        """SHA-256 of what was read whole, by relative path."""

    @property
    def is_verifying(self) -> bool:
        """Whether what is read is compared with digests."""
        return self._digests is not None

    def display(self, name: str) -> str:
        """Return the path to show in a message."""
        return str(self.root / name)

    def resolve(self, name: str, mentioned_at: Location | None = None) -> Path:
        """Return the path of an existing regular file.

        Errors: SPY0603 the name or a symbolic link leaves the directory, SPY0601 no such file, SPY0605 no regular
        file; located where the name is mentioned, else at the file.
        """
        self._tried.add(name)
        if not is_inside(name):
            raise self._refused(OUTSIDE, f'path "{name[:200]}" leaves the bundle\'s directory', name, mentioned_at)
        real = os.path.realpath(f"{self._real_root}/{name}")  # as text: a bundle has thousands of names
        if not real.startswith(self._real_root.rstrip("/") + "/"):
            fact = f'"{name[:200]}" is a link that leaves the bundle\'s directory'
            raise self._refused(OUTSIDE, fact, name, mentioned_at)
        try:
            mode = os.stat(real).st_mode  # noqa: PTH116 -- as text
        except (FileNotFoundError, NotADirectoryError):
            fact = f'file "{name[:200]}" of the bundle is missing'
            raise self._refused(MISSING, fact, name, mentioned_at) from None
        except OSError as error:
            fact = f'file "{name[:200]}" cannot be read: {error.strerror}'
            raise self._refused(UNREADABLE, fact, name, mentioned_at) from None
        if not stat.S_ISREG(mode):
            raise self._refused(UNREADABLE, f'"{name[:200]}" is no regular file', name, mentioned_at)
        return Path(real)

    def _refused(self, code: str, fact: str, name: str, mentioned_at: Location | None) -> SpyrecError:
        """Return the refusal of a name, located where it is mentioned, else at the file."""
        hint = _KEEP_INSIDE if code == OUTSIDE else _WRITE_AGAIN
        return refuse(code, fact, mentioned_at or Location(self.display(name)), hint=hint)

    def read(self, name: str, limit_bytes: int, mentioned_at: Location | None = None) -> bytes:
        """Return the content of a file, verified; SPY0604 where it is longer than the limit, else as `resolve`."""
        path = self.resolve(name, mentioned_at)
        self._require_listed(name)
        content = read_whole(path, limit_bytes)
        digest = self.read_digests[name] = hashlib.sha256(content).hexdigest()
        self._compare(name, digest)
        return content

    def verify(self, name: str, mentioned_at: Location | None = None) -> Path:
        """Compare a file with its digest without keeping it in memory; return its path."""
        path = self.resolve(name, mentioned_at)
        self._require_listed(name)
        if self._digests is not None:
            try:
                with open_regular(path) as stream:
                    self._compare(name, _digest(stream))
            except OSError as error:
                fact = f'file "{name}" cannot be read: {error.strerror}'
                raise refuse(UNREADABLE, fact, Location(str(path)), hint=_CHECK_PERMISSIONS) from None
        return path

    def skip(self, name: str) -> None:
        """Leave a file out of :meth:`verify_all`: what is wrong with it is told already."""
        self._tried.add(name)

    def verify_all(self, manifest: Location) -> list[Diagnostic]:
        """Return a diagnostic for each listed file that is missing, altered or outside, and was not tried before."""
        found: list[Diagnostic] = []
        for name in [name for name in self._digests or {} if name not in self._tried]:
            try:
                self.verify(name, manifest.child("files", name))
            except SpyrecError as error:
                found.extend(error.diagnostics)
        return found

    def _require_listed(self, name: str) -> None:
        if self._digests is not None and name not in self._digests:
            fact = f'file "{name}" is used but not listed in the manifest\'s "files"'
            raise refuse(NOT_LISTED, fact, Location(self.display(name)), hint=_WRITE_AGAIN)

    def _compare(self, name: str, digest: str) -> None:
        if self._digests is None:
            return
        if digest != self._digests[name]:
            wanted = self._digests[name]
            hashes = f"its SHA-256 begins with {digest[:_SHOWN_DIGITS]}, the manifest's with {wanted[:_SHOWN_DIGITS]}"
            fact = f'file "{name}" was altered or truncated: {hashes}'
            hint = "compile again, or run with --no-verify if you changed it on purpose"
            raise refuse(ALTERED, fact, Location(self.display(name)), hint=hint)


def read_whole(path: Path, limit_bytes: int, *, takes_pipes: bool = False) -> bytes:
    """Return the content of a file; errors SPY0601 absent, SPY0604 longer than the limit, SPY0605 unreadable.

    ``takes_pipes``: where the user named the path, and not a bundle, it may be a pipe or a device.
    """
    try:
        with open_named(path) if takes_pipes else open_regular(path) as stream:
            content = read_up_to(stream, limit_bytes)
    except FileNotFoundError:
        raise refuse(MISSING, "the file does not exist", Location(str(path)), hint="check the path") from None
    except OSError as error:
        fact = f"the file cannot be read: {error.strerror}"
        raise refuse(UNREADABLE, fact, Location(str(path)), hint=_CHECK_PERMISSIONS) from None
    if len(content) > limit_bytes:
        fact = f"the file is longer than the {limit_bytes} bytes that are read"
        raise refuse(TOO_LARGE, fact, Location(str(path)), hint=_WRITE_AGAIN)
    return content


def _digest(stream: BinaryIO) -> str:
    digest = hashlib.sha256()
    count = count_of(BYTES, os.fstat(stream.fileno()).st_size)
    while chunk := stream.read(CHUNK_BYTES):
        digest.update(chunk)
        if count is not None:
            count.advance(len(chunk))
    return digest.hexdigest()
