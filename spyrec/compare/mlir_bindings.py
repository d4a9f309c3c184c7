"""A second opinion on ``bundle.mlir``: MLIR's own parser and verifier, where its Python bindings are installed."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from spyrec.bundle.mlir_dialect import SDSCBUNDLE
from spyrec.bundle.mlir_printer import print_generic
from spyrec.bundle.program import Program
from spyrec.diagnostics import Location, refuse


def verify_with_mlir(program: Program, file: str) -> None:
    """Parse and verify the generic form of a program with MLIR itself.

    The ``sdscbundle`` dialect is defined for it in IRDL, so that its operations are verified as all others.
    Errors: SPY0821 the bindings are not installed, SPY0822 MLIR refuses the program.
    """
    if find_spec("torch_mlir") is None:
        fact = "MLIR's Python bindings are not installed"
        raise refuse("SPY0821", fact, Location(file), hint="pip install 'spyrec[mlir]'")
    ir = import_module("torch_mlir.ir")  # an optional extra: the package is MLIR's own Python bindings
    with ir.Context() as context, ir.Location.unknown():
        import_module("torch_mlir.dialects.irdl").load_dialects(ir.Module.parse(SDSCBUNDLE, context))
        try:
            ir.Module.parse(print_generic(program)).operation.verify()
        except ir.MLIRError as error:
            lines = [line.strip() for line in str(error).splitlines()]
            reason = [line.removeprefix("error: ") for line in lines if not line.startswith("Unable to parse")]
            hint = "see the generic form MLIR was given: spyrec.bundle.mlir_printer.print_generic"
            fact = f"MLIR refuses the program: {reason[0] if reason else 'no reason given'}"
            raise refuse("SPY0822", fact, Location(file), notes=tuple(reason[1:9]), hint=hint) from None
