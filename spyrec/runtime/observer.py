"""What a session tells whoever watches a run: which bytes host copies define, and which they read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from spyrec.dci import CopyNest
from spyrec.diagnostics import Diagnostic
from spyrec.runtime.findings import Finding


@dataclass(frozen=True, slots=True)
class ArgumentCopy:
    """One host copy of an argument: ``nests`` of its table, ``None`` where all of the device form is copied.

    ``is_to_device``: the nests' destination is the device; else their source is.  ``host_shape`` is the host tensor's.
    """

    name: str
    address: int
    size_bytes: int
    device_size: tuple[int, ...]
    nests: tuple[CopyNest, ...] | None
    is_to_device: bool
    host_shape: tuple[int, ...] | None = None


class CopyObserver(Protocol):
    """Watches the host copies of a session's runs, and collects what it finds."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found so far, in order."""
        ...

    @property
    def warnings(self) -> Sequence[Diagnostic]:
        """What is watched while the programs run although a rule speaks against it."""
        ...

    def loading(self, directory: str) -> None:
        """Take note of the directory (with a closing slash, or empty) of the program that is loaded next."""
        ...

    def forgotten(self, address: int, size_bytes: int) -> None:
        """Take note that what an argument holds from an earlier run counts no more."""
        ...

    def copied_in(self, copy: ArgumentCopy) -> None:
        """Take note of a copy into device memory."""
        ...

    def copied_out(self, copy: ArgumentCopy) -> None:
        """Take note of a copy out of device memory."""
        ...
