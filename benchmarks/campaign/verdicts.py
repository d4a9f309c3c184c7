"""What becomes of one case: it is right, it is refused by a diagnostic, or it fails in a way that has a name."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import spyrec
from spyrec.diagnostics import SpyrecError
from spyrec.diagnostics.json_reading import JsonValue

Case: TypeAlias = dict[str, JsonValue]
"""A case as JSON: all that it takes to try it again."""

PACKAGE = Path(spyrec.__file__).parent

OK, INVALID, FAILURE = "ok", "invalid", "failure"
WRONG, CRASH, HANG, MEMORY, DEATH = "wrong", "crash", "hang", "memory", "death"
"""Ways to fail: other numbers, an exception that is no diagnostic, too much time or memory, the end of the process."""

_FRAMES = 2
_LONGEST_MESSAGE = 1000
_INTERNAL = "SPY99"


class WrongResultError(Exception):
    """A result is not what it must be; ``rule`` names what it was held against."""

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(message)
        self.rule = rule


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a case has ended; ``what`` is a code of a diagnostic or a way to fail, ``site`` where or by which rule."""

    end: str
    what: str = ""
    site: str = ""
    message: str = ""

    def to_json(self) -> dict[str, JsonValue]:
        """Return it as a JSON object."""
        return {"end": self.end, "what": self.what, "site": self.site, "message": self.message}

    @classmethod
    def from_json(cls, data: Mapping[str, JsonValue]) -> Verdict:
        """Return what :meth:`to_json` has written."""
        return cls(*(str(data[name]) for name in ("end", "what", "site", "message")))

    @property
    def way(self) -> tuple[str, str, str]:
        """What two failures have in common that fail the same way."""
        return self.end, self.what, self.site


def verdict_of(trial: Callable[[], None]) -> Verdict:
    """Return what becomes of a trial; a lack of memory is its caller's matter."""
    try:
        trial()
    except WrongResultError as error:
        return Verdict(FAILURE, WRONG, error.rule, str(error)[:_LONGEST_MESSAGE])
    except SpyrecError as error:
        first = error.diagnostics[0]
        if first.code.startswith(_INTERNAL):
            return Verdict(FAILURE, CRASH, first.code, first.message[:_LONGEST_MESSAGE])
        return Verdict(INVALID, first.code, "", first.message[:_LONGEST_MESSAGE])
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 -- what comes through is what a campaign looks for
        return Verdict(FAILURE, CRASH, site_of(error), f"{type(error).__name__}: {error}"[:_LONGEST_MESSAGE])
    return Verdict(OK)


def site_of(error: BaseException) -> str:
    """Return the type of an exception and its innermost functions of ours, without numbers of lines."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if Path(frame.filename).is_relative_to(PACKAGE)] or list(frames)
    places = [f"{_module(Path(frame.filename))}.{frame.name}" for frame in own[-_FRAMES:]]
    return f"{type(error).__name__} in {' <- '.join(reversed(places))}"


def _module(path: Path) -> str:
    return path.parent.name if path.stem == "__init__" else path.stem
