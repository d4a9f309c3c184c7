"""``python -m benchmarks.campaign.nnsmith_models``: NNSmith's models as graphs, one for each line of JSON.

It runs in NNSmith's environment (``scripts/nnsmith_environment.py``): torch exports a model, spyrec imports the
program.  A request is ``{"seed", "window"}``, or ``{"model"}`` for a file that was kept; a window ``[first, end]`` of
the exported program's nodes is a model of its own, whose inputs are what those before it compute.  The answer has the
operations, the file, what torch computes of which inputs in float64, and the graph or what the import raised; else why
there is no model.
"""

# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportMissingTypeArgument=false
# pyright: reportAttributeAccessIssue=false, reportUntypedBaseClass=false, reportUnknownLambdaType=false
from __future__ import annotations

import base64
import contextlib
import io
import json
import logging
import math
import random
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

MOST_NODES = 7
MOST_ELEMENTS = 4096
_ATTEMPTS = 20
_SOLVER_MS = 5000
_DTYPES = ("f32", "bool", "i64")
_LARGEST = 1e4
"""Of magnitudes on the way: float16 ends at 65504."""


def graph_of(seed: int) -> Any:  # noqa: ANN401 -- a class of NNSmith's
    """Return the model that NNSmith generates from a seed, as a module of torch."""
    import numpy as np
    import torch
    from nnsmith.graph_gen import model_gen
    from nnsmith.materialize.torch import TorchModelCPU

    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 -- NNSmith draws from it
    torch.manual_seed(seed)
    operations = [op for op in TorchModelCPU.operators() if not op.limit_domain]
    made = model_gen(
        opset=operations,
        method="symbolic-cinit",
        seed=seed,
        max_nodes=2 + seed % (MOST_NODES - 1),
        max_elem_per_tensor=MOST_ELEMENTS,
        timeout_ms=_SOLVER_MS,
        dtype_choices=list(_DTYPES),
    )
    return TorchModelCPU.from_gir(made.make_concrete()).torch_model.eval()


def plain_module(net: Any) -> Any:  # noqa: ANN401 -- as above
    """Return the same computation without NNSmith's look at its numbers, which no exporter can follow."""
    import torch

    class Plain(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parts = net.mlist
            self.steps = net.instructions
            self.names = list(net.ir.input_var())

        def forward(self, *given: torch.Tensor) -> tuple[torch.Tensor, ...]:
            values = dict(zip(self.names, given, strict=True))
            for function, operands, results, _ in self.steps:
                made = function(*[values[name] for name in operands])
                values.update(zip(results, made if isinstance(made, list | tuple) else [made], strict=True))
            return tuple(values[name] for name in net.output_map)

    return Plain()


def inputs_of(net: Any) -> list[Any]:  # noqa: ANN401 -- as above
    """Return numbers for the inputs that float16 holds exactly."""
    import torch

    found = []
    for like in net.input_like.values():
        numbers = torch.round(torch.randn(tuple(like.shape)) * 16) / 16
        dtype = like.dtype.torch()
        found.append(numbers.to(dtype) if dtype.is_floating_point else (numbers > 0).to(dtype))
    return found


def rounded(module: Any) -> Any:  # noqa: ANN401 -- as above
    """Round a module's floats to what float16 holds, so that the imported graph has the same."""
    import torch

    with torch.no_grad():
        for tensor in (*module.parameters(), *module.buffers()):
            if tensor.is_floating_point():
                tensor.copy_(tensor.half().to(tensor.dtype))
    return module


def exported(module: Any, arguments: list[Any]) -> Any:  # noqa: ANN401 -- as above
    """Return a module as a program of torch.export, without the places of this file: all nodes have the same."""
    import torch

    program = torch.export.export(module, tuple(arguments), strict=False)
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)
    return program


def widened(value: Any) -> Any:  # noqa: ANN401 -- as above
    """Return floats as float64, anything else as it is."""
    import torch

    return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def windowed(program: Any, arguments: list[Any], window: list[int]) -> tuple[Any, list[Any]]:  # noqa: ANN401 -- as above
    """Return a window of a program's nodes as a module, and its arguments."""
    import torch

    class Kept(torch.fx.Interpreter):
        def __init__(self, module: torch.fx.GraphModule) -> None:
            super().__init__(module)
            self.values: dict[str, object] = {}

        def run_node(self, n: torch.fx.Node) -> object:
            self.values[n.name] = super().run_node(n)
            return self.values[n.name]

    module = program.module()
    kept = Kept(module)
    with torch.no_grad():
        kept.run(*arguments)
    nodes = [node for node in module.graph.nodes if node.op == "call_function"][window[0] : window[1]]
    graph, new, given = torch.fx.Graph(), {}, []
    for node in nodes:
        for operand in node.all_input_nodes:
            if operand not in new:
                new[operand] = graph.placeholder(f"x{len(given)}")
                value = kept.values[operand.name]
                assert isinstance(value, torch.Tensor), "a part of a tuple is no tensor"
                given.append(value.detach().half().to(value.dtype) if value.is_floating_point() else value.detach())
        new[node] = graph.node_copy(node, lambda item: new[item])
    used = {operand for node in nodes for operand in node.all_input_nodes}
    graph.output(tuple(new[node] for node in nodes if node not in used))
    return torch.fx.GraphModule(module, graph), given


def answer_to(request: dict[str, Any]) -> dict[str, Any]:
    """Make and import the model of a request; what NNSmith or torch itself refuses is drawn anew."""
    with tempfile.TemporaryDirectory(prefix="spyrec-nnsmith-") as folder:
        path = Path(folder, "model.pt2")
        if "model" in request:
            path.write_bytes(base64.b64decode(request["model"]))
            return imported(loaded(path))
        reason = ""
        for attempt in range(1 if request.get("window") else _ATTEMPTS):
            try:
                found = _made(request["seed"] + 7919 * attempt, request.get("window"), path)
            except Exception as error:  # noqa: BLE001 -- a model that torch cannot run is none
                reason = f"{type(error).__name__}: {error}"[:300]
                continue
            return {**found, "model": base64.b64encode(path.read_bytes()).decode(), **imported(loaded(path))}
        return {"none": reason}


def loaded(path: Path) -> Any:  # noqa: ANN401 -- as above
    """Return a program as it comes back from its file, read here: spyrec starts a process for each file."""
    import torch

    return torch.export.load(str(path))


def imported(program: Any) -> dict[str, Any]:  # noqa: ANN401 -- as above
    """Return the graph of a program, or what the import raised: a refusal's code, or where it broke off."""
    import spyrec
    from benchmarks.campaign.verdicts import verdict_of

    found: dict[str, Any] = {}

    def take() -> None:
        found["graph"] = spyrec.import_program(program).to_json()

    return {"import": verdict_of(take).to_json(), **found}


def _made(seed: int, window: list[int] | None, path: Path) -> dict[str, Any]:
    import torch

    net = graph_of(seed)
    module, arguments = rounded(plain_module(net)), inputs_of(net)
    program = exported(module, arguments)
    if window is not None:
        module, arguments = windowed(program, arguments, window)
        program = exported(module, arguments)
    with torch.no_grad():
        torch.export.save(program, str(path))
        outputs = module.double()(*map(widened, arguments))
    outputs = [item.double() for item in outputs if isinstance(item, torch.Tensor)]
    for item in outputs:
        if item.numel() and not (torch.isfinite(item).all() and item.abs().max() < _LARGEST):
            raise ValueError("its numbers leave float16")
    names = [spec.arg.name for spec in program.graph_signature.input_specs if spec.kind.name == "USER_INPUT"]
    return {
        "seed": seed,
        "nodes": [str(node.target) for node in program.graph.nodes if node.op == "call_function"],
        "inputs": {name: as_json(item) for name, item in zip(names, arguments, strict=True)},
        "outputs": [as_json(item) for item in outputs],
    }


def as_json(tensor: Any) -> dict[str, Any]:  # noqa: ANN401 -- as above
    """Return shape, dtype and numbers of a tensor; NaN and the infinities, which JSON does not have, are words."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    numbers = [item if math.isfinite(item) else str(item) for item in tensor.detach().reshape(-1).tolist()]
    return {"shape": list(tensor.shape), "dtype": dtype, "data": numbers}


def main() -> int:
    """Answer each line with a line."""
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    answers = sys.stdout
    for line in sys.stdin:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            answer = answer_to(json.loads(line))
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
