"""OpSpecs to one device program: what ``spyrec codegen`` and the compiler's last step both call."""

from __future__ import annotations

from dataclasses import dataclass, field

from spyrec.codegen.lower_opspec import LoweringOptions
from spyrec.codegen.lower_program import EmittedProgram, ProgramLowering, ProgramOptions
from spyrec.codegen.opspec import OpSpecFile
from spyrec.hardware.target import Target
from spyrec.plan_record import PlanOptions

__all__ = ["CodegenOptions", "EmittedProgram", "emit_opspecs"]


@dataclass(frozen=True, slots=True)
class CodegenOptions:
    """Options of code generation.

    ``compat_torch_spyre``: write the id of the mask constant as torch-spyre does (``docs/compatibility.md``).
    ``symbolic_args`` and ``unroll_loops``: override what the OpSpec file says; ``None`` keeps it.
    ``planned_with``: the options that a compiled bundle's manifest names as those of the plan.
    ``correction_slots``: of each launch artefact, 1 to 16.
    ``symbolic_strides``: the stick strides of arguments that a launch may tile arrive with the correction.
    ``tile_reductions``: programs that join the parts of a result stand beside those of the plan.
    """

    compat_torch_spyre: bool = False
    symbolic_args: bool | None = None
    unroll_loops: bool | None = None
    target: Target = field(default_factory=Target)
    planned_with: PlanOptions | None = None
    correction_slots: int = 1
    symbolic_strides: bool = False
    tile_reductions: bool = False


def emit_opspecs(file: OpSpecFile, options: CodegenOptions | None = None) -> EmittedProgram:
    """Return the program of ``file``: the module and its SuperDSCs, in order of execution.

    Raises one :class:`~spyrec.diagnostics.SpyrecError` with the first problem of every operation, codes SPY0505 to
    SPY0529.
    """
    chosen = options or CodegenOptions()
    lowering = LoweringOptions(chosen.target, chosen.compat_torch_spyre)
    symbolic = file.symbolic_args if chosen.symbolic_args is None else chosen.symbolic_args
    unroll = file.unroll_loops if chosen.unroll_loops is None else chosen.unroll_loops
    return ProgramLowering(file, ProgramOptions(symbolic, unroll, lowering)).run()
