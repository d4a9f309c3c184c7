"""Bugs planted in what August 2026 brought, each named by a code: pieces, rows and symbols that are not there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

from scripts.august_outcomes import opspecs_of
from spyrec.bundle.bundle import Bundle
from spyrec.bundle.manifest import Role
from spyrec.bundle.program import SdscExecute
from spyrec.bundle.superdsc import Distribution
from spyrec.cli import main
from spyrec.codegen.emit_opspecs import EmittedProgram
from spyrec.diagnostics import SpyrecError
from spyrec.emulator.engine import Integers
from spyrec.emulator.operations import shuffle_steps as operation
from tests.support.kinds.kinds import KINDS
from tests.support.kinds.program import RandomProgram, hold
from tests.support.kinds.rows import INT32, IndexedOperation

SEEDS = range(20)


def shuffled(seed: int) -> RandomProgram:
    return KINDS["shuffle"](Random(seed))


# --- a shuffle that drops a piece -------------------------------------------------------------------------------------


def dropping(position: int) -> Callable[[EmittedProgram], EmittedProgram]:
    """Give what the last core owns of an operand of each shuffle to nobody: the core says that it has the first's."""

    def change(emitted: EmittedProgram) -> EmittedProgram:
        files = dict(emitted.superdscs)
        for name, superdsc in files.items():
            operands = list(superdsc.operands)
            own = operands[position].distribution
            if own is None:
                continue
            slots = (*own.core_slices[:-1], own.core_slices[0])
            operands[position] = replace(operands[position], distribution=replace(own, core_slices=slots))
            files[name] = replace(superdsc, operands=tuple(operands))
        return replace(emitted, superdscs=files)

    return change


@pytest.mark.parametrize("position", [0, 1], ids=["source", "target"])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_file_whose_shuffle_drops_a_piece_is_refused(seed: int, position: int) -> None:
    with pytest.raises(SpyrecError, match=r"SPY0726.*nobody owns"):
        hold(shuffled(seed), dropping(position))


def test_an_engine_whose_shuffle_drops_a_piece_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    right = operation.coordinates_of

    def dropped(own: Distribution, dim: str, number: int) -> Integers:
        """Give the first slice's elements to the last slice as well."""
        return right(own, dim, 0 if number == own.slices(dim) - 1 else number)

    monkeypatch.setattr(operation, "coordinates_of", dropped)
    for seed in SEEDS:
        with pytest.raises(AssertionError):
            hold(shuffled(seed))


# --- an index outside of its table ------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["fast", "reference"])
@pytest.mark.parametrize("below", [True, False])
@pytest.mark.parametrize("scatters", [True, False])
def test_every_index_outside_of_its_table_is_refused(scatters: bool, below: bool, engine: str) -> None:
    """Wherever it stands: nothing of the operation is stored, and the message names the row."""
    for seed in SEEDS:
        source = Random(seed)
        made = IndexedOperation.random(source, scatters=scatters)
        case, row = made.program(), -1 if below else made.rows
        rows = case.given[0].values.copy().reshape(-1)
        rows[source.randrange(rows.size)] = row
        outside = replace(case, given={**case.given, 0: replace(case.given[0], values=rows)})
        emitted = case.emitted()
        with pytest.raises(SpyrecError, match=f"SPY0706.*row {row}"):
            outside.launched(emitted.program, emitted.superdscs).memory(engine)


@pytest.mark.parametrize("sanitize", [False, True])
@pytest.mark.parametrize("case", ["gather_rows_split", "gather_one_row", "scatter_rows"])
def test_an_index_outside_of_its_table_is_named_by_a_run(
    case: str, sanitize: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = tmp_path / "b"
    assert main(["codegen", str(opspecs_of(case)), "-o", str(bundle), "--compat", "torch-spyre@2026-08"]) == 0
    arguments = Bundle.load(bundle).manifest.arguments
    arrays = {item.name: np.zeros(item.device_size, np.float32) for item in arguments if item.role is not Role.OUTPUT}
    index = next(item.name for item in arguments if item.device_dtype is INT32)
    arrays[index].reshape(-1)[0] = 1 << 20
    np.savez(tmp_path / "x.npz", **arrays)  # pyright: ignore[reportArgumentType] -- the stub takes names for options
    capsys.readouterr()
    options = ("--sanitize", "bounds") if sanitize else ()
    assert main(["run", str(bundle), "--inputs", str(tmp_path / "x.npz"), *options]) == 1
    printed = capsys.readouterr()
    assert f"row {1 << 20}" in printed.out + printed.err
    assert sanitize or "SPY0706" in printed.err


# --- a symbol bound twice ---------------------------------------------------------------------------------------------


def with_first_symbol_twice(emitted: EmittedProgram) -> EmittedProgram | None:
    """Let the first call bind its first symbol in place of its second one, too; ``None`` without two symbols."""
    body = list(emitted.program.body)
    for place, statement in enumerate(body):
        if isinstance(statement, SdscExecute) and statement.symbol_ids is not None and len(statement.symbol_ids) > 1:
            first, _, *others = statement.symbol_ids
            body[place] = replace(statement, symbol_ids=(first, first, *others))
            return replace(emitted, program=replace(emitted.program, body=tuple(body)))
    return None


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"loops"}))
def test_a_symbol_bound_twice_is_refused_by_both_engines(kind: str) -> None:
    planted = 0
    for seed in range(10):
        case = KINDS[kind](Random(seed))
        wrong = with_first_symbol_twice(case.emitted())
        for engine in ("fast", "reference") if wrong is not None else ():
            assert wrong is not None
            with pytest.raises(SpyrecError, match=r"SPY0719.*bound twice"):
                case.launched(wrong.program, wrong.superdscs).memory(engine)
            planted += 1
    assert planted or kind == "shuffle"  # one of few symbols, in memory: its load has one


@pytest.mark.parametrize("case", ["add", "slice_backgap", "add_dynamic_rows", "loop_rows", "pool_symbolic"])
def test_a_symbol_bound_twice_is_named_by_check(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = tmp_path / case
    assert main(["codegen", str(opspecs_of(case)), "-o", str(bundle), "--compat", "torch-spyre@2026-08"]) == 0
    (bundle / "manifest.json").unlink()
    before, key, after = (bundle / "bundle.mlir").read_text(encoding="utf-8").partition('"symbol_ids"=[')
    ids, _, rest = after.partition("]")
    first, _, *others = ids.split(", ")
    (bundle / "bundle.mlir").write_text(f"{before}{key}{', '.join([first, first, *others])}]{rest}", encoding="utf-8")
    capsys.readouterr()
    assert main(["check", str(bundle)]) == 1
    assert "error[SPY0633]: a symbol id is bound twice in the call of" in capsys.readouterr().err
