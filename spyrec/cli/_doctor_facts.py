"""What ``spyrec doctor`` looks at: versions, extras, the processor, and where compiled kernels are kept."""

from __future__ import annotations

import os
import platform
import re
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from spyrec import __version__
from spyrec.dataclass import dataclass
from spyrec.diagnostics import Diagnostic, SpyrecError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spyrec.files.host_processor import HostProcessor
    from spyrec.files.linked_kernel import Linked

DISTRIBUTION = "spyrec"
_LIBRARIES = ("numpy", "numba", "llvmlite")
_REQUIREMENT = re.compile(r"""([\w.-]+).*;\s*extra\s*==\s*["']([\w.-]+)["']""")
_FOR_DEVELOPERS = "dev"


@dataclass(frozen=True, slots=True)
class Extra:
    """An extra: the distributions that it brings, each with its version or ``None`` where it is absent."""

    name: str
    distributions: dict[str, str | None]

    @property
    def pip_line(self) -> str:
        """What installs it."""
        return f"pip install '{DISTRIBUTION}[{self.name}]'"

    @property
    def is_installed(self) -> bool:
        """Whether all of it is there."""
        return None not in self.distributions.values()


@dataclass(frozen=True, slots=True)
class KernelCache:
    """Where compiled kernels are kept, and how many: all files, and those of ``needed`` that this processor would find.

    ``trouble``: why the directory is not used.  ``path`` is ``None`` where the user has no home.
    """

    path: Path | None
    trouble: str | None
    files: int = 0
    size_bytes: int = 0
    kept: int = 0
    needed: int = 0


@dataclass(frozen=True, slots=True)
class Findings:
    """All that was looked at; ``problems``: what makes something unusable."""

    versions: dict[str, str | None]
    extras: tuple[Extra, ...]
    processor: HostProcessor | None
    threads: int
    cache: KernelCache
    problems: tuple[Diagnostic, ...]


@dataclass(frozen=True, slots=True)
class Warmed:
    """What ``--warm`` did: kernels that it compiled, those that were kept already, and seconds."""

    compiled: int
    kept: int
    seconds: float


def versions() -> dict[str, str | None]:
    """Return the versions of this package, of Python, and of what kernels are made with."""
    found: dict[str, str | None] = {"spyrec": __version__, "python": platform.python_version()}
    return found | {name: _version(name) for name in _LIBRARIES}


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def extras(requirements: Sequence[str]) -> tuple[Extra, ...]:
    """Return the extras that requirements of a distribution name, by name; those of its developers are left out."""
    named: dict[str, dict[str, str | None]] = {}
    for text in requirements:
        found = _REQUIREMENT.match(text)
        if found is not None and found[2] != _FOR_DEVELOPERS:
            named.setdefault(found[2], {})[found[1]] = _version(found[1])
    return tuple(Extra(name, named[name]) for name in sorted(named))


def own_requirements() -> Sequence[str]:
    """Return what the installed package requires; nothing where it runs from its sources alone."""
    try:
        return metadata.requires(DISTRIBUTION) or ()
    except metadata.PackageNotFoundError:
        return ()


def findings() -> Findings:
    """Look at everything; what is unusable is said in the problems."""
    problems: list[Diagnostic] = []
    processor = _processor(problems)
    kernels = [] if processor is None else _kernels()
    cache = kernel_cache_of(kernels)
    if cache.trouble is not None:
        problems.append(_no_place(cache))
    return Findings(versions(), extras(own_requirements()), processor, os.cpu_count() or 1, cache, tuple(problems))


def _processor(problems: list[Diagnostic]) -> HostProcessor | None:
    """Return what kernels are compiled for, once it is seen that they can be."""
    from spyrec.files.host_processor import host_processor

    try:
        found = host_processor()
        _try_the_compiler()
    except SpyrecError as error:
        problems += error.diagnostics
        return None
    except Exception as error:  # noqa: BLE001 -- whatever a broken compiler does is what is looked for
        message = f"kernels cannot be compiled: {type(error).__name__}: {error}"
        problems.append(Diagnostic("SPY0796", " ".join(message.split())))
        return None
    return found


def _try_the_compiler() -> None:
    from spyrec.files.kernel_compiler import compiled
    from spyrec.files.kernel_operands import called_with
    from spyrec.files.machine_code import loaded

    def successor(number: int) -> int:
        return number + 1

    code = compiled(successor, (int,))
    address = loaded(code)
    if address is None or called_with(address, (int,), code.result)(41) != 42:
        raise RuntimeError("what was compiled does not compute what it should")


def _kernels() -> list[Linked]:
    from spyrec.emulator.every_kernel import every_kernel

    return every_kernel()


def kernel_cache_of(kernels: Sequence[Linked]) -> KernelCache:
    """Return the state of the directory of compiled kernels, which is made where there is none."""
    from spyrec.files.kernel_cache import wanted_directory
    from spyrec.files.kernel_store import KernelStore
    from spyrec.files.private_directory import why_not_private

    try:
        path = wanted_directory()
    except RuntimeError:
        return KernelCache(None, "this user has no home")
    trouble = why_not_private(path)
    if trouble is not None:
        return KernelCache(path, trouble)
    sizes = KernelStore(path).sizes_bytes()
    kept = sum(kernel.is_kept for kernel in kernels)
    return KernelCache(path, None, len(sizes), sum(sizes.values()), kept, len(kernels))


def _no_place(cache: KernelCache) -> Diagnostic:
    place = "" if cache.path is None else f' in "{cache.path}"'
    return Diagnostic("SPY0754", f"compiled kernels cannot be kept{place}: {cache.trouble}")
