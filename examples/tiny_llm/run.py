"""Write 200 letters after a prompt on the emulated device, the cache of keys and values kept there from call to call.

Prints the text, letters per second, the bytes that each letter moves, and what the float64 reference writes::

    python examples/tiny_llm/run.py
    python examples/tiny_llm/run.py --prompt "what does the scratchpad do? the" --letters 100
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load_file

import spyrec

Floats = npt.NDArray[np.float64]
Tokens = npt.NDArray[np.int64]

HERE = Path(__file__).resolve().parent
LETTERS = "".join(sorted(set((HERE / "corpus.txt").read_text(encoding="ascii"))))
LAYERS = 2
HEADS = 2
CONTEXT = 256
PROMPT = 32
"""Letters that prefill.json reads."""

DEFAULT_PROMPT = "what does the scratchpad do? the"
LETTERS_WRITTEN = 200


def tokens_of(text: str) -> Tokens:
    """Return the number of each letter of a text."""
    return np.array([LETTERS.index(letter) for letter in text], np.int64)


@dataclass(slots=True)
class Reference:
    """The decoder in float64, one letter at a time: keys and values of the letters so far are lists of rows."""

    weights: Mapping[str, Floats]
    keys: list[list[Floats]] = field(default_factory=lambda: [[] for _ in range(LAYERS)])
    values: list[list[Floats]] = field(default_factory=lambda: [[] for _ in range(LAYERS)])

    def step(self, token: int) -> Floats:
        """Read one more letter; return the logits ``[letters]`` of the one after it."""
        x = self.weights["letters"][token] + self.weights["positions"][len(self.keys[0])]
        for layer in range(LAYERS):
            normal = _rms_norm(x, self.weights[f"attention_norm{layer}"])
            query, key, value = (self.weights[f"{name}{layer}"] @ normal for name in ("query", "key", "value"))
            self.keys[layer].append(key)
            self.values[layer].append(value)
            attended = _attended(query, np.array(self.keys[layer]), np.array(self.values[layer]))
            x = x + self.weights[f"attention_out{layer}"] @ attended
            normal = _rms_norm(x, self.weights[f"mlp_norm{layer}"])
            gate = self.weights[f"gate{layer}"] @ normal
            x = x + self.weights[f"down{layer}"] @ (gate / (1 + np.exp(-gate)) * (self.weights[f"up{layer}"] @ normal))
        return self.weights["to_letters"] @ _rms_norm(x, self.weights["last_norm"])


def _attended(query: Floats, keys: Floats, values: Floats) -> Floats:
    heads: list[Floats] = []
    width = len(query) // HEADS
    for head in range(HEADS):
        own = slice(head * width, (head + 1) * width)
        scores = keys[:, own] @ query[own] * width**-0.5
        powers = np.exp(scores - scores.max())
        heads.append(powers @ values[:, own] / powers.sum())
    return np.concatenate(heads)


def _rms_norm(x: Floats, weight: Floats) -> Floats:
    return x / np.sqrt(np.mean(x * x) + 1e-5) * weight


@dataclass(frozen=True, slots=True)
class Generated:
    """What the device wrote: tokens, the logits ``[letters written, letters]`` they were chosen by, and its costs.

    ``memory_bytes``: read and written in device memory by one call; ``dma_bytes``: copied between host and device by
    one call, the parameters apart, which are copied when the model is loaded; ``seconds``: of all calls but the first.
    """

    tokens: Tokens
    logits: Floats
    memory_bytes: int
    dma_bytes: int
    seconds: float

    @property
    def text(self) -> str:
        """The letters."""
        return "".join(LETTERS[token] for token in self.tokens)


def generate(prompt: Tokens, count: int) -> Generated:
    """Return ``count`` letters, each the one with the largest logit: the first by the prefill, the rest by decoding."""
    prefill, bundle = (spyrec.compile(HERE / f"{name}.json") for name in ("prefill", "decode"))
    caches = spyrec.run(prefill, {"tokens": prompt}).outputs
    logits = [caches.pop("logits")[0].astype(np.float64)]
    result: spyrec.RunResult | None = None
    start = time.perf_counter()
    with spyrec.load(bundle, spyrec.RunOptions(outputs=("logits",))) as model:
        for position in range(PROMPT, PROMPT + count - 1):
            inputs = {"token": np.array([logits[-1].argmax()]), "position": np.array([position])}
            result = model.run(inputs if result else {**inputs, **caches})
            if len(logits) == 1:
                start = time.perf_counter()
            logits.append(result.outputs["logits"][0].astype(np.float64))
    assert result is not None
    total = result.stats.total
    rows = np.array(logits)
    return Generated(
        tokens=rows.argmax(axis=1),
        logits=rows,
        memory_bytes=total.hbm_read_bytes + total.hbm_write_bytes,
        dma_bytes=total.dma_h2d_bytes + total.dma_d2h_bytes,
        seconds=time.perf_counter() - start,
    )


def reference_logits(prompt: Tokens, tokens: Tokens) -> Floats:
    """Return the float64 logits that the reference has for each of ``tokens``, given those before it."""
    reference = Reference(
        {name: array.astype(np.float64) for name, array in load_file(HERE / "weights.safetensors").items()}
    )
    rows = [reference.step(int(token)) for token in (*prompt, *tokens[:-1])]
    return np.array(rows[len(prompt) - 1 :])


def first_difference(written: Generated, exact: Floats) -> int | None:
    """Return the place of the first letter that the reference would have chosen otherwise, ``None`` if there is none.

    Up to there both have read the same letters.
    """
    places = np.flatnonzero(exact.argmax(axis=1) != written.tokens)
    return int(places[0]) if len(places) else None


def main(arguments: Sequence[str] | None = None) -> int:
    """Write, print, compare; return 1 where the reference writes another text."""
    parser = argparse.ArgumentParser(description="write letters after a prompt on the emulated device")
    parser.add_argument("--prompt", default=DEFAULT_PROMPT, help=f"its last {PROMPT} letters are read")
    parser.add_argument("--letters", type=int, default=LETTERS_WRITTEN, help="how many to write (default: 200)")
    parser.add_argument("--no-times", action="store_true", help="print nothing that differs from run to run")
    options = parser.parse_args(arguments)
    if len(options.prompt) < PROMPT or not set(options.prompt) <= set(LETTERS):
        parser.error(f"a prompt has at least {PROMPT} letters, each one of {LETTERS!r}")
    if not 2 <= options.letters <= CONTEXT - PROMPT:
        parser.error(f"2 to {CONTEXT - PROMPT} letters can be written")
    prompt = tokens_of(options.prompt[-PROMPT:])
    written = generate(prompt, options.letters)
    exact = reference_logits(prompt, written.tokens)
    print(f"[{options.prompt[-PROMPT:]}]{written.text}\n")
    if not options.no_times:
        print(f"letters per second      {(options.letters - 2) / written.seconds:9.1f}")
    print(f"device memory per letter{written.memory_bytes:>10,} bytes read and written")
    print(f"host copies per letter  {written.dma_bytes:>10,} bytes")
    place = first_difference(written, exact)
    error = np.abs(written.logits - exact).max()
    if place is None:
        print(f"float64 writes the same; logits differ by at most {error:.3f}")
        return 0
    print(f"float64 writes {LETTERS[exact[place].argmax()]!r} as letter {place}; logits differ by at most {error:.3f}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
