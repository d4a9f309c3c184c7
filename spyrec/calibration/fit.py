"""A profile fitted to measured times: least squares of the logarithms' differences, judged on what was left out.

Every configuration is planned once, without a model's help where its division was forced; a step of the fit then prices
the records of its operations anew, which takes milliseconds.
"""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

from spyrec.calibration.measurements import Measurement, graph_of
from spyrec.dataclass import dataclass
from spyrec.diagnostics import SpyrecError, refuse
from spyrec.hardware.cost import OperationRecord, cost_of
from spyrec.hardware.profile_file import LIMITS, figure_names, figure_of, with_figures
from spyrec.hardware.target import CALIBRATED, MEASURED_2026_08, TargetProfile
from spyrec.ir.reader import read_graph_data
from spyrec.passes.base import NO_PLANNER, PipelineOptions
from spyrec.passes.driver import compile_graph
from spyrec.passes.planning.traffic import kernel_traffic

Doubles = npt.NDArray[np.float64]

_WEIGHTS = {"out:layout": 0.7, "out:cores<8": 0.3, "out:narrow": 0.3}
"""Configurations out of scope that tell terms apart, and how much they count beside those in scope."""

_HOLD = 0.03
"""How much it weighs that a figure leaves its start by as much as that is, or a term that starts at nothing by one."""

_LEAST_CASES = 40
_STEPS = 40

_PUBLISHED = {
    "reduction.half_bytes_per_us": CALIBRATED.memory_bytes_per_us / 2.0,
    "reduction.half_resonance": 0.0,
    "reduction.vector_bytes_per_us": CALIBRATED.core_memory_bytes_per_us,
    "core_memory_bytes_per_us": LIMITS["core_memory_bytes_per_us"] / 2.0,
    "overlap": 0.5,
    "matmul_macs_per_us": 1_140_000.0,
    "matmul.fill_exponent": 0.5,
    "matmul.most_spill": 1.0,
}
"""Starts of figures that ``calibrated`` lacks or leaves open: halves of a limit, published rates, one pass."""

_RATES = ("_per_us", "reduction.floor", "reduction.span")
"""Ends of the names of figures that are as many bytes or multiply-adds in a time."""

_FACTORS = frozenset({"streams.half_share", "matmul.depth_split", "matmul.batch_split"})


def neutral_figure(name: str) -> float:
    """Return where a fit starts a figure: at a rate published before, a term where it does nothing.

    Nothing of it was fitted to the measured times, so that a fold's fit knows nothing of what it is judged by.
    """
    if name in _PUBLISHED:
        return float(_PUBLISHED[name])
    group, _, field = name.rpartition(".")
    if field.endswith("turnaround"):
        return float(CALIBRATED.turnaround_bytes)
    if group in ("streams", "matmul"):
        return 1.0 if name in _FACTORS else 0.0
    return figure_of(CALIBRATED, name)


@dataclass(frozen=True, slots=True)
class Case:
    """One configuration as it is planned: the records of its operations and how often each is executed."""

    measurement: Measurement
    parts: tuple[tuple[OperationRecord, int], ...]

    def simulated_us(self, profile: TargetProfile) -> float:
        """Return its simulated time."""
        return sum(cost_of(record, profile).total_us * executions for record, executions in self.parts)

    @property
    def limit(self) -> str:
        """The class of operations that takes most of its time under the default profile."""
        dearest = max(self.parts, key=lambda part: cost_of(part[0], MEASURED_2026_08).total_us * part[1])
        return dearest[0].operation_class.value


def cases_of(measurements: Sequence[Measurement], profile: TargetProfile = MEASURED_2026_08) -> tuple[Case, ...]:
    """Return the configurations that can be planned; free divisions are chosen under ``profile``."""
    found: list[Case] = []
    for item in measurements:
        if "anomalous" in item.scope or "bad-sample" in item.flags:
            continue
        try:
            found.append(Case(item, _records(item, profile, fixed_io_layouts=True)))
        except SpyrecError:
            continue  # a division that this compiler cannot have
    return tuple(found)


def _records(
    item: Measurement, profile: TargetProfile, *, fixed_io_layouts: bool
) -> tuple[tuple[OperationRecord, int], ...]:
    options = PipelineOptions(
        cores=item.cores,
        fixed_io_layouts=fixed_io_layouts,
        auto_tile=False,
        lx_planner="best-fit" if item.uses_lx else NO_PLANNER,
        profile=profile,
    )
    graph = compile_graph(read_graph_data(graph_of(item)), options)
    return tuple((part.record, part.executions) for part in kernel_traffic(graph, profile))


def fitted(
    cases: Sequence[Case],
    source: str,
    base: TargetProfile = MEASURED_2026_08,
    steps: int = _STEPS,
    without: Collection[str] = (),
) -> TargetProfile:
    """Return ``base`` with the figures that fit the cases best; errors SPY0789, SPY0790.

    ``without``: terms that are left where they do nothing.
    """
    count = sum(_weight(case.measurement) > 0.0 for case in cases)
    if count < _LEAST_CASES:
        raise refuse("SPY0789", f"{count} of the configurations can be used, a fit needs {_LEAST_CASES}")
    return _fitted(cases, source, base, steps, without)


def _fitted(
    cases: Sequence[Case], source: str, base: TargetProfile, steps: int, without: Collection[str]
) -> TargetProfile:
    """Return what :func:`fitted` does of however many cases: what they do not tell stays where a fit starts it."""
    base = with_figures(base, {name: neutral_figure(name) for name in without}, source)
    used = [(case, weight) for case in cases if (weight := _weight(case.measurement)) > 0.0]
    names = [name for name in figure_names() if name not in without]
    logs = np.array([math.log(case.measurement.measured_us) for case, _ in used])
    starts = {name: neutral_figure(name) for name in names}
    first = with_figures(base, starts, source)
    slower = _power_of_two(logs - np.log([case.simulated_us(first) for case, _ in used]))
    most = np.array([LIMITS.get(name, math.inf) for name in names])
    neutral = np.array([value / slower if name.endswith(_RATES) else value for name, value in starts.items()])
    neutral = np.minimum(neutral, most)
    scale = np.where(neutral > 0.0, neutral, 1.0)
    most = most / scale
    weights = np.array([weight for _, weight in used])

    def residuals(values: Any) -> Any:  # noqa: ANN401 -- SciPy's arrays
        profile = with_figures(base, dict(zip(names, (values * scale).tolist(), strict=True)), source)
        errors = weights * (np.log([case.simulated_us(profile) for case, _ in used]) - logs)
        # what the cases do not tell stays where it was
        return np.concatenate([errors, _HOLD * (values - neutral / scale)])

    start = np.clip(neutral / scale, 1e-3, most * (1 - 1e-3))
    found = _least_squares()(
        residuals, start, loss="soft_l1", f_scale=0.1, bounds=(np.full(len(names), 1e-6), most), max_nfev=steps
    )
    figures = dict(zip(names, (_rounded(value) for value in (found.x * scale).tolist()), strict=True))
    return with_figures(base, figures, source)


def _power_of_two(logs: Doubles) -> float:
    """Return by what power of two times are longer than those of the rates that a fit starts at.

    From rates far off it would not come back in its steps: a card of half of them is fitted from half of them.
    """
    return 2.0 ** round(float(np.median(logs)) / math.log(2.0)) if logs.size else 1.0


def _least_squares() -> Callable[..., Any]:
    try:
        from scipy import optimize
    except ImportError:
        raise refuse("SPY0790", "a fit needs SciPy", hint='pip install "spyrec[calibrate]"') from None
    found: Callable[..., Any] = vars(optimize)["least_squares"]  # whose types are not known
    return found


def _weight(item: Measurement) -> float:
    if item.is_free or item.family == "tiled_reduction":
        return 0.0  # tiled sums are planned in another way here
    return 1.0 if item.is_in_scope else _WEIGHTS.get(item.scope, 0.0)


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def cross_validated(
    cases: Sequence[Case], source: str, base: TargetProfile, folds: int = 3, without: Collection[str] = ()
) -> dict[str, float]:
    """Return the simulated time of each case, by its name, under a profile fitted without its configuration's fold.

    All measurements of one operation and shape are in one fold.
    """
    found: dict[str, float] = {}
    for fold in range(folds):
        rest = [case for case in cases if _fold_of(case.measurement, folds) != fold]
        profile = _fitted(rest, source, base, _STEPS, without)
        left_out = [case for case in cases if _fold_of(case.measurement, folds) == fold]
        found |= {case.measurement.name: case.simulated_us(profile) for case in left_out}
    return found


def _fold_of(item: Measurement, folds: int) -> int:
    text = f"{item.op} {item.shape}".encode()
    return hashlib.sha256(text).digest()[0] % folds


@dataclass(frozen=True, slots=True)
class FamilyFigures:
    """How well simulated times of a family agree with measured ones.

    ``median``, ``rms``, ``mean``: of the relative error.  ``rank_correlation``: Spearman's.  ``near``: within a tenth.
    """

    family: str
    count: int
    median: float
    rms: float
    mean: float
    rank_correlation: float
    near: float


def families(measurements: Sequence[Measurement], simulated_us: Mapping[str, float]) -> tuple[FamilyFigures, ...]:
    """Return the figures of every family, then of ``all`` together, of measurements that are judged."""
    pairs: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for item in measurements:
        if item.is_judged and item.name in simulated_us:
            pairs[item.family].append((item.measured_us, simulated_us[item.name]))
    found = [_family(name, own) for name, own in sorted(pairs.items())]
    return (*found, _family("all", [pair for own in pairs.values() for pair in own])) if found else ()


def _family(name: str, pairs: Sequence[tuple[float, float]]) -> FamilyFigures:
    measured, simulated = np.array([own for own, _ in pairs]), np.array([other for _, other in pairs])
    error = simulated / measured - 1.0
    return FamilyFigures(
        name,
        len(pairs),
        float(np.median(np.abs(error))),
        float(np.sqrt(np.mean(error**2))),
        float(np.mean(error)),
        _rank_correlation(measured, simulated),
        float(np.mean(np.abs(error) <= 0.1)),
    )


def _rank_correlation(one: Doubles, other: Doubles) -> float:
    if len(one) < 2 or len(set(one.tolist())) == 1 or len(set(other.tolist())) == 1:
        return math.nan
    return float(np.corrcoef(_ranks(one), _ranks(other))[0, 1])


def _ranks(values: Doubles) -> Doubles:
    """Return the ranks, equal values sharing theirs."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2.0)[places]


def uncertainty(cases: Sequence[Case], simulated_us: Mapping[str, float], share: float = 0.9) -> dict[str, float]:
    """Return by class of operations the relative error that this share of the judged cases does not exceed."""
    errors: defaultdict[str, list[float]] = defaultdict(list)
    for case in cases:
        if case.measurement.is_judged and case.measurement.family != "tiled_reduction":
            error = abs(math.log(simulated_us[case.measurement.name] / case.measurement.measured_us))
            errors[case.limit].append(error)
    return {limit: round(float(np.quantile(own, share)), 3) for limit, own in sorted(errors.items()) if len(own) > 4}


class FreeChoice(Enum):
    """What a planner chooses, and measurements have in several ways."""

    DIVISION = "division"
    ORDER = "order of operands"
    TILES = "tiles"


@dataclass(frozen=True, slots=True)
class Regret:
    """Of one configuration measured in several ways: the time of the chosen one over that of the fastest.

    ``is_planned``: chosen is what the compiler takes where nothing is forced.  Else that was not measured, and chosen
    is the one of the measured ways that the model calls quickest.
    """

    choice: FreeChoice
    family: str
    op: str
    shape: tuple[int, ...]
    cores: int
    ways: int
    ratio: float
    is_planned: bool


def regrets(cases: Sequence[Case], profile: TargetProfile) -> tuple[Regret, ...]:
    """Return the regret of every configuration that was measured in several ways, largest first by kind of choice."""
    found: list[Regret] = []
    for choice in FreeChoice:
        groups: defaultdict[Hashable, list[Case]] = defaultdict(list)
        for case in cases:
            rest = _rest_of(choice, case.measurement)
            if rest is not None:
                groups[rest].append(case)
        own = [_regret(choice, group, profile) for group in groups.values() if _ways(choice, group) > 1]
        found += sorted(own, key=lambda item: -item.ratio)
    return tuple(found)


def _rest_of(choice: FreeChoice, item: Measurement) -> Hashable | None:
    """Return what measurements have in common that differ in one choice alone, ``None`` where it was not theirs."""
    slices, common = tuple(sorted(item.slices.items())), (item.op, item.shape, item.cores, item.uses_lx)
    is_forced = bool(slices) and math.prod(item.slices.values()) == item.cores
    match choice:
        case FreeChoice.DIVISION:
            return (*common, item.orders, item.tiles) if is_forced else None
        case FreeChoice.ORDER:
            return (*common, slices) if is_forced and item.op == "bmm" else None
        case FreeChoice.TILES:
            return common if item.op == "softmax" else None


def _way(choice: FreeChoice, item: Measurement) -> Hashable:
    match choice:
        case FreeChoice.DIVISION:
            return tuple(sorted(item.slices.items()))
        case FreeChoice.ORDER:
            return item.orders
        case FreeChoice.TILES:
            return item.tiles


def _ways(choice: FreeChoice, group: Sequence[Case]) -> int:
    return len({_way(choice, case.measurement) for case in group})


def _regret(choice: FreeChoice, group: Sequence[Case], profile: TargetProfile) -> Regret:
    planned = _planned(choice, group, profile)
    chosen = planned or min(group, key=lambda case: case.simulated_us(profile))
    best = min(case.measurement.measured_us for case in group)
    item = chosen.measurement
    ratio, ways = item.measured_us / best, _ways(choice, group)
    return Regret(choice, item.family, item.op, item.shape, item.cores, ways, ratio, planned is not None)


def _planned(choice: FreeChoice, group: Sequence[Case], profile: TargetProfile) -> Case | None:
    """Return the case that is as the compiler plans it freely; it takes tiles by what fits the scratchpads."""
    if choice is FreeChoice.TILES:
        return None
    item = group[0].measurement
    free = replace(item, slices={}) if choice is FreeChoice.DIVISION else replace(item, orders=(None, None))
    records = _records(free, profile, fixed_io_layouts=choice is FreeChoice.DIVISION)
    wanted = [_grid_and_order(record) for record, _ in records]
    return next((case for case in group if [_grid_and_order(record) for record, _ in case.parts] == wanted), None)


def _grid_and_order(record: OperationRecord) -> Hashable:
    return record.cores, record.core_rows, record.core_columns, record.combination.slices, record.batch_order
