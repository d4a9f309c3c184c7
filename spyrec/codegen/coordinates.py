"""An argument's device coordinates, read as what SuperDSC can say: which dim each device axis carries.

After alignment every device axis of an argument is one of: a size-1 axis at coordinate 0; one iteration dim, plus a
constant where the argument is a window of a larger buffer; the sticks of the stick dim; or the rows of a gather.
Anything else has no field in SuperDSC and is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

from spyrec.codegen.expression import CoordinateExpression, Floor, IndirectAccess, Modulo, Symbol
from spyrec.codegen.opspec import TensorArgument
from spyrec.dataclass import dataclass
from spyrec.diagnostics import Location, SpyrecError, refuse
from spyrec.hardware.target import STICK_BYTES


@dataclass(frozen=True, slots=True)
class DeviceAxis:
    """The device axis ``index`` that carries one dim, starting at ``offset`` (sticks on a stick axis)."""

    index: int
    offset: int


@dataclass(frozen=True, slots=True)
class ArgumentView:
    """What an argument's coordinates say, in dim labels.

    ``dim_order`` is inner to outer over the device axes.  ``axes`` has the axis of each dim except the dims of a
    gather's rows (``indirect_dims``, all on ``indirect_axis``) and a stick dim that has one stick and no axis.
    ``coordinate_dims`` are the dims of all coordinates, those of the outermost device axis first.
    """

    argument: TensorArgument
    elements_per_stick: int
    stick_dim: str | None
    dim_order: tuple[str, ...]
    axes: Mapping[str, DeviceAxis]
    coordinate_dims: tuple[str, ...] = ()
    index_name: str | None = None
    indirect_axis: int | None = None
    indirect_dims: tuple[str, ...] = ()

    @property
    def word_bytes(self) -> int:
        """Bytes of one element."""
        return STICK_BYTES // self.elements_per_stick

    def with_row(self, dim: str) -> ArgumentView:
        """Return the view with ``dim`` on the axis of the rows, where their index has no dim."""
        if self.indirect_axis is None or self.indirect_dims:
            return self
        place = sum(axis.index > self.indirect_axis for axis in self.axes.values())
        order = (*self.dim_order[:place], dim, *self.dim_order[place:])
        return replace(self, dim_order=order, indirect_dims=(dim,))

    def unit_elements(self, axis: int) -> int:
        """Return the distance between neighbours on a device axis, in elements."""
        return prod(self.argument.device_size[axis + 1 :])

    def extent(self, dim: str) -> int:
        """Return the elements along ``dim`` that the buffer has room for."""
        axis = self.axes.get(dim)
        sticks_or_elements = 1 if axis is None else self.argument.device_size[axis.index]
        return sticks_or_elements * self.elements_per_stick if dim == self.stick_dim else sticks_or_elements


def elements_per_stick(argument: TensorArgument, location: Location | None) -> int:
    """Return the elements per stick of an argument's format; SPY0513 for a format no tensor can have."""
    elements = argument.device_dtype.elements_per_stick
    if elements is None or elements > STICK_BYTES:
        raise refuse(
            "SPY0513",
            f"device format {argument.device_dtype.name} cannot hold a tensor: an element is no whole number of bytes",
            None if location is None else location.child("device_dtype"),
            hint="use a format of 8, 16, 32 or 64 bits",
        )
    return elements


class CoordinateReader:
    """Reads the coordinates of the arguments of one operation.

    ``labels`` maps iteration symbols to dim labels, ``sizes`` dim labels to extents, ``index_dims`` the names of index
    tensors to their dims.
    """

    def __init__(
        self,
        labels: Mapping[str, str],
        sizes: Mapping[str, int],
        index_dims: Mapping[str, tuple[str, ...]],
    ) -> None:
        self._labels = labels
        self._sizes = sizes
        self._index_dims = index_dims

    def read(self, argument: TensorArgument, location: Location | None) -> ArgumentView:
        """Return the view of one argument.

        Errors: SPY0508 a coordinate that SuperDSC cannot express, SPY0509 a device size that disagrees with the
        format, SPY0513 the format, SPY0521 a gather without index tensor.
        """
        elements = elements_per_stick(argument, location)
        if argument.device_size[-1] != elements:
            raise refuse(
                "SPY0509",
                f"last device dim has {argument.device_size[-1]} elements, a stick of {argument.device_dtype.name} has "
                f"{elements}",
                None if location is None else location.child("device_size", len(argument.device_size) - 1),
            )
        return _AxisWalk(self, argument, elements, location).view()

    def label(self, symbol: str) -> str | None:
        """Return the dim label of a symbol, or ``None`` where the iteration space has no such symbol."""
        return self._labels.get(symbol)

    def size(self, dim: str) -> int:
        """Return the iteration extent of a dim."""
        return self._sizes[dim]

    def rows_dims(self, name: str) -> tuple[str, ...] | None:
        """Return the dims of an index tensor, or ``None`` where no argument has that name."""
        return self._index_dims.get(name)


class _AxisWalk:
    """The walk over one argument's device axes, innermost first."""

    def __init__(
        self, reader: CoordinateReader, argument: TensorArgument, elements: int, location: Location | None
    ) -> None:
        self._reader = reader
        self._argument = argument
        self._elements = elements
        self._location = location
        self._order: list[str] = []
        self._axes: dict[str, DeviceAxis] = {}
        self._index_name: str | None = None
        self._indirect_axis: int | None = None
        self._stick_inner = _stick_expression(argument, elements)
        self._stick_symbol = None if self._stick_inner is None else self._stick_inner.symbols[0]
        self._stick_dim = self._stick()
        # Only where the sticks have no axis of their own does a size-1 axis stand for them.
        self._placeholder_wanted = self._stick_dim is not None and not any(
            self._stick_symbol in coordinate.symbols for coordinate in argument.device_coordinates[:-1]
        )

    def view(self) -> ArgumentView:
        for axis in reversed(range(len(self._argument.device_size) - 1)):
            self._visit(axis)
        if self._placeholder_wanted and self._stick_dim is not None:
            self._order.append(self._stick_dim)
        return ArgumentView(
            self._argument,
            self._elements,
            self._stick_dim,
            tuple(self._order),
            self._axes,
            self._coordinate_dims(),
            self._index_name,
            self._indirect_axis,
            () if self._index_name is None else self._reader.rows_dims(self._index_name) or (),
        )

    def _coordinate_dims(self) -> tuple[str, ...]:
        symbols = (symbol for coordinate in self._argument.device_coordinates for symbol in coordinate.symbols)
        found = (self._reader.label(symbol) for symbol in symbols)
        return tuple(dict.fromkeys(dim for dim in found if dim is not None))

    def _visit(self, axis: int) -> None:
        coordinate = self._argument.device_coordinates[axis]
        if not coordinate.terms:
            self._visit_constant(axis, coordinate)
            return
        term = coordinate.terms[0]
        if len(coordinate.terms) > 1 or term.coefficient != 1:
            raise self._unaligned(axis, "is not one symbol plus a constant")
        match term.atom:
            case IndirectAccess(name) if coordinate.offset == 0:
                self._visit_rows(axis, name)
            case Symbol(symbol) if symbol != self._stick_symbol:
                self._carry(axis, self._known(axis, symbol), coordinate.offset)
            case Floor(inner, divisor) if inner == self._stick_inner and divisor == self._elements:
                self._carry(axis, self._known(axis, inner.symbols[0]), coordinate.offset)
            case _:
                raise self._unaligned(axis, "is neither a symbol nor the sticks of the last coordinate")

    def _visit_constant(self, axis: int, coordinate: CoordinateExpression) -> None:
        size = self._argument.device_size[axis]
        if size != 1 or coordinate.offset:
            raise self._unaligned(
                axis,
                f"is the constant {coordinate.offset} on a device dim of size {size}",
                "add an iteration symbol of size 1 for this dim" if size > 1 else "use 0",
            )
        if self._placeholder_wanted and self._stick_dim is not None:
            self._order.append(self._stick_dim)
            self._placeholder_wanted = False

    def _visit_rows(self, axis: int, name: str) -> None:
        dims = self._reader.rows_dims(name)
        if dims is None or self._index_name is not None:
            raise refuse(
                "SPY0521",
                f'coordinate reads rows from "{name}", which is not the name of an argument'
                if dims is None
                else "an argument has two gathered device dims, at most one is possible",
                self._at(axis),
            )
        self._index_name = name
        self._indirect_axis = axis
        self._order.extend(dim for dim in dims if dim not in self._order)

    def _carry(self, axis: int, dim: str, offset: int) -> None:
        if dim in self._order:
            raise self._unaligned(axis, "repeats a symbol that another device dim carries")
        self._order.append(dim)
        self._axes[dim] = DeviceAxis(axis, offset)

    def _stick(self) -> str | None:
        last = len(self._argument.device_coordinates) - 1
        coordinate = self._argument.device_coordinates[last]
        if coordinate.is_zero:
            return None
        symbol = self._stick_symbol
        if symbol is None:
            raise self._unaligned(last, f"is neither 0, nor a symbol, nor Mod(symbol, {self._elements})")
        dim = self._known(last, symbol)
        is_split = any(symbol in other.symbols for other in self._argument.device_coordinates[:-1])
        if not is_split and self._reader.size(dim) > self._elements:
            raise self._unaligned(last, f"has no stick coordinate floor({symbol} / {self._elements}) beside it")
        return dim

    def _known(self, axis: int, symbol: str) -> str:
        dim = self._reader.label(symbol)
        if dim is None:
            raise self._unaligned(axis, f'uses "{symbol}", which is not in the iteration space')
        return dim

    def _unaligned(self, axis: int, fact: str, hint: str | None = None) -> SpyrecError:
        text = str(self._argument.device_coordinates[axis])
        return refuse(
            "SPY0508",
            f'coordinate "{text}" of device dim {axis} {fact}',
            self._at(axis),
            hint=hint or "code generation takes aligned coordinates: one dim per device dim",
        )

    def _at(self, axis: int) -> Location | None:
        return None if self._location is None else self._location.child("device_coordinates", axis)


def _stick_expression(argument: TensorArgument, elements: int) -> CoordinateExpression | None:
    """Return the symbol that the last coordinate follows, or ``None`` where it has no such form."""
    coordinate = argument.device_coordinates[-1]
    if _is_symbol(coordinate):
        return coordinate
    if len(coordinate.terms) != 1 or coordinate.offset or coordinate.terms[0].coefficient != 1:
        return None
    atom = coordinate.terms[0].atom
    if isinstance(atom, Modulo) and atom.modulus == elements and _is_symbol(atom.inner):
        return atom.inner
    return None


def _is_symbol(expression: CoordinateExpression) -> bool:
    terms = expression.terms
    return (
        len(terms) == 1 and expression.offset == 0 and terms[0].coefficient == 1 and isinstance(terms[0].atom, Symbol)
    )
