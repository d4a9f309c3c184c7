"""A second opinion on ``bundle.mlir``: MLIR's own parser and verifier, where its Python bindings are installed."""

from __future__ import annotations

from importlib import import_module

from spyrec.bundle.mlir_printer import print_generic
from spyrec.bundle.program import Program
from spyrec.diagnostics import Location, refuse


def verify_with_mlir(program: Program, file: str) -> None:
    """Parse and verify the generic form of a program with MLIR itself.

    The ``sdscbundle`` dialect has no public definition: its operations pass as unregistered ones.
    Errors: SPY0821 the bindings are not installed, SPY0822 MLIR refuses the program.
    """
    try:
        ir = import_module("torch_mlir.ir")  # an optional extra: the package is MLIR's own Python bindings
    except ImportError:
        fact = "MLIR's Python bindings are not installed"
        raise refuse("SPY0821", fact, Location(file), hint="pip install 'spyrec[mlir]'") from None
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        try:
            ir.Module.parse(print_generic(program)).operation.verify()
        except ir.MLIRError as error:
            reason = str(error).strip().splitlines()
            hint = "see the generic form MLIR was given: spyrec.bundle.mlir_printer.print_generic"
            fact = f"MLIR refuses the program: {reason[0] if reason else 'no reason given'}"
            raise refuse("SPY0822", fact, Location(file), notes=tuple(reason[1:9]), hint=hint) from None
