"""The reference bundles as others would run them: an argument table made from each example's OpSpecs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parent / "fixtures" / "examples"


def operations_of(specs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the operations of an OpSpec list in order, loops flattened."""
    found: list[dict[str, Any]] = []
    for spec in specs:
        found += operations_of(spec["loop"]["body"]) if "loop" in spec else [spec]
    return found


def argument_table(example: str, operation: int | None = None) -> dict[str, Any]:
    """Return the ``spyrec.args/1`` table, in device form, of an example or of one of its operations.

    Argument ``i`` is named ``t<i>``; it is an output where some operation writes it.
    """
    specs = operations_of(json.loads((EXAMPLES / example / "opspecs.json").read_bytes())["specs"])
    chosen = specs if operation is None else [specs[operation]]
    table: dict[int, dict[str, Any]] = {}
    pool_bytes = 0
    for argument in (argument for spec in chosen for argument in spec["args"]):
        if "pool" in argument["allocation"]:
            size_bytes = 128
            for extent in argument["device_size"][:-1]:
                size_bytes *= extent
            pool_bytes = max(pool_bytes, argument["allocation"]["pool"] + size_bytes)
        if "hbm" not in argument["allocation"]:
            continue
        index = argument["arg_index"]
        entry = table.setdefault(
            index,
            {
                "name": f"t{index}",
                "arg_index": index,
                "role": "input",
                "address": argument["allocation"]["hbm"],
                "device_size": argument["device_size"],
                "device_dtype": argument["device_dtype"],
            },
        )
        if not argument["is_input"]:
            entry["role"] = "output"
    arguments = [table[index] for index in sorted(table)]
    return {"format": "spyrec.args/1", "pool_bytes": pool_bytes, "arguments": arguments}


def copy_example(example: str, directory: Path) -> Path:
    """Copy an example to a writable directory and return the copy."""
    target = directory / example
    target.mkdir()
    for path in (EXAMPLES / example).iterdir():
        shutil.copyfile(path, target / path.name)
    return target


def write_table(directory: Path, table: dict[str, Any]) -> Path:
    """Write an argument table beside a bundle and return its path."""
    path = directory / "args.json"
    path.write_text(json.dumps(table), encoding="utf-8")
    return path
