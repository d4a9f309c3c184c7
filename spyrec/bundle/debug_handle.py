"""``debug_handle_``: where an operation comes from, in the words of the front end that made it.

Nothing is computed from it: it is kept through everything and named where something is found.
"""

from __future__ import annotations

from dataclasses import field

from spyrec.dataclass import dataclass
from spyrec.diagnostics.json_reading import JsonValue
from spyrec.files.json_form import Form, json, optional

_ID = Form(pattern="^[0-9]{1,20}$")


@dataclass(frozen=True, slots=True)
class SourceRange:
    """A place in a source file; columns count from 0, the end is ``None`` where it is not known."""

    file: str
    start_line: int
    start_col: int
    end_line: int | None = field(default=None, metadata=optional())
    end_col: int | None = field(default=None, metadata=optional())

    def document(self) -> dict[str, JsonValue]:
        """Return the object of the file."""
        return {
            "file": self.file,
            "start_line": self.start_line,
            "start_col": self.start_col,
            "end_line": self.end_line,
            "end_col": self.end_col,
        }

    @property
    def shown(self) -> str:
        """The place as a finding names it."""
        return f"{self.file}:{self.start_line}"


@dataclass(frozen=True, slots=True)
class Transformation:
    """One step of an operation's history; ``kind``: rewrite, fusion, decomposition, clone or remap."""

    kind: str
    pass_name: str
    reason: str | None = field(default=None, metadata=optional())

    def document(self) -> dict[str, JsonValue]:
        """Return the object of the file."""
        return {"kind": self.kind, "pass_name": self.pass_name, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class DebugHandle:
    """Provenance of one operation; ``id`` is a decimal number as text, ``fused_from`` the handles of what was fused."""

    id: str = field(metadata=json(_ID))
    source: SourceRange | None = field(default=None, metadata=optional())
    aten_op: str | None = field(default=None, metadata=optional())
    ir_chain: tuple[str, ...] = field(default=(), metadata=optional())
    fused_from: tuple[DebugHandle, ...] = field(default=(), metadata=optional())
    transform_history: tuple[Transformation, ...] = field(default=(), metadata=optional())

    def document(self) -> dict[str, JsonValue]:
        """Return the object of the file, keys in the order in which they are written."""
        return {
            "id": self.id,
            "source": None if self.source is None else self.source.document(),
            "aten_op": self.aten_op,
            "ir_chain": list(self.ir_chain),
            "fused_from": [item.document() for item in self.fused_from],
            "transform_history": [item.document() for item in self.transform_history],
        }

    @property
    def shown(self) -> str:
        """The operation and its place in the source, as a finding names them; empty where neither is known."""
        parts = [self.aten_op, None if self.source is None else f"at {self.source.shown}"]
        return " ".join(part for part in parts if part is not None)
