"""``spyrec tune``: brute force finds nothing better, pins are honoured, and what is told is so."""

from __future__ import annotations

import itertools
import json
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import cast

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spyrec
from spyrec.cli import main
from spyrec.cli._tune_report import text_lines
from spyrec.diagnostics import SpyrecError
from spyrec.diagnostics.json_reading import JsonValue
from spyrec.front import pipeline_options, read_source
from spyrec.hardware.plan_record import PlanFigures
from spyrec.options import CompileOptions, HostArray
from spyrec.passes.choices import Choice, ChoiceKind, DivisionPin, LoopPin, OutsidePin, ValueLayoutPin, choices
from spyrec.sweep.clusters import Scheduler, cluster_at
from spyrec.sweep.tuning.patch import patch_of, patched
from spyrec.sweep.tuning.search import BATCH, Budget, Evaluate, Search, Space
from spyrec.sweep.tuning.trial import Score, measured_us, run_trial
from spyrec.sweep.tuning.tune import Settings, Tuned, Tuner, score_from

import_module("distributed")  # the file is not collected without them
import_module("optuna")

Data = dict[str, JsonValue]
OPTIONS: Mapping[str, JsonValue] = {"cores": 4}


def graph(nodes: Sequence[JsonValue], shape: Sequence[int] = (64, 256), outputs: Sequence[str] = ("y",)) -> Data:
    return {
        "format": "spyrec.graph/1",
        "name": "small",
        "inputs": [{"name": "x", "shape": list(shape), "dtype": "float16"}],
        "nodes": list(nodes),
        "outputs": list(outputs),
    }


def node(name: str, op: str, *inputs: str, **attrs: JsonValue) -> JsonValue:
    return {"name": name, "op": op, "inputs": list(inputs), **({"attrs": attrs} if attrs else {})}


CHAIN = graph([node("a", "exp", "x"), node("y", "sum", "a", dim=0)])
SOFTMAX = graph([node("y", "softmax", "x", dim=1)])
TURNED = graph([node("a", "exp", "x"), node("b", "sum", "a", dim=1, keepdim=True), node("y", "div", "a", "b")])
PRODUCT: Data = {
    **graph([node("a", "mm", "x", "w"), node("y", "relu", "a")], (64, 128)),
    "constants": [{"name": "w", "shape": [128, 128], "dtype": "float16", "value": 0.5}],
}


def written(folder: Path, data: Data) -> Path:
    path = folder / "graph.json"
    path.write_text(json.dumps(data))
    return path


def here(tuner: Tuner, held: Path = Path()) -> Evaluate:
    """Trials in this process, one after the other."""
    return lambda plans: [score_from(orjson.loads(run_trial(tuner.request_of(item), held))) for item in plans]


def tuned(folder: Path, data: Data, given: Settings) -> Tuned:
    tuner = Tuner(written(folder, data), given)
    return tuner.run(here(tuner))


def figures_of(data: Mapping[str, object], options: CompileOptions) -> PlanFigures:
    found = spyrec.compile(data, options).manifest.figures
    assert found is not None
    return found


def planned_or_code(data: Mapping[str, object], options: CompileOptions) -> PlanFigures | str:
    """Return the plan of a graph, or the code of what is wrong with it."""
    try:
        return figures_of(data, options)
    except SpyrecError as error:
        return error.diagnostics[0].code


def choices_of(data: Data, options: CompileOptions) -> list[Choice]:
    return choices(read_source(data, Path()), pipeline_options(options))


# --- pins ---


@pytest.mark.parametrize("data", [CHAIN, SOFTMAX, TURNED, PRODUCT], ids=["chain", "softmax", "turned", "product"])
def test_a_pin_is_in_the_plan_or_refused_with_its_code(data: Data) -> None:
    options = CompileOptions(cores=4)
    kept: dict[ChoiceKind, int] = dict.fromkeys(ChoiceKind, 0)
    found_choices = choices_of(data, options)
    for choice in found_choices:
        for pin in choice.pins:
            pinned = patched(data, patch_of([(choice.subject, pin)]))
            found = planned_or_code(pinned, options)
            if isinstance(found, str):
                assert found in {"SPY0412", "SPY0424"}, pin
                continue
            assert is_in_plan(choice.subject, pin, found, pinned), (choice.subject, pin)
            kept[choice.kind] += 1
    assert all(kept[item.kind] for item in found_choices), kept


def is_in_plan(subject: str, pin: object, figures: PlanFigures, pinned: Mapping[str, JsonValue]) -> bool:
    own = [item for item in figures.operations if item.output.split(".")[0] == subject and item.op != "identity"]
    match pin:
        case DivisionPin(slices):
            return any(sorted(item.slices.values()) == sorted(slices.values()) for item in own)
        case LoopPin(loop, extent, _):
            return (
                any(item.tile == loop.tile_size and item.dim == loop.dims[0] for item in figures.loops) and extent > 0
            )
        case OutsidePin(name):
            held = {item.name for item in figures.lx.residents}
            return not any(item == name or item.startswith(f"{name}.") for item in held)
        case ValueLayoutPin(layout):
            bundle = spyrec.compile(cast("Mapping[str, object]", pinned), CompileOptions(cores=4))
            argument = [item for item in bundle.manifest.arguments if item.name == subject]
            return not argument or argument[0].device_size == layout.device_size
        case _:
            return False


def test_what_a_graph_pins_is_no_choice() -> None:
    data = patched(CHAIN, {"work_division": {"a": {"out.0": 2}}, "outside_lx": ["a"]})
    found = {(item.kind, item.subject) for item in choices_of(data, CompileOptions(cores=4))}
    assert (ChoiceKind.DIVISION, "y") in found
    assert (ChoiceKind.DIVISION, "a") not in found
    assert (ChoiceKind.LX, "a") not in found


def test_a_loop_names_the_axis_that_it_goes_over() -> None:
    (tiles,) = [item for item in choices_of(TURNED, CompileOptions(cores=4)) if item.kind is ChoiceKind.TILES]
    pinned = patched(TURNED, patch_of([(tiles.subject, tiles.pins[0])]))
    (loop,) = cast("list[Data]", pinned["loops"])
    assert loop["dim"] in cast("Data", pinned["dims"])
    assert loop["dim"] in cast("list[Data]", pinned["inputs"])[0]["shape"]  # pyright: ignore[reportOperatorIssue]
    assert list(pinned)[:3] == ["format", "name", "dims"], "dims stand before the inputs that need them"
    assert "dims" not in TURNED, "the graph that was given stays"


# --- LX ---


def test_a_value_outside_lx_moves_through_device_memory_and_nothing_else_changes() -> None:
    plain = figures_of(TURNED, CompileOptions(cores=4))
    outside = {**TURNED, "outside_lx": ["a"]}
    found = figures_of(outside, CompileOptions(cores=4))
    assert "a" in {item.name for item in plain.lx.residents}
    assert not {item.name.split(".")[0] for item in found.lx.residents} & {"a"}
    assert found.hbm_write_bytes - plain.hbm_write_bytes == 64 * 256 * 2
    bundle = spyrec.compile(outside, CompileOptions(cores=4))
    result = spyrec.run(bundle, {"x": random_rows(64, 256)}, spyrec.RunOptions(check=True))
    assert result.is_ok
    assert result.stats.total.hbm_write_bytes == found.hbm_write_bytes
    assert result.stats.total.hbm_read_bytes == found.hbm_read_bytes


def random_rows(rows: int, columns: int) -> HostArray:
    import numpy as np

    return np.random.default_rng(1).standard_normal((rows, columns)).astype(np.float16)


def test_all_that_a_decomposed_node_writes_is_outside() -> None:
    found = figures_of({**SOFTMAX, "outside_lx": ["x", "y"]}, CompileOptions(cores=4))
    assert figures_of(SOFTMAX, CompileOptions(cores=4)).lx.residents
    assert not found.lx.residents


def test_a_name_outside_lx_has_to_be_a_value() -> None:
    with pytest.raises(SpyrecError) as caught:
        read_source({**CHAIN, "outside_lx": ["ax", "a"]}, Path())
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.code, diagnostic.location and diagnostic.location.pointer) == ("SPY0116", "/outside_lx/0")


# --- the search ---


@pytest.mark.parametrize("data", [CHAIN, TURNED, PRODUCT], ids=["chain", "turned", "product"])
def test_brute_force_finds_nothing_quicker(tmp_path: Path, data: Data) -> None:
    """Every combination of pins of two kinds, each written into the file by hand and compiled here."""
    options = CompileOptions(cores=2)
    kinds = (ChoiceKind.DIVISION, ChoiceKind.LX)
    own = [item for item in choices_of(data, options) if item.kind in kinds]
    times: list[float] = []
    for picks in itertools.product(*([None, *item.pins] for item in own)):
        pinned = json.loads(json.dumps(data))
        for choice, pin in zip(own, picks, strict=True):
            if isinstance(pin, DivisionPin):
                next(item for item in pinned["nodes"] if item["name"] == choice.subject)["work_division"] = pin.slices
            elif isinstance(pin, OutsidePin):
                pinned.setdefault("outside_lx", []).append(pin.name)
        plan = planned_or_code(pinned, options)
        times += [] if isinstance(plan, str) else [plan.simulated_us]
    assert len(times) > 5
    found = tuned(tmp_path, data, Settings({"cores": 2}, trials=1000, kinds=kinds))
    assert found.is_exhaustive
    assert found.best.us == min(times)
    assert found.plans == found.trials


def planted(space: Space, best: Mapping[tuple[ChoiceKind, str], int]) -> Evaluate:
    """A planner that is wrong: each choice of ``best`` saves a tenth, every other pin costs a hundredth."""
    wanted = tuple(best.get((item.kind, item.subject), 0) for item in space.choices)

    def score(plan: tuple[int, ...]) -> Score:
        right = sum(own == other and own > 0 for own, other in zip(plan, wanted, strict=True))
        wrong = sum(own != other and own > 0 for own, other in zip(plan, wanted, strict=True))
        return Score(100.0 * 0.9**right * 1.01**wrong, 0.05)

    return lambda plans: list(map(score, plans))


def test_the_sampler_finds_what_a_planner_overlooks() -> None:
    space = Space(tuple(choices_of(PRODUCT, CompileOptions(cores=32))))
    places = [item for item in space.choices if len(item.pins) > 1][:3]
    best = {(item.kind, item.subject): 2 for item in places}
    assert space.plans > 5_000
    search = Search(space, planted(space, best))
    found = search.run(Budget(120, lambda: False, 3))
    assert search.trials == 120
    assert not search.is_exhaustive
    assert {(item.kind, item.subject) for item, _ in space.pins(found)} == set(best)
    assert search.scores[found].us == pytest.approx(72.9)
    again = Search(space, planted(space, best))
    again.run(Budget(120, lambda: False, 3))
    assert list(again.scores) == list(search.scores)
    other = Search(space, planted(space, best))
    other.run(Budget(120, lambda: False, 4))
    assert list(other.scores) != list(search.scores), "another seed proposes other plans"


def test_pins_that_save_nothing_are_dropped_one_after_the_other() -> None:
    space = Space(tuple(choices_of(PRODUCT, CompileOptions(cores=32))))
    search = Search(space, lambda plans: [Score(5.0 if plan[1] else 10.0) for plan in plans])
    crowded = tuple([1] * len(space.choices))
    search.scores.update({crowded: Score(5.0), space.planner: Score(10.0)})
    assert search._without_idle_pins(crowded) == (0, 1, *[0] * (len(space.choices) - 2))  # pyright: ignore[reportPrivateUsage]


def test_time_that_is_over_ends_a_search_after_the_batch() -> None:
    space = Space(tuple(choices_of(PRODUCT, CompileOptions(cores=32))))
    search = Search(space, planted(space, {}))
    assert search.run(Budget(None, lambda: True)) == space.planner
    assert search.trials == 1
    ticks = iter([False, True, True, True])
    search = Search(space, planted(space, {}))
    search.run(Budget(None, lambda: next(ticks)))
    assert search.trials == 1 + BATCH


def test_a_refused_plan_is_counted_by_code_and_never_the_best() -> None:
    space = Space(tuple(choices_of(CHAIN, CompileOptions(cores=2))))

    def evaluate(plans: Sequence[tuple[int, ...]]) -> list[Score]:
        return [Score(code="SPY0412", message="no") if any(plan) else Score(1.0) for plan in plans]

    search = Search(space, evaluate)
    assert search.run(Budget(40, lambda: False)) == space.planner
    assert search.refused() == {"SPY0412": search.trials - 1}


@settings(max_examples=6, deadline=None, derandomize=True)
@given(
    st.lists(st.sampled_from(["exp", "relu", "softmax", "sum"]), min_size=1, max_size=3),
    st.sampled_from([(64, 128), (32, 192), (128, 64)]),
    st.integers(0, 3),
)
def test_a_tuned_graph_is_never_slower_and_takes_the_time_that_is_told(
    tmp_path_factory: pytest.TempPathFactory, ops: list[str], shape: tuple[int, int], seed: int
) -> None:
    nodes: list[JsonValue] = []
    for number, op in enumerate(ops):
        attrs: dict[str, JsonValue] = {"dim": 1}
        if op == "sum":
            attrs["keepdim"] = True
        last = f"v{number - 1}" if number else "x"
        nodes.append(node(f"v{number}", op, last, **(attrs if op in {"softmax", "sum"} else {})))
    data = graph(nodes, shape, (f"v{len(ops) - 1}",))
    given = Settings(OPTIONS, trials=20, seed=seed, is_checked=seed == 0)
    found = tuned(tmp_path_factory.mktemp("tune"), data, given)
    assert found.best.us <= found.planner.us
    assert found.planner.us == figures_of(data, CompileOptions(cores=4)).simulated_us
    assert figures_of(orjson.loads(found.graph), CompileOptions(cores=4)).simulated_us == found.best.us
    assert (found.gain > 0) == bool(found.changes)
    assert all(change.us_without > found.best.us for change in found.changes), "every pin that is left saves time"
    if not found.changes:
        assert orjson.loads(found.graph) == data


# --- workers ---


@pytest.fixture(scope="module")
def two_workers() -> Iterator[Scheduler]:
    with cluster_at("local", 2) as found:
        yield found


def test_one_worker_and_two_find_the_same(tmp_path: Path, two_workers: Scheduler) -> None:
    path = written(tmp_path, TURNED)
    results: list[Tuned] = []
    with cluster_at("local", 1) as one_worker:
        for cluster in (one_worker, two_workers):
            tuner = Tuner(path, Settings(OPTIONS, trials=16, seed=7))
            with tuner.on(cluster, lambda _: None) as evaluate:
                results.append(tuner.run(evaluate))
    assert results[0] == results[1]
    assert results[0] == tuned(tmp_path, TURNED, Settings(OPTIONS, trials=16, seed=7)), "this process is a third one"


# --- measuring ---

PRINTS = "import json, sys; print('warming'); print({what}, end='')"


def command(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


def test_a_command_decides_by_what_it_prints(tmp_path: Path) -> None:
    """It likes plans that leave LX alone, which no planner does."""
    what = "1 + json.load(open(sys.argv[-1] + '/manifest.json'))['lx']['peak_bytes']"
    given = Settings(OPTIONS, trials=30, measure=command(PRINTS.format(what=what)), kinds=(ChoiceKind.LX,))
    found = tuned(tmp_path, CHAIN, given)
    assert found.planner.measured_us is not None
    assert found.planner.measured_us > 1
    assert found.best.us == 1
    assert found.uncertainty is None
    assert orjson.loads(found.graph)["outside_lx"]
    assert found.best.simulated_us is not None
    assert found.planner.simulated_us is not None
    assert found.best.simulated_us > found.planner.simulated_us


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("raise SystemExit('no card')", "ended with 1: no card"),
        ("print('12.5 us')", 'printed "12.5 us" on its last line, no time'),
        ("print(float('nan'))", 'printed "nan" on its last line, no time'),
        ("print(0)", "no time"),
        ("pass", 'printed "" on its last line'),
        ("import time; print(1, flush=True); time.sleep(60)", "took longer than 1 s"),
    ],
)
def test_a_command_without_a_time_is_refused(code: str, said: str) -> None:
    bundle = spyrec.compile(cast("Mapping[str, object]", CHAIN), CompileOptions(cores=1))
    with pytest.raises(SpyrecError) as caught:
        measured_us(bundle, command(code), 1.0 if "sleep" in code else 30.0)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "SPY0847"
    assert said in diagnostic.message


def test_no_shell_sees_a_command(tmp_path: Path) -> None:
    bundle = spyrec.compile(cast("Mapping[str, object]", CHAIN), CompileOptions(cores=1))
    trap = tmp_path / "trap"
    words = (*command("import sys; print(len(sys.argv))"), ";", "touch", str(trap), "$(touch", f"{trap})")
    assert measured_us(bundle, words, 30.0) == len(words) - 2 + 1, "-c, the words behind the code, the bundle"
    assert not trap.exists()
    with pytest.raises(SpyrecError, match="cannot be started"):
        measured_us(bundle, (str(tmp_path / "nothing"),), 1.0)


# --- the verb ---


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["tune", *words])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_the_verb_tells_the_gain_and_writes_the_pins(
    tmp_path: Path, two_workers: Scheduler, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = written(tmp_path, SOFTMAX), tmp_path / "tuned.json"
    words = [str(path), "-o", str(out), "--trials", "20", "--cores", "4", "--scheduler", two_workers.address, "--json"]
    code, said, _ = run(capsys, *words)
    assert code == 0
    told = json.loads(said)
    assert told["format"] == "spyrec.tune/1"
    assert (
        told["tuned"]["simulated_us"] == figures_of(json.loads(out.read_text()), CompileOptions(cores=4)).simulated_us
    )
    assert told["gain"] == pytest.approx(1 - told["tuned"]["simulated_us"] / told["planner"]["simulated_us"], abs=1e-6)
    before = out.read_bytes()
    code, _, errors = run(capsys, *words)
    assert code == 1
    assert "SPY0752" in errors
    assert out.read_bytes() == before


def test_what_is_wrong_is_said_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, CHAIN)
    for words, code, said in [
        (["--trials", "0"], 2, "--trials"),
        (["--minutes", "0"], 2, "--minutes"),
        (["--seed", "-1"], 2, "--seed"),
        (["--only", "cores"], 2, "--only"),
        (["--measure", "'"], 2, "--measure"),
        (["--measure", " "], 2, "--measure"),
        (["--scheduler", "here"], 2, "--scheduler"),
        (["--cores", "64"], 1, "SPY0771"),
        (["--profile", "none"], 1, "SPY0750"),
        (["-o", str(tmp_path / "no" / "tuned.json")], 1, "SPY0848"),
    ]:
        found, out, errors = run(capsys, str(path), *words)
        assert (found, out, errors.lower().count("error")) == (code, "", 1), (words, errors)
        assert said in errors, (words, errors)


def test_a_measuring_command_that_fails_ends_the_search(
    tmp_path: Path, two_workers: Scheduler, capsys: pytest.CaptureFixture[str]
) -> None:
    measure = shlex.join(command("raise SystemExit('no card')"))
    out = tmp_path / "tuned.json"
    words = (str(written(tmp_path, CHAIN)), "-o", str(out), "--measure", measure, "--scheduler", two_workers.address)
    code, said, errors = run(capsys, *words)
    assert (code, said, errors.count("error[")) == (1, "", 1)
    assert "SPY0847" in errors
    assert "no card" in errors
    assert not out.exists()


def test_constants_in_files_keep_the_tuned_graph_beside_them(tmp_path: Path, two_workers: Scheduler) -> None:
    import numpy as np

    np.save(tmp_path / "w.npy", np.ones((256,), np.float16))
    data: Data = {
        **graph([node("y", "mul", "x", "w")]),
        "constants": [{"name": "w", "shape": [256], "dtype": "float16", "data": {"file": "w.npy"}}],
    }
    path = written(tmp_path, data)
    (tmp_path / "other").mkdir()
    with pytest.raises(SpyrecError, match="SPY0848"):
        Tuner(path, Settings(OPTIONS), tmp_path / "other" / "tuned.json")
    tuner = Tuner(path, Settings(OPTIONS, trials=4), tmp_path / "tuned.json")
    with tuner.on(two_workers, lambda _: None) as evaluate:
        assert tuner.run(evaluate).planner.us > 0


def test_a_tuned_graph_that_takes_another_time_is_not_written(tmp_path: Path) -> None:
    tuner = Tuner(written(tmp_path, CHAIN), Settings(OPTIONS, trials=4))
    honest = here(tuner)

    def lying(plans: Sequence[tuple[int, ...]]) -> list[Score]:
        return [replace(score, simulated_us=0.5 * (score.simulated_us or 1.0)) for score in honest(plans)]

    with pytest.raises(SpyrecError, match="SPY0849"):
        tuner.run(lying)


def _without(missing: str, find: Callable[[str], object]) -> Callable[[str], object]:
    def found(name: str) -> object:
        return None if name == missing else find(name)

    return found


@pytest.mark.parametrize("missing", ["distributed", "optuna"])
def test_what_is_not_installed_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    places = {"distributed": "spyrec.sweep.dask_names", "optuna": "spyrec.sweep.tuning.sampler"}
    real = import_module(places[missing]).find_spec
    monkeypatch.setattr(f"{places[missing]}.find_spec", _without(missing, real))
    code, _, errors = run(capsys, str(written(tmp_path, CHAIN)))
    assert code == 1
    assert {"distributed": "SPY0840", "optuna": "SPY0846"}[missing] in errors


# --- the page ---


def test_the_page_shows_what_is_printed(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "tuning.md").read_text(encoding="utf-8")
    (shown,) = [block for block in page.split("```text\n")[1:] if block.startswith("softmax: ")]
    data: Data = {**graph([node("y", "softmax", "x", dim=1)], (512, 1024)), "name": "softmax"}
    found = tuned(tmp_path, data, Settings({}, kinds=(ChoiceKind.LAYOUT,), is_checked=False))
    assert shown.split("```")[0].splitlines() == [line.rstrip() for line in text_lines(found)]
