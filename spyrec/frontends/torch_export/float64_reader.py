"""A process that lets torch compute a program in float64; started by ``float64.py``.

``python -m spyrec.frontends.torch_export.float64_reader STRIPPED.pt2 ORIGINAL.pt2 GIVEN.npz FOUND.npz [MISSING]``

The program comes from the copy without data and code, its weights from the original, mapped.
"""

from __future__ import annotations

import io
import logging
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from spyrec.frontends.model_import.source_graph import HostArray, Weights
from spyrec.frontends.torch_export.archive import Archive, read_archive
from spyrec.frontends.torch_export.named_arrays import read_arrays, write_arrays
from spyrec.frontends.torch_export.reader import give_buffers_room
from spyrec.frontends.torch_export.walk import functional, own_names, place_of
from spyrec.ir.numbers import decode

if TYPE_CHECKING:
    import torch
    from torch.export import ExportedProgram

_UNKNOWN = object()
"""An input that is not given, and of which the file holds no example."""


def main(stripped: str, original: str, given: str, found: str, missing: str = "") -> int:
    """Compute the program of ``stripped`` on the inputs ``given``, on its own example inputs where one is missing.

    ``found`` gets its inputs (``in NAME``), results (``out NUMBER``), the new content of what it changes
    (``new NAME``), and what each module computes last (``mod PATH``), floats in float64.  Where an
    input is missing that the file holds no example of, ``found`` is empty; with ``missing`` "zeros" it is zeros.
    """
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    import torch

    archive = read_archive(Path(original))
    program = torch.export.load(stripped)
    give_buffers_room(program)
    loaded, program = program, functional(program, {})  # what it changes is a result
    names = own_names(loaded, program)
    inputs = _inputs(program, names, read_arrays(Path(given)), _samples(archive), archive.weights())
    unknown = [name for name, value in inputs.items() if value is _UNKNOWN]
    if missing == "zeros":
        inputs |= _zeros(program, names, unknown)
    elif unknown:
        write_arrays(Path(found), {})
        return 0
    torch.set_default_dtype(torch.float64)  # of what the program makes without saying a dtype
    with torch.no_grad():
        results, modules = _computed(program, list(inputs.values()))
    arrays = {
        **dict(_named(program, names, inputs, results)),
        **{f"mod {name}": item for name, item in modules.items()},
    }
    write_arrays(Path(found), arrays)
    return 0


def _samples(archive: Archive) -> list[object]:
    """Return the example inputs in the order of the program's inputs; none where they hold more than plain data."""
    import torch

    content = archive.samples()
    if not content:
        return []
    try:
        held = torch.load(io.BytesIO(content), weights_only=True)
    except Exception:  # noqa: BLE001 -- objects of classes are refused there, in many ways
        return []
    return torch.utils._pytree.tree_leaves(held)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] -- no public one


def _inputs(
    program: ExportedProgram,
    names: Mapping[str, str],
    given: Mapping[str, HostArray],
    samples: Sequence[object],
    weights: Weights,
) -> dict[str, object]:
    """Return what the program is called with, by placeholder, in order; what has no example is not known."""
    import torch

    specs = program.graph_signature.input_specs
    users = [spec.arg.name for spec in specs if spec.kind.name == "USER_INPUT"]
    leaves = dict(zip(users, samples, strict=True)) if len(users) == len(samples) else {}
    found: dict[str, object] = {}
    for spec in specs:
        name = names.get(spec.arg.name, spec.arg.name)
        if name in given:
            found[name] = torch.from_numpy(given[name])
        elif spec.kind.name != "USER_INPUT":
            weight = weights[spec.target or ""]
            found[name] = torch.from_numpy(np.array(decode(weight.read(), weight.dtype)))
        elif name in leaves:
            found[name] = _widened(leaves[name])
        elif not hasattr(spec.arg, "value"):
            found[name] = _UNKNOWN
        else:
            found[name] = spec.arg.value
    return found


def _zeros(program: ExportedProgram, names: Mapping[str, str], wanted: Sequence[str]) -> dict[str, object]:
    """Return zeros for inputs, by name."""
    import torch

    found: dict[str, object] = {}
    for node in program.graph.nodes:
        name = names.get(node.name, node.name)
        if node.op == "placeholder" and name in wanted:
            example = cast("torch.Tensor", node.meta["val"])
            zeros = torch.from_numpy(np.zeros(tuple(map(int, example.shape))))
            found[name] = zeros if example.is_floating_point() else zeros.to(example.dtype)
    return found


def _widened(value: object) -> object:
    import torch

    return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def _computed(program: ExportedProgram, inputs: Sequence[object]) -> tuple[Sequence[object], dict[str, HostArray]]:
    """Interpret the program's operations with float64 wherever they name a float; the second is by module."""
    import torch

    modules: dict[str, HostArray] = {}

    class Widening(torch.fx.Interpreter):
        def run_node(self, n: torch.fx.Node) -> object:
            result = super().run_node(n)
            if isinstance(result, torch.Tensor) and n.op == "call_function":
                modules[place_of(n).module] = _array(result)
            return result

        def call_function(self, target: object, args: tuple[object, ...], kwargs: Mapping[str, object]) -> object:
            if "_assert_tensor_metadata" in str(target):
                return None
            named = {name: _wide_dtype(value) for name, value in kwargs.items()}
            return super().call_function(target, tuple(map(_wide_dtype, args)), named)

    results = cast("Sequence[object]", Widening(program.graph_module).run(*inputs))
    return results, modules


def _wide_dtype(value: object) -> object:
    import torch

    return torch.float64 if isinstance(value, torch.dtype) and value.is_floating_point else value


def _named(
    program: ExportedProgram, names: Mapping[str, str], inputs: Mapping[str, object], results: Sequence[object]
) -> Iterator[tuple[str, HostArray]]:
    import torch

    signature = program.graph_signature
    placeholders = {spec.target: names.get(spec.arg.name, spec.arg.name) for spec in signature.input_specs}
    number = 0
    changed: set[str] = set()
    for spec, result in zip(signature.output_specs, results, strict=True):
        if spec.kind.name != "USER_OUTPUT":
            target = spec.target or ""
            name = placeholders.get(target, target)
            changed.add(name)
            yield f"new {name}", _array(result)
            continue
        if result is not None:
            yield f"out {number}", _array(result)
            number += 1
    users = {spec.arg.name for spec in signature.input_specs if spec.kind.name == "USER_INPUT"}
    for name, value in inputs.items():
        if name in users | changed and isinstance(value, torch.Tensor):
            yield f"in {name}", _array(value)


def _array(value: object) -> HostArray:
    import torch

    return value.detach().numpy() if isinstance(value, torch.Tensor) else np.asarray(value)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
