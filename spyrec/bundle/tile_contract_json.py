"""The JSON form of a tile contract by itself, and what is said of one that is none."""

from __future__ import annotations

from dataclasses import replace

from pydantic import ValidationError

from spyrec.bundle.tile_contract import MALFORMED_CONTRACT, TileContract
from spyrec.diagnostics import Diagnostic, Location, SpyrecError
from spyrec.files.json_records import JsonRecord, problems

_HINT = "the form is described in docs/tiled_launch.md"

TILE_CONTRACT = JsonRecord(TileContract)


def write_tile_contract(contract: TileContract) -> dict[str, object]:
    """Return a contract under its file keys, in their order."""
    return TILE_CONTRACT.write(contract)


def read_tile_contract(data: object, place: Location | None = None) -> TileContract:
    """Return the contract that parsed JSON holds.

    Errors: SPY0963 for an unknown key, a wrong type or a contradiction; SPY0301 to SPY0319 for a layout that is none.
    """
    try:
        return TILE_CONTRACT.read(data)
    except ValidationError as error:
        where = place or Location()
        raise SpyrecError(
            [
                Diagnostic(MALFORMED_CONTRACT, item.message, where.child(*item.tokens), hint=_HINT)
                for item in problems(error)
            ]
        ) from None
    except SpyrecError as error:
        found = [replace(item, location=place, hint=item.advice or _HINT) for item in error.diagnostics]
        raise SpyrecError(found) from None
