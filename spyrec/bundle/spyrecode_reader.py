"""Reads a ``spyreCodeDir``: the plan, the files it copies, and the rules J1 to J11.  All problems are collected."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from spyrec.bundle.image_table import TABLE_FILE, ImageTable, check_stride_words
from spyrec.bundle.json_cursor import attempt
from spyrec.bundle.launch_plan import InitTransfer, LaunchArtifact, PreparationStep
from spyrec.bundle.paths import MAX_JSON_BYTES, OUTSIDE, TOO_LARGE, BundleFiles
from spyrec.bundle.program_image import read_image
from spyrec.bundle.spyrecode import PLAN_FILE
from spyrec.bundle.spyrecode_codes import FILE_OUTSIDE, OTHER_PROGRAM, WRONG_FILE_SIZE
from spyrec.bundle.spyrecode_json import Placed, PlacedPlan, read_plan
from spyrec.bundle.spyrecode_rules import LoadedImage, check_images, check_plan, read_images
from spyrec.diagnostics import DiagnosticSink, Location, SpyrecError, refuse

MAX_IMAGE_BYTES = 1 << 30
"""Most bytes of files that one job copies: 1 GiB."""

Files = dict[str, tuple[bytes, Location]]


def read_artifact(directory: Path, warnings: DiagnosticSink | None = None) -> LaunchArtifact:
    """Read a ``spyreCodeDir`` and everything in its images.

    Errors, all collected: SPY0601 to SPY0606 (files), SPY0101 to SPY0104 and SPY0640 to SPY0651 (the plan, J1 to J11),
    SPY0652 to SPY0658 (images and host computations), and for the programs inside as ``read_image``.
    """
    sink = DiagnosticSink()
    files = BundleFiles(directory.parent, None)
    found = attempt(sink, lambda: read_files(files, directory.name, sink))
    if found is not None and not sink.errors:
        for name, data in found[0].files.items():
            attempt(sink, lambda name=name, data=data: read_image(data, str(directory / name)))
    sink.raise_if_errors()
    assert found is not None
    for item in sink.diagnostics if warnings is not None else ():
        assert warnings is not None
        warnings.add(item)
    return found[0]


def read_files(
    files: BundleFiles, folder: str, sink: DiagnosticSink
) -> tuple[LaunchArtifact, tuple[LoadedImage, ...]] | None:
    """Read the ``spyreCodeDir`` at ``folder`` and check its rules; ``None`` where an error went to ``sink``.

    What the programs in its images are is not looked at.  Errors: as :func:`read_artifact`.
    """
    own = DiagnosticSink()
    name = f"{folder}/{PLAN_FILE}"
    text = files.read(name, MAX_JSON_BYTES)
    plan = read_plan(text, files.display(name), own)
    found: tuple[LaunchArtifact, tuple[LoadedImage, ...]] | None = None
    if plan is not None:
        check_plan(plan, own)
        contents = _read_transfers(files, folder, plan, own)
        images = read_images(plan, contents, own)
        if plan.is_complete and len(images) == len(plan.preparation) - 1:
            check_images(plan, images, own)
        found = _artifact(plan, {name: data for name, (data, _) in contents.items()}), images
    for item in own.diagnostics:
        sink.add(item)
    return None if own.errors else found


def _artifact(plan: PlacedPlan, files: Mapping[str, bytes]) -> LaunchArtifact:
    return LaunchArtifact(
        tuple(placed.step for placed in plan.preparation),
        tuple(placed.step for placed in plan.execution),
        tuple(placed.step for placed in plan.slots),
        files,
    )


def _read_transfers(files: BundleFiles, folder: str, plan: PlacedPlan, sink: DiagnosticSink) -> Files:
    """Read the files that are copied: J3 and J4, sizes first."""
    contents: Files = {}
    total_bytes = 0
    for placed in plan.preparation:
        step = placed.step
        if not isinstance(step, InitTransfer):
            continue
        size_bytes = attempt(sink, lambda step=step, placed=placed: _checked_size(files, folder, step, placed))
        if size_bytes is None:
            files.skip(f"{folder}/{step.file}")
        total_bytes += size_bytes or 0
        if size_bytes is None or step.file in contents:
            continue
        if total_bytes > MAX_IMAGE_BYTES:
            fact = f"the files of the job have more than {MAX_IMAGE_BYTES} bytes"
            sink.error(TOO_LARGE, fact, placed.at("size"))
            break
        name = f"{folder}/{step.file}"
        data = attempt(sink, lambda name=name: files.read(name, MAX_IMAGE_BYTES))
        if data is not None:
            contents[step.file] = data, Location(files.display(name))
    return contents


def _checked_size(files: BundleFiles, folder: str, step: InitTransfer, placed: Placed[PreparationStep]) -> int:
    """Return the bytes of a transfer's file; SPY0644 (J4), SPY0643 (J3), else as ``BundleFiles.resolve``."""
    where = placed.at("init_bin_file")
    try:
        path = BundleFiles(files.root / folder, None).resolve(step.file, where)
    except SpyrecError as error:
        if error.diagnostics[0].code != OUTSIDE:
            raise
        fact = f'file "{step.file[:200]}" does not lie in the directory of {PLAN_FILE} (rule J4)'
        raise refuse(FILE_OUTSIDE, fact, where) from None
    size_bytes = path.stat().st_size
    if size_bytes != step.size_bytes:
        fact = f'a transfer of {step.size_bytes} bytes, file "{step.file[:80]}" has {size_bytes} (rule J3)'
        raise refuse(WRONG_FILE_SIZE, fact, placed.at("size"))
    return size_bytes


def check_same_program(image: LoadedImage, digests: Mapping[str, str], wanted: ImageTable, where: Location) -> None:
    """Refuse an image that is not that of a program given as the SHA-256 of its files and its table.

    Errors: SPY0655, SPY0972 it lacks words for stick strides that the manifest promises.
    """
    files = image.sections.files
    held = {name: hashlib.sha256(content).hexdigest() for name, content in files.items() if name != TABLE_FILE}
    differing = sorted({name for name, _ in held.items() ^ digests.items()})
    if differing:
        fact = f"the image holds another program than the files beside it: {', '.join(differing[:4])} differ"
        raise refuse(OTHER_PROGRAM, fact, where)
    if image.table.arguments == wanted.arguments:
        check_stride_words(wanted.words, image.table, where)
    if image.table != wanted:
        raise refuse(OTHER_PROGRAM, "the image's table of arguments is not that of the manifest", where)
