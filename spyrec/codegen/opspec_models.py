"""The pydantic models of ``spyrec.opspec/1``: the border; behind it stand the frozen classes of ``opspec``."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, JsonValue, Tag

from spyrec.hardware.dtypes import DeviceFormat

FORMAT = "spyrec.opspec/1"
MAX_DIMS = 64
"""Longest list of dims that is read; far beyond what a SuperDSC has names for."""

LIMIT = 2**63 - 1

Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.]{0,127}$")]
Size = Annotated[int, Field(ge=1, le=LIMIT)]
FiniteOrInfinite = bool | int | Annotated[float, Field(allow_inf_nan=False)] | Literal["inf", "-inf"]


class _Strict(BaseModel):
    """No unknown keys, no conversion between JSON types."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class IterationDimModel(_Strict):
    """One iteration symbol; the order of the list matters."""

    symbol: Name
    size: Size = Field(description="extent in elements; inside a loop that of one tile")
    work_division: Size = Field(default=1, description="slices (cores) along the symbol")


class AllocationModel(_Strict):
    """Exactly one memory, with the byte address in it."""

    hbm: Annotated[int, Field(ge=0, le=LIMIT)] | None = None
    lx: Annotated[int, Field(ge=0, le=LIMIT)] | None = None
    pool: Annotated[int, Field(ge=0, le=LIMIT)] | None = None


class ArgumentModel(_Strict):
    """One operand; index tensors first, then inputs, the output last."""

    is_input: bool
    arg_index: Annotated[int, Field(ge=-1, le=1000)] | None = Field(
        default=None, description="position in the kernel's argument list; -1 or null for LX and pool"
    )
    device_dtype: str = Field(json_schema_extra={"enum": [item.name for item in DeviceFormat]})
    device_size: list[Size] = Field(min_length=1, max_length=MAX_DIMS)
    device_coordinates: list[str] = Field(min_length=1, max_length=MAX_DIMS)
    allocation: AllocationModel
    stride_map: list[Annotated[int, Field(ge=-LIMIT, le=LIMIT)]] | None = Field(default=None, max_length=MAX_DIMS)
    per_tile_fixed: bool = False
    name: Name | None = Field(default=None, description="only needed on the index tensor of a gather")


class OpInfoModel(_Strict):
    """What an operation carries besides its operands."""

    constants: dict[str, FiniteOrInfinite] = Field(default_factory=dict[str, FiniteOrInfinite])
    shared_weight_unit_bmm: JsonValue = Field(default=None, description="torch-spyre's; refused by name (SPY0532)")


class OperationModel(_Strict):
    """One device operation."""

    op: Name
    is_reduction: bool
    iteration_space: list[IterationDimModel] = Field(max_length=MAX_DIMS)
    op_info: OpInfoModel = Field(default_factory=OpInfoModel)
    tiled_symbols: list[Name] = Field(default_factory=list[str], max_length=MAX_DIMS)
    args: list[ArgumentModel] = Field(min_length=1, max_length=MAX_DIMS)


class LoopBodyModel(_Strict):
    """A counted loop."""

    count: Annotated[int, Field(ge=0, le=LIMIT)]
    tiled_symbols: list[Name] = Field(default_factory=list[str], max_length=MAX_DIMS)
    body: list[SpecModel]


class LoopModel(_Strict):
    """The wrapper that tells a loop from an operation."""

    loop: LoopBodyModel


def _kind(value: JsonValue | OperationModel | LoopModel) -> str:
    if isinstance(value, dict):
        return LOOP_TAG if "loop" in value else OPERATION_TAG
    return LOOP_TAG if isinstance(value, LoopModel) else OPERATION_TAG


OPERATION_TAG = "<operation>"
LOOP_TAG = "<loop>"
"""Tags stand in the places pydantic reports, and in no JSON pointer; no key of the format looks like them."""

SpecModel = Annotated[
    Annotated[OperationModel, Tag(OPERATION_TAG)] | Annotated[LoopModel, Tag(LOOP_TAG)], Discriminator(_kind)
]


class FileModel(_Strict):
    """The whole file."""

    schema_: str | None = Field(default=None, alias="$schema")
    format: Literal["spyrec.opspec/1"]
    symbolic_args: bool = False
    unroll_loops: bool = True
    specs: list[SpecModel] = Field(min_length=1)


LoopBodyModel.model_rebuild()
