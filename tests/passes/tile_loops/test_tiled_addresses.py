"""Every address that ``bundle.mlir`` computes is that of the first element which the core touches in that round."""

from __future__ import annotations

from dataclasses import replace

import pytest

import spyrec
from spyrec import CompileOptions
from spyrec.bundle.bundle import Bundle
from spyrec.bundle.program import AffineMap
from spyrec.hardware.target import Target
from spyrec.passes.base import PipelineOptions
from tests.support.examples import seeds
from tests.support.graphs import JsonObject, read
from tests.support.random_loops import looped_graph
from tests.support.tiled_addresses import AddressOracle, Counts
from tests.support.tiling_cases import CASES


def _oracle(data: JsonObject, cores: int) -> AddressOracle:
    return AddressOracle(read(data), PipelineOptions(Target(cores=cores), cores))


def _checked(data: JsonObject, cores: int) -> Counts:
    found = _oracle(data, cores).check(spyrec.compile(data, CompileOptions(cores=cores)))
    assert not found.problems, found.problems[:5]
    return found


@pytest.mark.parametrize("cores", [32, 5])
def test_addresses_of_random_looped_graphs_are_those_of_their_elements(cores: int) -> None:
    found = [_checked(looped_graph(seed)[0], cores) for seed in seeds(20)]
    moving = sum(item.moving for item in found)
    assert moving > 1_000
    assert sum(item.unknown for item in found) < moving / 100


@pytest.mark.parametrize("name", CASES)
def test_addresses_of_graphs_that_were_wrong_elsewhere_are_those_of_their_elements(name: str) -> None:
    found = _checked(CASES[name](), 4)
    assert found.moving
    assert found.unknown < found.moving


def _with_map(bundle: Bundle, number: int, coefficients: tuple[int, ...]) -> Bundle:
    """Return a bundle whose first program has other numbers in one of its affine maps."""
    first, *others = bundle.programs
    maps = list(first.program.maps)
    maps[number] = AffineMap(maps[number].name, coefficients)
    changed = replace(first, program=replace(first.program, maps=tuple(maps)))
    return replace(bundle, programs=(changed, *others))


@pytest.mark.parametrize("name", ["restickify_inside_a_group", "bmm_tiled_on_B_M_N", "size_1_tiles_of_1_20_16_64"])
def test_a_wrong_coefficient_in_any_map_is_seen(name: str) -> None:
    data = CASES[name]()
    oracle, bundle = _oracle(data, 4), spyrec.compile(data, CompileOptions(cores=4))
    for number, item in enumerate(bundle.programs[0].program.maps):
        swapped = item.coefficients[::-1]
        for wrong in ((*item.coefficients[:-1], item.coefficients[-1] + 128), swapped):
            if wrong != item.coefficients:
                assert oracle.check(_with_map(bundle, number, wrong)).problems, (number, wrong)
