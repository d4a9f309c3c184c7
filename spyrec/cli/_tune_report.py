"""What a search found, as text and as data (``spyrec.tune/1``)."""

from __future__ import annotations

import math

from spyrec.cli._fitted import table_lines
from spyrec.diagnostics.json_reading import JsonValue
from spyrec.sweep.tuning.trial import Score
from spyrec.sweep.tuning.tune import Change, Tuned

FORMAT = "spyrec.tune/1"


def text_lines(tuned: Tuned) -> list[str]:
    """Return the report of a search, the gain first."""
    kinds = ", ".join(f"{count} of {kind}" for kind, count in tuned.choices.items() if count)
    lines = [f"{tuned.name}: {_gain(tuned)}", f"  {_range(tuned)}; choices: {kinds or 'none'}"]
    if tuned.refused:
        lines.append("  refused: " + ", ".join(f"{code} {count}" for code, count in tuned.refused.items()))
    if tuned.changes:
        heads = ("decision", "about", "planner", "pinned", "us without it")
        rows = [_row(tuned, change) for change in tuned.changes]
        lines += ["", *table_lines([heads, *rows], {4}, "  ")]
    return lines


def _gain(tuned: Tuned) -> str:
    """Return the gain with what the model can tell of it."""
    planner, best = f"{tuned.planner.us:,.3f} us", f"{tuned.best.us:,.3f} us"
    how = "measured" if tuned.planner.measured_us is not None else "simulated"
    if not tuned.changes:
        return f"0 %: nothing is quicker than the planner's own plan, {planner} {how}"
    said = f"{100 * tuned.gain:.1f} % quicker than the planner's plan, {best} {how} instead of {planner}"
    if tuned.uncertainty is None:
        return said
    share = f"± {100 * tuned.uncertainty:.0f} %"
    return f"{said} ({share})" if tuned.is_told else f"{said} ({share}: within what the model cannot tell)"


def _range(tuned: Tuned) -> str:
    if tuned.is_exhaustive:
        return f"optimal over {tuned.plans:,} plans, all of them tried"
    return f"{tuned.trials:,} of {tuned.plans:,} plans tried, seed {tuned.seed}"


def _row(tuned: Tuned, change: Change) -> tuple[str, ...]:
    lost = change.us_without - tuned.best.us
    without = "refused" if math.isinf(lost) else f"{change.us_without:,.3f}"
    return change.choice.kind.value, change.choice.subject or "-", change.choice.planned, str(change.pin), without


def tuned_json(tuned: Tuned) -> dict[str, JsonValue]:
    """Return the report of a search as data; times in us, gain and uncertainty as shares."""
    return {
        "format": FORMAT,
        "name": tuned.name,
        "planner": _score(tuned.planner),
        "tuned": _score(tuned.best),
        "gain": round(tuned.gain, 6),
        "uncertainty": tuned.uncertainty,
        "exceeds_uncertainty": tuned.is_told,
        "plans": tuned.plans,
        "trials": tuned.trials,
        "exhaustive": tuned.is_exhaustive,
        "seed": tuned.seed,
        "refused": dict(tuned.refused),
        "choices": dict(tuned.choices),
        "checked": tuned.is_checked,
        "changes": [_change(change) for change in tuned.changes],
    }


def _score(score: Score) -> dict[str, JsonValue]:
    return {"simulated_us": score.simulated_us, "measured_us": score.measured_us}


def _change(change: Change) -> dict[str, JsonValue]:
    return {
        "decision": change.choice.kind.value,
        "about": change.choice.subject,
        "planner": change.choice.planned,
        "pinned": str(change.pin),
        "us_without": None if math.isinf(change.us_without) else change.us_without,
    }
