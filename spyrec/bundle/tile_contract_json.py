"""The JSON form of a tile contract: read through pydantic at the border, written in a fixed key order."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema

from spyrec.bundle.manifest import Role
from spyrec.bundle.tile_contract import (
    MALFORMED_CONTRACT,
    Combine,
    LoopKind,
    ReductionPrograms,
    TileArgument,
    TileContract,
    TileLoop,
    WriteMode,
)
from spyrec.diagnostics import Diagnostic, Location, SpyrecError, refuse
from spyrec.hardware.dtypes import DeviceFormat, DType
from spyrec.layout.device_layout import DeviceLayout

_MOST_DIMS = 32
_MOST_ENTRIES = 256

_HINT = "the form is described in docs/tiled_launch.md"


def _format_by_name(value: object) -> object:
    return DeviceFormat[value] if isinstance(value, str) and value in DeviceFormat.__members__ else value


Text = Annotated[str, Field(min_length=1, max_length=1024)]
Extents = Annotated[list[Annotated[int, Field(ge=1, lt=1 << 63)]], Field(max_length=_MOST_DIMS)]
Strides = Annotated[list[Annotated[int, Field(ge=-1, lt=1 << 63)]], Field(max_length=_MOST_DIMS)]
Axes = Annotated[list[Text | None], Field(max_length=_MOST_DIMS)]
FormatName = Annotated[
    DeviceFormat, BeforeValidator(_format_by_name), WithJsonSchema({"enum": list(DeviceFormat.__members__)})
]


class _Model(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class LoopModel(_Model):
    """A loop: ``tile`` elements in one iteration; ``combine`` and ``identity`` of a reduction."""

    name: Text
    tile: Annotated[int, Field(ge=1, lt=1 << 63)]
    kind: Annotated[LoopKind, Field(strict=False)]
    combine: Annotated[Combine | None, Field(strict=False)] = None
    identity: float | Literal["inf", "-inf"] | None = None


class TileArgumentModel(_Model):
    """One tile of an argument; strides in elements; ``axes`` null where only shapes are known."""

    name: Text
    role: Annotated[Role, Field(strict=False)]
    dtype: Annotated[DType, Field(strict=False)]
    shape: Extents
    host_strides: Strides
    device_size: Extents
    stride_map: Strides
    device_dtype: FormatName
    axes: Axes | None
    write: Annotated[WriteMode, Field(strict=False)]
    takes_strides: bool


class ReductionModel(_Model):
    """The programs around the body of a reduction."""

    init: Text
    combine: Text
    publish: Text
    accumulators: Annotated[list[TileArgumentModel], Field(max_length=_MOST_ENTRIES)] = Field(
        default_factory=list[TileArgumentModel]
    )


class VariantModel(_Model):
    """A contract without variants."""

    program: Text
    loops: Annotated[list[LoopModel], Field(max_length=_MOST_DIMS)]
    arguments: Annotated[list[TileArgumentModel], Field(max_length=_MOST_ENTRIES)]
    is_pointwise: bool
    is_idempotent: bool
    needs_correction: bool
    reduction: ReductionModel | None = None
    first: Text | None = None


class TileContractModel(VariantModel):
    """The contract of one device program and of its variants for remainders."""

    variants: Annotated[list[VariantModel], Field(max_length=_MOST_ENTRIES)] = Field(default_factory=list[VariantModel])


def write_tile_contract(contract: TileContract) -> dict[str, object]:
    """Return a contract under its file keys, in their order."""
    shown = _write(contract)
    if contract.variants:
        shown["variants"] = [_write(variant) for variant in contract.variants]
    return shown


def _write(contract: TileContract) -> dict[str, object]:
    shown: dict[str, object] = {
        "program": contract.program,
        "loops": [_write_loop(loop) for loop in contract.loops],
        "arguments": [_write_argument(argument) for argument in contract.arguments],
        "is_pointwise": contract.is_pointwise,
        "is_idempotent": contract.is_idempotent,
        "needs_correction": contract.needs_correction,
    }
    if contract.reduction is not None:
        around = contract.reduction
        shown["reduction"] = {
            "init": around.init,
            "combine": around.combine,
            "publish": around.publish,
            **({"accumulators": list(map(_write_argument, around.accumulators))} if around.accumulators else {}),
        }
    if contract.first is not None:
        shown["first"] = contract.first
    return shown


def _write_loop(loop: TileLoop) -> dict[str, object]:
    shown: dict[str, object] = {"name": loop.name, "tile": loop.tile, "kind": loop.kind.value}
    if loop.combine is not None:
        shown["combine"] = loop.combine.value
    if loop.identity is not None:
        shown["identity"] = loop.identity if math.isfinite(loop.identity) else str(loop.identity)
    return shown


def _write_argument(argument: TileArgument) -> dict[str, object]:
    layout = argument.layout
    return {
        "name": argument.name,
        "role": argument.role.value,
        "dtype": argument.dtype.value,
        "shape": list(layout.host_shape),
        "host_strides": list(layout.host_strides),
        "device_size": list(layout.device_size),
        "stride_map": list(layout.stride_map),
        "device_dtype": layout.device_dtype.name,
        "axes": None if argument.axes is None else list(argument.axes),
        "write": argument.write.value,
        "takes_strides": argument.takes_strides,
    }


def read_tile_contract(data: object, place: Location | None = None) -> TileContract:
    """Return the contract that parsed JSON holds.

    Errors: SPY0963 for an unknown key, a wrong type or a contradiction; SPY0301 to SPY0319 for a layout that is none.
    """
    try:
        model = TileContractModel.model_validate(data)
    except ValidationError as error:
        where = place or Location()
        raise SpyrecError(
            [
                Diagnostic(MALFORMED_CONTRACT, _lowered(item["msg"]), where.child(*item["loc"]), hint=_HINT)
                for item in error.errors(include_url=False)
            ]
        ) from None
    return contract_from_model(model, place)


def contract_from_model(model: TileContractModel, place: Location | None = None) -> TileContract:
    """Return the contract of a model that JSON has been read into; errors as :func:`read_tile_contract`."""
    try:
        return _from_model(model, tuple(_from_model(variant, ()) for variant in model.variants))
    except SpyrecError as error:
        found = [replace(item, location=place, hint=item.advice or _HINT) for item in error.diagnostics]
        raise SpyrecError(found) from None


def _lowered(message: str) -> str:
    return message[:1].lower() + message[1:]


def _from_model(model: VariantModel, variants: tuple[TileContract, ...]) -> TileContract:
    around = model.reduction
    return TileContract(
        program=model.program,
        loops=tuple(map(_loop, model.loops)),
        arguments=tuple(_argument(item) for item in model.arguments),
        is_pointwise=model.is_pointwise,
        is_idempotent=model.is_idempotent,
        needs_correction=model.needs_correction,
        reduction=None
        if around is None
        else ReductionPrograms(around.init, around.combine, around.publish, tuple(map(_argument, around.accumulators))),
        first=model.first,
        variants=variants,
    )


def _loop(item: LoopModel) -> TileLoop:
    identity = None if item.identity is None else float(item.identity)
    return TileLoop(item.name, item.tile, item.kind, item.combine, identity)


def _argument(item: TileArgumentModel) -> TileArgument:
    layout = DeviceLayout(
        item.device_size, item.stride_map, item.device_dtype, item.shape, item.host_strides, item.dtype
    )
    # a layout takes other strides than those it is given where it does not hold these
    triples = zip(layout.host_shape, item.host_strides, layout.host_strides)
    if len(item.host_strides) != len(layout.host_shape) or any(
        extent > 1 and mine != theirs for extent, mine, theirs in triples
    ):
        fact = f'"{item.name}" has host strides {item.host_strides}, its layout holds {list(layout.host_strides)}'
        raise refuse(MALFORMED_CONTRACT, fact)
    axes = None if item.axes is None else tuple(item.axes)
    return TileArgument(item.name, item.role, item.dtype, layout, axes, item.write, item.takes_strides)
