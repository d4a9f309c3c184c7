"""What notebooks show (``_repr_html_``): well-formed, escaped, without script or colour, with the objects' numbers."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Protocol

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spyrec
from spyrec import Bundle, DeviceLayout, RunOptions, RunResult
from spyrec.diagnostics import SpyrecError
from spyrec.hardware.target import STICK_BYTES
from spyrec.notebook import MOST_ROWS, facts, table, text
from spyrec.runtime import ExecutionPlan, LaunchPlan, SpyreTensor, explain_launch
from spyrec.runtime.findings import Finding, Sanitizer
from tests.support.examples import examples
from tests.support.graphs import graph_data, node, random_arrays, tensor

HOSTILE = '</td><script>alert("1")</script>&lt;\u202e\ud800\'" onload=x'

DATA = graph_data(
    [tensor("a", 64, 100), tensor("b", 100, 64)], [node("product", "matmul", "a", "b"), node("c", "relu", "product")],
    ["c"],
)  # fmt: skip

BUNDLE = spyrec.compile(DATA)

TAGS = {"div", "p", "strong", "table", "caption", "thead", "tbody", "tr", "th", "td", "svg", "g", "title", "rect"}
ATTRIBUTES = {
    "style", "scope", "colspan", "role", "aria-label", "width", "height", "fill", "fill-opacity", "stroke", "x", "y",
}  # fmt: skip
STYLES = {"text-align:left", "text-align:right"}
COLOURS = {"currentColor", "none"}


class Shown(Protocol):
    def _repr_html_(self) -> str: ...


@dataclass
class Table:
    """A table as a reader sees it."""

    caption: str = ""
    rows: list[list[str]] = field(default_factory=list[list[str]])

    def column(self, name: str) -> list[str]:
        place = self.rows[0].index(name)
        return [row[place] for row in self.rows[1:]]


class Reader(HTMLParser):
    """Reads what a notebook is given, and refuses all that is not of the few tags that it may have."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.tables: list[Table] = []
        self.lanes: dict[str, list[tuple[float, float]]] = {}
        self._stick = ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS
        given_attributes = dict(attrs)
        assert given_attributes.keys() <= ATTRIBUTES
        assert given_attributes.get("style") in {None, *STYLES}
        assert {given_attributes.get(name) for name in ("fill", "stroke")} <= {None, *COLOURS}
        if tag != "rect" or not self.get_starttag_text().endswith("/>"):  # type: ignore[union-attr]
            self.open.append(tag)
        if tag == "table":
            self.tables.append(Table())
        if tag == "tr":
            self.tables[-1].rows.append([])
        if tag in ("th", "td"):
            self.tables[-1].rows[-1].append("")
        if "fill-opacity" in given_attributes:
            assert given_attributes["x"] is not None
            assert given_attributes["width"] is not None
            self.lanes[self._stick].append((float(given_attributes["x"]), float(given_attributes["width"])))

    def handle_endtag(self, tag: str) -> None:
        if self.open and self.open[-1] == tag:
            self.open.pop()
        else:
            assert tag == "rect"

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.open[-1] == "caption":
            self.tables[-1].caption += data
        elif self.open[-1] in ("th", "td"):
            self.tables[-1].rows[-1][-1] += data
        elif self.open[-1] == "title":
            self._stick = data
            self.lanes[data] = []

    def handle_comment(self, data: str) -> None:
        pytest.fail(f"a comment: {data}")

    def handle_decl(self, decl: str) -> None:
        pytest.fail(f"a declaration: {decl}")

    def table(self, caption: str) -> Table:
        (found,) = [item for item in self.tables if item.caption == caption]
        return found

    @property
    def facts(self) -> dict[str, str]:
        return {row[0]: row[1] for item in self.tables if not item.caption for row in item.rows}


def read(value: Shown) -> Reader:
    html = value._repr_html_()  # pyright: ignore[reportPrivateUsage] -- the name is the notebooks'
    html.encode()
    return Reader(html)


def number(cell: str) -> int:
    return int(cell.replace(",", ""))


@pytest.fixture(scope="module")
def result() -> RunResult:
    return spyrec.run(BUNDLE, random_arrays(DATA), RunOptions(check=True))


@pytest.fixture(scope="module")
def plan() -> LaunchPlan:
    with spyrec.open_device() as device:
        shapes = [(256, 100), (100, 64), (256, 64)]
        return explain_launch(ExecutionPlan(BUNDLE), [SpyreTensor.empty(device, shape, "float16") for shape in shapes])


def test_a_bundle_shows_its_arguments_programs_and_prediction() -> None:
    shown, manifest = read(BUNDLE), BUNDLE.manifest
    assert shown.text.startswith(f"Bundle {manifest.name}")
    arguments = shown.table("arguments")
    assert arguments.column("argument") == [item.name for item in manifest.arguments]
    assert arguments.column("role") == [item.role.value for item in manifest.arguments]
    assert arguments.column("device_size") == [str(list(item.device_size)) for item in manifest.arguments]
    sizes = [STICK_BYTES * int(np.prod(item.device_size[:-1])) for item in manifest.arguments]
    assert list(map(number, arguments.column("bytes"))) == sizes
    programs = shown.table("programs, in order")
    assert programs.column("program") == [step.program for step in manifest.plan]
    assert sum(map(number, programs.column("operations"))) == sum(len(item.superdscs) for item in BUNDLE.programs)
    figures = manifest.figures
    assert figures is not None
    assert shown.facts["predicted time"].startswith(f"{figures.simulated_us:,.3f} us")
    moved = f"{figures.hbm_read_bytes + figures.hbm_write_bytes:,} bytes, at least {figures.lower_bound_bytes:,}"
    assert shown.facts["device memory traffic"] == moved


def test_a_bundle_of_others_shows_what_is_known() -> None:
    manifest = replace(BUNDLE.manifest, figures=None, dialect=None)
    facts_shown = read(replace(BUNDLE, manifest=manifest)).facts
    assert "predicted time" not in facts_shown
    assert "dialect" not in facts_shown


def test_a_result_shows_outputs_verdicts_and_counters(result: RunResult) -> None:
    shown = read(result)
    assert shown.text.startswith("RunResult ok")
    assert shown.table("outputs").rows[1:] == [["c", "float16", "[64, 64]"]]
    assert result.check is not None
    report = result.check["c"]
    check = shown.table("check")
    assert check.column("error/bound") == [f"{report.bound_ratio:.3g}"]
    assert check.column("worst element") == [str(list(report.worst.index))]
    assert number(shown.facts["read from device memory"]) == result.stats.total.hbm_read_bytes
    assert number(shown.facts["flops"]) == result.stats.total.flops
    (operations,) = [item for item in shown.tables if item.caption.startswith("operations that take longest")]
    times = [float(cell.replace(",", "")) for cell in operations.column("simulated us")]
    assert times == sorted(times, reverse=True)
    wanted = sorted((item.simulated_us or 0.0 for item in result.stats.ops), reverse=True)
    assert times == pytest.approx(wanted, abs=5e-4)
    assert sorted(operations.column("file")) == sorted(item.file for item in result.stats.ops)


def test_a_result_that_is_wrong_says_so(result: RunResult) -> None:
    assert result.check is not None
    report = replace(result.check["c"], ok=False, failed_elements=3)
    finding = Finding(Sanitizer.RACE, "two cores write one stick", op="add", tensor="c")
    shown = read(replace(result, check={"c": report}, sanitizer=(finding,)))
    assert shown.text.startswith("RunResult not ok")
    assert shown.table("check").column("verdict") == ["FAILED"]
    assert shown.table("findings of sanitizers").rows[1] == ["race", "add", "c", finding.message]


def test_a_bisection_shows_how_far_it_came() -> None:
    shown = read(spyrec.run(BUNDLE, random_arrays(DATA), RunOptions(bisect=True)))
    assert "bisect: none guilty" in shown.text


def test_a_launch_plan_shows_every_job_and_how_its_tiles_are_reached(plan: LaunchPlan) -> None:
    shown, (job,) = read(plan), plan
    jobs = shown.table("jobs, in order")
    assert jobs.column("job") == [job.name]
    assert list(map(number, jobs.column("iterations"))) == [job.counts.iterations]
    assert list(map(number, jobs.column("staged bytes"))) == [job.counts.staged_bytes]
    tiles = job.tiles
    assert tiles is not None
    for found in (read(job).table("loops"), read(tiles).table("loops"), shown.table(f"{job.name}: loops")):
        assert list(map(number, found.column("trips"))) == [loop.trips for loop in tiles.loops]
        assert list(map(number, found.column("extent"))) == [loop.extent for loop in tiles.loops]
    arguments = read(tiles).table("arguments")
    assert arguments.column("mode") == [item.mode.name for item in tiles.body.arguments]
    assert number(read(job).facts["control blocks"]) == job.counts.control_blocks


def test_a_launch_as_compiled_shows_its_counts_and_no_tiles() -> None:
    with spyrec.open_device() as device:
        shapes = [(64, 100), (100, 64), (64, 64)]
        found = explain_launch(ExecutionPlan(BUNDLE), [SpyreTensor.empty(device, shape, "float16") for shape in shapes])
    assert read(found).table("jobs, in order").column("launched") == ["as compiled"]
    assert number(read(found[0]).facts["iterations"]) == 1


def test_a_launch_plan_is_a_tuple_of_its_jobs(plan: LaunchPlan) -> None:
    assert isinstance(plan, tuple)
    assert plan == tuple(plan)


def test_an_execution_plan_shows_its_jobs_and_tensors() -> None:
    given_plan = ExecutionPlan(BUNDLE)
    shown = read(given_plan)
    assert shown.table("jobs, in order").column("job") == [job.name for job in given_plan.jobs]
    assert given_plan.signature is not None
    tensors = shown.table("tensors of a launch")
    assert tensors.column("name") == [item.name for item in given_plan.signature]
    assert list(map(number, tensors.column("bytes"))) == [item.size_bytes for item in given_plan.signature]
    read(ExecutionPlan())


LAYOUTS = {
    "stick of a part": DeviceLayout.default((3, 100), "float16"),
    "many sticks": DeviceLayout.default((5, 100, 150), "float16"),
    "one element in each stick": DeviceLayout.default((4, 3), "float16", dim_order=(0, 1, -1)),
    "expanded": DeviceLayout.default((4, 64), "float16", stride=(0, 1)),
    "no dims": DeviceLayout.default((), "float16"),
    "one byte": DeviceLayout.default((2, 200), "int8"),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_layout_shows_its_numbers_and_draws_elements_where_the_mask_has_them(name: str) -> None:
    layout = LAYOUTS[name]
    shown = read(layout)
    assert shown.facts["device_size"] == str(list(layout.device_size))
    assert shown.facts["stride_map"] == str(list(layout.stride_map))
    assert shown.facts["padding"] == f"{100 * layout.padding_fraction:.1f} %"
    dims = shown.table("device dims, outermost first")
    assert list(map(number, dims.column("extent"))) == list(layout.device_size)
    assert list(map(number, dims.column("host step"))) == list(layout.stride_map)
    mask = layout.valid_lane_mask().reshape(-1, layout.device_size[-1])
    drawn = list(shown.lanes.items())
    assert len(drawn) == min(len(mask), 32)
    kept = [*mask[:16], *mask[-16:]] if len(mask) > 32 else list(mask)
    for (label, runs), lanes in zip(drawn, kept, strict=True):
        assert sum(width for _, width in runs) == pytest.approx(64 * lanes.mean(), abs=0.01)
        assert label.endswith("padding") == (not lanes.any())
        if lanes.any():
            first = (runs[0][0] - 4) % 68 / 64 * len(lanes)
            assert first == pytest.approx(int(np.argmax(lanes)), abs=0.01)


def test_labels_name_the_elements_of_a_stick() -> None:
    layout = LAYOUTS["stick of a part"]
    for label in read(layout).lanes:
        index = tuple(map(int, label.removeprefix("stick [").partition("]")[0].split(", ")))
        inside = [layout.host_index((*index, lane)) for lane in range(64)]
        elements = [list(found) for found in inside if found is not None]
        ends = f"elements {elements[0]} to {elements[-1]}" if elements else "padding"
        assert label.endswith(ends)


def test_layouts_without_a_known_host_tensor_or_elements_show_the_device_side() -> None:
    ambiguous = DeviceLayout([2, 3, 64], [64, 64, 1], "SEN169_FP16")
    with pytest.raises(SpyrecError):
        _ = ambiguous.host_shape
    shown = read(ambiguous)
    assert "host shape" not in shown.facts
    assert shown.lanes == {}
    assert shown.facts["memory"].startswith("768 bytes")
    assert read(DeviceLayout.default((0, 64), "float16")).lanes == {}


def test_a_layout_of_a_terabyte_is_shown_at_once() -> None:
    assert len(read(DeviceLayout.default((1 << 20, 1 << 20), "float16")).lanes) == 32


def hostile_bundle(name: str) -> Bundle:
    manifest = BUNDLE.manifest
    arguments = tuple(replace(item, name=name) for item in manifest.arguments)
    plan_steps = tuple(replace(step, arguments=(name,)) for step in manifest.plan)
    return replace(BUNDLE, manifest=replace(manifest, name=name, arguments=arguments, inputs=(name,), plan=plan_steps))


@given(st.text(max_size=40))
@examples(60)
def test_names_are_text_whatever_is_in_them(name: str) -> None:
    written = text(name)
    assert "<" not in written
    assert Reader(f"<p>{written}</p>").text.isprintable()
    if name.isprintable():
        assert Reader(f"<p>{written}</p>").text == name


def test_hostile_names_are_shown_and_do_nothing(result: RunResult, plan: LaunchPlan) -> None:
    visible = HOSTILE.replace("\u202e", "\\u202e").replace("\ud800", "\\ud800")
    job = replace(plan[0], name=HOSTILE)
    values: list[Shown] = [
        hostile_bundle(HOSTILE),
        replace(result, outputs={HOSTILE: result.outputs["c"]}, dtypes={HOSTILE: HOSTILE}),
        replace(result, sanitizer=(Finding(Sanitizer.RACE, HOSTILE),)),
        job,
        LaunchPlan([job]),
    ]
    for value in values:
        assert visible in read(value).text


def test_long_tables_say_how_much_is_left_out() -> None:
    found = Reader(table("rows", ("n",), [(value,) for value in range(MOST_ROWS + 1234)], (0,)))
    assert len(found.tables[0].rows) == MOST_ROWS + 2
    assert found.tables[0].rows[-1] == ["and 1,234 more"]
    assert table("nothing", ("n",), []) == ""
    assert Reader(facts([("a", None), ("b", 0)])).facts == {"b": "0"}


def test_showing_imports_no_compiler_and_no_heavy_library() -> None:
    code = """
import sys
from spyrec import DeviceLayout
DeviceLayout.default((5, 100), "float16")._repr_html_()
print([name for name in ("numba", "sympy", "pydantic", "spyrec.passes", "spyrec.codegen") if name in sys.modules])
"""
    root = Path(__file__).parent.parent
    found = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"
