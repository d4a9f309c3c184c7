"""Foreign bundles whose SuperDSCs have several DSCs or data DSCs, through the command line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import spyrec
from spyrec.bundle.bundle import Bundle, load_foreign
from spyrec.bundle.mlir_printer import print_program
from spyrec.bundle.superdsc import SuperDsc
from spyrec.bundle.superdsc_writer import to_bytes
from spyrec.cli import main
from spyrec.compare.lx_map import lx_maps
from spyrec.runtime.device import ArgumentTable
from tests.emulator.builders import program_of, superdsc_of, table_of
from tests.emulator.test_data_dscs import FOUR, MIXED, in_hbm, lx_tensor, mixed, only_moving, steps
from tests.emulator.test_data_dscs import table as table_of_moves
from tests.emulator.test_several_dscs import add
from tests.handmade import add_bundle
from tests.support.pieces import data_dsc
from tests.support.unequal import divided, with_schedule


def written(directory: Path, superdsc: SuperDsc, table: ArgumentTable) -> tuple[str, str]:
    """Write a bundle without a manifest, and a table whose last argument is the result."""
    bundle = directory / "bundle"
    bundle.mkdir()
    (bundle / "bundle.mlir").write_text(print_program(program_of()))
    (bundle / "sdsc_0.json").write_bytes(to_bytes(superdsc))
    last = len(table.entries) - 1
    arguments = [
        {
            "name": entry.name,
            "arg_index": entry.arg_index,
            "role": "output" if entry.arg_index == last else "input",
            "address": entry.baked_base,
            "device_size": list(entry.device_size),
            "device_dtype": entry.device_dtype.name,
        }
        for entry in table.entries
    ]
    args = directory / "args.json"
    args.write_text(json.dumps({"format": "spyrec.args/1", "pool_bytes": 0, "arguments": arguments}))
    return str(bundle), str(args)


@pytest.mark.parametrize("options", [[], ["--engine", "reference"], ["--sanitize", "all"]])
def test_rows_that_do_not_divide(options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    superdsc = divided(superdsc_of(add(7, 192)), {"rows": (3, 2, 2)})
    bundle, args = written(tmp_path, superdsc, table_of(add(7, 192)))
    inputs = {
        name: np.random.default_rng(seed).integers(-9, 9, (3, 7, 64)) for seed, name in enumerate(("arg0", "arg1"))
    }
    given = {name: values.astype(np.float32) for name, values in inputs.items()}
    np.savez(tmp_path / "x.npz", **given)  # pyright: ignore[reportArgumentType] -- the stub takes names for options
    files = ["--inputs", str(tmp_path / "x.npz"), "--outputs", str(tmp_path / "y.npz")]
    assert main(["check", bundle]) == 0
    assert main(["run", bundle, "--args", args, *files, "--json", *options]) == 0
    report = json.loads(capsys.readouterr().out.split("\n", 1)[1])
    assert [(item["file"], item["cores"]) for item in report["stats"]["ops"]] == [
        ("sdsc_0.json", 1),
        ("sdsc_0.json", 2),
    ]
    with np.load(tmp_path / "y.npz") as archive:
        assert np.array_equal(archive["arg2"], inputs["arg0"] + inputs["arg1"])


def test_data_and_computation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle, args = written(tmp_path, mixed(steps(FOUR, *MIXED)), table_of_moves())
    assert main(["check", bundle]) == 0
    assert main(["check", f"{bundle}/sdsc_0.json"]) == 0
    assert "add on 4 cores, 3 operands, 1 DSC, 2 data DSCs" in capsys.readouterr().out
    assert main(["run", bundle, "--args", args, "--random", "1", "--sanitize", "all"]) == 0


def test_a_missing_barrier_is_a_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both operands are brought by core of the result, but for the order that brings one over the other."""
    superdsc = mixed(steps(FOUR, [0, -1, 0, 0], [1, -1, 0, 0], [-1, 0, 0, 0]))
    bundle, args = written(tmp_path, superdsc, table_of_moves())
    assert main(["run", bundle, "--args", args, "--random", "1", "--sanitize", "race"]) == 0  # each core has its own
    assert "race" not in capsys.readouterr().err


def test_pieces_behind_the_tensors_of_a_target_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = lx_tensor("one", {"r": (2, 2, 2, 2), "c": (256,)}, 1_700_000 // 128 * 128)
    superdsc = only_moving([data_dsc(in_hbm("x", 0), one, FOUR)], steps(FOUR, [0, -1, 0, 0]))
    bundle, _ = written(tmp_path, superdsc, table_of_moves())
    main(["check", bundle, "--target", "2026-08"])
    assert 'piece "p0" of "0_STCDPOpLx_dataop" ends at byte' in capsys.readouterr().err


def test_what_check_says_of_a_file_that_cannot_be_followed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = mixed(steps(FOUR, *MIXED))
    assert whole.schedule is not None
    late = {**whole.schedule.steps, 2: whole.schedule.steps[2][1:]}
    bundle, _ = written(tmp_path, with_schedule(whole, steps=late), table_of_moves())
    assert main(["check", bundle]) == 1
    assert "error[SPY0622]: cores 0 and 2 of DSC 0 have different steps, from step 0 on" in capsys.readouterr().err


def test_the_map_of_the_scratchpads_shows_pieces(tmp_path: Path) -> None:
    bundle, args = written(tmp_path, mixed(steps(FOUR, *MIXED)), table_of_moves())
    (found,) = lx_maps(load_foreign(Path(bundle), Path(args)))
    assert found.cores == (0, 1, 2, 3)
    assert {(region.first, region.past) for region in found.regions} == {(0, 1024), (65536, 66560)}


def test_a_bundle_with_a_manifest_is_saved_loaded_and_run(tmp_path: Path) -> None:
    """The program of the reference example, divided anew: 700, 200 and 124 rows of 1024."""
    bundle = add_bundle(tmp_path)
    (program,) = bundle.programs
    (old,) = program.superdscs.values()
    alone = replace(
        old,
        core_ids=(0,),
        work_slices=dict.fromkeys(old.iteration, 1),
        core_extent=old.iteration,
        core_work_slices=(dict.fromkeys(old.iteration, 0),),
        operands=tuple(replace(item, start_addresses=(min(item.start_addresses),)) for item in old.operands),
    )
    rows = next(dim for dim, extent in old.iteration.items() if extent == 1024)
    changed = divided(alone, {rows: (700, 200, 124)})
    replace(bundle, programs=(replace(program, superdscs={changed.file_name: changed}),)).save(tmp_path / "saved")
    found = Bundle.load(tmp_path / "saved")
    assert found.programs[0].superdscs == {changed.file_name: changed}
    assert main(["check", str(tmp_path / "saved")]) == 0
    x, y = (np.random.default_rng(seed).integers(-99, 99, (1024, 4096)).astype(np.float16) for seed in (0, 1))
    result = spyrec.run(found, {"t0": x, "t1": y})
    assert np.array_equal(result.outputs["t2"], x + y)
