"""A manifest without files, given its files, is the manifest with them."""

from __future__ import annotations

import pytest

import spyrec
from benchmarks.growth import decoder
from spyrec.bundle.manifest_json import with_files, write_manifest


@pytest.mark.parametrize("files", [{}, {"b/c.json": "1" * 64, "a": "0" * 64, 'with "files": {} in it': "2" * 64}])
def test_files_are_put_where_they_would_be_written(files: dict[str, str]) -> None:
    manifest = spyrec.compile(decoder(14)).manifest
    assert with_files(write_manifest(manifest, {}), files) == write_manifest(manifest, files)
