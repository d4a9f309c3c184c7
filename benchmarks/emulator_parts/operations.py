"""One operation through a bundle, launched on the device, beside the same work in NumPy, numba and PyTorch.

Every candidate reads arrays that are there and writes into one that is there: fresh pages can cost more than the work.
The outputs are held against NumPy's before anything is timed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit, prange
from scipy.special import erf  # of the development environment

import spyrec
from benchmarks.device_launch import DeviceLaunch
from benchmarks.emulator_parts.claims import at_least
from benchmarks.emulator_parts.outside import TorchCandidates
from benchmarks.measure import Figures, interleaved, rounded

Singles = npt.NDArray[np.float32]
Halves = npt.NDArray[np.float16]
Candidates = Mapping[str, Callable[[], object]]

_EXTENT = 4096
_TOLERANCE = 2**-6  # DLFloat16 has 9 bits of fraction: eight roundings of an ordinary element
_PAUSE_SECONDS = 0.15  # BLAS and OpenMP threads spin after their work, on the cores of what follows


@dataclass(frozen=True, slots=True)
class Operation:
    """One node, its float16 inputs in operand order, and the result that it has to come near to.

    ``has_weight``: the device may keep what it makes of an operand while that does not change.
    """

    op: str
    inputs: Sequence[Halves]
    expected: Singles
    attributes: Mapping[str, object] = field(default_factory=dict[str, object])
    has_weight: bool = False

    def ready(self) -> DeviceLaunch:
        """Compile the node alone, load it, launch it once; asserts its result."""
        names = [f"x{number}" for number in range(len(self.inputs))]
        inputs = [{"name": n, "shape": list(x.shape), "dtype": "float16"} for n, x in zip(names, self.inputs)]
        node: dict[str, object] = {"name": "y", "op": self.op, "inputs": names}
        node |= {"attrs": dict(self.attributes)} if self.attributes else {}
        graph = {"format": "spyrec.graph/1", "name": self.op, "inputs": inputs, "nodes": [node], "outputs": ["y"]}
        ready = DeviceLaunch(spyrec.compile(graph), dict(zip(names, self.inputs)))
        ready.launch()
        size = np.maximum(np.abs(self.expected), np.abs(self.expected).mean())
        assert (np.abs(ready.result("y").astype(np.float32) - self.expected) <= _TOLERANCE * size).all(), self.op
        return ready


@dataclass(frozen=True, slots=True)
class Measured:
    """The seconds of the emulated operation and of its rivals, in one run."""

    seconds: Mapping[str, float]

    def speed(self, rival: str) -> float | None:
        """Return how many times as fast as the rival the emulator is; ``None`` where the rival was not there."""
        return self.seconds[rival] / self.seconds["emulated"] if rival in self.seconds else None

    def figures(self, *claims: Figures) -> Figures:
        """Return milliseconds, and the claims about them."""
        return {**{f"{name}_ms": rounded(1e3 * value) for name, value in self.seconds.items()}, "claims": list(claims)}


def measured(operation: Operation, *rivals: Candidates, rounds: int = 11) -> Measured:
    """Time the emulated operation and its rivals, interleaved; the best of each, which load blurs least."""
    candidates = {name: action for group in rivals for name, action in group.items()}
    ready = operation.ready()
    every = {"emulated": ready.launch, **candidates}
    if operation.has_weight:
        every["emulated_kept_weight"] = operation.ready().relaunch  # of another device: new inputs drop what is kept
    return Measured(interleaved(every, rounds, pause_seconds=_PAUSE_SECONDS, statistic=min))


def normal(*shape: int) -> Singles:
    """Return standard normal numbers as float32 that float16 holds exactly; the same for a shape every time."""
    drawn = np.random.Generator(np.random.PCG64(len(shape))).standard_normal(shape, dtype=np.float32)
    return drawn.astype(np.float16).astype(np.float32)


@njit(parallel=True, cache=True)
def _add_float32(left: Singles, right: Singles, out: Singles) -> None:
    for index in prange(left.size):
        out[index] = left[index] + right[index]


def add() -> Figures:
    """Add two [4096,4096]; the emulator moves 3 * 2 bytes for each element, numba's parallel float32 loop 3 * 4."""
    left, right = normal(2, _EXTENT, _EXTENT)
    operation = Operation("add", [left.astype(np.float16), right.astype(np.float16)], left + right)
    flat, other, out = left.reshape(-1), right.reshape(-1), np.empty(left.size, np.float32)
    torch = TorchCandidates(operation.inputs, left.shape, lambda torch, x, out: torch.add(*x, out=out))
    rivals = {
        "numba_float32": lambda: _add_float32(flat, other, out),
        "numpy_float32": lambda: np.add(flat, other, out=out),
    }
    found = measured(operation, rivals, torch.of("float16"))
    speed = found.speed("numba_float32")
    assert speed is not None
    return found.figures(at_least("bytes per second, of a parallel numba float32 add's", speed * 6 / 12, 0.8))


def softmax() -> Figures:
    """Softmax along the rows of a [4096,4096]; NumPy converts from float16 to float32 and back."""
    x = normal(_EXTENT, _EXTENT)
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    half, single, out = x.astype(np.float16), np.empty_like(x), np.empty(x.shape, np.float16)
    operation = Operation("softmax", [half], powers / powers.sum(axis=-1, keepdims=True), {"dim": -1})

    def in_numpy() -> None:
        single[:] = half
        np.subtract(single, single.max(axis=-1, keepdims=True), out=single)
        np.exp(single, out=single)
        np.divide(single, single.sum(axis=-1, keepdims=True), out=single)
        out[:] = single

    torch = TorchCandidates([half], x.shape, lambda torch, x, out: torch.softmax(*x, -1, out=out))
    found = measured(operation, {"numpy_float32": in_numpy}, torch.of("float16", "float32"))
    return found.figures(
        at_least("speed, of NumPy float32's with its conversions", found.speed("numpy_float32"), 8),
        at_least("speed, of torch.softmax's in float16", found.speed("torch_float16"), 0.5),
    )


def matmul() -> Figures:
    """Matrix product of two [4096,4096] beside NumPy's sgemm."""
    return _product("mm", 0.85, rounds=5)


def bmm() -> Figures:
    """16 matrix products of [1024,1024] beside NumPy's float32."""
    return _product("bmm", 0.8, rounds=9)


PRODUCTS: Mapping[str, tuple[int, ...]] = {"mm": (_EXTENT, _EXTENT), "bmm": (16, 1024, 1024)}
"""By op: the shape of both operands."""


def product_of(op: str, left: Singles, right: Singles) -> Operation:
    """Return the product of two operands that float16 holds."""
    return Operation(op, [left.astype(np.float16), right.astype(np.float16)], np.matmul(left, right), has_weight=True)


def _product(op: str, least: float, rounds: int) -> Figures:
    left, right = normal(2, *PRODUCTS[op])
    out = np.empty(left.shape, np.float32)
    operation = product_of(op, left, right)
    torch = TorchCandidates(operation.inputs, left.shape, lambda torch, x, out: torch.matmul(*x, out=out))
    numpy = {"numpy_float32": lambda: np.matmul(left, right, out=out)}
    found = measured(operation, numpy, torch.of("float32"), rounds=rounds)
    speed = found.speed("numpy_float32")
    return found.figures(at_least("speed, of NumPy float32's", speed, least))


def layer_norm() -> Figures:
    """Layer norm with weight and bias along the rows of a [4096,4096] beside PyTorch's."""
    x, weight, bias = normal(_EXTENT, _EXTENT), 1 + normal(_EXTENT) / 16, normal(_EXTENT) / 8
    inputs = [item.astype(np.float16) for item in (x, weight, bias)]
    wide = inputs[1].astype(np.float32), inputs[2].astype(np.float32)
    centred = x - x.mean(axis=-1, keepdims=True)
    expected = centred / np.sqrt(np.square(centred).mean(axis=-1, keepdims=True) + 1e-5) * wide[0] + wide[1]
    operation = Operation("layer_norm", inputs, expected, {"normalized_shape": [_EXTENT]})

    def call(torch: Any, x: Sequence[Any], _out: object) -> object:  # noqa: ANN401 -- see TorchCandidates
        # its form with ``out`` is slower than the one that makes a new tensor
        return torch.nn.functional.layer_norm(x[0], [_EXTENT], x[1], x[2])

    return _beside_torch(operation, TorchCandidates(inputs, x.shape, call))


def gelu() -> Figures:
    """Gelu (with the error function) of a [4096,4096] beside PyTorch's."""
    x = normal(_EXTENT, _EXTENT)
    expected = 0.5 * x * (1 + erf(x / np.float32(np.sqrt(2))))
    operation = Operation("gelu", [x.astype(np.float16)], expected)
    torch = TorchCandidates(operation.inputs, x.shape, lambda torch, x, out: torch.ops.aten.gelu.out(*x, out=out))
    return _beside_torch(operation, torch)


def _beside_torch(operation: Operation, torch: TorchCandidates) -> Figures:
    found = measured(operation, torch.of("float16", "float32"))
    return found.figures(at_least("speed, of PyTorch's in float16", found.speed("torch_float16"), 0.5))
