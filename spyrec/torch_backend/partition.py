"""A program of which torch computes a part: what a graph has goes to the device in pieces as large as can be."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from spyrec.torch_backend.bindings import Bindings

if TYPE_CHECKING:
    from torch.export import ExportedProgram
    from torch.fx import GraphModule, Node

Call = Callable[..., object]


class PartitionedProgram:
    """A functional program whose pieces are graphs of their own."""

    def __init__(
        self,
        program: ExportedProgram,
        of_torch: frozenset[str],
        bindings: Bindings,
        piece: Callable[[GraphModule, frozenset[int]], Call],
    ) -> None:
        """``piece`` makes a graph of its own, and is told which of its arguments the program changes."""
        self._module = _partitioned(program, of_torch)
        self._signature = program.graph_signature
        self._bindings = bindings
        self._names = [spec.arg.name for spec in self._signature.input_specs]
        self._changed = self._changed_inputs()
        self._pieces: Mapping[str, Call] = {
            str(node.target): piece(
                cast("GraphModule", self._module.get_submodule(str(node.target))), self._changing_places(node)
            )
            for node in self._module.graph.nodes
            if node.op == "call_module"
        }

    @property
    def has_pieces(self) -> bool:
        """Whether the device has anything to do."""
        return bool(self._pieces)

    def __call__(self, arguments: Sequence[object]) -> list[object]:
        """Execute the program and return its results; inputs that it changes have their new contents then."""
        from torch.fx import Interpreter

        pieces = self._pieces

        class Pieces(Interpreter):
            def call_module(self, target: object, args: tuple[object, ...], kwargs: Mapping[str, object]) -> object:
                del kwargs
                return pieces[str(target)](*args)

        bindings = self._bindings
        given = [
            arguments[bindings.positions[name]] if name in bindings.positions else bindings.owned[name]
            for name in self._names
        ]
        made = cast("Sequence[object]", Pieces(self._module).run(*given))
        bindings.take_changes(self._changed, made, arguments)
        kinds = [spec.kind.name for spec in self._signature.output_specs]
        return [value for kind, value in zip(kinds, made) if kind == "USER_OUTPUT"]

    def _changed_inputs(self) -> list[str | None]:
        """Return the input that each output is the new content of."""
        keys = {spec.target: spec.arg.name for spec in self._signature.input_specs}
        return [
            None if spec.kind.name in ("USER_OUTPUT", "TOKEN") else keys.get(spec.target, spec.target)
            for spec in self._signature.output_specs
        ]

    def _changing_places(self, node: Node) -> frozenset[int]:
        return frozenset(
            place for place, argument in enumerate(node.args) if cast("Node", argument).name in self._changed
        )


def _partitioned(program: ExportedProgram, of_torch: frozenset[str]) -> GraphModule:
    from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
    from torch.fx.passes.operator_support import OperatorSupportBase

    class Support(OperatorSupportBase):
        def is_node_supported(self, submodules: object, node: Node) -> bool:
            del submodules
            if node.target is operator.getitem:
                return self.is_node_supported(None, cast("Node", node.args[0]))
            return node.op == "call_function" and node.name not in of_torch

    partitioner = CapabilityBasedPartitioner(program.graph_module, Support(), allows_single_node_partition=True)
    return partitioner.partition_and_fuse()
