"""A functional program of torch on the emulated device: compiled once, loaded once, called with tensors."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.front import compile as compile_graph
from spyrec.frontends.graph_builder import GraphBuilder
from spyrec.frontends.model_import.imported import CastCount, narrowed
from spyrec.frontends.model_import.source_graph import HostArray, Problem, SourceGraph, Weight
from spyrec.frontends.torch_export.lower import lower
from spyrec.frontends.torch_export.program import weight_of, weights_of
from spyrec.frontends.torch_export.traced import Argument, Tensor, TracedOutput, TracedProgram
from spyrec.frontends.torch_export.walk import walk_decomposed
from spyrec.hardware.dtypes import DType
from spyrec.model import load
from spyrec.model_import import settled
from spyrec.torch_backend.bindings import Bindings
from spyrec.torch_backend.options import BackendOptions
from spyrec.torch_backend.tally import Tally

if TYPE_CHECKING:
    import torch
    from torch.export import ExportedProgram


@dataclass(frozen=True, slots=True)
class DeviceSource:
    """A program on its way to the device.

    ``outputs``: all that it returns, new contents of its inputs behind the results that the caller sees; ``dtypes``:
    what torch promises of each tensor, by the program's name.
    """

    graph: SourceGraph
    weights: Mapping[str, Weight]
    outputs: tuple[TracedOutput, ...]
    dtypes: Mapping[str, str]

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What stands against the device."""
        return self.graph.problems

    def has_tensors(self) -> bool:
        """Whether anything is computed at all."""
        return bool(_tensors(self.outputs))


def source_of(program: ExportedProgram, weights: Mapping[str, torch.Tensor]) -> DeviceSource:
    """Return a functional program for the device.

    ``weights``: inputs that are the same tensors in every call, by the program's name; their content is part of the
    program.  An input that the program changes is none of them.
    """
    traced = walk_decomposed(program, program, {})
    changed = {output.updates for output in traced.outputs}
    inputs = tuple(
        replace(item, kind="user", key=None)
        if item.name in changed
        else replace(item, kind="parameter", key=item.name)
        if item.name in weights
        else item
        for item in traced.inputs
    )
    results = tuple(TracedOutput(Tensor(name)) for name in _tensors(traced.outputs))
    held = {**weights_of(program), **{name: weight_of(tensor) for name, tensor in weights.items()}}
    graph = lower(replace(traced, inputs=inputs, outputs=results))
    return DeviceSource(graph, held, traced.outputs, _dtypes(traced))


class DeviceProgram:
    """A loaded program; it is closed with the model that it holds."""

    def __init__(self, source: DeviceSource, bindings: Bindings, options: BackendOptions, tally: Tally) -> None:
        imported = settled(source.graph, source.weights, options.dtype)
        self._outputs, self._promised = source.outputs, source.dtypes
        self._bindings = bindings
        self._tally = tally
        program_names = {item.name: item.program_name for item in source.graph.inputs}
        graph = imported.in_memory()
        self._clamped = sum(count.overflown for count in (*imported.counts.values(), imported.folded))
        self._has_warned = False
        self._option = options.dtype
        self._inputs = {name: program_names[name] for name in graph.inputs}
        self._dtypes = {name: graph.type_of(name).dtype for name in graph.inputs}
        self._results = dict(zip(_tensors(source.outputs), graph.outputs, strict=True))
        self._model = load(compile_graph(GraphBuilder.of(graph)))
        tally.compiled()

    def __call__(self, arguments: Sequence[object]) -> list[object]:
        """Execute the program and return its results; inputs that it changes have their new contents then.

        Finite numbers stay finite: those that are too large become the largest of the dtype, which is a warning once.
        Errors: those of a call of the model, as SPY0318 an integer beyond 32 bits; nothing has changed then.
        """
        count = CastCount()
        inputs = {
            name: _array(self._bindings.tensor(program_name, arguments), self._dtypes[name], count)
            for name, program_name in self._inputs.items()
        }
        self._warn_of(self._clamped + count.overflown)
        found = self._model.run(inputs)
        self._tally.called()
        made = [self._made(output.value, found.outputs, found.dtypes) for output in self._outputs]
        self._bindings.take_changes([output.updates for output in self._outputs], made, arguments)
        return [value for output, value in zip(self._outputs, made) if output.updates is None]

    def _warn_of(self, clamped: int) -> None:
        """Say once that finite numbers are too large for the dtype that they get, and what has room for them."""
        if not clamped or self._has_warned:
            return
        self._has_warned = True
        has_room = {
            "float16": 'options={"dtype": "keep"} or {"dtype": "bfloat16"} holds them',
            "bfloat16": 'options={"dtype": "keep"} holds what float32 does',
            "keep": "float64 is computed in float32",
        }[self._option]
        text = f"{clamped} numbers of inputs and weights are beyond their dtype on the device and became its largest"
        warnings.warn(f"{text}: {has_room}", UserWarning, stacklevel=2)

    def _made(self, value: Argument, outputs: Mapping[str, HostArray], dtypes: Mapping[str, str]) -> object:
        if not isinstance(value, Tensor):
            return value
        name = self._results[value.name]
        return _tensor(outputs[name], dtypes[name], self._promised[value.name])


def _tensors(outputs: Sequence[TracedOutput]) -> list[str]:
    """Return the values among the outputs, each once."""
    return list(dict.fromkeys(output.value.name for output in outputs if isinstance(output.value, Tensor)))


def _dtypes(traced: TracedProgram) -> dict[str, str]:
    found = {item.name: item.tensor.dtype for item in traced.inputs}
    found |= {name: tensor.dtype for node in traced.nodes for name, tensor in node.results if tensor is not None}
    return found


def _array(tensor: torch.Tensor, dtype: DType, count: CastCount) -> HostArray:
    """Return a tensor as the device's input of that dtype; finite numbers stay finite.  ``count`` grows by them."""
    weight = weight_of(tensor)
    return narrowed(np.ascontiguousarray(weight.read()).reshape(weight.shape), weight.dtype, dtype, count)


def _tensor(array: HostArray, dtype: str, wanted: str) -> torch.Tensor:
    """Return a result as torch promises it; bfloat16 arrives as its bits."""
    import torch

    if dtype == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16).to(torch_dtype(wanted))
    return torch.from_numpy(array).to(torch_dtype(wanted))


def torch_dtype(name: str) -> torch.dtype:
    """Return a dtype of torch by its name."""
    import torch

    found = getattr(torch, name)
    assert isinstance(found, torch.dtype), name
    return found
