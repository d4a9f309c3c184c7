"""What the caller must give for a run, and whether an array is that."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from spyrec.bundle.manifest import Argument, Manifest, Role
from spyrec.dataclass import dataclass
from spyrec.diagnostics import DiagnosticSink, Location, SpyrecError, refuse
from spyrec.hardware.target import STICK_BYTES
from spyrec.layout.symbolic_dim import SymbolicDim

HostArray = npt.NDArray[np.generic]

_GIVE_STATE = "; state has the extents that an earlier call gave it, until a call gives it anew"
_READABLE_ROLES = frozenset({Role.INPUT, Role.INOUT})


@dataclass(frozen=True, slots=True)
class ExpectedInput:
    """One input of a bundle as the caller gives it: host form, or device form where the table knows no host form.

    ``dtype`` is the host dtype's name; ``carrier`` the NumPy dtype that holds its values.  ``is_host_form`` is false
    in device form.
    ``is_required`` is false for an input that no program reads.  ``axes``: by axis the symbolic dim that it is, with
    its name; ``shape`` has the largest extents.  ``row_count``: of the table that the input holds row numbers of.
    ``tiled_axes``: by axis whether it may be larger, where the run may launch in tiles.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    carrier: np.dtype[np.generic]
    is_required: bool
    axes: tuple[tuple[str, SymbolicDim] | None, ...] = ()
    row_count: int | None = None
    tiled_axes: tuple[bool, ...] = ()
    is_host_form: bool = True

    @property
    def title(self) -> str:
        """What messages call it."""
        return f'run input "{self.name}"'

    @property
    def largest_shape(self) -> tuple[int, ...]:
        """The largest array that a run takes: less than ``shape`` where a dim was given one size."""
        axes = self.axes or (None,) * len(self.shape)
        return tuple(
            extent if axis is None else min(extent, axis[1].largest)
            for extent, axis in zip(self.shape, axes, strict=True)
        )

    def as_taken(self, array: HostArray) -> HostArray:
        """Return what a run takes of an array: of a whole buffer in device form, what the dims' sizes leave of it."""
        if self.is_host_form or not _is_array(array) or array.shape != self.shape:
            return array
        return array[tuple(slice(extent) for extent in self.largest_shape)]

    def in_whole(self, array: HostArray) -> HostArray:
        """Return an array as its buffer holds it: in device form with zeros behind the sizes of its dims."""
        if self.is_host_form or array.shape == self.shape:
            return array
        return in_whole_buffer(array, self.shape)

    def admits(self, shape: tuple[int, ...]) -> bool:
        """Whether an array of this shape may be given."""
        if self.tiled_axes and len(shape) == len(self.shape):
            triples = zip(shape, self.shape, self.tiled_axes, strict=True)
            return all(extent == size or (is_tiled and extent > size) for extent, size, is_tiled in triples)
        if not self.axes or len(shape) != len(self.shape):
            return shape == self.shape
        return all(
            extent == largest if axis is None else axis[1].admits(extent)
            for extent, largest, axis in zip(shape, self.shape, self.axes, strict=True)
        )

    @property
    def shape_text(self) -> str:
        """The shape as messages show it: symbolic axes with their names and bounds, tiled ones as their least."""
        if any(self.tiled_axes):
            pairs = zip(self.shape, self.tiled_axes, strict=True)
            return f"[{', '.join(f'{size} or more' if is_tiled else str(size) for size, is_tiled in pairs)}]"
        if not self.axes:
            return str(list(self.shape))
        parts = [
            str(extent) if axis is None else f"{axis[0]} ({axis[1]})"
            for extent, axis in zip(self.shape, self.axes, strict=True)
        ]
        return f"[{', '.join(parts)}]"

    def refuse_wrong(
        self, shape: tuple[int, ...], dtype: np.dtype[np.generic], place: Location | None = None
    ) -> SpyrecError | None:
        """Return the error for an array of that shape and dtype, read from ``place``; SPY0762 shape, SPY0763 dtype."""
        if not self.admits(shape):
            return refuse(
                "SPY0762",
                f'run input "{self.name}" has shape {list(shape)}, the bundle takes {self.shape_text}',
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

    def carrier_named(self, dtype: str, place: Location) -> np.dtype[np.generic]:
        """Return the carrier of a file's tensor of that dtype; errors SPY0763 another one than the bundle takes."""
        if dtype == self.dtype:
            return self.carrier
        fact = f"{self.title} has dtype {dtype}, the bundle takes {self.dtype}"
        raise refuse("SPY0763", fact, place, hint=f"convert it to {self.dtype} before it is written")

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
    return tuple(_expected(arguments[name], name in read, manifest.symbolic_dims) for name in names)


def tiled_inputs(manifest: Manifest) -> tuple[ExpectedInput, ...]:
    """Return the inputs of a bundle as a run takes them that may launch in tiles: larger where a loop follows an axis.

    The same as :func:`expected_inputs` where a program has no tile contract, or dims are symbolic.
    """
    expected = expected_inputs(manifest)
    contracts = manifest.tile_contracts
    if manifest.symbolic_dims or any(step.program not in contracts for step in manifest.plan):
        return expected
    followed: dict[str, set[int]] = {}
    for step in manifest.plan:
        for name, argument in zip(step.arguments, contracts[step.program].arguments, strict=True):
            axes = {axis for axis, loop in enumerate(argument.axes or ()) if loop is not None}
            followed.setdefault(name, set()).update(axes)
    return tuple(
        replace(item, tiled_axes=tuple(axis in followed.get(item.name, ()) for axis in range(len(item.shape))))
        for item in expected
    )


def is_launched_in_tiles(expected: Iterable[ExpectedInput], inputs: Mapping[str, HostArray]) -> bool:
    """Whether some input is larger than the bundle was compiled for, along an axis that tiles may cut.

    ``expected``: as :func:`tiled_inputs` returns them.
    """
    for item in expected:
        if item.name in inputs and True in item.tiled_axes and np.shape(inputs[item.name]) != item.shape:
            return True
    return False


def chosen_extents(
    inputs: Mapping[str, HostArray],
    expected: Iterable[ExpectedInput],
    symbolic: Mapping[str, SymbolicDim],
    kept: Mapping[str, tuple[int, ...]] = MappingProxyType({}),
) -> dict[str, int]:
    """Return the extent that a run gives each symbolic dim; the largest where no input has it.

    ``kept``: the shapes of inputs that are kept from earlier calls; they say it, too.
    Errors: SPY0762 where two inputs disagree.
    """
    shapes: dict[str, tuple[int, ...]] = {**{name: array.shape for name, array in inputs.items()}, **kept}
    found: dict[str, tuple[int, str]] = {}
    for item in expected:
        title = f'the kept state "{item.name}"' if item.name in kept else item.title
        for extent, axis in zip(shapes.get(item.name, ()), item.axes, strict=False):
            if axis is None:
                continue
            known = found.setdefault(axis[0], (extent, title))
            if known[0] != extent:
                raise refuse(
                    "SPY0762",
                    f'dim "{axis[0]}" has {known[0]} elements in {known[1]} and {extent} in {title}',
                    hint="a symbolic dim has one extent in a run" + (_GIVE_STATE if kept else ""),
                )
    return {name: found[name][0] if name in found else dim.largest for name, dim in symbolic.items()}


def refuse_unfit_state(kept: Mapping[str, tuple[int, ...]], expected: Iterable[ExpectedInput]) -> None:
    """Refuse state that another entry has left in a shape that the bundle does not take (SPY0762)."""
    for item in expected:
        if item.name in kept and not item.admits(kept[item.name]):
            fact = f'the kept state "{item.name}" has shape {list(kept[item.name])}, the bundle takes {item.shape_text}'
            raise refuse("SPY0762", fact, hint="an earlier call has left it" + _GIVE_STATE)


def actual_shape(argument: Argument, extents: Mapping[str, int]) -> tuple[int, ...]:
    """Return the shape that an argument has in a run that chose ``extents``, in device form where it has no other."""
    shape = argument.shape if argument.shape is not None and has_host_form(argument) else argument.device_size
    axes = argument.symbolic_axes or (None,) * len(shape)
    return tuple(size if name is None else extents[name] for size, name in zip(shape, axes, strict=True))


def in_whole_buffer(array: HostArray, shape: tuple[int, ...]) -> HostArray:
    """Return a larger array of zeros that begins with this one along every axis."""
    whole = np.zeros(shape, array.dtype)
    whole[tuple(slice(extent) for extent in array.shape)] = array
    return whole


def program_directory(root: str | None, directory: str) -> str:
    """Return what stands before a program's file names in messages: bundle and program directory, as far as known."""
    return ("" if root is None else f"{root}/") + ("" if directory == "." else f"{directory}/")


def argument_size_bytes(argument: Argument) -> int:
    """Return the device bytes of an argument: whole sticks of its ``device_size``."""
    return STICK_BYTES * math.prod(argument.device_size[:-1])


def has_host_form(argument: Argument) -> bool:
    """Whether the table says how the argument looks on the host; else it is given and returned in device form."""
    return not (argument.shape is None or argument.dtype is None or argument.stride_map is None)


def _expected(argument: Argument, is_required: bool, symbolic: Mapping[str, SymbolicDim]) -> ExpectedInput:
    axes = tuple(None if name is None else (name, symbolic[name]) for name in argument.symbolic_axes)
    if argument.shape is None or argument.dtype is None or not has_host_form(argument):
        carrier = np.dtype(np.float32)
        return ExpectedInput(
            argument.name, argument.device_size, "float32", carrier, is_required, axes, is_host_form=False
        )
    carrier = np.dtype(argument.dtype.carrier)
    return ExpectedInput(argument.name, argument.shape, argument.dtype.value, carrier, is_required, axes)


def refuse_unknown_or_missing(
    names: Iterable[str], expected: Iterable[ExpectedInput], lost: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Refuse names that the bundle does not know, and required inputs that are absent; errors SPY0760 and SPY0761.

    ``lost``: why inputs that were kept from an earlier run no longer are.
    """
    given = set(names)
    known = {item.name: item for item in expected}
    sink = DiagnosticSink()
    for name in sorted(given - known.keys()):
        close = difflib.get_close_matches(name, known, n=1)
        hint = f'did you mean "{close[0]}"?' if close else f"the inputs are {_listed(known)}"
        sink.error("SPY0761", f'the bundle has no input "{name}"', hint=hint)
    for name, item in known.items():
        if name not in given and item.is_required:
            hint = f"give a {item.dtype} array of shape {item.shape_text}"
            notes = (f"its content was lost: {lost[name]}",) if name in lost else ()
            sink.error("SPY0760", f'run input "{name}" is missing', notes=notes, hint=hint)
    sink.raise_if_errors()


def checked_inputs(
    inputs: Mapping[str, HostArray],
    expected: Iterable[ExpectedInput],
    lost: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, HostArray]:
    """Return the inputs in graph order and native byte order, all problems raised at once.

    ``lost``: why inputs that were kept from an earlier run no longer are.
    Errors SPY0760 (missing), SPY0761 (unknown name), SPY0762 (shape), SPY0763 (dtype).
    """
    items = tuple(expected)
    refuse_unknown_or_missing(inputs, items, lost)
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
