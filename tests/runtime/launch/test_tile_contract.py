"""The tile contract: its JSON form keeps everything, and one that contradicts itself is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import cast

import pytest

import spyrec
from spyrec.bundle.manifest import Role
from spyrec.bundle.manifest_json import TILE_CONTRACT, read_tile_contract
from spyrec.bundle.tile_contract import (
    Combine,
    LoopKind,
    ReductionPrograms,
    TileContract,
    TileLoop,
    WriteMode,
)
from spyrec.diagnostics import SpyrecError
from spyrec.layout.device_layout import DeviceLayout
from spyrec.runtime.launch.explain import explain_launch
from spyrec.runtime.launch.render import render_plan
from tests.support.launch_builders import INPUT, OUTPUT, argument, matmul, tensor

Document = dict[str, object]


def through_json(contract: TileContract) -> TileContract:
    return read_tile_contract(json.loads(json.dumps(TILE_CONTRACT.write(contract))))


def everything() -> TileContract:
    contract = matmul(128, 64, 64, takes_strides=True)
    a, b, c = contract.arguments
    loops = (*contract.loops, TileLoop("K", 64, LoopKind.REDUCTION, Combine.SUM, 0.0))
    a, b = replace(a, axes=("M", "K")), replace(b, axes=("K", "N"))
    accumulated = replace(c, write=WriteMode.ACCUMULATE)
    around = ReductionPrograms("init", "combine", "publish")
    variant = replace(matmul(32, 64, 64, takes_strides=True), program="rest")
    rest = tuple(
        replace(item, axes=other.axes, write=other.write)
        for item, other in zip(variant.arguments, (a, b, accumulated), strict=True)
    )
    variant = TileContract("rest", (TileLoop("M", 32), *loops[1:]), rest)
    return TileContract("body", loops, (a, b, accumulated), False, False, True, around, "first", (variant,))


def baked() -> TileContract:
    return replace(matmul(128, 64, 64), needs_correction=False)


@pytest.mark.parametrize("contract", [matmul(1024, 1024, 1024), everything(), baked()])
def test_json_keeps_everything(contract: TileContract) -> None:
    again = through_json(contract)
    assert again == contract
    assert [item.shape for item in again.arguments] == [item.shape for item in contract.arguments]
    assert TILE_CONTRACT.write(again) == TILE_CONTRACT.write(contract)


def spoil(change: Callable[[Document], None]) -> str:
    document = cast("Document", json.loads(json.dumps(TILE_CONTRACT.write(matmul(128, 64, 64)))))
    change(document)
    with pytest.raises(SpyrecError) as caught:
        read_tile_contract(document)
    assert {item.code for item in caught.value.diagnostics} == {"SPY0963"}
    return caught.value.diagnostics[0].render()


def loops_of(document: Document) -> list[Document]:
    return cast("list[Document]", document["loops"])


def arguments_of(document: Document) -> list[Document]:
    return cast("list[Document]", document["arguments"])


def test_a_contract_that_contradicts_itself_is_refused() -> None:
    assert "name one twice" in spoil(lambda document: loops_of(document)[1].update(name="M"))
    assert "no such loop" in spoil(lambda document: arguments_of(document)[0].update(axes=["Q", None]))
    assert "tiles of 64" in spoil(lambda document: loops_of(document)[0].update(tile=64))
    assert "1 axes for 2 dims" in spoil(lambda document: arguments_of(document)[0].update(axes=["M"]))
    assert "follow one loop" in spoil(lambda document: arguments_of(document)[0].update(axes=["M", "M"]))
    assert "inside a reduction" in spoil(lambda document: loops_of(document)[0].update(kind="reduction"))


def test_unknown_keys_and_wrong_types_are_refused_at_their_place() -> None:
    assert "/loops/0/tile" in spoil(lambda document: loops_of(document)[0].update(tile="128"))
    assert "/colour" in spoil(lambda document: document.update(colour="red"))
    assert "/arguments/0/device_dtype" in spoil(lambda document: arguments_of(document)[0].update(device_dtype="FP64"))


def test_variants_have_the_loops_and_arguments_of_the_body() -> None:
    contract = matmul(128, 64, 64)
    for other in (matmul(256, 64, 64), replace(matmul(64, 64, 64), loops=matmul(64, 64, 64).loops[::-1])):
        with pytest.raises(SpyrecError, match="SPY0963"):
            replace(contract, variants=(other,))


def test_the_contract_of_a_compiled_bundle_is_read_again_and_launched_by() -> None:
    graph: dict[str, object] = {
        "format": "spyrec.graph/1",
        "name": "scores",
        "inputs": [
            {"name": "a", "shape": [64, 128], "dtype": "float16"},
            {"name": "b", "shape": [128, 64], "dtype": "float16"},
        ],
        "nodes": [{"name": "c", "op": "matmul", "inputs": ["a", "b"]}],
        "outputs": ["c"],
    }
    manifest = spyrec.compile(graph).manifest
    (contract,) = manifest.tile_contracts.values()
    assert through_json(contract) == contract
    assert [item.name for item in contract.arguments if item.role is Role.OUTPUT] == ["c"]
    tensors = [tensor((256, 128)), tensor((128, 64), allocation=1), tensor((256, 64), allocation=2)]
    assert explain_launch(through_json(contract), tensors).total_iterations == 4


def test_a_plan_reads_as_text() -> None:
    plan = explain_launch(matmul(1024, 1024, 1024), [tensor((4096, 1024)), tensor((1024, 1024)), tensor((4096, 1024))])
    lines = render_plan(plan, most_iterations=2).splitlines()
    assert lines[0] == ("matmul: 4 iterations, 4 HostOperations, 8 control blocks, 8 staging copies of 16777216 bytes")
    assert '  loop "M" (parallel): 4096 in 4 tiles of 1024' in lines
    assert lines[-2] == (
        "  [1,0] matmul: a:scratch b+0 c:scratch <- a+131072 (2097152 bytes) -> c+131072 (2097152 bytes)"
    )
    assert lines[-1] == "  ..."


def test_parts_of_one_result_lie_alike_in_a_program_and_its_variant() -> None:
    def summing(columns: int, order: tuple[int, int]) -> TileContract:
        result = DeviceLayout.default((128, 128), "float16", None, order)
        loops = (TileLoop("K", columns, LoopKind.REDUCTION, Combine.SUM, 0.0),)
        arguments = (
            argument("x", INPUT, (128, columns), (None, "K")),
            replace(argument("y", OUTPUT, (128, 128), (None, None)), layout=result),
        )
        return TileContract("sum", loops, arguments, reduction=ReductionPrograms("zero", "add", "store"))

    whole = summing(128, (0, 1))
    replace(whole, variants=(summing(64, (0, 1)),))
    with pytest.raises(SpyrecError, match="parts of one result must lie alike"):
        replace(whole, variants=(summing(64, (1, 0)),))
