"""``spyrec run --stats``, ``--trace`` and the ``stats`` of ``--json``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import spyrec
from spyrec.bundle.bundle import load_foreign
from spyrec.cli import main
from spyrec.diagnostics import SpyrecError
from tests.cli.bad_input import tree_of
from tests.foreign import argument_table, copy_example, write_table
from tests.support.traces import problems_of, total

GOLDEN = Path(__file__).parent.parent / "fixtures" / "stats_layernorm.txt"

COUNTERS = [
    "hbm_read_bytes", "hbm_write_bytes", "hbm_core_read_bytes", "dma_h2d_bytes", "dma_d2h_bytes", "lx_peak_bytes",
    "flops", "simulated_us", "simulated_us_uncertainty",
]  # fmt: skip


def arguments_of(directory: Path, example: str) -> list[str]:
    bundle = copy_example(example, directory)
    return ["run", str(bundle), "--args", str(write_table(directory, argument_table(example))), "--random", "1"]


def test_stats_are_a_table_marked_as_simulated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*arguments_of(tmp_path, "layernorm"), "--stats"]) == 0
    assert capsys.readouterr().out == GOLDEN.read_text(encoding="utf-8")


def test_json_has_the_same_counters_per_operation_and_in_total(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments_of(tmp_path, "layernorm"), "--json"]) == 0
    stats = json.loads(capsys.readouterr().out)["stats"]
    assert list(stats["total"]) == COUNTERS
    for operation in stats["ops"]:
        assert list(operation) == ["file", "op", "cores", "executions", *COUNTERS]
    for counter in ("hbm_read_bytes", "hbm_write_bytes", "hbm_core_read_bytes", "flops", "simulated_us"):
        assert stats["total"][counter] == pytest.approx(sum(item[counter] for item in stats["ops"]))
    assert stats["total"]["lx_peak_bytes"] == max(item["lx_peak_bytes"] for item in stats["ops"]) > 0
    assert stats["total"]["dma_h2d_bytes"] > 0


def test_a_trace_is_written_whole_and_the_same_every_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [*arguments_of(tmp_path, "layernorm"), "--json", "--trace", str(tmp_path / "t.json")]
    assert main(arguments) == 0
    stats = json.loads(capsys.readouterr().out)["stats"]["total"]
    first = (tmp_path / "t.json").read_bytes()
    trace = json.loads(first)
    assert problems_of(trace) == []
    assert total(trace, "spyrec.engine", "bytes") == stats["hbm_read_bytes"] + stats["hbm_write_bytes"]
    assert total(trace, "gpu_memcpy", "bytes") == stats["dma_h2d_bytes"] + stats["dma_d2h_bytes"]
    assert trace["otherData"]["simulated"] is True
    assert main(arguments) == 0
    assert (tmp_path / "t.json").read_bytes() == first
    assert not list(tmp_path.glob(".t.json*"))


@pytest.mark.parametrize("where", ["absent/t.json", "."])
def test_a_trace_that_cannot_be_written_is_refused_before_any_work(
    where: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = arguments_of(tmp_path, "add")
    before = tree_of(tmp_path)
    assert main([*arguments, "--trace", str(tmp_path / where), "--outputs", str(tmp_path / "y.npz")]) == 1
    assert "SPY0751" in capsys.readouterr().err
    assert tree_of(tmp_path) == before


def test_the_profile_of_the_times_is_chosen_by_name(tmp_path: Path) -> None:
    bundle = load_foreign(copy_example("layernorm", tmp_path), write_table(tmp_path, argument_table("layernorm")))
    inputs = {
        item.name: np.zeros(item.device_size, np.float32)
        for item in bundle.manifest.arguments
        if item.role.value == "input"
    }
    times: list[float] = []
    for profile in ("datasheet", "calibrated"):
        stats = spyrec.run(bundle, inputs, spyrec.RunOptions(profile=profile)).stats
        assert stats.profile == profile
        assert stats.total.simulated_us is not None
        times.append(stats.total.simulated_us)
    assert times[0] < times[1]
    with pytest.raises(SpyrecError) as error:
        spyrec.run(bundle, inputs, spyrec.RunOptions(profile="fast"))
    assert error.value.diagnostics[0].code == "SPY0750"
