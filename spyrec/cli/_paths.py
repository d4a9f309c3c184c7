"""What the verbs take for the path of something to write."""

from __future__ import annotations

import os
from pathlib import Path

import click


class OutputPath(click.Path):
    """The path of a file or directory to write; an empty one is a usage error.

    ``Path("")`` is the working directory, which nobody means who leaves a shell variable unset.
    """

    def __init__(self, *, is_file: bool = False) -> None:
        """Take a path; one that ``is_file`` may not be that of a directory."""
        super().__init__(dir_okay=not is_file, path_type=Path)

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        """Return the path."""
        if not isinstance(value, os.PathLike) and not value:
            self.fail("the path is empty", param, ctx)
        return super().convert(value, param, ctx)
