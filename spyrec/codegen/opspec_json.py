"""Reader and writer of ``spyrec.opspec/1``, the OpSpec IR as JSON."""

from __future__ import annotations

import json
from math import inf, isfinite, prod

from pydantic import ValidationError

from spyrec.codegen.expression import INTEGER_LIMIT, Expression
from spyrec.codegen.expression_parser import parse_expression
from spyrec.codegen.opspec import (
    AllocationKind,
    IterationDim,
    LoopSpec,
    OpSpec,
    OpSpecFile,
    TensorArgument,
)
from spyrec.codegen.opspec_models import (
    FORMAT,
    LOOP_TAG,
    OPERATION_TAG,
    ArgumentModel,
    FileModel,
    LoopModel,
    OperationModel,
)
from spyrec.diagnostics import Diagnostic, DiagnosticSink, Location, SpyrecError, capped, standing_for
from spyrec.diagnostics.json_reading import JsonValue, load_json
from spyrec.hardware.dtypes import DeviceFormat

_NO_EXPRESSION = Expression.constant(0)


def read_opspecs(text: str | bytes, file: str | None = None) -> OpSpecFile:
    """Return the OpSpecs of a ``spyrec.opspec/1`` text.

    Raises one error with all problems: 01xx no strict JSON; SPY0501 and SPY0502 a coordinate; SPY0503 a missing or
    unknown key, a wrong type or value; SPY0504 another format; SPY0513 an unknown device format; SPY0532.
    """
    data, source = load_json(text, file)
    root = Location(file, "", source=source)
    found = data.get("format") if isinstance(data, dict) else None
    sink = DiagnosticSink()
    if isinstance(data, dict) and found != FORMAT:
        shown = json.dumps(found)[:60] if "format" in data else "no format"
        sink.error("SPY0504", f'expected format "{FORMAT}", found {shown}', root.child("format"))
        sink.raise_if_errors()
    try:
        model = FileModel.model_validate(data)
    except ValidationError as error:
        _add_problems(sink, error, root)
        raise SpyrecError(sink.diagnostics) from None
    builder = _Builder(sink)
    specs = builder.specs(model.specs, root.child("specs"))
    sink.raise_if_errors()
    return OpSpecFile(model.symbolic_args, model.unroll_loops, specs, root)


def _add_problems(sink: DiagnosticSink, error: ValidationError, root: Location) -> None:
    """Keep one diagnostic per place: of the alternatives of a union the first one says enough."""
    seen: set[str] = set()
    problems = error.errors(include_url=False, include_context=False)
    for problem, count in capped(problems, lambda item: item["type"]):
        tokens = [token for token in problem["loc"] if token not in {OPERATION_TAG, LOOP_TAG}]
        is_constant = "constants" in tokens
        if is_constant:
            tokens = tokens[: tokens.index("constants") + 2]
        place = root.child(*tokens)
        if str(place.pointer) in seen:
            continue
        seen.add(str(place.pointer))
        message = 'a constant is a finite number, "inf" or "-inf"' if is_constant else problem["msg"]
        text = message[:1].lower() + message[1:]
        shown = _shown(problem["input"])
        if problem["type"] == "missing":
            text, shown = f'key "{tokens[-1]}" is missing', ""
        elif problem["type"] == "extra_forbidden":
            text, shown = f'key "{tokens[-1]}" is unknown', ""
        sink.add(standing_for(Diagnostic("SPY0503", text + shown, place), count))


def _shown(value: object) -> str:
    if not isinstance(value, str | int | float | bool | None):
        return ""
    if isinstance(value, int) and abs(value) > INTEGER_LIMIT**2:
        return ", found a huge integer"
    text = json.dumps(value)
    return f", found {text if len(text) <= 60 else text[:60] + '...'}"


class _Builder:
    """Models to frozen classes; problems go to the sink, so that all of them are reported."""

    def __init__(self, sink: DiagnosticSink) -> None:
        self._sink = sink

    def specs(self, models: list[OperationModel | LoopModel], location: Location) -> tuple[OpSpec | LoopSpec, ...]:
        return tuple(
            self._operation(model, location.child(position))
            if isinstance(model, OperationModel)
            else self._loop(model, location.child(position, "loop"))
            for position, model in enumerate(models)
        )

    def _loop(self, model: LoopModel, location: Location) -> LoopSpec:
        loop = model.loop
        body = self.specs(loop.body, location.child("body"))
        return LoopSpec(loop.count, tuple(loop.tiled_symbols), body)

    def _operation(self, model: OperationModel, location: Location) -> OpSpec:
        places = location.child("args")
        self._refuse_unit_batch(model, location.child("op_info"))
        return OpSpec(
            op=model.op,
            is_reduction=model.is_reduction,
            iteration_space=tuple(
                IterationDim(dim.symbol, dim.size, dim.work_division) for dim in model.iteration_space
            ),
            args=tuple(self._argument(arg, places.child(position)) for position, arg in enumerate(model.args)),
            constants=self._constants(model, location.child("op_info", "constants")),
            tiled_symbols=tuple(model.tiled_symbols),
        )

    def _refuse_unit_batch(self, model: OperationModel, location: Location) -> None:
        if model.op_info.shared_weight_unit_bmm is not None:
            place = location.child("shared_weight_unit_bmm")
            self._sink.error("SPY0532", f'"{model.op}" with a unit batch dim is not lowered', place)

    def _constants(self, model: OperationModel, location: Location) -> dict[str, float]:
        values: dict[str, float] = {}
        for name, value in model.op_info.constants.items():
            if isinstance(value, int) and abs(value) >= INTEGER_LIMIT:
                self._sink.error("SPY0503", "an integer constant stays below 2**63", location.child(name))
                continue
            if not name.isascii():
                self._sink.error("SPY0503", "the name of a constant is ASCII", location.child(name))
            values[name] = {"inf": inf, "-inf": -inf}[value] if isinstance(value, str) else value
        return values

    def _argument(self, model: ArgumentModel, location: Location) -> TensorArgument:
        kind, start = self._allocation(model, location.child("allocation"))
        self._check_lengths(model, location)
        return TensorArgument(
            is_input=model.is_input,
            arg_index=self._arg_index(model, kind, location),
            device_dtype=self._device_format(model.device_dtype, location.child("device_dtype")),
            device_size=tuple(model.device_size),
            device_coordinates=tuple(
                self._expression(text, location.child("device_coordinates", axis))
                for axis, text in enumerate(model.device_coordinates)
            ),
            allocation_kind=kind,
            allocation_bytes=start,
            stride_map=None if model.stride_map is None else tuple(model.stride_map),
            per_tile_fixed=model.per_tile_fixed,
            name=model.name,
        )

    def _arg_index(self, model: ArgumentModel, kind: AllocationKind, location: Location) -> int | None:
        index = None if model.arg_index is None or model.arg_index < 0 else model.arg_index
        if kind is AllocationKind.POOL and index is not None:
            fact = f"an operand in the pool is no kernel argument, found arg_index {index}"
            self._sink.error("SPY0503", fact, location.child("arg_index"))
        return index

    def _allocation(self, model: ArgumentModel, location: Location) -> tuple[AllocationKind, int]:
        given = {
            kind: start
            for kind, start in (
                (AllocationKind.HBM, model.allocation.hbm),
                (AllocationKind.LX, model.allocation.lx),
                (AllocationKind.POOL, model.allocation.pool),
            )
            if start is not None
        }
        if len(given) != 1:
            names = ", ".join(f'"{kind.value}"' for kind in given) or "none"
            self._sink.error("SPY0505", f'an allocation has one of "hbm", "lx" and "pool", found {names}', location)
        return next(iter(given.items()), (AllocationKind.HBM, 0))

    def _check_lengths(self, model: ArgumentModel, location: Location) -> None:
        rank = len(model.device_size)
        for key, items in (("device_coordinates", model.device_coordinates), ("stride_map", model.stride_map)):
            if items is not None and len(items) != rank:
                fact = f'"{key}" has {len(items)} entries, "device_size" {rank}'
                self._sink.error("SPY0503", fact, location.child(key))
        if prod(model.device_size) >= INTEGER_LIMIT:
            self._sink.error("SPY0503", "the device tensor has 2**63 elements or more", location.child("device_size"))

    def _device_format(self, name: str, location: Location) -> DeviceFormat:
        device_format = DeviceFormat.__members__.get(name)
        if device_format is None:
            known = ", ".join(item.name for item in DeviceFormat)
            self._sink.error("SPY0513", f'unknown device format "{name[:60]}"', location, hint=f"one of {known}")
            return DeviceFormat.INVALID
        return device_format

    def _expression(self, text: str, location: Location) -> Expression:
        try:
            return parse_expression(text, location)
        except SpyrecError as error:
            for diagnostic in error.diagnostics:
                self._sink.add(diagnostic)
            return _NO_EXPRESSION


def write_opspecs(file: OpSpecFile) -> str:
    """Return the text of an OpSpec file; reading it gives the same OpSpecs."""
    content: JsonValue = {
        "format": FORMAT,
        "symbolic_args": file.symbolic_args,
        "unroll_loops": file.unroll_loops,
        "specs": [_spec_json(spec) for spec in file.specs],
    }
    return json.dumps(content, indent=1) + "\n"


def _spec_json(spec: OpSpec | LoopSpec) -> JsonValue:
    if isinstance(spec, LoopSpec):
        body: list[JsonValue] = [_spec_json(inner) for inner in spec.body]
        return {"loop": {"count": spec.count, "tiled_symbols": list(spec.tiled_symbols), "body": body}}
    constants: dict[str, JsonValue] = {name: _number_json(value) for name, value in spec.constants.items()}
    return {
        "op": spec.op,
        "is_reduction": spec.is_reduction,
        "iteration_space": [
            {"symbol": dim.symbol, "size": dim.size, "work_division": dim.work_division} for dim in spec.iteration_space
        ],
        "op_info": {"constants": constants} if constants else {},
        "tiled_symbols": list(spec.tiled_symbols),
        "args": [_argument_json(argument) for argument in spec.args],
    }


def _number_json(value: float) -> JsonValue:
    if isfinite(value):
        return value
    return "inf" if value > 0 else "-inf"


def _argument_json(argument: TensorArgument) -> JsonValue:
    return {
        "is_input": argument.is_input,
        "arg_index": -1 if argument.arg_index is None else argument.arg_index,
        "device_dtype": argument.device_dtype.name,
        "device_size": list(argument.device_size),
        "device_coordinates": [str(coordinate) for coordinate in argument.device_coordinates],
        "allocation": {argument.allocation_kind.value: argument.allocation_bytes},
        "stride_map": None if argument.stride_map is None else list(argument.stride_map),
        "per_tile_fixed": argument.per_tile_fixed,
        "name": argument.name,
    }


def opspec_schema() -> str:
    """Return the text of ``schemas/opspec.schema.json``."""
    schema = FileModel.model_json_schema(by_alias=True)
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "opspec.schema.json"}
    return json.dumps({**head, **schema, "title": "spyrec.opspec/1"}, indent=2) + "\n"
