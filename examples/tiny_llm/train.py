"""Train the decoder on corpus.txt and write weights.safetensors beside this file.

Run once; what it writes is committed.  NumPy alone, the gradients by hand, in one to two minutes on one core::

    python examples/tiny_llm/train.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors.numpy import save_file

Floats = npt.NDArray[np.floating]
Tokens = npt.NDArray[np.int64]
Parameters = dict[str, Floats]

HERE = Path(__file__).resolve().parent
CORPUS = (HERE / "corpus.txt").read_text(encoding="ascii")
LETTERS = sorted(set(CORPUS))
LAYERS = 2
WIDTH = 128
HEADS = 2
HEAD = WIDTH // HEADS
MLP = 256
CONTEXT = 256
EPS = 1e-5

SEED = 0
STEPS = 1600
BATCH = 4
WARM_UP = 30
LEARNING_RATE = 2e-3
DECAY = (0.9, 0.99)
"""How fast the means of gradients and of their squares forget (Adam)."""

HIDDEN_PAIRS = np.triu(np.full((CONTEXT, CONTEXT), -1e9, np.float32), 1)


def parameter_shapes() -> dict[str, tuple[int, ...]]:
    """Return name -> shape of every parameter; a matrix is ``[features out, features in]`` as in PyTorch."""
    shapes: dict[str, tuple[int, ...]] = {"letters": (len(LETTERS), WIDTH), "positions": (CONTEXT, WIDTH)}
    for layer in range(LAYERS):
        shapes |= {
            f"attention_norm{layer}": (WIDTH,),
            f"query{layer}": (WIDTH, WIDTH),
            f"key{layer}": (WIDTH, WIDTH),
            f"value{layer}": (WIDTH, WIDTH),
            f"attention_out{layer}": (WIDTH, WIDTH),
            f"mlp_norm{layer}": (WIDTH,),
            f"gate{layer}": (MLP, WIDTH),
            f"up{layer}": (MLP, WIDTH),
            f"down{layer}": (WIDTH, MLP),
        }
    return shapes | {"last_norm": (WIDTH,), "to_letters": (len(LETTERS), WIDTH)}


def first_parameters(generator: np.random.Generator) -> Parameters:
    """Return norms of one, matrices of normal numbers scaled by 1/sqrt(features in), and positions of sines.

    Positions that begin as sines of many periods are neighbours of their neighbours: looking one letter back is learnt
    for all of them at once.
    """
    parameters: Parameters = {}
    for name, shape in parameter_shapes().items():
        drawn = generator.standard_normal(shape, dtype=np.float32)
        scale = 0.5 if name == "letters" else shape[-1] ** -0.5
        parameters[name] = np.ones(shape, np.float32) if len(shape) == 1 else drawn * np.float32(scale)
    angles = np.outer(np.arange(CONTEXT), 1000.0 ** (-np.arange(WIDTH // 2) / (WIDTH // 2)))
    parameters["positions"] = (0.5 * np.concatenate([np.sin(angles), np.cos(angles)], axis=1)).astype(np.float32)
    return parameters


class Layer:
    """One layer over rows ``[batch * context, width]``: what ``forward`` keeps is what ``backward`` needs.

    ``backward`` adds the gradients of the layer's parameters to ``gradients``.
    """

    def __init__(self, parameters: Parameters, gradients: Parameters, number: int) -> None:
        self.parameters, self.gradients, self.number = parameters, gradients, number

    def forward(self, x: Floats) -> Floats:
        """Return the rows after attention and MLP."""
        self.x = x
        self.normal = rms_norm(x, self._own("attention_norm"))
        self.query, self.key, self.value = (heads(self.normal @ self._own(n).T) for n in ("query", "key", "value"))
        scores = self.query @ self.key.swapaxes(2, 3) * np.float32(HEAD**-0.5) + HIDDEN_PAIRS
        self.shares = softmax(scores)
        self.attended = rows(self.shares @ self.value)
        self.middle = x + self.attended @ self._own("attention_out").T
        self.normal_middle = rms_norm(self.middle, self._own("mlp_norm"))
        self.gate = self.normal_middle @ self._own("gate").T
        self.up = self.normal_middle @ self._own("up").T
        self.sigmoid = 1 / (1 + np.exp(-self.gate))
        return self.middle + (self.gate * self.sigmoid * self.up) @ self._own("down").T

    def backward(self, slope: Floats) -> Floats:
        """Return the loss's slope by the layer's input from that by its output."""
        active = self.gate * self.sigmoid
        inner = self._through("down", active * self.up, slope)
        gate_slope = inner * self.up * (self.sigmoid + active * (1 - self.sigmoid))
        normal_slope = self._through("gate", self.normal_middle, gate_slope)
        normal_slope += self._through("up", self.normal_middle, inner * active)
        slope = slope + self._through_norm("mlp_norm", self.middle, normal_slope)
        attended_slope = heads(self._through("attention_out", self.attended, slope))
        share_slope = attended_slope @ self.value.swapaxes(2, 3)
        score_slope = self.shares * (share_slope - (share_slope * self.shares).sum(axis=-1, keepdims=True))
        score_slope *= np.float32(HEAD**-0.5)
        normal_slope = self._through("value", self.normal, rows(self.shares.swapaxes(2, 3) @ attended_slope))
        normal_slope += self._through("query", self.normal, rows(score_slope @ self.key))
        normal_slope += self._through("key", self.normal, rows(score_slope.swapaxes(2, 3) @ self.query))
        return slope + self._through_norm("attention_norm", self.x, normal_slope)

    def _own(self, name: str) -> Floats:
        return self.parameters[f"{name}{self.number}"]

    def _through(self, name: str, x: Floats, slope: Floats) -> Floats:
        self.gradients[f"{name}{self.number}"] = slope.T @ x
        return slope @ self._own(name)

    def _through_norm(self, name: str, x: Floats, slope: Floats) -> Floats:
        slope_x, self.gradients[f"{name}{self.number}"] = rms_norm_slopes(x, self._own(name), slope)
        return slope_x


def heads(x: Floats) -> Floats:
    """``[batch * context, width]`` -> ``[batch, heads, context, head]``."""
    return x.reshape(-1, CONTEXT, HEADS, HEAD).swapaxes(1, 2)


def rows(x: Floats) -> Floats:
    """``[batch, heads, context, head]`` -> ``[batch * context, width]``."""
    return x.swapaxes(1, 2).reshape(-1, WIDTH)


def softmax(x: Floats) -> Floats:
    """Return the shares along the last axis."""
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def _inverse_size(x: Floats) -> Floats:
    return 1 / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + np.float32(EPS))


def rms_norm(x: Floats, weight: Floats) -> Floats:
    """Return every row divided by the root of its mean square, times the weight."""
    return x * _inverse_size(x) * weight


def rms_norm_slopes(x: Floats, weight: Floats, slope: Floats) -> tuple[Floats, Floats]:
    """Return the slopes by the rows and by the weight from that by the result."""
    inverse = _inverse_size(x)
    weighted = slope * weight
    inner = np.mean(weighted * x, axis=-1, keepdims=True)
    return inverse * (weighted - x * inverse * inverse * inner), (slope * x * inverse).sum(axis=0)


def loss_and_gradients(parameters: Parameters, tokens: Tokens) -> tuple[float, Parameters]:
    """Return the mean cross entropy of ``tokens[:, 1:]`` (``[batch, context + 1]``) in nats, and its gradients."""
    gradients: Parameters = {}
    ids, wanted = tokens[:, :-1].ravel(), tokens[:, 1:].ravel()
    x = parameters["letters"][ids] + np.tile(parameters["positions"], (len(tokens), 1))
    layers = [Layer(parameters, gradients, number) for number in range(LAYERS)]
    for layer in layers:
        x = layer.forward(x)
    normal = rms_norm(x, parameters["last_norm"])
    shares = softmax(normal @ parameters["to_letters"].T)
    every = np.arange(len(wanted))
    loss = -float(np.log(shares[every, wanted]).mean())
    shares[every, wanted] -= 1
    slope = shares / np.float32(len(wanted))
    gradients["to_letters"] = slope.T @ normal
    slope, gradients["last_norm"] = rms_norm_slopes(x, parameters["last_norm"], slope @ parameters["to_letters"])
    for layer in reversed(layers):
        slope = layer.backward(slope)
    gradients["letters"] = np.zeros_like(parameters["letters"])
    np.add.at(gradients["letters"], ids, slope)
    gradients["positions"] = slope.reshape(len(tokens), CONTEXT, WIDTH).sum(axis=0)
    return loss, gradients


def learning_rate(step: int) -> float:
    """Return a rate that rises over the first steps and falls to a twentieth along a cosine."""
    falling = 0.05 + 0.95 * 0.5 * (1 + np.cos(np.pi * step / STEPS))
    return LEARNING_RATE * falling * min(1.0, (step + 1) / WARM_UP)


def train() -> Parameters:
    """Return the parameters after all steps of Adam on windows drawn from the corpus."""
    generator = np.random.default_rng(SEED)
    parameters = first_parameters(generator)
    text = np.array([LETTERS.index(letter) for letter in CORPUS], np.int64)
    means, squares = ({name: np.zeros_like(value) for name, value in parameters.items()} for _ in range(2))
    for step in range(STEPS):
        starts = generator.integers(0, len(text) - CONTEXT, BATCH)
        loss, gradients = loss_and_gradients(parameters, text[starts[:, None] + np.arange(CONTEXT + 1)])
        rate = learning_rate(step) * np.sqrt(1 - DECAY[1] ** (step + 1)) / (1 - DECAY[0] ** (step + 1))
        for name, gradient in gradients.items():
            means[name] += np.float32(1 - DECAY[0]) * (gradient - means[name])
            squares[name] += np.float32(1 - DECAY[1]) * (gradient * gradient - squares[name])
            parameters[name] -= np.float32(rate) * means[name] / (np.sqrt(squares[name]) + np.float32(1e-8))
        if step % 50 == 0 or step == STEPS - 1:
            print(f"step {step:4}  loss {loss:.4f}", flush=True)
    return parameters


def main() -> int:
    """Train and write the parameters in float16."""
    weights = {name: value.astype(np.float16) for name, value in train().items()}
    save_file(weights, HERE / "weights.safetensors")
    print(f"{sum(value.size for value in weights.values()):,} parameters")
    return 0


if __name__ == "__main__":
    sys.exit(main())
