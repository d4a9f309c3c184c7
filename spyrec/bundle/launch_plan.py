"""The steps of a launch artefact, as ``spyrecode.json`` names them.  Sizes in bytes, pointers are device addresses."""

from __future__ import annotations

from collections.abc import Mapping

from spyrec.bundle.host_compute import HostComputeSpec
from spyrec.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Allocate:
    """Preparation: the one allocation of the job in the program segment; pointers count from its start."""

    size_bytes: int


@dataclass(frozen=True, slots=True)
class InitTransfer:
    """Preparation: a file of the directory is copied to ``dev_ptr``."""

    file: str
    dev_ptr: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class ComputeOnHost:
    """Execution: the host fills buffer ``output``; ``input_shape`` and ``input`` (or none) as torch-spyre has them."""

    output: str
    size_bytes: int
    input_shape: tuple[int, ...]
    input: str | None
    specification: HostComputeSpec


@dataclass(frozen=True, slots=True)
class DataTransfer:
    """Execution: a copy between a host buffer and the program segment."""

    is_to_host: bool
    host_buffer: str
    dev_ptr: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class ComputeOnDevice:
    """Execution: the device starts at the entry that ``job_bin_ptr`` points at."""

    job_bin_ptr: int


PreparationStep = Allocate | InitTransfer
ExecutionStep = ComputeOnHost | DataTransfer | ComputeOnDevice


@dataclass(frozen=True, slots=True)
class CorrectionSlot:
    """Where one launch in flight has its correction tensor, and the entry that takes it from there."""

    dev_ptr: int
    job_bin_ptr: int


@dataclass(frozen=True, slots=True, eq=False)
class LaunchArtifact:
    """The contents of one ``spyreCodeDir``: how one job is loaded and launched.

    ``slots``: slot 0 is that of ``execution``, the others take its place in turn; empty for a job without correction.
    ``files``: what the preparation copies, by name.
    """

    preparation: tuple[PreparationStep, ...]
    execution: tuple[ExecutionStep, ...]
    slots: tuple[CorrectionSlot, ...]
    files: Mapping[str, bytes]

    @property
    def allocation_bytes(self) -> int:
        """Bytes of the job's allocation."""
        return next(step.size_bytes for step in self.preparation if isinstance(step, Allocate))

    @property
    def transfers(self) -> tuple[InitTransfer, ...]:
        """What loading the job copies."""
        return tuple(step for step in self.preparation if isinstance(step, InitTransfer))
