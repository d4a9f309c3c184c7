"""``torch.compile(model, backend="spyrec")``: graphs of inference on the emulated device.

What a graph of spyrec does not have is computed by torch, and :func:`report` says what that was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from spyrec.torch_backend.options import BackendOptions
from spyrec.torch_backend.tally import TALLY, BackendReport

if TYPE_CHECKING:
    from torch.fx import GraphModule

    from spyrec.torch_backend.subgraph import Subgraph

__all__ = ["BackendReport", "backend", "report", "reset"]


def backend(
    module: GraphModule, example_inputs: Sequence[object], *, options: Mapping[str, object] | None = None
) -> Subgraph:
    """Return what computes a graph of ``torch.compile``; it is compiled when it is called first, for the shapes there.

    ``options``: ``dtype`` (``float16``, ``bfloat16`` or ``keep``): what floats become on the device; ``fallback``:
    ``False`` refuses what torch would have to compute.
    Errors: SPY0771 an option; in a call without fallback SPY0166 and those of :func:`spyrec.compile`.
    """
    from spyrec.torch_backend.subgraph import Subgraph

    del example_inputs  # they are fake: the first call has the tensors
    return Subgraph(module, BackendOptions.of(options or {}), TALLY)


def report() -> BackendReport:
    """Return what was compiled, called and left to torch since the last :func:`reset`."""
    return TALLY.report()


def reset() -> None:
    """Begin to count anew."""
    TALLY.reset()
