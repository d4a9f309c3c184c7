"""Kernels through numba, to machine code: imported where one is compiled, and nowhere else."""

# numba ships no type information: what it returns is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from numba import njit
from numba.core import types
from numba.core.registry import cpu_target
from numba.np.numpy_support import from_dtype

from spyrec.diagnostics import refuse
from spyrec.files.host_processor import VARIABLE, HostProcessor, host_processor
from spyrec.files.kernel_operands import ArrayKind, OperandKind
from spyrec.files.machine_code import MachineCode
from spyrec.files.numba_names import COMPILED, with_ingredients


def compiled(function: Callable[..., object], operands: Sequence[OperandKind]) -> MachineCode:
    """Return the code of a kernel for operands of these kinds; errors SPY0753."""
    numba_compiles_for(host_processor())
    dispatcher: Any = njit(**COMPILED)(with_ingredients(function))
    dispatcher.compile(tuple(map(_type_of, operands)))
    (found,) = dispatcher.overloads.values()
    library = found.library
    declared = [item.name for item in library._final_module.functions if item.is_declaration]  # noqa: SLF001
    needs = tuple(sorted(name for name in declared if not name.startswith("llvm.")))
    return MachineCode(
        found.fndesc.llvm_func_name,
        str(found.signature.return_type),
        needs,
        bytes(library._get_compiled_object()),  # noqa: SLF001
    )


def numba_compiles_for(host: HostProcessor) -> None:
    """Let numba leave out the instructions that are forbidden; errors SPY0753 where it cannot any more."""
    if not host.is_narrowed:
        return
    host.tell_numba()
    context: Any = cpu_target.target_context
    _, _, features = context.codegen().magic_tuple()  # made once in a process, with the settings of that moment
    if features != host.features:
        raise refuse("SPY0753", f"{VARIABLE}: numba compiles for all that the processor has already")


def _type_of(kind: OperandKind) -> Any:  # noqa: ANN401
    if isinstance(kind, ArrayKind):
        element: Any = cast("Any", from_dtype)(kind.dtype)
        return types.Array(element, kind.rank, kind.layout, readonly=not kind.is_writable)
    return {int: types.int64, float: types.float64, bool: types.boolean}[kind]
