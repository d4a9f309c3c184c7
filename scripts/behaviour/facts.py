"""What is recorded of a bundle and of a run: numbers as they are, everything longer as a hash.

Fields are named here, so that a record of an older spyrec can be held against a newer one that knows more of them.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Protocol, cast

import numpy as np
import numpy.typing as npt

from spyrec import Diagnostic, RunResult, SpyrecError

Scalar = str | int | float | bool | None
Record = dict[str, Scalar]
Arrays = Mapping[str, npt.NDArray[np.generic]]

_DIGITS = 16
_TOTALS = (
    "hbm_read_bytes",
    "hbm_write_bytes",
    "hbm_core_read_bytes",
    "dma_h2d_bytes",
    "dma_d2h_bytes",
    "lx_peak_bytes",
    "flops",
    "simulated_us",
)
_OPERATION = (
    "file",
    "op",
    "cores",
    "executions",
    "hbm_read_bytes",
    "hbm_write_bytes",
    "hbm_core_read_bytes",
    "flops",
    "lx_peak_bytes",
    "simulated_us",
)


@dataclass(frozen=True)
class Facts:
    """The facts of one case; ``whole``: for a reader, with everything written out that is a hash otherwise."""

    whole: bool = False
    record: Record = field(default_factory=dict[str, Scalar])

    def number(self, key: str, value: Scalar) -> None:
        """Note a short value."""
        self.record[key] = value

    def document(self, key: str, value: object) -> None:
        """Note what may be long: JSON, or anything with a text."""
        text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
        self.record[key] = text if self.whole else digest(text.encode())

    def content(self, key: str, parts: Iterable[bytes]) -> None:
        """Note bytes."""
        self.record[key] = digest(*parts)

    def refusal(self, key: str, error: SpyrecError) -> None:
        """Note why something was refused."""
        self.number(key, ", ".join(item.code for item in error.diagnostics))
        self.document(f"{key}.texts", [item.to_json() for item in error.diagnostics])

    def bundle(self, key: str, directory: Path) -> None:
        """Note a bundle's files, one fact for each kind of file."""
        kinds: dict[str, list[Path]] = {}
        for path in sorted(path for path in directory.rglob("*") if path.is_file()):
            kinds.setdefault(_kind_of(path), []).append(path)
        for kind, paths in sorted(kinds.items()):
            self.number(f"{key}.{kind}.count", len(paths))
            names = (str(path.relative_to(directory)).encode() for path in paths)
            self.content(f"{key}.{kind}", (part for name, path in zip(names, paths) for part in (name, _bytes(path))))

    def outputs(self, key: str, arrays: Arrays) -> None:
        """Note what came out, with names, shapes and dtypes."""
        self.number(f"{key}.count", len(arrays))
        self.content(key, (part for name, array in arrays.items() for part in _bytes_of_array(name, array)))

    def result(self, key: str, result: RunResult) -> None:
        """Note everything that ``spyrec.run`` returns."""
        self.outputs(f"{key}.outputs", result.outputs)
        self.number(f"{key}.dtypes", ", ".join(result.dtypes.values()))
        for name in _TOTALS:
            self.number(f"{key}.{name}", cast("Scalar", getattr(result.stats.total, name)))
        self.document(f"{key}.operations", [fields_of(item, _OPERATION) for item in result.stats.ops])
        for name, report in (result.check or {}).items():
            self.number(f"{key}.check.{name}", report.ok)
            self.number(f"{key}.check.{name}.bound_ratio", str(report.bound_ratio))
            self.document(f"{key}.check.{name}.report", report.to_json())
        if result.bisect is not None:
            self.document(f"{key}.bisect", result.bisect.to_json())
        self.findings(f"{key}.findings", result.sanitizer)
        self.document(f"{key}.warnings", [item.to_json() for item in result.warnings])
        for number, plan in enumerate(result.tiles):
            self.number(f"{key}.tiles.{number}", plan.total_iterations)
            self.number(f"{key}.tiles.{number}.modes", _modes(plan.body.arguments))

    def findings(self, key: str, found: Sequence[HasJson]) -> None:
        """Note what sanitizers found: how many of each kind, and the texts."""
        objects = [item.to_json() for item in found]
        kinds = Counter(str(item.get("sanitizer")) for item in objects)
        self.number(key, ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())))
        if objects:
            self.document(f"{key}.texts", objects)

    def diagnostics(self, key: str, found: Sequence[Diagnostic]) -> None:
        """Note diagnostics: their codes, and their texts."""
        self.number(key, ", ".join(item.code for item in found))
        if found:
            self.document(f"{key}.texts", [item.to_json() for item in found])

    def trace(self, key: str, path: Path) -> None:
        """Note the names of a trace's spans and how often each is there."""
        spans = Counter(
            f"{event.get('cat')}: {event['name']}"
            for event in json.loads(path.read_bytes())["traceEvents"]
            if event["ph"] == "X"
        )
        self.number(f"{key}.spans", spans.total())
        self.document(f"{key}.names", dict(sorted(spans.items())))


class HasJson(Protocol):
    """Anything with a JSON form."""

    def to_json(self) -> dict[str, object]:
        """Return the JSON form."""
        ...


class HasMode(Protocol):
    """How a tensor reaches its tiles."""

    @property
    def mode(self) -> Enum:
        """The mode."""
        ...


def _modes(arguments: Sequence[HasMode]) -> str:
    return " ".join(item.mode.name for item in arguments)


def fields_of(item: object, names: Sequence[str]) -> dict[str, object]:
    """Return the named attributes of an object."""
    return {name: getattr(item, name) for name in names}


def digest(*parts: bytes) -> str:
    """Return the beginning of the SHA-256 of parts, each with its length."""
    found = hashlib.sha256()
    for part in parts:
        found.update(len(part).to_bytes(8, "little"))
        found.update(part)
    return found.hexdigest()[:_DIGITS]


def input_digest(document: object, arrays: Arrays) -> str:
    """Return the hash of what a case is made of: a graph or other JSON, and arrays."""
    text = json.dumps(document, sort_keys=True, default=str).encode()
    return digest(text, *(part for name, array in arrays.items() for part in _bytes_of_array(name, array)))


def _bytes_of_array(name: str, array: npt.NDArray[np.generic]) -> tuple[bytes, ...]:
    """Return an array as bytes.  What a NaN holds beside being one is nobody's promise, so all become the same."""
    if array.dtype.kind == "f" and np.isnan(array).any():
        array = np.where(np.isnan(array), np.array(np.nan, array.dtype), array)
    return name.encode(), str((array.dtype, array.shape)).encode(), np.ascontiguousarray(array).tobytes()


def _bytes(path: Path) -> bytes:
    return path.read_bytes()


def _kind_of(path: Path) -> str:
    match path.suffix:
        case ".mlir":
            return "mlir"
        case ".bin":
            return "image"
        case ".safetensors":
            return "constants"
        case _:
            if path.parent.name == "dci":
                return "dci"
            return "superdsc" if path.name.startswith("sdsc_") else path.stem
