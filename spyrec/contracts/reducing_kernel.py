"""The dim of a program's arguments over which its result is a sum, a largest or a smallest element, in parts."""

from __future__ import annotations

from collections.abc import Mapping

from spyrec.contracts.known_program import KnownProgram
from spyrec.dataclass import dataclass
from spyrec.device_ops import COPIES, device_operation
from spyrec.device_ops.record import Fold
from spyrec.ir.kernel import Kernel


@dataclass(frozen=True, slots=True)
class ReducingKernel:
    """Host dims by argument, ``tile`` elements each, that a kernel folds into ``output``, and how."""

    dims: Mapping[str, int]
    tile: int
    fold: Fold
    output: str


def reducing_kernel(program: KnownProgram) -> ReducingKernel | None:
    """Return what reduces a dim of the arguments into the one tensor that a program writes, if anything does.

    What is reduced is computed element by element along the dim, and the result is at most copied afterwards: the
    result for a slice is then a part of the whole.  A mean, an index or a softmax is joined in no such way.
    """
    if len(program.written) != 1:
        return None
    (output,) = program.written
    graph = program.graph
    for signature in dict.fromkeys(item for found in program.signatures.values() for item in found):
        dims = program.followers(signature, program.axes.folded.keys())
        folding = {number for digit in signature for number in program.axes.folded.get(digit, ())}
        if not dims or output in dims or len(folding) != 1 or not program.is_cut_evenly(dims):
            continue
        kernel = program.kernels[min(folding)]
        fold = device_operation(kernel.op_func).fold
        if fold is None or fold.is_average or kernel.constants or kernel.loops:
            continue
        if _is_result(program, kernel, output):
            (tile,) = {graph.buffers[name].host_type.shape[dim] for name, dim in dims.items()}
            return ReducingKernel(dims, tile, fold, output)
    return None


def _is_result(program: KnownProgram, kernel: Kernel, output: str) -> bool:
    """Whether what a kernel writes is copied to the output, and nothing else is done with it or written there."""
    held = {kernel.output.buffer}
    for later in program.kernels[program.kernels.index(kernel) + 1 :]:
        if held.isdisjoint(use.buffer for use in later.inputs):
            continue
        if later.op_func not in COPIES or later.loops:
            return False
        held.add(later.output.buffer)
    sources = [item for item in program.kernels if item.output.buffer == output]
    return output in held and all(
        item is kernel or (item.op_func in COPIES and item.inputs[0].buffer in held) for item in sources
    )
