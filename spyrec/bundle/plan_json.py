"""``lx`` and ``traffic`` of ``manifest.json``: what the compiler predicts, and why it planned so."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from spyrec.plan_record import (
    Decision,
    LxFigures,
    PlanFigures,
    PlannedLoop,
    PlannedOperation,
    PlannedTensor,
    PlannerName,
    PlanNote,
    ResidentTensor,
)

MOST_ENTRIES = 1_000_000
MOST_LOOPS = 64

Count = Annotated[int, Field(ge=0, lt=1 << 63)]
Text = Annotated[str, Field(max_length=4096)]
Microseconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Loops = Annotated[tuple[Count, ...], Field(max_length=MOST_LOOPS, strict=False)]

_US_DIGITS = 6  # a picosecond: what differs beyond is the machine's, not the model's


class _Model(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class PlannerModel(_Model):
    """Who placed the tensors in the scratchpads."""

    name: Text
    version: Text


class ResidentModel(_Model):
    """A tensor in the scratchpads: its bytes of every core, and the operations of its program that it lives between."""

    name: Text
    program: Count
    offset_bytes: Count
    core_bytes: Count
    first: Count
    last: Count


class LxModel(_Model):
    """The cores' scratchpads: bytes that may hold tensors, and the highest one in use plus one."""

    usable_bytes: Count
    peak_bytes: Count
    planner: PlannerModel | None = None
    tensors: Annotated[list[ResidentModel], Field(max_length=MOST_ENTRIES)] = Field(default_factory=list[ResidentModel])


class OperationModel(_Model):
    """An operation, all its executions together; ``place``: its position in program number ``program``."""

    program: Count
    place: Count
    op: Text
    output: Text
    loops: Loops
    executions: Count
    cores: Count
    slices: Annotated[dict[Text, Count], Field(max_length=MOST_LOOPS)]
    hbm_read_bytes: Count
    hbm_write_bytes: Count
    hbm_core_read_bytes: Count
    flops: Count
    simulated_us: Microseconds


class TensorModel(_Model):
    """A tensor: where it lies (``argument``, ``pool``, ``lx``) and the device memory traffic of its uses."""

    name: Text
    role: Text
    memory: Text
    size_bytes: Count
    hbm_read_bytes: Count
    hbm_write_bytes: Count


class LoopModel(_Model):
    """A loop, and what the operations inside do in the whole run."""

    number: Count
    count: Count
    dim: Text
    tile: Count
    hbm_read_bytes: Count
    hbm_write_bytes: Count
    simulated_us: Microseconds


class NoteModel(_Model):
    """A decision of the planner; ``saved_*``: by how much the alternative is worse."""

    subject: Text
    decision: Annotated[Decision, Field(strict=False)]
    reason: Text
    alternative: Text | None
    saved_bytes: Annotated[int, Field(gt=-(1 << 63), lt=1 << 63)]
    saved_us: Annotated[float, Field(allow_inf_nan=False)]


class TrafficModel(_Model):
    """Predicted device memory traffic, work and simulated time of one run, in total and by part.

    ``lower_bound_bytes``: inputs and constants read once, outputs written once.
    """

    hbm_read_bytes: Count
    hbm_write_bytes: Count
    lower_bound_bytes: Count
    flops: Count = 0
    simulated_us: Microseconds = 0.0
    profile: Text = ""
    ops: Annotated[list[OperationModel], Field(max_length=MOST_ENTRIES)] = Field(default_factory=list[OperationModel])
    tensors: Annotated[list[TensorModel], Field(max_length=MOST_ENTRIES)] = Field(default_factory=list[TensorModel])
    loops: Annotated[list[LoopModel], Field(max_length=MOST_ENTRIES)] = Field(default_factory=list[LoopModel])
    decisions: Annotated[list[NoteModel], Field(max_length=MOST_ENTRIES)] = Field(default_factory=list[NoteModel])


def write_plan(figures: PlanFigures | None) -> dict[str, object]:
    """Return the entries ``lx`` and ``traffic``, null where nothing was planned."""
    if figures is None:
        return {"lx": None, "traffic": None}
    lx = figures.lx
    return {
        "lx": {
            "usable_bytes": lx.usable_bytes,
            "peak_bytes": lx.peak_bytes,
            "planner": None if lx.planner is None else {"name": lx.planner.name, "version": lx.planner.version},
            "tensors": [_fields(item, ResidentModel) for item in lx.residents],
        },
        "traffic": {
            "hbm_read_bytes": figures.hbm_read_bytes,
            "hbm_write_bytes": figures.hbm_write_bytes,
            "lower_bound_bytes": figures.lower_bound_bytes,
            "flops": figures.flops,
            "simulated_us": round(figures.simulated_us, _US_DIGITS),
            "profile": figures.profile,
            "ops": [_fields(item, OperationModel) for item in figures.operations],
            "tensors": [_fields(item, TensorModel) for item in figures.tensors],
            "loops": [_fields(item, LoopModel) for item in figures.loops],
            "decisions": [_fields(item, NoteModel) for item in figures.notes],
        },
    }


def _fields(item: object, model: type[_Model]) -> dict[str, object]:
    """Return the fields of a record as JSON, in the model's order."""
    found: dict[str, object] = {}
    for name in model.model_fields:
        value: object = getattr(item, name)
        if isinstance(value, Decision):
            value = value.value
        elif isinstance(value, float):
            value = round(value, _US_DIGITS)
        found[name] = value
    return found


def read_plan(lx: LxModel | None, traffic: TrafficModel | None) -> PlanFigures | None:
    """Return the figures of a manifest, ``None`` where it has none."""
    if lx is None or traffic is None:
        return None
    planner = None if lx.planner is None else PlannerName(lx.planner.name, lx.planner.version)
    return PlanFigures(
        lx=LxFigures(
            lx.usable_bytes,
            lx.peak_bytes,
            planner,
            tuple(ResidentTensor(**item.model_dump()) for item in lx.tensors),
        ),
        hbm_read_bytes=traffic.hbm_read_bytes,
        hbm_write_bytes=traffic.hbm_write_bytes,
        lower_bound_bytes=traffic.lower_bound_bytes,
        flops=traffic.flops,
        simulated_us=traffic.simulated_us,
        profile=traffic.profile,
        operations=tuple(PlannedOperation(**item.model_dump()) for item in traffic.ops),
        tensors=tuple(PlannedTensor(**item.model_dump()) for item in traffic.tensors),
        loops=tuple(PlannedLoop(**item.model_dump()) for item in traffic.loops),
        notes=tuple(PlanNote(**item.model_dump()) for item in traffic.decisions),
    )
