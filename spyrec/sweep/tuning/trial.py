"""One trial in this process: a graph with pins is compiled, and its time predicted, or measured by a command.

The request is ``{"graph", "patch", "options", "profile", "measure", "seconds"}``; the result is the score of the trial,
or code and words of what is wrong with it.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, cast

import orjson

from spyrec.dataclass import dataclass
from spyrec.diagnostics import SpyrecError, refuse
from spyrec.diagnostics.json_reading import JsonValue, load_json
from spyrec.options import CompileOptions
from spyrec.sweep.case_run import compile_options
from spyrec.sweep.tuning.patch import patched

if TYPE_CHECKING:
    from spyrec.bundle.bundle import Bundle

FUNCTION = "spyrec.sweep.tuning.trial:run_trial"
PROFILE_FILE = "profile.json"
_LAST_BYTES = 4096
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Score:
    """What became of a trial; of one that was refused ``code`` and ``message`` say why.

    ``simulated_us``: of its plan, with the share by which a measured time may be off, nine times of ten.
    ``measured_us``: what the command said.
    """

    simulated_us: float | None = None
    uncertainty: float | None = None
    measured_us: float | None = None
    code: str = ""
    message: str = ""

    @property
    def us(self) -> float:
        """The time that decides, endless where there is none."""
        if self.code or self.simulated_us is None:
            return math.inf
        return self.simulated_us if self.measured_us is None else self.measured_us


def run_trial(request: bytes, held: Path) -> bytes:
    """Compile a graph with pins; nothing is raised for what is wrong with these, or with the command."""
    trial = cast("Mapping[str, JsonValue]", orjson.loads(request))
    try:
        bundle = compiled(trial, held)
        command = cast("Sequence[str] | None", trial["measure"])
        score = score_of(bundle)
        if command is not None:
            score = replace(score, measured_us=measured_us(bundle, command, cast("float", trial["seconds"])))
    except SpyrecError as error:
        first = error.diagnostics[0]
        score = Score(code=first.code, message=first.message)
    return orjson.dumps({name: getattr(score, name) for name in Score.__slots__})


def compiled(trial: Mapping[str, JsonValue], held: Path) -> Bundle:
    """Return the bundle of a trial's graph."""
    from spyrec.front import compile as compile_graph

    graph = cast("Mapping[str, JsonValue]", trial["graph"])
    folder = held / str(graph["group"]) if "group" in graph else held
    text = str(graph["text"]).encode() if "text" in graph else (folder / str(graph["file"])).read_bytes()
    data = cast("Mapping[str, JsonValue]", load_json(text, str(graph["file"]))[0])
    pinned = patched(data, cast("Mapping[str, JsonValue]", trial["patch"]))
    return compile_graph(cast("Mapping[str, object]", pinned), _options(trial, held), base_dir=folder)


def _options(trial: Mapping[str, JsonValue], held: Path) -> CompileOptions:
    """Return the options of a trial; a profile stands there by name, or in a file of its own."""
    options = compile_options(cast("Mapping[str, JsonValue]", trial["options"]))
    if trial["profile"] is None:
        return options
    from spyrec.hardware.profile_file import read_profile

    return replace(options, profile=read_profile(held / str(trial["profile"]) / PROFILE_FILE))


def score_of(bundle: Bundle) -> Score:
    """Return the score of a bundle by its plan."""
    figures = bundle.manifest.figures
    assert figures is not None, "it was compiled from a graph"
    return Score(figures.simulated_us, figures.simulated_us_uncertainty)


def measured_us(bundle: Bundle, command: Sequence[str], seconds: float) -> float:
    """Return what a command prints on its last line that is given a bundle's directory as its last argument.

    No shell sees it.  Errors: SPY0847 it cannot be started, fails, takes longer than ``seconds``, or prints no time.
    """
    with TemporaryDirectory(prefix="spyrec-tune-") as folder:
        written, said = Path(folder) / "bundle", Path(folder) / "stdout"
        bundle.save(written)
        with said.open("wb") as output, (Path(folder) / "stderr").open("wb") as errors:
            try:
                process = subprocess.Popen(  # noqa: S603 -- the user's own command, as words
                    [*command, str(written)],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=errors,
                    start_new_session=True,
                )
            except OSError as error:
                raise _failed(command, f"cannot be started: {error.strerror or error}") from None
            code = _ended(process, command, seconds)
        if code != 0:
            raise _failed(command, f"ended with {code}: {_last_line(Path(folder) / 'stderr') or 'it said nothing'}")
        return _time_in(_last_line(said), command)


def _ended(process: subprocess.Popen[bytes], command: Sequence[str], seconds: float) -> int:
    try:
        return process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        raise _failed(command, f"took longer than {seconds:g} s") from None
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _last_line(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _LAST_BYTES))
        lines = file.read().decode("utf-8", "replace").strip().splitlines()
    return lines[-1].strip()[:_SHOWN] if lines else ""


def _time_in(line: str, command: Sequence[str]) -> float:
    try:
        found = float(line)
    except ValueError:
        found = math.nan
    if not (math.isfinite(found) and found > 0):
        raise _failed(command, f'printed "{line}" on its last line, no time')
    return found


def _failed(command: Sequence[str], what: str) -> SpyrecError:
    return refuse("SPY0847", f'the measuring command "{command[0][:_SHOWN]}" {what}')
