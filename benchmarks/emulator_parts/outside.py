"""PyTorch where it is installed (the extra ``torch`` of ``pyproject.toml``): the same work, as one more candidate."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

Call = Callable[[Any, Sequence[Any], Any], object]
"""What a candidate calls: the module ``torch``, the operands, and the tensor to write into."""


def torch_or_none() -> Any:  # noqa: ANN401 -- the project's type check runs without torch
    """Return the module ``torch`` with as many threads as the emulator uses, or ``None`` where it is not installed."""
    if find_spec("torch") is None:
        return None
    torch: Any = import_module("torch")
    torch.set_num_threads(os.cpu_count() or 1)
    return torch


class TorchCandidates:
    """Makes candidates of one operation: none where PyTorch is not installed.

    ``call`` writes a tensor of the shape ``shape``; its operands are ``inputs`` in the candidate's dtype.
    """

    def __init__(self, inputs: Sequence[npt.NDArray[np.float16]], shape: Sequence[int], call: Call) -> None:
        self._torch = torch_or_none()
        self._inputs = inputs
        self._shape = tuple(shape)
        self._call = call

    def of(self, *dtypes: str) -> dict[str, Callable[[], object]]:
        """Return a candidate for each dtype, by name."""
        return {} if self._torch is None else {f"torch_{dtype}": self._candidate(dtype) for dtype in dtypes}

    def _candidate(self, dtype: str) -> Callable[[], object]:
        kind = getattr(self._torch, dtype)
        operands = [self._torch.from_numpy(item).to(kind) for item in self._inputs]
        out = self._torch.empty(self._shape, dtype=kind)
        return lambda: self._call(self._torch, operands, out)
