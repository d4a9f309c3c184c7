"""A graph to a tuned one: its space, the search on a cluster, the proof of what was found."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, cast

import orjson

from spyrec.dataclass import dataclass
from spyrec.diagnostics import refuse
from spyrec.diagnostics.json_reading import JsonValue, load_json
from spyrec.options import CompileOptions, RunOptions, RunResult
from spyrec.passes.choices import Choice, ChoiceKind, Pin, choices
from spyrec.progress import count_of
from spyrec.sweep.case_run import compile_options
from spyrec.sweep.engine import Engine
from spyrec.sweep.sources import Source, graph_source
from spyrec.sweep.tasks import End, Limits, Outcome, Task
from spyrec.sweep.tuning.patch import Patch, patch_of, patched
from spyrec.sweep.tuning.search import Budget, Evaluate, Search, Space
from spyrec.sweep.tuning.trial import FUNCTION, PROFILE_FILE, Score, score_of

if TYPE_CHECKING:
    from spyrec.bundle.bundle import Bundle
    from spyrec.sweep.clusters import Cluster

_MEMORY_BYTES = 4 << 30


@dataclass(frozen=True, slots=True)
class Settings:
    """What a search is told.

    ``options``: of the compiler, a target by name.  ``profile``: a file with one.  ``trials``, ``minutes``: what is
    given ends the search.  ``measure``: the words of a command.  ``trial_seconds``: that a trial, and its command, may
    take.  ``kinds``: what is chosen otherwise.  ``is_checked``: the tuned graph is run against its reference.
    """

    options: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    profile: Path | None = None
    trials: int | None = 200
    minutes: float | None = None
    measure: tuple[str, ...] | None = None
    trial_seconds: float = 60.0
    seed: int = 0
    kinds: tuple[ChoiceKind, ...] = tuple(ChoiceKind)
    is_checked: bool = True

    def compile_options(self) -> CompileOptions:
        """Return the options of the compiler.  Errors: SPY0771, SPY0791 a profile's file."""
        from spyrec.hardware.profile_file import read_profile

        options = compile_options(self.options)
        return options if self.profile is None else replace(options, profile=read_profile(self.profile))


@dataclass(frozen=True, slots=True)
class Change:
    """One pin of the tuned graph: what the planner had, what is pinned, and the time of the plan without this pin."""

    choice: Choice
    pin: Pin
    us_without: float


@dataclass(frozen=True, slots=True)
class Tuned:
    """What a search found.  ``graph``: the tuned graph's text, that of the planner's plan where nothing is quicker.

    ``plans``: that could be pinned; ``trials``: that were tried, all of them where ``is_exhaustive``; ``refused``: how
    many of these, by code; ``choices``: how many there are.
    """

    name: str
    planner: Score
    best: Score
    changes: tuple[Change, ...]
    graph: bytes
    plans: int
    trials: int
    refused: Mapping[str, int]
    choices: Mapping[str, int]
    seed: int
    is_exhaustive: bool
    is_checked: bool

    @property
    def gain(self) -> float:
        """The share of the planner's time that is saved: its regret, as far as the search could see."""
        return 1.0 - self.best.us / self.planner.us if self.planner.us else 0.0

    @property
    def uncertainty(self) -> float | None:
        """The share by which simulated times may be off; ``None`` where times were measured, or nobody knows."""
        return None if self.planner.measured_us is not None else self.planner.uncertainty

    @property
    def is_told(self) -> bool:
        """Whether the gain is more than the model's uncertainty."""
        return self.gain > (self.uncertainty or 0.0)


class Tuner:
    """A graph file that is tuned; reading and planning it is done at once.

    Errors: those of the graph, SPY0848 where constants in files would be lost at ``target``.
    """

    def __init__(self, file: Path, settings: Settings, target: Path | None = None) -> None:
        from spyrec.front import compile as compile_graph
        from spyrec.front import pipeline_options, read_source

        self._file = file
        self._settings = settings
        self._options = settings.compile_options()
        pipeline = pipeline_options(self._options)
        graph = read_source(file, file.parent)
        self._source = graph_source(file.stem, "file", file)
        self._refuse_lost_constants(target)
        self._data = cast("Mapping[str, JsonValue]", load_json(file.read_bytes(), str(file))[0])
        self._planner = score_of(compile_graph(graph, self._options))
        self.name = graph.name
        self.space = Space(tuple(item for item in choices(graph, pipeline) if item.kind in settings.kinds))

    def _refuse_lost_constants(self, target: Path | None) -> None:
        beside = [name for name in self._source.files if name != self._file.name]
        if target is not None and beside and target.parent.resolve() != self._file.parent.resolve():
            fact = f'the graph reads "{beside[0]}" from its directory, and the tuned graph would lie in another one'
            raise refuse("SPY0848", fact, hint=f"name a file in {self._file.parent}")

    def run(self, evaluate: Evaluate) -> Tuned:
        """Search, and prove what was found.  Errors: SPY0846, SPY0847, SPY0849."""
        settings = self._settings
        end = math.inf if settings.minutes is None else time.monotonic() + 60.0 * settings.minutes
        count = count_of("plans", settings.trials or 0)
        search = Search(self.space, self._first_proved(evaluate), (lambda: None) if count is None else count.advance)
        best = search.run(Budget(settings.trials, lambda: time.monotonic() > end, settings.seed))
        score, planner = search.scores[best], search.scores[self.space.planner]
        freed = search.without_each(best)
        pins = dict(zip(freed, self.space.pins(best), strict=True))
        changes = tuple(Change(*pins[place], search.scores[freed[place]].us) for place in freed)
        graph = self._proved(self.patch(best), score)
        return Tuned(
            self.name, planner, score, changes, graph, self.space.plans, search.trials, search.refused(),
            {kind.value: sum(item.kind is kind for item in self.space.choices) for kind in self._settings.kinds},
            settings.seed, search.is_exhaustive, settings.is_checked,
        )  # fmt: skip

    def patch(self, assignment: tuple[int, ...]) -> Patch:
        """Return the pins of a plan as a change of the file."""
        return patch_of((choice.subject, pin) for choice, pin in self.space.pins(assignment))

    def _first_proved(self, evaluate: Evaluate) -> Evaluate:
        """Return what scores plans, and refuses to go on where the first one, the planner's own, has no score."""

        def checked(plans: Sequence[tuple[int, ...]]) -> Sequence[Score]:
            scores = evaluate(plans)
            if plans[0] == self.space.planner and scores[0].code:
                code = scores[0].code if scores[0].code == "SPY0847" else "SPY0849"
                raise refuse(code, scores[0].message or f"the planner's own plan: {scores[0].code}")
            return scores

        return checked

    def _proved(self, patch: Patch, score: Score) -> bytes:
        """Return the text of the tuned graph, which does what was found.  Errors: SPY0849."""
        from spyrec.front import compile as compile_graph

        text = orjson.dumps(patched(self._data, patch), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
        data = cast("Mapping[str, object]", load_json(text, str(self._file))[0])
        bundle = compile_graph(data, self._options, base_dir=self._file.parent)
        found = score_of(bundle)
        if found.simulated_us != score.simulated_us:
            fact = f"the tuned graph takes {found.simulated_us} simulated us, and the search found {score.simulated_us}"
            raise refuse("SPY0849", fact)
        if self._settings.is_checked:
            _refuse_wrong(bundle, self._settings.seed)
        return text

    @contextmanager
    def on(self, cluster: Cluster, notice: Callable[[str], None]) -> Generator[Evaluate]:
        """Yield what scores plans on the workers of a cluster.  Errors: SPY0840 to SPY0842."""
        from spyrec.compilation_cache import program_digest

        seconds = self._settings.trial_seconds
        limits = Limits(seconds if self._settings.measure is None else 2 * seconds + 5, _MEMORY_BYTES)
        groups = dict(_groups(self._source, self._settings.profile))
        program = program_digest()
        with Engine(cluster, limits, files=lambda digest: groups[digest], program=program, notice=notice) as engine:
            yield _Trials(engine, tuple(groups), self._request).scores

    def request_of(self, assignment: tuple[int, ...]) -> bytes:
        """Return what a trial is made from."""
        return self._request(assignment)

    def _request(self, assignment: tuple[int, ...]) -> bytes:
        settings = self._settings
        request: dict[str, object] = {
            "graph": dict(self._source.payload),
            "patch": self.patch(assignment),
            "options": dict(settings.options),
            "profile": None if settings.profile is None else _profile_digest(settings.profile),
            "measure": settings.measure,
            "seconds": settings.trial_seconds,
        }
        return orjson.dumps(request)


def _groups(source: Source, profile: Path | None) -> Iterator[tuple[str, Mapping[str, bytes]]]:
    """Yield the files that trials read, by the digest of each group."""
    if source.files:
        yield source.digest, {name: path.read_bytes() for name, path in source.files.items()}
    if profile is not None:
        yield _profile_digest(profile), {PROFILE_FILE: profile.read_bytes()}


def _profile_digest(profile: Path) -> str:
    return sha256(profile.read_bytes()).hexdigest()[:32]


class _Trials:
    """Scores plans on the workers of an engine; each is a task."""

    def __init__(self, engine: Engine, files: tuple[str, ...], request: Callable[[tuple[int, ...]], bytes]) -> None:
        self._engine = engine
        self._files = files
        self._request = request
        self._count = 0

    def scores(self, plans: Sequence[tuple[int, ...]]) -> list[Score]:
        """Return the scores of plans, in their order, whatever the order in which workers are done."""
        tasks: list[Task] = []
        for assignment in plans:
            tasks.append(Task(f"trial-{self._count}", FUNCTION, self._request(assignment), self._files))
            self._count += 1
        found = {outcome.task.key: _score_in(outcome) for outcome in self._engine.run(tasks)}
        return [found[task.key] for task in tasks]


def _score_in(outcome: Outcome) -> Score:
    if outcome.end is not End.DONE or outcome.result is None:
        return Score(code=outcome.end.value, message=outcome.detail.strip()[-300:])
    return score_from(outcome.result)


def score_from(result: Mapping[str, JsonValue]) -> Score:
    """Return a score as a worker wrote it."""
    numbers = {name: result.get(name) for name in ("simulated_us", "uncertainty", "measured_us")}
    times = {name: float(value) for name, value in numbers.items() if isinstance(value, int | float)}
    return Score(code=str(result.get("code", "")), message=str(result.get("message", "")), **times)


def _refuse_wrong(bundle: Bundle, seed: int) -> None:
    """Run a bundle on random inputs, and hold it against the graph's reference.  Errors: SPY0849."""
    from spyrec.front import opened
    from spyrec.runtime.inputs.random_inputs import random_inputs

    with opened(bundle, RunOptions(check=True)) as found:
        result = found if isinstance(found, RunResult) else found.run(random_inputs(found.inputs, seed))
    wrong = [name for name, report in (result.check or {}).items() if not report.ok]
    if wrong or not result.is_ok:
        raise refuse("SPY0849", f'output "{(wrong or ["?"])[0]}" of the tuned graph is not what the reference says')
