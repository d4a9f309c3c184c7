"""Results lie in memory as torch promises: what comes behind a graph was compiled for their strides and views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from spyrec.dataclass import dataclass

if TYPE_CHECKING:
    import torch
    from torch.export import ExportedProgram
    from torch.fx import Node

Strides = tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class View:
    """A result that shares memory with an argument, or with another result: the one at ``place``.

    ``shape`` and ``strides`` in elements; ``offset``: elements from that one's first to its own.  ``is_whole``: it is
    that very tensor.
    """

    place: int
    of_argument: bool
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    is_whole: bool

    def of(self, base: torch.Tensor) -> torch.Tensor:
        """Return the view."""
        if self.is_whole:
            return base
        return base.as_strided(self.shape, self.strides, base.storage_offset() + self.offset)


Promise = Strides | View


def promises(program: ExportedProgram, *, with_views: bool) -> tuple[Promise, ...]:
    """Return for each result that the caller sees which view it is, or its strides; ``None`` where nothing is known."""
    result = next(node for node in program.graph.nodes if node.op == "output")
    values = cast("Sequence[object]", result.args[0])
    specs = program.graph_signature.output_specs
    results = [value for spec, value in zip(specs, values, strict=True) if spec.kind.name == "USER_OUTPUT"]
    if not with_views:
        return tuple(_strides(_value(result)) for result in results)
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    names = [spec.arg.name for spec in program.graph_signature.input_specs if spec.kind.name == "USER_INPUT"]
    arguments = [nodes.get(name) for name in names]
    return tuple(_promise(number, results, arguments) for number in range(len(results)))


def _promise(number: int, results: Sequence[object], arguments: Sequence[Node | None]) -> Promise:
    result = results[number]
    for place, base in enumerate(arguments):
        found = _view(place, True, base, result)
        if found is not None:
            return found
    for place, base in enumerate(results):
        if _has_all(base):  # the first such is the base of the others
            found = _view(place, False, base, result)
            if found is not None:
                return _strides(_value(result)) if place == number else found
    return _strides(_value(result))


def _view(place: int, of_argument: bool, base: object, result: object) -> View | None:
    """Return a result as the view of a tensor, ``None`` where it is none, or where it has another dtype."""
    whole, part = _value(base), _value(result)
    if whole is None or part is None or whole.dtype != part.dtype or _memory(whole) != _memory(part):
        return None
    shape, strides = _known(part.shape), _strides(part)
    offset = part.storage_offset() - whole.storage_offset()
    if shape is None or strides is None or _strides(whole) is None or type(offset) is not int:
        return None
    return View(place, of_argument, shape, strides, offset, _written(result) is _written(base))


def _value(node: object) -> torch.Tensor | None:
    import torch

    found = getattr(node, "meta", {}).get("val")
    return found if isinstance(found, torch.Tensor) and found.layout is torch.strided else None


def _memory(tensor: torch.Tensor) -> object:
    return tensor.untyped_storage()._cdata  # noqa: SLF001 -- torch has no other name for a storage without numbers


def _known(sizes: Sequence[object]) -> tuple[int, ...] | None:
    found = tuple(item for item in sizes if type(item) is int)
    return found if len(found) == len(sizes) else None


def _strides(promised: torch.Tensor | None) -> Strides:
    return None if promised is None else _known(promised.stride())


def _has_all(base: object) -> bool:
    """Whether a result is all of the memory that it lies in."""
    value = _value(base)
    if value is None or not value.is_contiguous():
        return False
    return value.numel() * value.element_size() == value.untyped_storage().nbytes()


def _written(node: object) -> object:
    """Return the value that a chain of operations has written in place, and that they return."""
    schema: Any = getattr(getattr(node, "target", None), "_schema", None)
    returns: list[Any] = [] if schema is None else schema.returns
    is_written = len(returns) == 1 and returns[0].alias_info is not None and bool(returns[0].alias_info.is_write)
    arguments = cast("Node", node).args if is_written else ()
    return _written(arguments[0]) if arguments else node


def laid_out(results: Sequence[object], promised: Sequence[Promise], arguments: Sequence[object]) -> list[object]:
    """Return results where torch promises them; one that lies there stays, another is copied.

    Views have the content of what they are views of, behind all changes of arguments.
    """
    made = [
        result if isinstance(wanted, View) else _laid_out(result, wanted)
        for result, wanted in zip(results, promised, strict=True)
    ]
    for of_argument, bases in ((True, arguments), (False, made)):
        for number, wanted in enumerate(promised):
            if isinstance(wanted, View) and wanted.of_argument == of_argument:
                made[number] = wanted.of(cast("torch.Tensor", bases[wanted.place]))
    return made


def _laid_out(result: object, wanted: Strides) -> object:
    import torch

    if wanted is None or not isinstance(result, torch.Tensor) or result.stride() == wanted:
        return result
    made = torch.empty_strided(tuple(result.shape), wanted, dtype=result.dtype)
    once = tuple(slice(0, 1) if stride == 0 else slice(None) for stride in wanted)
    made[once].copy_(result[once])  # what an expanded dim repeats is one number in memory
    return made
