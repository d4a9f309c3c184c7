"""One device program: its MLIR and the SuperDSCs it executes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field

from spyrec.bundle.program import For, Program, SdscExecute, Statement
from spyrec.bundle.superdsc import SuperDsc
from spyrec.dataclass import dataclass
from spyrec.files.packed_files import Content


@dataclass(frozen=True, slots=True, eq=False)
class ProgramFacts:
    """What a program says of its launches.

    ``read``, ``written``: indices of the arguments that it uses so.  ``sizes``: the largest values of dynamic sizes.
    ``parameters``: their names, in order.
    """

    read: tuple[int, ...]
    written: tuple[int, ...]
    sizes: Mapping[str, int]
    parameters: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class WrittenCode:
    """A program as it was written before.

    ``texts``: ``bundle.mlir`` and SuperDSCs by file name.  ``artifacts``: the files of a launch artefact, by the digest
    of the table and the number of correction slots that it was made for: layers have one code and tensors of their own.
    """

    facts: ProgramFacts
    texts: Mapping[str, Content]
    artifacts: Mapping[tuple[str, int], Mapping[str, Content]]


@dataclass(frozen=True, slots=True)
class DeviceProgram:
    """One program of the plan.

    ``directory`` is ``"."`` or ``"kernels/N"``; ``superdscs`` are keyed by file name as ``bundle.mlir`` names them.
    ``code``: a digest of all that the program follows from, where somebody asked for it; ``written``: what is known of
    it then.
    """

    directory: str
    program: Program
    superdscs: Mapping[str, SuperDsc]
    code: str | None = field(default=None, compare=False)
    written: WrittenCode | None = field(default=None, compare=False)

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
