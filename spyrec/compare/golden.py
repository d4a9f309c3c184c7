"""Golden bundles: what is kept of a bundle in a repository, written and held against what is compiled now."""

from __future__ import annotations

from pathlib import Path

from spyrec.bundle.atomic_directory import MANIFEST_FILE, atomic_directory, is_bundle_directory, refuse_unwritable
from spyrec.bundle.bundle_content import CONSTANTS_FILE
from spyrec.compare.bundle_diff import BundleDiff, diff_directories
from spyrec.compare.bundle_listing import LEFT_OUT_FILE, bundle_files, left_out_files
from spyrec.dataclass import dataclass

BINARY_SUFFIXES = frozenset({".safetensors", ".bin"})
"""Files of a bundle that nobody reads in a review: a golden bundle leaves them out, their hashes stay."""


@dataclass(frozen=True, slots=True)
class GoldenOutcome:
    """What came of a comparison: ``found`` is ``None`` where there was no golden bundle yet.

    ``is_written``: the golden bundle is now what was compiled.
    """

    golden: Path
    found: BundleDiff | None
    is_written: bool

    @property
    def is_ok(self) -> bool:
        """Whether what was compiled is what the golden bundle says, or was made what it says."""
        return self.is_written or (self.found is not None and not self.found.differs)


def hold_against_golden(
    bundle: Path, golden: Path, *, is_updated: bool = False, is_semantic: bool = False
) -> GoldenOutcome:
    """Compare a bundle's directory with a golden one, and with ``is_updated`` replace that one where they differ.

    ``is_semantic``: other names and numbers are no difference.  Errors: as
    :func:`spyrec.compare.bundle_diff.diff_directories`; SPY0613 and SPY0614 the golden bundle cannot be replaced.
    """
    if not golden.exists():
        if is_updated:
            write_golden(bundle, golden)
        return GoldenOutcome(golden, None, is_updated)
    if is_updated:
        refuse_unwritable(golden, force=True)
    found = diff_directories(golden, bundle, is_semantic=is_semantic)
    is_written = is_updated and found.differs
    if is_written:
        write_golden(bundle, golden)
    return GoldenOutcome(golden, found, is_written)


def write_golden(bundle: Path, golden: Path) -> None:
    """Write what a golden bundle keeps of a bundle: the texts; of an existing one, no file that it leaves out.

    Files beside it that belong to no bundle stay.  Errors: SPY0613 it cannot be written, SPY0614 something else stands
    there.
    """
    names = bundle_files(bundle)
    known = left_out_files(golden) - {CONSTANTS_FILE} if golden.exists() else frozenset[str]()
    kept = sorted(name for name in names if Path(name).suffix not in BINARY_SUFFIXES and name not in known)
    left_out = sorted(names - {*kept, CONSTANTS_FILE})
    others = _others(golden)
    with atomic_directory(golden, force=True) as directory:
        for name in (name for name in kept if name != MANIFEST_FILE):
            directory.write(name, (bundle / name).read_bytes())
        if left_out:
            directory.write(LEFT_OUT_FILE, "".join(f"{name}\n" for name in left_out).encode())
        for name in others:
            directory.write(name, (golden / name).read_bytes())
        directory.write(MANIFEST_FILE, (bundle / MANIFEST_FILE).read_bytes())


def _others(golden: Path) -> list[str]:
    """Return the files of a golden bundle's directory that belong to no bundle, such as notes."""
    if not is_bundle_directory(golden):
        return []
    own = {*bundle_files(golden), LEFT_OUT_FILE}
    found = (path.relative_to(golden).as_posix() for path in golden.rglob("*") if path.is_file())
    return sorted(name for name in found if name not in own)
