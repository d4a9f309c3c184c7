"""A bundle written anew with other names: files, numbers, symbols, values, maps, arguments and where they begin."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from spyrec.bundle import program as mlir
from spyrec.bundle.mlir_parser import parse_program
from spyrec.bundle.mlir_printer import print_program
from spyrec.bundle.superdsc import Component, Operand, SuperDsc
from spyrec.bundle.superdsc_reader import parse_superdsc
from spyrec.bundle.superdsc_writer import to_json
from spyrec.diagnostics.json_reading import JsonValue
from spyrec.hardware.target import SEGMENT_BYTES

Json = Any


def shuffled(value: JsonValue, rng: random.Random) -> JsonValue:
    """Return JSON with the keys of objects in another order, but where their order says something."""
    if isinstance(value, list):
        return [shuffled(item, rng) for item in value]
    if not isinstance(value, dict):
        return value
    keys = list(value)
    if "name_" not in value and not any(key in value for key in ("mb_", "mb", "out", "INPUT", "OUTPUT", "0")):
        rng.shuffle(keys)
    return {key: shuffled(value[key], rng) for key in keys}


def renumber(source: Path, target: Path, rng: random.Random) -> None:
    """Write the bundle at ``source`` to ``target`` under other names; hashes in the manifest stay as they were."""
    shutil.copytree(source, target)
    manifest = json.loads((target / "manifest.json").read_text())
    for step in manifest["plan"]:
        count = len(step["arguments"])
        places = rng.sample(range(count), count)  # old index -> new one
        is_only = len(manifest["plan"]) == 1
        moves = _moved_arguments(manifest, step, places) if is_only else {}
        if not is_only:
            places = list(range(count))
        step["arguments"] = [name for _, name in sorted(zip(places, step["arguments"], strict=True))]
        _Program(target / step["program"], places, moves, rng).rewrite()
        if step["program"] != ".":
            name = f"kernels/{rng.randrange(100, 999)}{step['program'].rpartition('/')[2]}"
            (target / step["program"]).rename(target / name)
            _rename_digests(manifest, step["program"], name)
            step["program"] = name
    rng.shuffle(manifest["arguments"])
    (target / "manifest.json").write_text(json.dumps(shuffled_top(manifest, rng), indent=rng.choice([None, 1, 4])))


def shuffled_top(manifest: Json, rng: random.Random) -> Json:
    """Return a manifest with its own keys in another order."""
    keys = rng.sample(list(manifest), len(manifest))
    return {key: manifest[key] for key in keys}


def _rename_digests(manifest: Json, old: str, new: str) -> None:
    manifest["files"] = {
        (f"{new}/{name.removeprefix(old + '/')}" if name.startswith(f"{old}/") else name): digest
        for name, digest in manifest["files"].items()
    }


def _moved_arguments(manifest: Json, step: Json, places: Sequence[int]) -> dict[int, int]:
    """Give the arguments of a step the segments of their new places; return the new base by the old one."""
    by_name = {item["name"]: item for item in manifest["arguments"]}
    moves: dict[int, int] = {}
    for old, name in enumerate(step["arguments"]):
        shift = 1 if step.get("pool_bytes") else 0
        moves[by_name[name]["address"]] = (places[old] + shift) * SEGMENT_BYTES
    for old, name in enumerate(step["arguments"]):
        by_name[name]["address"] = moves[by_name[name]["address"]]
        by_name[name]["arg_index"] = places[old]
    return moves


class _Program:
    """One program that is written anew."""

    def __init__(self, folder: Path, places: Sequence[int], moves: Mapping[int, int], rng: random.Random) -> None:
        self.folder, self.places, self.moves, self.rng = folder, places, moves, rng
        self.values: dict[str, str] = {}
        self.maps: dict[str, str] = {}
        self.files: dict[str, str] = {}
        self.symbols: dict[str, dict[int, int]] = {}

    def rewrite(self) -> None:
        program = parse_program((self.folder / "bundle.mlir").read_bytes())
        numbers = self.rng.sample(range(1000, 9000), len(list(self.folder.glob("sdsc_*.json"))))
        for number, path in zip(numbers, sorted(self.folder.glob("sdsc_*.json")), strict=True):
            self.files[path.name] = f"sdsc_{number}.json"
            dsc = self.superdsc(path.name, parse_superdsc(path.read_bytes()), number)
            path.unlink()
            text = json.dumps(shuffled(to_json(dsc), self.rng), indent=self.rng.choice([None, 2]))
            (self.folder / self.files[path.name]).write_text(text)
        self.maps = {
            item.name: f"m{place}" for place, item in enumerate(self.rng.sample(program.maps, len(program.maps)))
        }
        maps = [replace(item, name=self.maps[item.name]) for item in program.maps]
        parameters = [replace(item, name=self.parameter(item.name)) for item in program.parameters]
        self.rng.shuffle(parameters)
        changed = mlir.Program(tuple(maps), tuple(parameters), self.body(program.body))
        (self.folder / "bundle.mlir").write_text(print_program(changed))

    def superdsc(self, name: str, dsc: SuperDsc, number: int) -> SuperDsc:
        ids = {start for item in dsc.operands if item.is_symbolic for start in item.start_addresses}
        renamed = self.rng.sample(range(1, 10_000), len(ids))
        self.symbols[name] = {old: -new for old, new in zip(sorted(ids), renamed, strict=True)}
        operands = tuple(self.operand(name, item) for item in dsc.operands)
        return replace(dsc, index=number, operands=operands)

    def operand(self, name: str, item: Operand) -> Operand:
        if item.component is Component.LX:
            return item
        starts = [self.symbols[name].get(start, self.moved(start)) for start in item.start_addresses]
        return replace(item, start_addresses=tuple(starts))

    def moved(self, start: int) -> int:
        base = start // SEGMENT_BYTES * SEGMENT_BYTES
        return self.moves.get(base, base) + start - base

    def parameter(self, name: str) -> str:
        match = mlir.ARGUMENT_PARAMETER.fullmatch(name)
        return name if match is None else f"arg_{self.places[int(match[1])]}_base_addr"

    def value(self, name: str) -> str:
        return self.values.setdefault(name, f"v{self.rng.randrange(1 << 40)}")

    def body(self, body: Sequence[mlir.Statement]) -> tuple[mlir.Statement, ...]:
        return tuple(self.statement(item) for item in body)

    def statement(self, item: mlir.Statement) -> mlir.Statement:
        match item:
            case mlir.ArgumentExtract(result, argument):
                return mlir.ArgumentExtract(self.value(result), self.parameter(argument))
            case mlir.Constant(result, value):
                return mlir.Constant(self.value(result), value)
            case mlir.Add(result, left, right):
                sides = [self.value(left), self.value(right)]
                self.rng.shuffle(sides)
                return mlir.Add(self.value(result), sides[0], sides[1])
            case mlir.AffineApply(result, map_name, dims, symbol):
                found = tuple(map(self.value, dims))
                return mlir.AffineApply(self.value(result), self.maps[map_name], found, self.value(symbol))
            case mlir.DeviceMemoryAllocate(result, size_bytes):
                return mlir.DeviceMemoryAllocate(self.value(result), size_bytes)
            case mlir.For(induction, lower, upper, step, inner):
                bounds = self.value(lower), self.value(upper), self.value(step)
                return mlir.For(self.value(induction), *bounds, self.body(inner))
            case mlir.SdscExecute(file, operands, symbol_ids):
                if symbol_ids is None:
                    return mlir.SdscExecute(self.files[file], tuple(map(self.value, operands)))
                pairs = [
                    (self.value(name), self.symbols[file][number])
                    for name, number in zip(operands, symbol_ids, strict=True)
                ]
                self.rng.shuffle(pairs)
                return mlir.SdscExecute(
                    self.files[file], tuple(name for name, _ in pairs), tuple(number for _, number in pairs)
                )
