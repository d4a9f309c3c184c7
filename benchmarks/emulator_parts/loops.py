"""One add as a bundle of others: from two nested loops a stick at a time, or in one operation; read back from files."""

from __future__ import annotations

import json
import tempfile
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np

from benchmarks.device_launch import DeviceLaunch
from spyrec.bundle.bundle import load_foreign
from spyrec.cli import main
from spyrec.hardware.target import SEGMENT_BYTES

_LANES = 64

Record = dict[str, object]


def looped_add(rows: int, sticks: int, cores: int = 1) -> DeviceLaunch:
    """Return an add of [rows, 64 * sticks] that executes its SuperDSC for each ``cores`` rows and each stick.

    A core adds one stick at a time; its three addresses are symbols of the program.
    """
    inner: Record = {"count": sticks, "tiled_symbols": ["c"], "body": [_add(rows, sticks, (cores, 1), cores)]}
    outer: Record = {"count": rows // cores, "tiled_symbols": ["r"], "body": [{"loop": inner}]}
    return _ready({"loop": outer}, rows, sticks)


def whole_add(rows: int, sticks: int) -> DeviceLaunch:
    """Return the same add as one SuperDSC."""
    return _ready(_add(rows, sticks, (rows, sticks), 1), rows, sticks)


def _add(rows: int, sticks: int, tile: tuple[int, int], cores: int) -> Record:
    """Return the OpSpec of one tile of the add, rows and sticks, its rows divided among cores."""
    sizes = {"r": tile[0], "c": tile[1] * _LANES}
    divisions = {"r": cores, "c": 1}
    is_tiled = (rows, sticks) != tile
    return {
        "op": "add",
        "is_reduction": False,
        "iteration_space": [{"symbol": s, "size": size, "work_division": divisions[s]} for s, size in sizes.items()],
        "op_info": {},
        "tiled_symbols": list(sizes) if is_tiled else [],
        "args": [_operand(index, rows, sticks) for index in range(3)],
    }


def _operand(index: int, rows: int, sticks: int) -> Record:
    return {
        "is_input": index < 2,
        "arg_index": index,
        "device_dtype": "SEN169_FP16",
        "device_size": [sticks, rows, _LANES],
        "device_coordinates": ["floor(c / 64)", "r", "Mod(c, 64)"],
        "allocation": {"hbm": index * SEGMENT_BYTES},
        "stride_map": [_LANES, sticks * _LANES, 1],
        "per_tile_fixed": False,
        "name": None,
    }


def _table(rows: int, sticks: int) -> Record:
    common = {"device_size": [sticks, rows, _LANES], "device_dtype": "SEN169_FP16", "dtype": "float16"}
    host = {"shape": [rows, sticks * _LANES], "stride_map": [_LANES, sticks * _LANES, 1]}
    arguments = [
        {"name": f"t{i}", "arg_index": i, "role": role, "address": i * SEGMENT_BYTES, **common, **host}
        for i, role in enumerate(("input", "input", "output"))
    ]
    return {"format": "spyrec.args/1", "pool_bytes": 0, "arguments": arguments}


def _ready(spec: Record, rows: int, sticks: int) -> DeviceLaunch:
    file: Record = {"format": "spyrec.opspec/1", "symbolic_args": True, "unroll_loops": False, "specs": [spec]}
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "opspecs.json").write_text(json.dumps(file), encoding="utf-8")
        (directory / "args.json").write_text(json.dumps(_table(rows, sticks)), encoding="utf-8")
        with redirect_stdout(StringIO()):  # the benchmark's own output is JSON
            assert main(["codegen", str(directory / "opspecs.json"), "-o", str(directory / "bundle")]) == 0
        bundle = load_foreign(directory / "bundle", directory / "args.json")
    generator = np.random.Generator(np.random.PCG64(0))
    shape = (rows, sticks * _LANES)
    data = {f"t{i}": generator.standard_normal(shape, dtype=np.float32).astype(np.float16) for i in range(2)}
    return DeviceLaunch(bundle, data)
