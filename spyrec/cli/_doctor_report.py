"""What ``spyrec doctor`` prints: text of at most 60 columns, but for paths that are longer, or one object."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from spyrec.cli._doctor_facts import Extra, Findings, KernelCache, Warmed
    from spyrec.files.host_processor import HostProcessor

COLUMNS = 60
_LABEL = 12
_ABSENT = "absent"


def findings_to_text(found: Findings) -> str:
    """Return the report line by line."""
    return "\n".join(_lines(found))


def _lines(found: Findings) -> Iterator[str]:
    for name, version in found.versions.items():
        yield from _labelled(name, [version or _ABSENT])
    yield ""
    yield from _labelled("extras", [] if found.extras else ["unknown: spyrec is not installed"])
    for extra in found.extras:
        yield from _labelled(f"  {extra.name}", [_extra_text(extra)])
    yield ""
    if found.processor is not None:
        yield from _processor_lines(found.processor)
    yield from _labelled("threads", [str(found.threads)])
    yield ""
    yield from _cache_lines(found.cache)
    yield from _labelled("graphs kept", ["only where --cache DIR asks for it"])


def _extra_text(extra: Extra) -> str:
    if not extra.is_installed:
        return extra.pip_line
    return ", ".join(f"{name} {version}" for name, version in extra.distributions.items())


def _processor_lines(processor: HostProcessor) -> Iterator[str]:
    yield from _labelled("processor", [f"{processor.name}, {processor.triple}"])
    yield from _labelled("features", sorted(processor.used_features))
    executable = ", ".join(processor.executable)
    yield from _labelled("kernels", [f"{processor.variant.name} (it can execute {executable})"])


def _cache_lines(cache: KernelCache) -> Iterator[str]:
    yield from _labelled("kernels in", ["nowhere" if cache.path is None else str(cache.path)])
    if cache.trouble is not None:
        yield from _labelled("", [f"not used: {cache.trouble}"])
        return
    yield from _labelled("", ["owner and mode: of this user alone"])
    yield from _labelled("", [f"{cache.files:,} files, {cache.size_bytes:,} bytes"])
    if cache.needed:
        yield from _labelled("", [f"{cache.kept} of {cache.needed} kernels for this processor"])
        if cache.kept < cache.needed:
            yield from _labelled("", ["spyrec doctor --warm compiles the others"])


def _labelled(label: str, words: Iterable[str]) -> Iterator[str]:
    """Yield a label and the words beside it, in as many lines as they need."""
    room = COLUMNS - _LABEL
    lines = wrap(" ".join(words), room, break_long_words=False, break_on_hyphens=False) or [""]
    for number, line in enumerate(lines):
        yield f"{'' if number else label:{_LABEL}}{line}".rstrip()


def warmed_to_text(warmed: Warmed) -> str:
    """Return what ``--warm`` did as one line."""
    return f"{warmed.compiled} kernels compiled in {warmed.seconds:.1f} s, {warmed.kept} were kept"


def findings_to_json(found: Findings, warmed: Warmed | None) -> dict[str, object]:
    """Return the same facts as JSON, and what ``--warm`` did."""
    processor, cache = found.processor, found.cache
    return {
        "versions": found.versions,
        "extras": [
            {
                "name": item.name,
                "installed": item.is_installed,
                "distributions": item.distributions,
                "pip": item.pip_line,
            }
            for item in found.extras
        ],
        "processor": None if processor is None else _processor_record(processor),
        "threads": found.threads,
        "kernel_cache": {
            "path": None if cache.path is None else str(cache.path),
            "trouble": cache.trouble,
            "files": cache.files,
            "bytes": cache.size_bytes,
            "kept": cache.kept,
            "needed": cache.needed,
        },
        "warmed": None
        if warmed is None
        else {"compiled": warmed.compiled, "kept": warmed.kept, "seconds": warmed.seconds},
    }


def _processor_record(processor: HostProcessor) -> dict[str, object]:
    return {
        "triple": processor.triple,
        "name": processor.name,
        "features": sorted(processor.used_features),
        "variant": processor.variant.name,
        "executable": list(processor.executable),
    }
