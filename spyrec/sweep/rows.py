"""One row of a sweep's results: a case, what became of it, its figures, what ran it; and what was measured beside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields

from spyrec.dataclass import dataclass
from spyrec.files.json_form import COUNT, Form, json, omitted, optional
from spyrec.files.json_records import JsonRecord

_TEXT = Form(max_length=4096)
_LONG = Form(max_length=65536)
_KEY = Form(pattern="^[0-9a-f]{32}$")
_US = Form(at_least=0.0, is_finite=True)

OK, WRONG, REFUSED, CRASHED = "ok", "wrong", "refused", "crashed"
EMPTY = "empty"
"""A call of a model that computes nothing."""

TIMED_OUT, OUT_OF_MEMORY, DIED, QUARANTINED = "timed-out", "out-of-memory", "died", "quarantined"

STATUSES = (OK, EMPTY, WRONG, REFUSED, CRASHED, TIMED_OUT, OUT_OF_MEMORY, DIED, QUARANTINED)
GOOD = frozenset({OK, EMPTY})

MEASURED = ("compile_seconds", "run_seconds", "seconds", "worker", "finished_at")
"""Columns that no two sweeps share: everything else follows from the case and the program alone."""


@dataclass(frozen=True, slots=True)
class Row:
    """A case and what became of it; ``None`` is what it has not.

    ``key`` is the hash of all that the row follows from, ``case`` of the case alone, whatever spyrec it is tried with.
    ``graph``: its name; ``kind``: file, model or call; ``digest``: of the graph with its weights; ``calls``: how often
    each model makes a call.
    ``options`` to ``seed``: what is tried.
    ``status``: see ``docs/sweep.md``; ``code`` and ``message``: of the first thing that is wrong.
    ``figures``: where the figures are from, the run or the plan.  ``hbm_bytes``: read and written.
    ``bound_ratio``: the largest error of an output over what its format explains.  ``findings``: of the sanitizers.
    ``differences``: files that differ from the golden bundle.
    """

    key: str = field(metadata=json(_KEY))
    case: str = field(metadata=json(_KEY))
    graph: str = field(metadata=json(_TEXT))
    kind: str = field(metadata=json(Form(pattern="^(file|model|call)$")))
    digest: str = field(metadata=json(_TEXT))
    options: Mapping[str, str] = field(metadata=json(Form(max_length=64, keys=_TEXT, each=_TEXT)))
    checks: str = field(metadata=json(_TEXT))
    status: str = field(metadata=json(Form(pattern=f"^({'|'.join(STATUSES)})$")))
    calls: Mapping[str, int] = field(
        default_factory=dict[str, int], metadata=omitted(Form(max_length=10_000, keys=_TEXT, each=COUNT))
    )
    seed: int | None = field(default=None, metadata=optional(COUNT))
    code: str | None = field(default=None, metadata=optional(Form(pattern=r"^SPY\d{4}$")))
    message: str | None = field(default=None, metadata=optional(_LONG))
    figures: str | None = field(default=None, metadata=optional(Form(pattern="^(run|plan)$")))
    programs: int | None = field(default=None, metadata=optional(COUNT))
    superdscs: int | None = field(default=None, metadata=optional(COUNT))
    simulated_us: float | None = field(default=None, metadata=optional(_US))
    hbm_bytes: int | None = field(default=None, metadata=optional(COUNT))
    lower_bound_bytes: int | None = field(default=None, metadata=optional(COUNT))
    lx_peak_bytes: int | None = field(default=None, metadata=optional(COUNT))
    flops: int | None = field(default=None, metadata=optional(COUNT))
    bound_ratio: float | None = field(default=None, metadata=optional(_US))
    max_abs: float | None = field(default=None, metadata=optional(_US))
    findings: int | None = field(default=None, metadata=optional(COUNT))
    differences: int | None = field(default=None, metadata=optional(COUNT))
    spyrec: str = field(default="", metadata=json(_TEXT))
    program: str = field(default="", metadata=json(_TEXT))
    versions: str = field(default="", metadata=json(_TEXT))
    compile_seconds: float | None = field(default=None, metadata=omitted(_US))
    run_seconds: float | None = field(default=None, metadata=omitted(_US))
    seconds: float | None = field(default=None, metadata=omitted(_US))
    worker: str = field(default="", metadata=omitted(_TEXT))
    finished_at: str = field(default="", metadata=omitted(_TEXT))

    @property
    def is_good(self) -> bool:
        """Whether nothing is wrong."""
        return self.status in GOOD

    @property
    def name(self) -> str:
        """The case as people read it: graph, options, seed."""
        return case_name(self.graph, self.options, self.seed)

    def compared(self) -> dict[str, object]:
        """Return the columns that follow from the case and the program alone."""
        return {name: value for name, value in ROW.write(self).items() if name not in MEASURED}


ROW = JsonRecord(Row)
COLUMNS = tuple(item.name for item in fields(Row))


def case_name(graph: str, options: Mapping[str, str], seed: int | None) -> str:
    """Return a case as people read it."""
    said = [f"{name}={value}" for name, value in options.items()]
    return " ".join([graph, *said, *([] if seed is None else [f"seed={seed}"])])
