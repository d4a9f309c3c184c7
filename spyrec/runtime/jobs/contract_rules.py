"""Rules between a job and its tile contract: the programs that it names are there, and take what launches give them."""

from __future__ import annotations

from collections.abc import Mapping

from spyrec.bundle.image_table import ImageTable, check_stride_words, stride_words
from spyrec.bundle.tile_contract import TileContract, programs_beside
from spyrec.diagnostics import Location
from spyrec.runtime.jobs.errors import ProgramMissing


def check_contract(name: str, contract: TileContract, tables: Mapping[str, ImageTable]) -> None:
    """Refuse a contract that a job cannot keep; ``tables``: by program, what its image says of itself.

    Errors: SPY0972 a program has no words for stick strides that launches set, SPY0973 a program is missing.
    """
    for program in (contract.program, *programs_beside(contract)):
        if program not in tables:
            has = ", ".join(f'"{item}"' for item in tables)
            raise ProgramMissing(f'job "{name}" is launched by a contract with program "{program}", and has only {has}')
        table = tables[program]
        check_stride_words(stride_words(program, [contract], table.arguments), table, Location(f"{name}: {program}"))
