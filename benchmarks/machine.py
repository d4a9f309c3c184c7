"""The machine that figures were taken on: its processor, what kernels are compiled for, NumPy's sgemm."""

from __future__ import annotations

import ctypes
import os
import platform
import re
from pathlib import Path

import numpy as np

from benchmarks.measure import Figures
from spyrec.files.host_processor import host_processor

_VECTORS = re.compile(r"avx.*|fma|f16c|sse4[.]2|neon|asimd|sve.*")


def machine() -> Figures:
    """Return the processor, its cores and vector instructions, the variant of kernels, and sgemm's kernel."""
    host = host_processor()
    return {
        "processor": _model(),
        "llvm_name": host.name,
        "cores": len(os.sched_getaffinity(0)),
        "vector_features": sorted(filter(_VECTORS.fullmatch, host.used_features)),
        "kernels": host.variant.name,
        "could_execute": list(host.executable),
        "sgemm_kernel": sgemm_kernel(),
    }


def _model() -> str:
    """Return what the processor calls itself, where the system says it."""
    about = Path("/proc/cpuinfo")
    found = re.search(r"^model name\s*: (.*)$", about.read_text(), re.MULTILINE) if about.exists() else None
    return platform.machine() if found is None else found[1]


def sgemm_kernel() -> str | None:
    """Return the processor that NumPy's OpenBLAS has chosen its kernels for; ``None`` where it is another library."""
    np.dot(np.ones((2, 2), np.float32), np.ones((2, 2), np.float32))
    maps = Path("/proc/self/maps")
    if not maps.exists():
        return None
    for name in sorted(set(re.findall(r"/.*openblas[^/\n]*", maps.read_text()))):
        library = ctypes.CDLL(name)
        for function in ("scipy_openblas_get_corename64_", "scipy_openblas_get_corename", "openblas_get_corename"):
            if hasattr(library, function):
                called = getattr(library, function)
                called.restype = ctypes.c_char_p
                return called().decode()
    return None
