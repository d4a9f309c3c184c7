"""Masked exp and top-k of random shapes, layouts and divisions: fast path, definition and NumPy agree."""

from __future__ import annotations

import math
from collections.abc import Mapping
from random import Random

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from spyrec.codegen.opspec import OpSpec
from spyrec.hardware.dtypes import DeviceFormat
from tests.codegen.builders import FP16, FP32, Along, argument, space
from tests.conformance.op_runner import Operand, Words, decoded, encoded, places
from tests.support.both_engines import differing
from tests.support.examples import examples
from tests.support.indexed_operations import launched

Doubles = npt.NDArray[np.float64]


def outputs(spec: OpSpec, sizes: Mapping[str, int], source: tuple[str, ...], values: Doubles) -> Words:
    """Execute by both engines, padding holding 0x7F; return the words of the output's buffer."""
    given_argument, last = spec.args
    memory = np.full(128 * math.prod(given_argument.device_size[:-1]), 0x7F, np.uint8)
    words = memory.view(f"u{128 // given_argument.device_size[-1]}").reshape(given_argument.device_size)
    where = places(Operand(source, (), None), given_argument.device_coordinates, sizes)
    words[where] = encoded(values.reshape(-1), given_argument.device_dtype)
    case = launched(spec, {0: memory}, exact=False)
    fast, stats = case.memory("fast")
    defined, other_stats = case.memory("reference")
    assert differing(fast, defined) == {}
    assert stats == other_stats
    return fast["argument 1"].view(f"u{128 // last.device_size[-1]}").reshape(last.device_size)


@examples(40)
@given(st.randoms(use_true_random=False))
def test_exp_of_ragged_rows_is_zero_behind_them(source: Random) -> None:
    data_format = source.choice([FP16, FP32])
    lanes = data_format.elements_per_stick or 0
    sizes = {"a": source.choice([1, 4, 6]), "c": source.choice([1, 31, 33, 64, 100, 200])}
    sticks = -(-sizes["c"] // lanes)
    order = source.sample(list(sizes), 2)
    splits = {"a": source.choice([1, 2] if sizes["a"] % 2 == 0 else [1])}
    splits |= {"c": source.choice([cut for cut in (1, 2, 4) if sticks % cut == 0])}
    axes = [[Along(symbol) for symbol in source.sample(list(sizes), 2)] for _ in range(2)]
    args = tuple(
        argument(own, "c", sizes, index=at, is_input=at == 0, data_format=data_format) for at, own in enumerate(axes)
    )
    spec = OpSpec("exp", False, space({symbol: sizes[symbol] for symbol in order}, splits), args)
    generator = np.random.default_rng(source.randrange(1 << 30))
    values = np.asarray(generator.integers(-48, 49, [sizes["a"], sizes["c"]]), np.float64) / 16
    words = outputs(spec, sizes, ("a", "c"), values)
    where = places(Operand(("a", "c"), (), None), args[1].device_coordinates, sizes)
    np.testing.assert_allclose(decoded(words[where], data_format).reshape(values.shape), np.exp(values), rtol=2.0**-10)
    words[where] = 0
    assert not words.any()


@examples(40)
@given(st.randoms(use_true_random=False))
def test_the_largest_elements_in_order(source: Random) -> None:
    op = source.choice(["topkvalue", "topkindex"])
    searched = source.choice([1, 5, 40, 130])
    taken = source.choice([count for count in (1, 2, 3, 4, 8, 16, 128) if count <= searched])
    cores = source.choice([cut for cut in (1, 2, 4, 8, 32) if taken % cut == 0 and taken // cut <= 4])
    sizes = {"m": source.choice([1, 64, 100]), "n": searched} | ({"k": taken} if taken > 1 else {})
    order = source.sample(list(sizes), len(sizes))
    result = DeviceFormat.IEEE_INT32 if op == "topkindex" else FP16
    axes = source.sample([Along("m"), Along("k" if taken > 1 else None)], 2)
    # the rows' elements fill sticks of either format
    rounded = {"m": -(-sizes["m"] // 64) * 64}
    first = argument(source.sample([Along("m"), Along("n")], 2), "m", sizes | rounded, index=0)
    last = argument(axes, "m", sizes | rounded, index=1, is_input=False, data_format=result)
    splits = {"k": cores} if taken > 1 else {}
    spec = OpSpec(op, True, space({symbol: sizes[symbol] for symbol in order}, splits), (first, last))
    generator = np.random.default_rng(source.randrange(1 << 30))
    values = np.asarray(generator.integers(-48, 49, [sizes["m"], searched]), np.float64) / 16
    words = outputs(spec, sizes, ("m", "n"), values)
    symbols = ("m", "k") if taken > 1 else ("m",)
    where = places(Operand(symbols, (), None), last.device_coordinates, sizes)
    got = decoded(words[where], result).reshape(sizes["m"], taken)
    places_in_order = np.argsort(-values, axis=1, kind="stable")[:, :taken]
    want = places_in_order if op == "topkindex" else np.take_along_axis(values, places_in_order, axis=1)
    np.testing.assert_array_equal(got, want)
