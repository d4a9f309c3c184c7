"""The processor that kernels are compiled for: which vectors it has, and how products are cut into them.

Results have the same bits on every processor: each element is computed by the same operations in the same order, and
only how many elements share an instruction differs.  ``SPYREC_PROCESSOR`` forbids instructions that there are:

* ``avx512``: 32 registers of 16 float32; needs AVX-512 F, BW, DQ and VL.
* ``avx2``: 16 registers of 8 float32; needs AVX2 and FMA.
* ``portable``: registers of 4 float32, what every processor has.  A product's steps are fused multiply-adds; where the
  processor has none (FMA on x86, always there on aarch64), the C library's ``fmaf`` computes each exactly, slowly.

By default the first of these that the processor has is taken.  The variable is read here and nowhere else, once.
Compiled kernels are kept by the processor's features, without those that are forbidden, so that those of two variants
never mix.  ``NUMBA_CPU_FEATURES``, ``NUMBA_CPU_NAME`` and ``NUMBA_ENABLE_AVX`` are obeyed as numba says: what
they leave counts as what the processor has.

Errors: SPY0753 for a value that is no variant, for one that this processor cannot execute, and where numba compiles for
another one already.
"""

# llvmlite ships no type information: what it returns is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from spyrec.dataclass import dataclass
from spyrec.diagnostics import refuse

VARIABLE = "SPYREC_PROCESSOR"
"""The environment variable that names a variant."""


@dataclass(frozen=True, slots=True)
class KernelVariant:
    """A way to compile kernels.

    ``lanes``: float32 of a vector.  ``tile_rows``, ``tile_columns``: of a product's register tile, whose sums leave
    room in the registers for a row of B and for one element of A, or a part of a column.
    """

    name: str
    lanes: int
    tile_rows: int
    tile_columns: int


AVX512 = KernelVariant("avx512", 16, 8, 32)
AVX2 = KernelVariant("avx2", 8, 6, 16)
PORTABLE = KernelVariant("portable", 4, 6, 8)
"""For 16 registers, as x86 has."""
PORTABLE_WIDE = KernelVariant("portable", 4, 8, 8)
"""For 32 registers, as aarch64 has."""

_NEEDS: Mapping[str, frozenset[str]] = {
    AVX512.name: frozenset({"avx512f", "avx512bw", "avx512dq", "avx512vl"}),
    AVX2.name: frozenset({"avx2", "fma"}),
}
_X86 = {variant.name: variant for variant in (AVX512, AVX2, PORTABLE)}
_OTHERS = {PORTABLE_WIDE.name: PORTABLE_WIDE}

_PORTABLE_FEATURES = frozenset(
    {"64bit", "avx", "cmov", "crc32", "cx16", "cx8", "fma", "fxsr", "mmx", "popcnt", "sahf", "x87"}
    | {"sse", "sse2", "sse3", "ssse3", "sse4.1", "sse4.2"}
)
"""What the portable variant uses of an x86 processor: fused multiply-adds, which LLVM has not without AVX."""


def variants_of(architecture: str, features: frozenset[str]) -> list[KernelVariant]:
    """Return the variants that a processor can execute, the fastest first; ``features`` by LLVM's names."""
    known = _X86 if architecture == "x86_64" else _OTHERS
    return [variant for name, variant in known.items() if _NEEDS.get(name, frozenset()) <= features]


def features_left(variant: KernelVariant, features: Mapping[str, bool]) -> dict[str, bool]:
    """Return a processor's features as a variant uses them: by LLVM's name whether it is there."""

    def is_used(name: str) -> bool:
        if variant is AVX2:
            return not name.startswith(("avx512", "avx10", "amx", "evex512"))
        return variant is not PORTABLE or name in _PORTABLE_FEATURES

    return {name: has and is_used(name) for name, has in features.items()}


@dataclass(frozen=True, slots=True)
class HostProcessor:
    """What kernels of this process are compiled for, by LLVM's names.

    ``features``: ``+`` or ``-`` and a name each, with commas.  ``executable``: the variants that it could execute.
    ``is_narrowed``: whether it has more than is used.
    """

    triple: str
    name: str
    features: str
    variant: KernelVariant
    executable: tuple[str, ...]
    is_narrowed: bool

    def tell_numba(self) -> None:
        """Let numba leave out the instructions that are forbidden, if it has not compiled anything yet."""
        if self.is_narrowed:
            settings: Any = import_module("numba.core.config")
            settings.CPU_FEATURES = self.features

    @property
    def used_features(self) -> frozenset[str]:
        """Names of the features that kernels may use."""
        return _there(_parsed(self.features))


@cache
def host_processor() -> HostProcessor:
    """Return the processor of this process; errors SPY0753."""
    from llvmlite import binding

    triple, features = binding.get_process_triple(), _features()
    has = _parsed(features)
    found = variants_of(triple.partition("-")[0], _there(has))
    chosen = chosen_variant(os.environ.get(VARIABLE, ""), found)
    is_narrowed = chosen is not found[0]
    if is_narrowed:
        left = features_left(chosen, has)
        features = ",".join(f"{'+' if is_there else '-'}{name}" for name, is_there in left.items())
    name = os.environ.get("NUMBA_CPU_NAME") or binding.get_host_cpu_name()
    made = HostProcessor(triple, name, features, chosen, tuple(item.name for item in found), is_narrowed)
    if "numba" in sys.modules:  # what others compile for all that the processor has cannot be taken back
        made.tell_numba()
    return made


_UNKNOWN_CACHE_BYTES = 1 << 24

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
"""Where Linux describes the caches of a processor: a folder each, larger ones later."""


@cache
def last_cache_bytes() -> int:
    """Return the size of the processor's last cache; 16 MiB where the system does not tell."""
    sizes = [_cache_bytes(about) for about in _CACHES.glob("index*/size")]
    return max(sizes, default=0) or _UNKNOWN_CACHE_BYTES


def _cache_bytes(about: Path) -> int:
    try:
        text = about.read_text().strip()
    except OSError:  # a system that lists it and keeps it to itself
        return 0
    found = re.fullmatch(r"(\d+)([KM])", text)
    return 0 if found is None else int(found[1]) << (10 if found[2] == "K" else 20)


def _features() -> str:
    """Return the features that numba compiles for if it is told nothing else."""
    from llvmlite import binding

    given = os.environ.get("NUMBA_CPU_FEATURES")
    if given is not None:
        return given
    found = binding.get_host_cpu_features()
    if os.environ.get("NUMBA_ENABLE_AVX", "1").strip() == "0":
        found.update({name: False for name in found if name.startswith("avx")})
    return found.flatten()


def _parsed(features: str) -> dict[str, bool]:
    """Return LLVM's list of features, such as ``+fma,-avx2``, as a mapping."""
    return {item[1:]: item[0] == "+" for item in features.split(",") if item}


def _there(features: Mapping[str, bool]) -> frozenset[str]:
    return frozenset(name for name, is_there in features.items() if is_there)


def chosen_variant(asked: str, executable: list[KernelVariant]) -> KernelVariant:
    """Return the variant that is asked for, the fastest one where none is; errors SPY0753."""
    named = {variant.name: variant for variant in executable}
    if not asked:
        return executable[0]
    if asked in named:
        return named[asked]
    known = [*_X86]
    problem = f"this processor cannot execute {asked}" if asked in known else f'"{asked}" is no variant of kernels'
    raise refuse("SPY0753", f"{VARIABLE}: {problem}", hint=f"unset {VARIABLE}, or set it to {' or '.join(named)}")
