"""What kernels compute, as hashes by case: ``python -m tests.support.processor_bits`` prints JSON.

It runs in a process of its own, for a processor that environment variables name.
"""

# numba ships no type information: what it returns is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from inspect import signature
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit
from numba.core import types

import spyrec
from spyrec.emulator.kernels.product_steps import multiply_step
from spyrec.files.host_processor import host_processor
from spyrec.files.kernel_compiler import numba_compiles_for
from spyrec.files.numba_names import COMPILED, with_ingredients
from tests.conformance.op_runner import Operand, execute, specification
from tests.emulator.builders import Operation, Tensor, program_of, superdsc_of, table_of
from tests.support.both_engines import Bytes, Launched
from tests.support.kinds.kinds import KINDS

Singles = npt.NDArray[np.float32]

SHAPES: Mapping[str, tuple[tuple[int, int], tuple[int, int], tuple[int, int]]] = {
    "one row": ((1, 1), (64, 1), (64, 1)),
    "seven rows": ((7, 1), (64, 1), (128, 1)),
    "a tile and a row": ((25, 1), (192, 3), (320, 1)),
    "tiles that share": ((20, 1), (64, 1), (64, 1)),
    "slices of k": ((26, 2), (128, 1), (384, 3)),
    "more than a pass": ((130, 1), (320, 1), (576, 1)),
}
"""Rows, columns and k of products: extent and slices of each; rows fill no tile of any processor.

20 by tiles of 6 are two, and two of four rows.
"""


def product_case(shape: str, generator: np.random.Generator, batch: int = 0) -> tuple[Launched, Singles, Singles]:
    """Return a product in float32 storage, and what its operands hold, by batch."""
    rows, columns, depth = SHAPES[shape]
    dims = {"mb": rows, "out": columns, "in": depth}
    orders = ("mb", "in"), ("in", "out"), ("mb", "out")
    if batch:
        dims = {"x": (batch, 1), **dims}
        orders = tuple((*order, "x") for order in orders)
    tensors = [Tensor(order, stick) for order, stick in zip(orders, ("in", "out", "out"))]
    operation = Operation("batchmatmul" if batch else "matmul", dims, tensors, unit="pt")
    left = generator.standard_normal((max(batch, 1), rows[0], depth[0]), dtype=np.float32)
    right = generator.standard_normal((max(batch, 1), depth[0], columns[0]), dtype=np.float32)
    contents = {place: stored(values) for place, values in enumerate((left, right))}
    return Launched(program_of(), {"sdsc_0.json": superdsc_of(operation)}, table_of(operation), contents), left, right


def stored(values: Singles) -> Bytes:
    """Return float32 as they lie on the device, by batch, column of sticks, row: the stick's dim is the last."""
    batch, rows, columns = values.shape
    sticks = values.reshape(batch, rows, columns // 64, 64).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(sticks).view(np.uint8).reshape(-1)


def unstored(memory: Bytes, shape: tuple[int, int, int]) -> Singles:
    """Return what :func:`stored` was given."""
    batch, rows, columns = shape
    return memory.view(np.float32).reshape(batch, columns // 64, rows, 64).transpose(0, 2, 1, 3).reshape(shape)


def _digest(memory: Mapping[str, npt.NDArray[np.generic]]) -> str:
    content = b"".join(name.encode() + np.ascontiguousarray(held).tobytes() for name, held in sorted(memory.items()))
    return hashlib.sha256(content).hexdigest()


def _products() -> Iterator[tuple[str, str]]:
    for shape in SHAPES:
        for batch in (0, 3):
            case, _, _ = product_case(shape, np.random.default_rng(1), batch)
            yield f"float32 {shape}, batch {batch}", _digest(case.memory("fast", "f32")[0])
    sizes = {"m": 13, "n": 100, "k": 150}
    generator = np.random.default_rng(2)
    orders = (("m", "k"), ("k", "m"), "k"), (("k", "n"), ("n", "k"), "n"), (("m", "n"), ("n", "m"), "n")
    operands = [Operand(symbols, axes, stick) for symbols, axes, stick in orders]
    arrays = [generator.standard_normal([sizes[symbol] for symbol in item.symbols]) for item in operands[:-1]]
    for splits in ({}, {"m": 13}):
        spec = specification("matmul", operands, sizes, splits, is_reduction=True)
        yield f"ragged {splits}", _digest({"out": execute(spec, operands, arrays, sizes)})
    graph = _graph("mm", {"x": (70, 192), "y": (192, 64)}, {})
    for numerics in ("dl16", "ieee"):
        yield f"{numerics} product", _ran(graph, numerics)


def _graph(op: str, inputs: Mapping[str, Sequence[int]], attributes: Mapping[str, object]) -> dict[str, object]:
    tensors = [{"name": name, "shape": list(shape), "dtype": "float16"} for name, shape in inputs.items()]
    node: dict[str, object] = {"name": "out", "op": op, "inputs": list(inputs)}
    node |= {"attrs": dict(attributes)} if attributes else {}
    return {"format": "spyrec.graph/1", "name": op, "inputs": tensors, "nodes": [node], "outputs": ["out"]}


def _ran(graph: Mapping[str, object], numerics: str = "dl16") -> str:
    bundle = spyrec.compile(graph)
    generator = np.random.default_rng(3)
    shapes = {item["name"]: item["shape"] for item in graph["inputs"]}  # pyright: ignore[reportGeneralTypeIssues]
    given = {name: generator.standard_normal(shape).astype(np.float16) for name, shape in shapes.items()}
    return _digest(spyrec.run(bundle, given, spyrec.RunOptions(numerics=numerics)).outputs)


_OTHERS: Sequence[tuple[str, Mapping[str, Sequence[int]], Mapping[str, object]]] = (
    ("add", {"x": (100, 300), "y": (100, 300)}, {}),
    ("div", {"x": (9, 70), "y": (9, 70)}, {}),
    ("softmax", {"x": (65, 320)}, {"dim": -1}),
    ("layer_norm", {"x": (33, 256), "weight": (256,), "bias": (256,)}, {"normalized_shape": [256]}),
    ("gelu", {"x": (100, 130)}, {}),
    ("sum", {"x": (70, 100)}, {"dim": [0]}),
)


def _kinds() -> Iterator[tuple[str, str]]:
    for name, count in {"8-bit products": 12, "8-bit weights": 2, "product of elements": 2, "convolution": 1}.items():
        for seed in range(count):
            case = KINDS[name](Random(seed))
            emitted = case.emitted()
            yield f"{name} {seed}", _digest(case.launched(emitted.program, emitted.superdscs).memory("fast")[0])


def _registers() -> list[str]:
    """Return which vector registers of x86 a product is compiled to use, the widest last."""
    function = multiply_step.py_func
    numba_compiles_for(host_processor())
    compiled: Any = njit(**COMPILED)(with_ingredients(function))
    compiled.compile(types.void(*[types.int64] * len(signature(function).parameters)))
    return sorted({name for text in compiled.inspect_asm().values() for name in re.findall(r"%([xyz]mm)\d", text)})


def main(chosen: str) -> None:
    """Print the processor's variant, what its kernels use, and the hashes; of products alone, or of all."""
    found = dict(_products())
    if chosen == "all":
        found |= {f"graph of {op}": _ran(_graph(op, inputs, attributes)) for op, inputs, attributes in _OTHERS}
        found |= dict(_kinds())
    print(json.dumps({"variant": host_processor().variant.name, "registers": _registers(), "cases": found}))  # noqa: T201 -- its result


if __name__ == "__main__":
    main(sys.argv[1])
