"""Adds to ``pyproject.toml`` what it cannot say: examples, schemas and error cases go into a wheel inside the package.

In an editable installation, and in a checkout, they are found where they are (``spyrec/cli/_published.py``).
"""

from __future__ import annotations

import runpy
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parent
PUBLISHED = runpy.run_path(str(ROOT / "spyrec" / "cli" / "_published.py"))


def copy_published(package: Path) -> list[Path]:
    """Copy what is handed out into the folder of a built package; return the copies."""
    copies = [
        (ROOT / kind / file, package / PUBLISHED["INSTALLED_IN"] / kind / file)
        for kind in (PUBLISHED["EXAMPLES"], PUBLISHED["SCHEMAS"], PUBLISHED["ERROR_CASES"])
        for file in PUBLISHED["published_files"](ROOT / kind)
    ]
    for source, target in copies:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    return [target for _, target in copies]


if __name__ == "__main__":
    from setuptools import setup
    from setuptools.command.build_py import build_py

    class BuildWithPublished(build_py):
        """Builds the package, and puts the examples and schemas into it."""

        published: tuple[str, ...] = ()

        def run(self) -> None:
            """Build, and copy unless the installation is editable."""
            super().run()
            if not self.editable_mode:
                self.published = tuple(map(str, copy_published(Path(self.build_lib) / "spyrec")))

        def get_outputs(self, include_bytecode: bool = True) -> list[str]:
            """Return all files that are built."""
            return [*super().get_outputs(include_bytecode), *self.published]

    setup(cmdclass={"build_py": BuildWithPublished})
