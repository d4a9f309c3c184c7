"""Random graphs through the whole compiler, a bundle on disk, and the emulated device."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

import spyrec
from spyrec import CompileOptions, RunOptions
from spyrec.bundle.bundle import Bundle
from spyrec.ir.evaluate import evaluate
from spyrec.ir.kernel_form import Rule
from spyrec.passes.base import PipelineOptions
from tests.support.examples import examples
from tests.support.graphs import JsonObject, read, scheduled
from tests.support.random_graphs import CONTINUOUS_STEPS, VIEW_STEPS, random_graph

Arrays = Mapping[str, npt.NDArray[np.generic]]

_SEEDS = st.integers(0, 1 << 30)


def _files(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


@contextmanager
def _saved(data: JsonObject) -> Generator[Path]:
    """Compile and save; the directory is there for as long as the bundle, which reads its constants when asked."""
    with TemporaryDirectory() as parent:
        directory = Path(parent) / "bundle"
        spyrec.compile(data).save(directory)
        yield directory


def _bytes(bundle: Bundle, arrays: Arrays, numerics: str = "dl16") -> dict[str, bytes]:
    outputs = spyrec.run(bundle, arrays, RunOptions(numerics=numerics)).outputs
    return {name: values.tobytes() for name, values in outputs.items()}


def _inner_error(data: JsonObject) -> float:
    """Return what the values inside may add, relative to the largest output.

    Float32 roundings, 2**-24 of the largest value on the way, some tens of them, amplified by norms at most by 2**5.
    A layer norm has 1 / N as a 16-bit op constant: mean and variance are off by 2**-10, its eps amplifies by 2**3.5.
    """
    nodes = data["nodes"]
    assert isinstance(nodes, list)
    has_layer_norm = any('"layer_norm"' in json.dumps(item) for item in cast("list[JsonObject]", nodes))
    return 2.0**-5 if has_layer_norm else 2.0**-12


def _assert_close(found: npt.NDArray[np.generic], wanted: npt.NDArray[np.generic], name: str, inner: float) -> None:
    """The last rounding of a float16 output is at most 2**-11 of the value."""
    assert found.shape == wanted.shape, name
    values, expected = found.astype(np.float64), wanted.astype(np.float64)
    largest = np.finfo(np.float16 if found.dtype == np.float16 else np.float32).max
    inside = np.isfinite(expected) & (np.abs(expected) < largest * (1 - 2.0**-10))
    scale = 1 + np.max(np.abs(expected[inside]), initial=0.0)
    error = np.abs(values - expected)[inside]
    assert np.all(error <= 2.0**-10 * np.abs(expected[inside]) + inner * scale), (name, float(np.max(error)))


@examples(25)
@given(_SEEDS)
def test_a_saved_bundle_computes_the_graph(seed: int) -> None:
    data, arrays = random_graph(seed, kinds=CONTINUOUS_STEPS)
    with _saved(data) as directory:
        found = spyrec.run(Bundle.load(directory), arrays, RunOptions(numerics="f32")).outputs
    wanted = evaluate(read(data), arrays)
    assert list(found) == list(wanted)
    for name, values in wanted.items():
        _assert_close(found[name], values, name, _inner_error(data))


@examples(20)
@given(_SEEDS)
def test_views_and_copies_move_numbers_unchanged(seed: int) -> None:
    data, arrays = random_graph(seed, 8, VIEW_STEPS)
    found = spyrec.run(spyrec.compile(data), arrays).outputs
    for name, values in evaluate(read(data), arrays).items():
        np.testing.assert_array_equal(found[name].astype(np.float64), values.astype(np.float64), err_msg=name)


@examples(18)
@given(_SEEDS)
def test_device_numbers_pass_the_check(seed: int) -> None:
    data, arrays = random_graph(seed)
    for numerics in ("dl16", "f32"):
        result = spyrec.run(spyrec.compile(data), arrays, RunOptions(numerics=numerics, check=True))
        assert result.is_ok, (numerics, result.check)


@examples(10)
@given(_SEEDS)
def test_baked_and_symbolic_addresses_and_any_number_of_cores_give_the_same_bytes(seed: int) -> None:
    data, arrays = random_graph(seed)
    reference = _bytes(spyrec.compile(data), arrays)
    assert _bytes(spyrec.compile(data, CompileOptions(symbolic_args=False)), arrays) == reference
    for cores in (1, 5):
        if _sums_as_on(data, cores, 32):
            assert _bytes(spyrec.compile(data, CompileOptions(cores=cores)), arrays) == reference, cores


def _sums_as_on(data: JsonObject, *choices: int) -> bool:
    """Whether no contraction divides what it sums, on any of these numbers of cores: then no sum is reordered."""
    return all(
        kernel.rule is not Rule.CONTRACTION
        or kernel.division is None
        or all(
            slices == 1 or variable.dim not in kernel.reduced
            for variable, slices in zip(kernel.placed.variables, kernel.division, strict=True)
        )
        for cores in choices
        for graph in [scheduled(data, PipelineOptions(cores=cores))]
        for kernel in graph.kernels
    )


@examples(10)
@given(_SEEDS)
def test_fixed_borders_and_another_number_of_cores_still_pass_the_check(seed: int) -> None:
    data, arrays = random_graph(seed)
    options = CompileOptions(fixed_io_layouts=True, cores=7, symbolic_args=False)
    assert spyrec.run(spyrec.compile(data, options), arrays, RunOptions(check=True)).is_ok


@examples(6)
@given(_SEEDS)
def test_a_graph_has_one_bundle(seed: int) -> None:
    data, _ = random_graph(seed, 8)
    with _saved(data) as first, _saved(data) as second:
        assert _files(first) == _files(second)
