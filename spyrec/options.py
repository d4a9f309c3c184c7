"""The values that the public front takes and gives: options of a compilation, options of a run, its result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from spyrec.target import Target

if TYPE_CHECKING:
    from spyrec.compare.check import CheckReport
    from spyrec.runtime.device import OperationStats

HostArray = npt.NDArray[np.generic]

DEFAULT_MAX_EXECUTIONS = 10**9
"""SuperDSCs that one run may execute before it is refused as a mistake or an attack."""


class Numerics(Enum):
    """How 16-bit device values are stored: as on the device, as IEEE half, or unrounded in float32."""

    DL16 = "dl16"
    IEEE = "ieee"
    F32 = "f32"


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """Options of :func:`spyrec.compile`.

    ``cores``: most cores that one operation is divided among, at most those of the target; all of them where ``None``.
    ``symbolic_args``: addresses arrive as operands of ``bundle.mlir``; else they are baked into the SuperDSCs.
    ``fixed_io_layouts``: inputs and outputs keep the default layout even where another would save a copy.
    """

    cores: int | None = None
    target: Target = field(default_factory=Target)
    symbolic_args: bool = True
    fixed_io_layouts: bool = False


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of :func:`spyrec.run`.

    ``check``: compare every output with the graph's float64 reference.  ``only``: execute one SuperDSC file's calls.
    ``max_executions``: refuse a bundle whose loops would execute more SuperDSCs.
    """

    numerics: Numerics | str = Numerics.DL16
    check: bool = False
    only: str | None = None
    max_executions: int = DEFAULT_MAX_EXECUTIONS


@dataclass(frozen=True, slots=True)
class TotalStats:
    """Counters of a whole run (semantics of the fields as in :class:`spyrec.runtime.device.OperationStats`).

    ``dma_h2d_bytes`` and ``dma_d2h_bytes`` are the device bytes of the host copies, constants included.
    """

    hbm_read_bytes: int
    hbm_write_bytes: int
    hbm_core_read_bytes: int
    dma_h2d_bytes: int
    dma_d2h_bytes: int
    lx_peak_bytes: int
    flops: int


@dataclass(frozen=True, slots=True)
class RunStats:
    """Counters of a run: in total, and per SuperDSC in the order of the plan."""

    total: TotalStats
    operations: tuple[OperationStats, ...]


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run gave.

    ``outputs`` are in graph order, carried in NumPy arrays; ``dtypes`` are the graph's names of their dtypes (a
    bfloat16 output is its raw bits in uint16).
    ``check`` is ``None`` where it was not asked for.  ``sanitizer`` is empty until the sanitizers are built.
    """

    outputs: dict[str, HostArray]
    dtypes: Mapping[str, str]
    stats: RunStats
    check: Mapping[str, CheckReport] | None = None
    sanitizer: tuple[object, ...] = ()

    @property
    def is_ok(self) -> bool:
        """Whether no check failed."""
        return self.check is None or all(report.ok for report in self.check.values())
