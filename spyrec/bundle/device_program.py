"""One device program: its MLIR and the SuperDSCs it executes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from spyrec.bundle.program import For, Program, SdscExecute, Statement
from spyrec.bundle.superdsc import SuperDsc
from spyrec.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class DeviceProgram:
    """One program of the plan.

    ``directory`` is ``"."`` or ``"kernels/N"``; ``superdscs`` are keyed by file name as ``bundle.mlir`` names them.
    """

    directory: str
    program: Program
    superdscs: Mapping[str, SuperDsc]

    def path(self, file_name: str) -> str:
        """Return the path of one of the program's files relative to the bundle."""
        return file_name if self.directory == "." else f"{self.directory}/{file_name}"


def looped_executes(body: Iterable[Statement]) -> Iterator[SdscExecute]:
    """Yield the calls that loops of a program make, in text order."""
    for statement in body:
        if isinstance(statement, For):
            yield from executes(statement.body)


def executes(body: Iterable[Statement]) -> Iterator[SdscExecute]:
    """Yield the calls of a program, those in loops included, in text order."""
    for statement in body:
        if isinstance(statement, SdscExecute):
            yield statement
        elif isinstance(statement, For):
            yield from executes(statement.body)
