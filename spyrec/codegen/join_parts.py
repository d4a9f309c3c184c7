"""The bundle of a graph of which the host computes parts: the bundles of the other parts, joined.

Each part was compiled as a graph of its own.  What two parts share (an input, a value that one makes and another reads)
is one argument: the later part was compiled for the layout that the earlier one gave it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

import numpy as np
import numpy.typing as npt

from spyrec.bundle.bundle import Bundle, DeviceProgram
from spyrec.bundle.manifest import Argument, HostStep, Manifest, PlanStep, Role
from spyrec.codegen.emit import for_the_record, symbolic_axes
from spyrec.codegen.emit_opspecs import CodegenOptions, emit_opspecs
from spyrec.codegen.graph_source import file_constants, graph_bytes
from spyrec.codegen.opspec import OpSpecFile
from spyrec.codegen.row_specs import row_spec
from spyrec.codegen.top_specs import top_spec
from spyrec.dataclass import dataclass
from spyrec.hardware.cost import total_uncertainty
from spyrec.hardware.plan_record import PlanFigures
from spyrec.hardware.target import SEGMENT_BYTES
from spyrec.ir.constants import load_constant
from spyrec.ir.graph import Graph
from spyrec.ir.parts import HostPart, RowPart, Staged, TopPart
from spyrec.layout.conversion_table import DataConversionInfo
from spyrec.layout.device_layout import DeviceLayout
from spyrec.layout.tiling import row_major_strides

HostArray = npt.NDArray[np.generic]


def join_parts(staged: Staged, bundles: Sequence[Bundle], options: CodegenOptions) -> Bundle:
    """Return the bundle of a whole graph; ``bundles``: of the parts that the device computes, in order."""
    source = staged.source
    joined = _Joined(source, staged.graph)
    remaining = iter(bundles)
    for part in staged.parts:
        if isinstance(part, HostPart):
            joined.add_step(part)
        elif isinstance(part, RowPart):
            joined.add_rows(part, options)
        elif isinstance(part, TopPart):
            joined.add_top(part, options)
        else:
            assert part.source is not None
            joined.add_bundle(next(remaining), part.source)
    joined.add_records()
    text = graph_bytes(source)
    manifest = Manifest(
        name=source.name,
        target=options.device,
        arguments=tuple(joined.arguments.values()),
        inputs=source.inputs,
        outputs=tuple((name, joined.places.get(name, name)) for name in source.outputs),
        plan=tuple(joined.plan),
        pool_bytes=max((item.manifest.pool_bytes for item in bundles), default=0),
        graph_sha256=hashlib.sha256(text).hexdigest(),
        symbolic_dims=source.symbolic_dims,
        figures=_figures([item.manifest for item in bundles]),
        planned_with=options.planned_with,
        dialect=options.dialect.name,
        host_steps=tuple(joined.steps()),
        updates=source.updates,
    )
    programs, tables = tuple(joined.programs), joined.tables
    constants = _Constants(source, joined.constants, tuple(joined.recorded))
    return Bundle(manifest, programs, constants, tables, text, correction_slots=options.correction_slots)


@dataclass(slots=True)
class _Joined:
    """What parts were joined to so far.

    ``places``: of a value that lies in device memory, its argument.  ``constants``: by argument, the bundle and the
    argument there that hold its numbers.  ``recorded``: constants that the graph's text alone names, ``loaded``: those
    whose rows are read, as they are.
    """

    source: Graph
    graph: Graph
    arguments: dict[str, Argument] = field(default_factory=dict[str, Argument])
    plan: list[PlanStep] = field(default_factory=list[PlanStep])
    programs: list[DeviceProgram] = field(default_factory=list[DeviceProgram])
    tables: dict[str, DataConversionInfo] = field(default_factory=dict[str, DataConversionInfo])
    places: dict[str, str] = field(default_factory=dict[str, str])
    constants: dict[str, tuple[Bundle, str]] = field(default_factory=dict[str, "tuple[Bundle, str]"])
    recorded: list[str] = field(default_factory=list[str])
    loaded: list[str] = field(default_factory=list[str])
    _host: list[tuple[int, HostPart]] = field(default_factory=list["tuple[int, HostPart]"])

    def add_step(self, part: HostPart) -> None:
        """Add what the host computes next."""
        self._host.append((len(self.plan), part))

    def add_rows(self, part: RowPart, options: CodegenOptions) -> None:
        """Add the program that reads or writes rows by an index."""
        access, graph = part.access, self.graph
        table_type, index_type = graph.type_of(part.table), graph.type_of(part.index)
        spec = row_spec(access, table_type, index_type)
        emitted = emit_opspecs(OpSpecFile(symbolic_args=True, unroll_loops=False, specs=(spec,)), options)
        result = part.node.output
        read = part.source if part.source is not None else part.table
        table = self._at(part.table, 1 if part.source is None else 2)
        if part.source is None:
            self.arguments[result] = self._placed(result, Role.INTERMEDIATE, 2, access.walked(table_type, index_type))
        else:
            self.places[result] = table
            self._is_written(table, result)
        names = (self._at(part.index, 0), self._at(read, 1), self.places.setdefault(result, result))
        directory = f"kernels/{len(self.plan)}"
        self.plan.append(PlanStep(directory, names))
        self.programs.append(DeviceProgram(directory, emitted.program, emitted.superdscs))

    def add_top(self, part: TopPart, options: CodegenOptions) -> None:
        """Add the program that takes the largest elements of columns."""
        source, result = part.inputs[0], part.node.output
        spec = top_spec(part.op_func, self.graph.type_of(source), self.graph.type_of(result), part.cores)
        emitted = emit_opspecs(OpSpecFile(symbolic_args=True, unroll_loops=False, specs=(spec,)), options)
        self.arguments[result] = self._placed(result, Role.INTERMEDIATE, 1)
        names = (self._at(source, 0), self.places.setdefault(result, result))
        directory = f"kernels/{len(self.plan)}"
        self.plan.append(PlanStep(directory, names))
        self.programs.append(DeviceProgram(directory, emitted.program, emitted.superdscs))

    def _at(self, value: str, index: int) -> str:
        """Return the argument that holds a value; one that no program had so far becomes one, at ``index`` of this."""
        if value in self.places:
            return self.places[value]
        if value not in self.arguments:
            is_constant, is_input = value in self.source.constants, value in self.source.inputs
            role = Role.CONSTANT if is_constant else Role.INPUT if is_input else Role.INTERMEDIATE
            self.arguments[value] = self._placed(value, role, index)
            if is_constant:
                self.loaded.append(value)
        self.places[value] = value
        return value

    def _placed(self, name: str, role: Role, index: int, walked: tuple[int, ...] | None = None) -> Argument:
        """Return an argument in its default layout, or that of the shape that it is ``walked`` in.

        It has conversion tables where the caller copies it.
        """
        tensor = self.graph.type_of(name)
        layout = DeviceLayout.default(walked or tensor.shape, tensor.dtype)
        record = replace(
            self._record(name),
            role=role,
            arg_index=index,
            address=index * SEGMENT_BYTES,
            device_size=layout.device_size,
            stride_map=layout.stride_map,
        )
        if role is Role.INTERMEDIATE and name in self.source.outputs:
            record = replace(record, role=Role.OUTPUT)
        return record if record.role is Role.INTERMEDIATE else self._with_tables(record)

    def _with_tables(self, item: Argument) -> Argument:
        """Return an argument with the tables by which it is copied."""
        assert item.shape is not None
        assert item.stride_map is not None
        layout = DeviceLayout(item.device_size, item.stride_map, item.device_dtype)
        paths = {way: f"dci/{item.name}.{way}.json" for way in ("h2d", "d2h")}
        for way, path in paths.items():
            self.tables[path] = layout.dci(way, item.shape, row_major_strides(item.shape), host_dtype=item.dtype)
        return replace(item, dci=paths)

    def _is_written(self, name: str, result: str) -> None:
        """Let an argument be what a program makes of it: the caller's, where it was an input or is asked for."""
        found = self.arguments[name]
        if found.role is Role.INPUT:
            self.arguments[name] = replace(found, role=Role.INOUT)
        elif result in self.source.outputs and found.role is Role.INTERMEDIATE:
            self.arguments[name] = self._with_tables(replace(found, role=Role.OUTPUT))

    def add_bundle(self, bundle: Bundle, part: Graph) -> None:
        """Add the programs of the next part."""
        manifest = bundle.manifest
        before = len(self.plan)
        names: dict[str, str] = {}
        for item in manifest.arguments:
            if item.arg_index is None:
                continue
            name = self._name(item, part, bundle)
            names[item.name] = name
            if name in self.arguments:
                assert self.arguments[name].device_size == item.device_size, name
                assert self.arguments[name].stride_map == item.stride_map, name
                continue
            if item.role is Role.CONSTANT:
                self.constants[name] = (bundle, item.name)
            self.arguments[name] = self._argument(item, name, bundle)
        for value, argument in manifest.outputs:
            self.places[value] = names[argument]
        for name in manifest.inputs:
            if name in names:
                self.places.setdefault(name, names[name])
        directories = {step.program: f"kernels/{before + index}" for index, step in enumerate(manifest.plan)}
        for step in manifest.plan:
            arguments = tuple(names[name] for name in step.arguments)
            self.plan.append(replace(step, program=directories[step.program], arguments=arguments))
        self.programs += [replace(item, directory=directories[item.directory]) for item in bundle.programs]

    def _name(self, item: Argument, part: Graph, bundle: Bundle) -> str:
        """Return the name of a part's argument in the whole bundle.

        What the part's passes have named may be called as a value of another part is, or what these have named.
        """
        if item.name in part.inputs:
            return self.places.get(item.name, item.name)
        known = self.arguments.get(item.name)
        is_own = item.name in part.values or item.name not in self.source.values
        if known is None and is_own:
            return item.name
        if (
            known is not None
            and item.role is Role.CONSTANT
            and known == replace(item, arg_index=known.arg_index, address=known.address)
            and self._has_same_numbers(item.name, bundle)
        ):
            return item.name
        name = f"{item.name}.{len(self.plan)}"
        while name in self.arguments or name in self.source.values:
            name += "_"
        return name

    def _has_same_numbers(self, name: str, bundle: Bundle) -> bool:
        """Whether a constant of a part is that of an earlier part by the same name; the graph's own ones always are."""
        if name not in self.constants or name in self.source.constants:
            return True
        earlier, there = self.constants[name]
        first, second = earlier.constants[there], bundle.constants[name]
        return first.dtype == second.dtype and first.tobytes() == second.tobytes()

    def _argument(self, item: Argument, name: str, bundle: Bundle) -> Argument:
        """Return an argument of the whole bundle; its tables go with it where the caller copies it."""
        is_output = any(
            argument == item.name and value in self.source.outputs for value, argument in bundle.manifest.outputs
        )
        is_between = item.role in (Role.INPUT, Role.OUTPUT) and not is_output and name not in self.source.inputs
        if is_between or item.dci is None:
            return replace(item, name=name, role=Role.INTERMEDIATE if is_between else item.role, dci=None)
        paths = {way: f"dci/{name}.{way}.json" for way in item.dci}
        self.tables.update({paths[way]: bundle.dci[path] for way, path in item.dci.items()})
        return replace(item, name=name, dci=paths)

    def add_records(self) -> None:
        """Add what no program reads: inputs and outputs that the host alone has, constants of the graph's text."""
        for name in self.source.inputs:
            if name not in self.arguments:
                record = self._record(name)
                self.arguments[name] = replace(record, role=Role.INPUT)
        for name in self.source.outputs:
            if name not in self.places and name not in self.arguments:
                is_constant = name in self.source.constants
                role = Role.CONSTANT if is_constant else Role.OUTPUT
                self.arguments[name] = replace(self._record(name), role=role)
        self.recorded = [name for name in file_constants(self.source) if name not in self.constants]
        returned = [name for name in self.source.outputs if name in self.source.constants]  # those of the text, too
        for name in (*self.loaded, *returned):
            if name not in self.recorded and name not in self.constants:
                self.recorded.append(name)
        for name in self.recorded:
            self.arguments.setdefault(name, self._record(name))

    def _record(self, name: str) -> Argument:
        """Return the entry of a value that no program has so far."""
        return for_the_record(name, self.graph.type_of(name), symbolic_axes(self.graph, name))

    def steps(self) -> Iterator[HostStep]:
        """Yield what the host computes, with what it takes from device memory and brings there."""
        for before, part in self._host:
            made = {name for node in part.nodes for name in node.outputs}
            taken = {name: self.places[name] for name in part.inputs if self._is_made_by_device(name)}
            given = {name: self.places[name] for name in sorted(made) if name in self.places}
            yield HostStep(before, tuple(node.name for node in part.nodes), taken, given)

    def _is_made_by_device(self, name: str) -> bool:
        is_given = name in self.source.inputs or name in self.source.constants
        made_by_host = any(name in node.outputs for _, part in self._host for node in part.nodes)
        return not is_given and not made_by_host


class _Constants(Mapping[str, HostArray]):
    """The constants' numbers by argument name, read when asked for."""

    def __init__(self, source: Graph, parts: Mapping[str, tuple[Bundle, str]], recorded: tuple[str, ...]) -> None:
        self._source = source
        self._parts = parts
        self._recorded = recorded

    def __getitem__(self, name: str) -> HostArray:
        if name in self._parts:
            bundle, there = self._parts[name]
            return bundle.constants[there]
        if name not in self._recorded:
            raise KeyError(name)
        return load_constant(self._source, name)

    def __iter__(self) -> Iterator[str]:
        yield from self._parts
        yield from self._recorded

    def __len__(self) -> int:
        return len(self._parts) + len(self._recorded)


def _figures(parts: Sequence[Manifest]) -> PlanFigures | None:
    """Return the figures of all parts, one run of each: sums, and lists in order."""
    found = [item.figures for item in parts if item.figures is not None]
    if not found:
        return None
    first = found[0]
    before = [sum(len(item.plan) for item in parts[:number]) for number in range(len(parts))]
    peak = max(found, key=lambda item: item.lx.peak_bytes)
    residents = tuple(
        replace(resident, program=resident.program + start)
        for start, item in zip(before, found, strict=True)
        for resident in item.lx.residents
    )
    operations = tuple(
        replace(operation, program=operation.program + start)
        for start, item in zip(before, found, strict=True)
        for operation in item.operations
    )
    return replace(
        first,
        lx=replace(peak.lx, residents=residents),
        hbm_read_bytes=sum(item.hbm_read_bytes for item in found),
        hbm_write_bytes=sum(item.hbm_write_bytes for item in found),
        lower_bound_bytes=sum(item.lower_bound_bytes for item in found),
        flops=sum(item.flops for item in found),
        simulated_us=sum(item.simulated_us for item in found),
        operations=operations,
        tensors=tuple(tensor for item in found for tensor in item.tensors),
        loops=tuple(loop for item in found for loop in item.loops),
        notes=tuple(note for item in found for note in item.notes),
        simulated_us_uncertainty=total_uncertainty(
            (operation.simulated_us, operation.simulated_us_uncertainty) for operation in operations
        ),
    )
