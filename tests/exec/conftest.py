"""The shared library of the execution contract, built once, and both fronts on a context of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from spyrec.exec.cabi.build import CLibrary, build
from tests.support.exec_fronts import FRONTS, Front, LibraryFront, PythonFront, load_library


@pytest.fixture(scope="session")
def c_library(tmp_path_factory: pytest.TempPathFactory) -> CLibrary:
    """The library as ``python -m spyrec.exec.cabi build`` makes it."""
    return build(tmp_path_factory.mktemp("cabi"))


@pytest.fixture(params=FRONTS)
def front(request: pytest.FixtureRequest) -> Iterator[Front]:
    """One front after the other: what holds of one holds of both."""
    if request.param == "cabi":
        library: CLibrary = request.getfixturevalue("c_library")
        made: Front = LibraryFront(load_library(library.path))
    else:
        made = PythonFront()
    yield made
    made.ctx_destroy()
