"""Golden bundles in the tests of a project: a plugin of pytest.

``pytest_plugins = ["spyrec.testing"]`` in a ``conftest.py`` gives tests the fixture ``golden_bundle`` and the option
``--update-goldens``.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from spyrec.bundle.bundle import Bundle
from spyrec.dataclass import dataclass
from spyrec.front import GraphSource
from spyrec.front import compile as compile_graph
from spyrec.golden_check import failure_lines, hold_bundle
from spyrec.options import CompileOptions

__all__ = ["GoldenBundle", "golden_bundle", "pytest_addoption"]

_UPDATE = "--update-goldens"


@dataclass(frozen=True, slots=True)
class GoldenBundle:
    """Holds bundles against golden ones: the value of the fixture ``golden_bundle``.

    ``folder``: where golden bundles without a path of their own lie, one directory each; ``name``: of the test, for
    bundles without a name.  ``is_updated``: golden bundles are written and not compared (``--update-goldens``).
    """

    folder: Path
    name: str
    is_updated: bool

    def __call__(
        self,
        source: Bundle | GraphSource,
        name: str | None = None,
        options: CompileOptions | None = None,
        *,
        semantic: bool = False,
    ) -> Bundle:
        """Compile a graph, or take a bundle, and fail the test where it is not the golden one; return the bundle.

        ``name``: of the golden bundle, a directory below ``folder``; by default the test's.  ``semantic``: other names
        and numbers are no difference.  What the compiler refuses is raised as it is.
        """
        bundle = source if isinstance(source, Bundle) else _compiled(source, options)
        golden = self.folder / (name or self.name)
        outcome = hold_bundle(bundle, golden, is_updated=self.is_updated, is_semantic=semantic)
        if not outcome.is_ok:
            pytest.fail("\n".join(failure_lines(outcome, f"pytest {_UPDATE}")), pytrace=False)
        return bundle


def _compiled(source: GraphSource, options: CompileOptions | None) -> Bundle:
    is_path = isinstance(source, str | os.PathLike)
    return compile_graph(source, options, base_dir=Path(source).parent if is_path else ".")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--update-goldens``."""
    group = parser.getgroup("spyrec")
    group.addoption(_UPDATE, action="store_true", help="Write the golden bundles that tests ask for, and pass.")


@pytest.fixture
def golden_bundle(request: pytest.FixtureRequest) -> GoldenBundle:
    """Return what holds a bundle against the golden one in ``goldens/`` beside the test's file."""
    name = re.sub(r"[^A-Za-z0-9_.-]+", "_", request.node.name).strip("_.")
    is_updated = bool(request.config.getoption(_UPDATE))
    return GoldenBundle(request.path.parent / "goldens", name, is_updated)
