"""One graph of ``torch.compile``: compiled for the shapes that it is called with, on the device as far as it can be."""

from __future__ import annotations

import copy
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, cast

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.diagnostics import SpyrecError, refuse
from spyrec.files.array_memory import pieces
from spyrec.frontends.torch_export.program import weight_of
from spyrec.frontends.torch_export.walk import decomposed
from spyrec.model_import import problem_diagnostics
from spyrec.torch_backend.bindings import Bindings, bindings_of
from spyrec.torch_backend.device_program import DeviceProgram, DeviceSource, source_of
from spyrec.torch_backend.options import BackendOptions
from spyrec.torch_backend.partition import PartitionedProgram
from spyrec.torch_backend.strides import Promise, laid_out, promises
from spyrec.torch_backend.tally import Tally

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from torch.export import ExportedProgram
    from torch.fx import GraphModule, Node

Program = Callable[[Sequence[object]], list[object]]

_MOST_CHANGES = 2
"""A weight that changed so often between calls is an input from then on."""


@dataclass(frozen=True, slots=True)
class _State:
    """What changes with a tensor's content.

    ``memory``: where it lies and how often torch saw it written; ``checksum``: of its numbers, since writes through
    ``.data`` and NumPy pass torch's counter by.  A sum takes 16 ms of processor time for 64 MiB (AMD EPYC Zen 4).
    """

    memory: tuple[object, ...]
    checksum: int

    @classmethod
    def of(cls, argument: object) -> _State:
        """Return the state of a tensor."""
        return cls(_memory(argument), _checksum(argument))

    def is_of(self, argument: object) -> bool:
        """Whether a tensor is still in this state; its numbers are read where nothing else says no."""
        return self.memory == _memory(argument) and self.checksum == _checksum(argument)


@dataclass(frozen=True, slots=True)
class _Held:
    """A program, in which state its weights were, by position, and where its results lie, if not where it puts them."""

    program: Program
    weights: Mapping[int, _State]
    promised: tuple[Promise, ...] | None = None

    def changed(self, arguments: Sequence[object]) -> list[int]:
        """Return the places of weights that are not what the program was made with."""
        return [place for place, state in self.weights.items() if not state.is_of(arguments[place])]

    def __call__(self, arguments: Sequence[object]) -> list[object]:
        """Execute the program and return its results."""
        results = self.program(arguments)
        return results if self.promised is None else laid_out(results, self.promised, arguments)


class Subgraph:
    """A graph of torch that is called with tensors and numbers.

    Each set of shapes, dtypes and numbers has a program of its own; of Python floats that dynamo hands over as tensors,
    too.  Parameters and buffers are part of it, and one that has changed since, in whatever way, makes it anew.
    Results lie where torch promises, views of arguments too.
    ``changing``: places of arguments that change with every call, which are inputs whatever they are; of a piece of a
    larger program, whose results are copies.
    """

    def __init__(
        self, module: GraphModule, options: BackendOptions, tally: Tally, changing: frozenset[int] | None = None
    ) -> None:
        self._module = module
        self._options = options
        self._tally = tally
        self._held: dict[object, _Held] = {}
        self._is_piece = changing is not None
        self._changes = Counter(dict.fromkeys(changing or (), _MOST_CHANGES))
        result = next(node for node in module.graph.nodes if node.op == "output").args[0]
        self._is_one = not isinstance(result, list | tuple)
        self._floats = _floats_of(module)

    def __call__(self, *arguments: object) -> object:
        """Compute the graph.  Errors: without fallback, what torch would have to compute (SPY0166)."""
        import torch

        reason = _why_in_torch(arguments)
        if reason is not None:
            self._refuse_or_count(*reason)
            return self._module(*arguments)
        with torch.no_grad():
            results = self._program(arguments)(arguments)
        return results[0] if self._is_one else tuple(results)

    def _program(self, arguments: Sequence[object]) -> _Held:
        """Return the program for such arguments; one thread at a time makes one, and no other compiles meanwhile."""
        from torch._dynamo.convert_frame import (  # pyright: ignore[reportMissingImports] -- it has no stubs
            compile_lock,  # pyright: ignore[reportUnknownVariableType]
        )

        numbers = {place: float(cast("float", arguments[place])) for place in self._floats}
        key = tuple(_signature(item) for item in arguments), tuple(map(float.hex, numbers.values()))
        held = self._held.get(key)
        if held is not None and not held.changed(arguments):
            return held
        with cast(
            "AbstractContextManager[object]", compile_lock
        ):  # torch.export keeps what it is at in globals, as dynamo does
            held = self._held.get(key)
            changed = [] if held is None else held.changed(arguments)
            if held is None or changed:
                self._changes.update(changed)
                self._held[key] = held = self._made(arguments, numbers)
        return held

    def _made(self, arguments: Sequence[object], numbers: Mapping[int, float]) -> _Held:
        exported = self._exported(arguments, numbers)
        if exported is None:
            return _Held(self._in_torch, {})
        program, promised = exported
        bindings = bindings_of(program)
        places = {
            name: place
            for name, place in bindings.positions.items()
            if _is_weight(arguments[place]) and self._changes[place] < _MOST_CHANGES
        }
        weights = {name: bindings.tensor(name, arguments) for name in places}
        source = source_of(program, weights)
        read = {item.key for item in source.graph.inputs}
        states = {place: _State.of(arguments[place]) for name, place in places.items() if name in read}
        if not source.has_tensors():
            return _Held(self._in_torch, {})
        if source.problems:
            return _Held(self._in_pieces(program, source, bindings), {}, promised)
        return _Held(self._on_device(source, bindings), states, promised)

    def _exported(
        self, arguments: Sequence[object], numbers: Mapping[int, float]
    ) -> tuple[ExportedProgram, tuple[Promise, ...]] | None:
        """Return the graph without mutation, and where its results lie; ``None`` where torch cannot make it so."""
        import torch

        try:
            module = _with_numbers(self._module, numbers) if numbers else self._module
            program = torch.export.export(module, tuple(arguments), strict=False)
            return decomposed(program), promises(program, with_views=not self._is_piece)
        except Exception as error:  # noqa: BLE001 -- whatever torch does not export, it can still compute
            text = str(error).strip().splitlines() or [type(error).__name__]
            self._refuse_or_count("a graph that torch.export refuses", text[0][:200])
            return None

    def _on_device(self, source: DeviceSource, bindings: Bindings) -> Program:
        try:
            program = DeviceProgram(source, bindings, self._options, self._tally)
        except SpyrecError as error:
            return self._instead(error, "a graph")

        def computed(arguments: Sequence[object]) -> list[object]:
            try:
                return program(arguments)
            except SpyrecError as error:  # of numbers that the device does not hold; nothing has changed yet
                return self._instead(error, "a call")(arguments)

        return computed

    def _instead(self, error: SpyrecError, what: str) -> Program:
        """Let torch compute what the device refused, and count it; without fallback the refusal stays."""
        if not self._options.fallback:
            raise error
        first = error.diagnostics[0]
        self._tally.left_to_torch(f"{what} with {first.code}", first.message)
        return self._in_torch

    def _in_pieces(self, program: ExportedProgram, source: DeviceSource, bindings: Bindings) -> Program:
        """Let torch compute what the device cannot.  Errors: SPY0166 without fallback."""
        if not self._options.fallback:
            raise SpyrecError(problem_diagnostics(source.problems))
        for problem in source.problems:
            self._tally.left_to_torch(problem.what, problem.reason)
        names = {problem.name for problem in source.problems}
        of_torch = frozenset(name for name in names if name is not None)
        if len(of_torch) < len(names):
            return self._in_torch  # an input of a dtype that no graph has
        found = PartitionedProgram(program, of_torch, bindings, self._piece)
        return found if found.has_pieces else self._in_torch

    def _piece(self, module: GraphModule, changing: frozenset[int]) -> Subgraph:
        return Subgraph(module, self._options, self._tally, changing)

    def _in_torch(self, arguments: Sequence[object]) -> list[object]:
        found = self._module(*arguments)
        return [found] if self._is_one else list(cast("Sequence[object]", found))

    def _refuse_or_count(self, name: str, reason: str) -> None:
        """Count a graph that torch computes.  Errors: SPY0166 without fallback."""
        if not self._options.fallback:
            raise refuse("SPY0166", f"{name}: {reason}")
        self._tally.left_to_torch(name, reason)


def _floats_of(module: GraphModule) -> list[int]:
    """Return the places of arguments that are Python floats, handed over as tensors: all that is read is ``item()``.

    With ``dynamic=True`` dynamo makes tensors even of a norm's ``eps``, on whose number torch exports no graph.
    """
    inputs = [node for node in module.graph.nodes if node.op == "placeholder"]
    return [
        place
        for place, node in enumerate(inputs)
        if node.users and all(user.op == "call_method" and user.target == "item" for user in node.users)
        and _is_double(node.meta.get("example_value"))
    ]  # fmt: skip


def _is_double(example: object) -> bool:
    """Whether dynamo's example of an argument is one float64 number, as Python has them."""
    import torch

    return isinstance(example, torch.Tensor) and example.dtype == torch.float64 and example.ndim == 0


def _with_numbers(module: GraphModule, numbers: Mapping[int, float]) -> GraphModule:
    """Return a graph with numbers where it reads these places of its arguments; the places stay."""
    from torch.fx import GraphModule as Made
    from torch.fx.node import map_arg

    graph = copy.deepcopy(module.graph)
    inputs = [node for node in graph.nodes if node.op == "placeholder"]
    for place, number in numbers.items():
        for read in list(inputs[place].users):
            for node in list(read.users):
                known = partial(_replaced, read=read, number=number)
                node.args, node.kwargs = map_arg(node.args, known), map_arg(node.kwargs, known)
            graph.erase_node(read)
    return Made(module, graph)


def _replaced(node: Node, *, read: Node, number: float) -> Node | float:
    return number if node is read else node


def _why_in_torch(arguments: Sequence[object]) -> tuple[str, str] | None:
    """Return what torch has to compute, and why; ``None`` where nothing says so."""
    import torch

    tensors = [item for item in arguments if isinstance(item, torch.Tensor)]
    if torch.is_grad_enabled() and any(item.requires_grad for item in tensors):
        return "a graph with gradients", "the device computes inference: call it under torch.no_grad()"
    kinds = sorted({item.device.type for item in tensors} - {"cpu"})
    return (f"a graph with tensors on {kinds[0]}", "the host copies from CPU memory") if kinds else None


def _signature(argument: object) -> object:
    """Return what a program is made for: of a tensor its type and strides, and each number."""
    import torch

    if not isinstance(argument, torch.Tensor):
        return (type(argument), argument)
    is_weight = _is_weight(argument)
    return (tuple(argument.shape), argument.dtype, is_weight, None if is_weight else argument.stride())


def _is_weight(argument: object) -> bool:
    """Whether an argument is a parameter or a buffer: dynamo marks what it took out of modules."""
    import torch

    is_marked = getattr(argument, "_dynamo_static_input_type", None) is not None
    return isinstance(argument, torch.nn.Parameter) or (is_marked and isinstance(argument, torch.Tensor))


def _memory(argument: object) -> tuple[object, ...]:
    """Return which memory a tensor has, and how often that was written."""
    import torch

    assert isinstance(argument, torch.Tensor)
    version = -1 if argument.is_inference() else argument._version  # noqa: SLF001 -- torch's own counter of writes
    return (argument.data_ptr(), tuple(argument.stride()), version)


def _checksum(argument: object) -> int:
    """Return the CRC-32 of a tensor's numbers in the order of its memory, taken piece by piece."""
    import torch

    assert isinstance(argument, torch.Tensor)
    array, checksum = weight_of(argument).read(), 0
    array = array.transpose(sorted(range(array.ndim), key=lambda dim: -array.strides[dim]))
    for piece in pieces(array) if array.size else ():
        checksum = zlib.crc32(np.ascontiguousarray(piece).reshape(-1).view(np.uint8).data, checksum)
    return checksum
