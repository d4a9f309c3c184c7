"""Which tensor stands for which input of a functional program: an argument of the call, or one of the program's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from spyrec.dataclass import dataclass

if TYPE_CHECKING:
    import torch
    from torch.export import ExportedProgram


@dataclass(frozen=True, slots=True)
class Bindings:
    """``positions``: of an input's name, its place among the arguments; ``owned``: the tensors of the others."""

    positions: Mapping[str, int]
    owned: Mapping[str, torch.Tensor]

    def tensor(self, name: str, arguments: Sequence[object]) -> torch.Tensor:
        """Return the tensor of an input."""
        import torch

        found = arguments[self.positions[name]] if name in self.positions else self.owned[name]
        assert isinstance(found, torch.Tensor), name
        return found

    def take_changes(
        self, changed: Sequence[str | None], values: Sequence[object], arguments: Sequence[object]
    ) -> None:
        """Write new contents where they belong; ``changed`` are inputs' names beside the values."""
        import torch

        for name, value in zip(changed, values, strict=True):
            if name is not None:
                assert isinstance(value, torch.Tensor), name
                with torch.no_grad():
                    self.tensor(name, arguments).copy_(value)


def bindings_of(program: ExportedProgram) -> Bindings:
    """Return what stands for the inputs of a program: user inputs are the arguments, in their order."""
    import torch

    tensors = {**program.constants, **program.state_dict}
    positions: dict[str, int] = {}
    owned: dict[str, torch.Tensor] = {}
    for spec in program.graph_signature.input_specs:
        if spec.kind.name == "USER_INPUT":
            positions[spec.arg.name] = len(positions)
        elif spec.target in tensors:
            owned[spec.arg.name] = tensors[spec.target]
        elif spec.kind.name == "TOKEN":  # orders operations with effects, and holds nothing
            owned[spec.arg.name] = torch.empty(0)
    return Bindings(positions, owned)
