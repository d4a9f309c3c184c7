"""What provokes a code, as a text: files, the commands on them, and what the last command prints.

::

    == graph.json
    {"format": "spyrec.graph/1", outputs: ["y"]}
    == shown
    $ spyrec compile graph.json -o bundle
    error[SPY0101]: expecting property name enclosed in double quotes
      --> graph.json:1:31

The texts are the cases of the tests (``tests/cases/errors/<code>.txt``), and come along with the package.
"""

from __future__ import annotations

import re

from spyrec.dataclass import dataclass

SHOWN = "shown"
"""Name of the section that holds the commands and what is printed: the last one."""

PROMPT = "$ "

_HEAD = re.compile(r"^== (.+)\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Example:
    """One example: the text of each file by name, the commands in their order, what the last one prints."""

    files: tuple[tuple[str, str], ...]
    commands: tuple[str, ...]
    printed: str

    @classmethod
    def read(cls, text: str) -> Example:
        """Return the example that a text holds."""
        parts = _HEAD.split(text)[1:]
        *files, (name, shown) = zip(parts[::2], parts[1::2], strict=True)
        assert name == SHOWN, name
        lines = shown.splitlines(keepends=True)
        count = next((number for number, line in enumerate(lines) if not line.startswith(PROMPT)), len(lines))
        commands = tuple(line.removeprefix(PROMPT).rstrip("\n") for line in lines[:count])
        return cls(tuple(files), commands, "".join(lines[count:]))

    def text(self) -> str:
        """Return the text that holds this example."""
        files = [f"== {name}\n{content}" for name, content in self.files]
        commands = [f"{PROMPT}{command}\n" for command in self.commands]
        return "".join([*files, f"== {SHOWN}\n", *commands, self.printed])

    def to_json(self) -> dict[str, object]:
        """Return the example as JSON data."""
        return {"files": dict(self.files), "commands": list(self.commands), "printed": self.printed}
