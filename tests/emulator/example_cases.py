"""The reference examples as kernels: programs, SuperDSCs, and the argument tables their OpSpecs describe."""

# It walks JSON as it stands in the file, whose members have no declared types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportMissingTypeArgument=false
# pyright: reportUnknownParameterType=false

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from spyrec.bundle.mlir_parser import parse_program
from spyrec.bundle.program import Program, SdscExecute
from spyrec.bundle.superdsc import SuperDsc
from spyrec.bundle.superdsc_reader import parse_superdsc
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.hardware.target import SEGMENT_BYTES
from spyrec.runtime.device import ArgumentTable, TableEntry

EXAMPLES = Path(__file__).parent.parent / "fixtures" / "examples"

SEPARATE_KERNELS = ("add_broadcast", "dtype_cast")
"""Folders that hold two kernels which see the same argument with different sizes (A21)."""

WRONG_STEPS = ("nested_loop_symbolic", "nested_loop_unrolled")
"""Examples whose own addresses are wrong: rules V10 and V6 refuse them."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """One program with its files and table; ``documents`` are the files as parsed JSON."""

    name: str
    program: Program
    superdscs: Mapping[str, SuperDsc]
    documents: Mapping[str, dict[str, object]]
    table: ArgumentTable


def _argument_specs(specs: list[dict]) -> Iterator[dict]:
    for spec in specs:
        if "loop" in spec:
            yield from _argument_specs(spec["loop"]["body"])
        else:
            yield from spec["args"]


def table_of(specs: list[dict], *, has_pool: bool) -> ArgumentTable:
    entries: dict[int, TableEntry] = {}
    pool_bytes = 0
    for argument in _argument_specs(specs):
        size = 128
        for extent in argument["device_size"][:-1]:
            size *= extent
        if "pool" in argument["allocation"]:
            pool_bytes = max(pool_bytes, argument["allocation"]["pool"] + size)
        if argument["arg_index"] < 0:
            continue
        index = argument["arg_index"]
        entries[index] = TableEntry(
            name=f"arg{index}",
            arg_index=index,
            device_size=tuple(argument["device_size"]),
            device_dtype=DeviceFormat[argument["device_dtype"]],
            baked_base=(index + has_pool) * SEGMENT_BYTES,
            size_bytes=size,
        )
    return ArgumentTable(tuple(entries[index] for index in sorted(entries)), pool_bytes)


def load_kernel(name: str, only: int | None = None) -> Kernel:
    folder = EXAMPLES / name
    specs = json.loads((folder / "opspecs.json").read_text())["specs"]
    program = parse_program((folder / "bundle.mlir").read_text(), "bundle.mlir")
    files = sorted(path.name for path in folder.glob("sdsc_*.json"))
    if only is not None:
        specs, files = [specs[only]], [f"sdsc_{only}.json"]
        body = tuple(
            item for item in program.body if not isinstance(item, SdscExecute) or item.sdsc_filename == files[0]
        )
        program = Program(program.maps, program.parameters, body)
    texts = {file: (folder / file).read_text() for file in files}
    has_pool = any("pool" in argument["allocation"] for argument in _argument_specs(specs))
    return Kernel(
        name if only is None else f"{name}-{only}",
        program,
        {file: parse_superdsc(text, file) for file, text in texts.items()},
        {file: json.loads(text) for file, text in texts.items()},
        table_of(specs, has_pool=has_pool),
    )


def right_kernels() -> list[Kernel]:
    """Every example that means what it says, one kernel each."""
    kernels: list[Kernel] = []
    for folder in sorted(EXAMPLES.iterdir()):
        if folder.name in SEPARATE_KERNELS:
            kernels += [load_kernel(folder.name, only) for only in range(2)]
        elif folder.name not in WRONG_STEPS:
            kernels.append(load_kernel(folder.name))
    return kernels
