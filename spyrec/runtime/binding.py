"""What the caller must give for a run, and whether an array is that."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spyrec.bundle.manifest import Argument, Manifest, Role
from spyrec.diagnostics import DiagnosticSink, Location, SpyrecError, refuse

HostArray = npt.NDArray[np.generic]

_READABLE_ROLES = frozenset({Role.INPUT, Role.INOUT})


@dataclass(frozen=True, slots=True)
class ExpectedInput:
    """One input of a bundle as the caller gives it: host form, or device form where the table knows no host form.

    ``dtype`` is the host dtype's name; ``carrier`` the NumPy dtype that holds its values.
    ``is_required`` is false for an input that no program reads.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    carrier: np.dtype[np.generic]
    is_required: bool

    def refuse_wrong(
        self, shape: tuple[int, ...], dtype: np.dtype[np.generic], place: Location | None = None
    ) -> SpyrecError | None:
        """Return the error for an array of that shape and dtype, read from ``place``; SPY0762 shape, SPY0763 dtype."""
        if shape != self.shape:
            return refuse(
                "SPY0762",
                f'run input "{self.name}" has shape {list(shape)}, the bundle takes {list(self.shape)}',
                place,
                hint="a bundle is compiled for one shape of each input",
            )
        if dtype.newbyteorder("=") != self.carrier:
            carried = "" if self.dtype == self.carrier.name else f" (carried in {self.carrier.name})"
            return refuse(
                "SPY0763",
                f'run input "{self.name}" has dtype {dtype.name}, the bundle takes {self.dtype}{carried}',
                place,
                hint=f"convert it on the host: array.astype({self.carrier.name})",
            )
        return None

    def refuse_no_array(self, value: object) -> SpyrecError:
        """Return the error for what is no NumPy array: nothing is converted silently (SPY0763)."""
        form = f"{self.dtype} array of shape {list(self.shape)}"
        return refuse(
            "SPY0763",
            f'run input "{self.name}" is of type {type(value).__name__}, the bundle takes a {form}',
            hint=f"make an array of it: numpy.asarray(value, numpy.{self.carrier.name})",
        )


def expected_inputs(manifest: Manifest) -> tuple[ExpectedInput, ...]:
    """Return the inputs of a bundle in graph order, those included that no program reads."""
    arguments = {argument.name: argument for argument in manifest.arguments}
    names = list(dict.fromkeys(manifest.inputs))
    names += [item.name for item in manifest.arguments if item.role in _READABLE_ROLES and item.name not in names]
    read = {name for step in manifest.plan for name in step.arguments} | {name for _, name in manifest.outputs}
    return tuple(_expected(arguments[name], name in read) for name in names)


def has_host_form(argument: Argument) -> bool:
    """Whether the table says how the argument looks on the host; else it is given and returned in device form."""
    return not (argument.shape is None or argument.dtype is None or argument.stride_map is None)


def _expected(argument: Argument, is_required: bool) -> ExpectedInput:
    if argument.shape is None or argument.dtype is None or not has_host_form(argument):
        return ExpectedInput(argument.name, argument.device_size, "float32", np.dtype(np.float32), is_required)
    carrier = np.dtype(argument.dtype.carrier)
    return ExpectedInput(argument.name, argument.shape, argument.dtype.value, carrier, is_required)


def refuse_unknown_or_missing(names: Iterable[str], expected: Iterable[ExpectedInput]) -> None:
    """Refuse names that the bundle does not know, and required inputs that are absent; errors SPY0760 and SPY0761."""
    given = set(names)
    known = {item.name: item for item in expected}
    sink = DiagnosticSink()
    for name in sorted(given - known.keys()):
        close = difflib.get_close_matches(name, known, n=1)
        hint = f'did you mean "{close[0]}"?' if close else f"the inputs are {_listed(known)}"
        sink.error("SPY0761", f'the bundle has no input "{name}"', hint=hint)
    for name, item in known.items():
        if name not in given and item.is_required:
            hint = f"give a {item.dtype} array of shape {list(item.shape)}"
            sink.error("SPY0760", f'run input "{name}" is missing', hint=hint)
    sink.raise_if_errors()


def checked_inputs(inputs: Mapping[str, HostArray], expected: Iterable[ExpectedInput]) -> dict[str, HostArray]:
    """Return the inputs in graph order and native byte order, all problems raised at once.

    Errors SPY0760 (missing), SPY0761 (unknown name), SPY0762 (shape), SPY0763 (dtype).
    """
    items = tuple(expected)
    refuse_unknown_or_missing(inputs, items)
    checked: dict[str, HostArray] = {}
    sink = DiagnosticSink()
    for item in items:
        if item.name not in inputs:
            continue
        array = inputs[item.name]
        if not _is_array(array):
            sink.diagnostics.extend(item.refuse_no_array(array).diagnostics)
            continue
        error = item.refuse_wrong(array.shape, array.dtype)
        if error is None:
            checked[item.name] = np.asarray(array).astype(item.carrier, copy=False)
        else:
            sink.diagnostics.extend(error.diagnostics)
    sink.raise_if_errors()
    return checked


def _is_array(value: object) -> bool:
    """Whether a value is what its annotation says: callers may not have a type checker."""
    return isinstance(value, np.ndarray | np.generic)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names) or "none"
