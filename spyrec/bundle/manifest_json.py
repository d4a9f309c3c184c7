"""``manifest.json`` and ``spyrec.args/1`` tables: read through pydantic at the border, written in a fixed key order."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Annotated, Literal, TypeVar

import orjson
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema
from pydantic_core import ErrorDetails

from spyrec.bundle.manifest import Argument, Manifest, PlanStep, Role, TripCount
from spyrec.bundle.plan_json import LxModel, TrafficModel, read_plan, write_plan
from spyrec.bundle.tile_contract import TileContract
from spyrec.bundle.tile_contract_json import TileContractModel, contract_from_model, write_tile_contract
from spyrec.diagnostics import Diagnostic, Location, SpyrecError, capped, standing_for
from spyrec.diagnostics.json_reading import JsonValue, load_json
from spyrec.diagnostics.source_text import SourceText
from spyrec.hardware.dtypes import DeviceFormat, DType
from spyrec.hardware.target import Target
from spyrec.layout.symbolic_dim import SymbolicDim
from spyrec.plan_record import PlanOptions

BUNDLE_FORMAT = "spyrec.bundle/1"
ARGS_FORMAT = "spyrec.args/1"

MALFORMED_MANIFEST = "SPY0610"
"""Code of a manifest or argument table of another version or form."""

_HINT = "`spyrec schema bundle` describes the form; a bundle that was damaged is best written again"

MAX_RANK = 32
MAX_ARGUMENTS = 100_000
MAX_FILES = 1_000_000

_FORMATS = [item.name for item in DeviceFormat if item.elements_per_stick is not None]


def _format_by_name(value: object) -> object:
    if isinstance(value, str) and value in _FORMATS:
        return DeviceFormat[value]
    raise ValueError("expected one of " + ", ".join(_FORMATS))


Name = Annotated[str, Field(min_length=1, max_length=256, pattern=r"^[^\x00-\x1f]+$")]
RelativePath = Annotated[str, Field(min_length=1, max_length=1024)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0, lt=1 << 63)]
Index = Annotated[int, Field(ge=0, lt=1 << 16)]
Extents = Annotated[list[Annotated[int, Field(ge=1, lt=1 << 63)]], Field(max_length=MAX_RANK)]
DeviceExtents = Annotated[list[Annotated[int, Field(ge=1, lt=1 << 63)]], Field(min_length=1, max_length=MAX_RANK)]
Strides = Annotated[list[Annotated[int, Field(gt=-(1 << 63), lt=1 << 63)]], Field(max_length=MAX_RANK)]
HostDType = Annotated[DType, Field(strict=False)]
FormatName = Annotated[DeviceFormat, BeforeValidator(_format_by_name), WithJsonSchema({"enum": _FORMATS})]


class _Model(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class TargetModel(_Model):
    """The device model a bundle was compiled for."""

    name: Name
    cores: Annotated[int, Field(ge=1, le=Target().cores)]
    lx_bytes: Count = Target().lx_bytes
    lx_reserved_fraction: Annotated[float, Field(ge=0.0, le=1.0)] = Target().lx_reserved_fraction
    span_limit_bytes: Count = Target().span_limit_bytes


class PlannedWithModel(_Model):
    """The options that made the plan; absent where spyrec's compiler did not make it."""

    cores: Annotated[int, Field(ge=1, le=Target().cores)]
    fixed_io_layouts: bool
    profile: Name
    lx_planner: Name
    auto_tile: bool


class DciModel(_Model):
    """Paths of the two conversion tables of an argument, relative to the bundle."""

    h2d: RelativePath
    d2h: RelativePath


class ArgumentModel(_Model):
    """One tensor in device memory; strides in elements, ``address`` in bytes.

    ``symbolic_axes``: by axis the symbolic dim that it is; absent where no axis is one.
    """

    name: Name
    role: Annotated[Role, Field(strict=False)]
    arg_index: Index | None
    address: Count | None
    shape: Extents | None
    dtype: HostDType | None
    host_strides: Strides | None
    device_size: DeviceExtents
    stride_map: Strides | None
    device_dtype: FormatName
    dci: DciModel | None
    symbolic_axes: Annotated[list[Name | None], Field(max_length=MAX_RANK)] = Field(default_factory=list[str | None])


class SymbolicDimModel(_Model):
    """What a run may choose for a dim without one extent: ``min`` to ``max``, a multiple of ``multiple_of``."""

    min: Count
    max: Annotated[int, Field(ge=1, lt=1 << 63)]
    multiple_of: Annotated[int, Field(ge=1, lt=1 << 63)]


class OutputModel(_Model):
    """A result of the graph and the argument that holds it."""

    name: Name
    argument: Name


class TripCountModel(_Model):
    """What a value parameter holds: the number of tiles of a symbolic dim, which has at most ``max`` elements."""

    dim: Name
    tile_size: Annotated[int, Field(ge=1, lt=1 << 63)]
    max: Count


class PlanStepModel(_Model):
    """One device program: its directory, and the tensor bound to each of its arguments.

    ``trip_counts``: by the name of each value parameter, what it holds; absent where the program has none.
    """

    program: RelativePath
    arguments: Annotated[list[Name], Field(max_length=MAX_ARGUMENTS)]
    pool_bytes: Count = 0
    trip_counts: Annotated[dict[Name, TripCountModel], Field(max_length=MAX_RANK)] = Field(
        default_factory=dict[str, TripCountModel]
    )


class TileContractsModel(_Model):
    """Which loops a launch may repeat each program in, by the program's directory.

    ``steps``: the programs that join the parts of a result; absent where there are none.
    """

    programs: Annotated[dict[RelativePath, TileContractModel], Field(max_length=MAX_ARGUMENTS)]
    steps: Annotated[list[PlanStepModel], Field(max_length=MAX_ARGUMENTS)] = Field(default_factory=list[PlanStepModel])


class ManifestModel(_Model):
    """``manifest.json``; ``lx``, ``traffic`` and ``tile_contract`` are null where the compiler did not plan them.

    ``symbolic_dims`` is absent where every dim has one extent.
    """

    format: Literal["spyrec.bundle/1"]
    name: Name
    target: TargetModel
    planned_with: PlannedWithModel | None = None
    inputs: Annotated[list[Name], Field(max_length=MAX_ARGUMENTS)]
    outputs: Annotated[list[OutputModel], Field(max_length=MAX_ARGUMENTS)]
    arguments: Annotated[list[ArgumentModel], Field(max_length=MAX_ARGUMENTS)]
    pool_bytes: Count
    lx: LxModel | None = None
    traffic: TrafficModel | None = None
    tile_contract: TileContractsModel | None = None
    plan: Annotated[list[PlanStepModel], Field(max_length=MAX_ARGUMENTS)]
    graph_sha256: Sha256 | None
    symbolic_dims: Annotated[dict[Name, SymbolicDimModel], Field(max_length=MAX_FILES)] = Field(
        default_factory=dict[str, SymbolicDimModel]
    )
    files: Annotated[dict[RelativePath, Sha256], Field(max_length=MAX_FILES)]


class ForeignArgumentModel(_Model):
    """One argument of a bundle without manifest; without ``shape`` it is given and returned in device form."""

    name: Name
    arg_index: Index
    role: Literal["input", "output", "inout"]
    address: Count | None = None
    device_size: DeviceExtents
    device_dtype: FormatName
    shape: Extents | None = None
    dtype: HostDType | None = None
    stride_map: Strides | None = None


class ForeignTableModel(_Model):
    """``spyrec.args/1``: the argument table of a bundle written by others; ``values``: of its value parameters."""

    format: Literal["spyrec.args/1"]
    pool_bytes: Count = 0
    values: Annotated[dict[Name, Count], Field(max_length=MAX_RANK)] = Field(default_factory=dict[str, int])
    arguments: Annotated[list[ForeignArgumentModel], Field(max_length=MAX_ARGUMENTS)]


ModelType = TypeVar("ModelType", bound=BaseModel)


def write_manifest(manifest: Manifest, files: Mapping[str, str]) -> bytes:
    """Return the bytes of ``manifest.json``; ``files`` are SHA-256 digests by relative path."""
    content = {
        "format": BUNDLE_FORMAT,
        "name": manifest.name,
        "target": asdict(manifest.target),
        "planned_with": None if manifest.planned_with is None else asdict(manifest.planned_with),
        "inputs": list(manifest.inputs),
        "outputs": [{"name": name, "argument": argument} for name, argument in manifest.outputs],
        "arguments": [_argument(item) for item in manifest.arguments],
        "pool_bytes": manifest.pool_bytes,
        **write_plan(manifest.figures),
        "tile_contract": _tile_contracts(manifest),
        "plan": [_step(step) for step in manifest.plan],
        "graph_sha256": manifest.graph_sha256,
        **_symbolic_dims(manifest),
        "files": dict(sorted(files.items())),
    }
    return orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _tile_contracts(manifest: Manifest) -> dict[str, object] | None:
    if not manifest.tile_contracts:
        return None
    programs = {name: write_tile_contract(item) for name, item in manifest.tile_contracts.items()}
    steps = {"steps": [_step(step) for step in manifest.tile_steps]} if manifest.tile_steps else {}
    return {"programs": programs, **steps}


def _symbolic_dims(manifest: Manifest) -> dict[str, object]:
    if not manifest.symbolic_dims:
        return {}
    dims = {
        name: {"min": dim.minimum, "max": dim.maximum, "multiple_of": dim.multiple_of}
        for name, dim in manifest.symbolic_dims.items()
    }
    return {"symbolic_dims": dims}


def _step(step: PlanStep) -> dict[str, object]:
    shown: dict[str, object] = {
        "program": step.program,
        "arguments": list(step.arguments),
        "pool_bytes": step.pool_bytes,
    }
    if step.trip_counts:
        shown["trip_counts"] = {
            name: {"dim": item.dim, "tile_size": item.tile_size, "max": item.max_elements}
            for name, item in step.trip_counts.items()
        }
    return shown


def _argument(item: Argument) -> dict[str, object]:
    return {
        "name": item.name,
        "role": item.role.value,
        "arg_index": item.arg_index,
        "address": item.address,
        "shape": item.shape,
        "dtype": None if item.dtype is None else item.dtype.value,
        "host_strides": item.host_strides,
        "device_size": item.device_size,
        "stride_map": item.stride_map,
        "device_dtype": item.device_dtype.name,
        "dci": None if item.dci is None else {"h2d": item.dci["h2d"], "d2h": item.dci["d2h"]},
        **({"symbolic_axes": item.symbolic_axes} if item.symbolic_axes else {}),
    }


def bundle_schema() -> str:
    """Return the text of ``schemas/bundle.schema.json``: the manifest, with the argument table beside it."""
    manifest = ManifestModel.model_json_schema()
    table = ForeignTableModel.model_json_schema()
    definitions = {**manifest.pop("$defs"), **table.pop("$defs"), "ForeignTableModel": table}
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "manifest.json of a bundle"}
    return json.dumps({**manifest, **head, "$defs": definitions}, indent=2, sort_keys=True) + "\n"


def read_manifest(text: bytes, file: str) -> tuple[Manifest, dict[str, str], Location]:
    """Read ``manifest.json``; return it, the digests of the files, and the place of the manifest.

    Errors: SPY0101 to SPY0104 for the text, SPY0610 for another version, an unknown key or a wrong type, SPY0963 and
    SPY0301 to SPY0319 for a tile contract that contradicts itself.
    """
    model, location = _validated(ManifestModel, text, file, BUNDLE_FORMAT)
    manifest = Manifest(
        name=model.name,
        target=Target(**model.target.model_dump()),
        arguments=tuple(_from_model(item) for item in model.arguments),
        inputs=tuple(model.inputs),
        outputs=tuple((item.name, item.argument) for item in model.outputs),
        plan=tuple(map(_step_from_model, model.plan)),
        pool_bytes=model.pool_bytes,
        graph_sha256=model.graph_sha256,
        symbolic_dims={
            name: SymbolicDim(dim.min, dim.max, dim.multiple_of) for name, dim in model.symbolic_dims.items()
        },
        figures=read_plan(model.lx, model.traffic),
        planned_with=None if model.planned_with is None else PlanOptions(**model.planned_with.model_dump()),
        tile_contracts=_contracts_from_model(model.tile_contract, location.child("tile_contract", "programs")),
        tile_steps=() if model.tile_contract is None else tuple(map(_step_from_model, model.tile_contract.steps)),
    )
    return manifest, model.files, location


def _contracts_from_model(model: TileContractsModel | None, place: Location) -> dict[str, TileContract]:
    programs = {} if model is None else model.programs
    return {name: contract_from_model(item, place.child(name)) for name, item in programs.items()}


def _step_from_model(step: PlanStepModel) -> PlanStep:
    counts = {name: TripCount(item.dim, item.tile_size, item.max) for name, item in step.trip_counts.items()}
    return PlanStep(step.program, tuple(step.arguments), step.pool_bytes, counts)


def _from_model(item: ArgumentModel) -> Argument:
    return Argument(
        name=item.name,
        role=item.role,
        arg_index=item.arg_index,
        address=item.address,
        shape=_optional(item.shape),
        dtype=item.dtype,
        host_strides=_optional(item.host_strides),
        device_size=tuple(item.device_size),
        stride_map=_optional(item.stride_map),
        device_dtype=item.device_dtype,
        dci=None if item.dci is None else {"h2d": item.dci.h2d, "d2h": item.dci.d2h},
        symbolic_axes=tuple(item.symbolic_axes),
    )


def _optional(values: list[int] | None) -> tuple[int, ...] | None:
    return None if values is None else tuple(values)


def read_foreign_table(text: bytes, file: str) -> tuple[ForeignTableModel, Location]:
    """Read a ``spyrec.args/1`` table; errors as for :func:`read_manifest`."""
    return _validated(ForeignTableModel, text, file, ARGS_FORMAT)


def _validated(model: type[ModelType], text: bytes, file: str, version: str) -> tuple[ModelType, Location]:
    data, source = _load(text, file)
    location = Location(file, "", source=source)
    _require_version(data, version, location)
    try:
        return model.model_validate(data), location
    except ValidationError as error:
        found = capped(error.errors(include_url=False), lambda item: item["type"])
        raise SpyrecError([standing_for(_diagnostic(item, location), count) for item, count in found]) from None


def _load(text: bytes, file: str) -> tuple[JsonValue, SourceText]:
    try:
        return load_json(text, file)
    except SpyrecError as error:
        raise SpyrecError([replace(item, hint=item.hint or _HINT) for item in error.diagnostics]) from None


def _require_version(data: JsonValue, version: str, location: Location) -> None:
    found = data.get("format") if isinstance(data, dict) else None
    if found == version:
        return
    shown = f'"{found[:80]}"' if isinstance(found, str) else "absent or no text"
    place = location.child("format") if found is not None else location
    hint = "the file is of another kind, or of another version of spyrec"
    raise SpyrecError([Diagnostic(MALFORMED_MANIFEST, f'format is {shown}, expected "{version}"', place, hint=hint)])


def _diagnostic(error: ErrorDetails, location: Location) -> Diagnostic:
    message = error["msg"]
    place = location.child(*(token for token in error["loc"] if token != "[key]"))
    return Diagnostic(MALFORMED_MANIFEST, message[:1].lower() + message[1:], place, hint=_HINT)
