"""How the host copies a bundle's tensors: the bundle's own tables, and the forms that bundles of others have."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from spyrec.bundle.bundle import Bundle
from spyrec.bundle.manifest import Argument
from spyrec.hardware.dtypes import DType
from spyrec.layout.conversion_table import DataConversionInfo, Direction
from spyrec.layout.device_layout import DeviceLayout
from spyrec.layout.tiling import row_major_strides
from spyrec.runtime.host_copies.device_form import DeviceForm
from spyrec.runtime.host_copies.result_memory import ResultMemory
from spyrec.runtime.host_copies.transfer import host_array_of
from spyrec.runtime.inputs.binding import has_host_form
from spyrec.runtime.memory.allocator import DeviceBytes
from spyrec.runtime.streams.blocks import device_to_host, host_to_device
from spyrec.runtime.streams.control_block import ControlBlock, Conversion, Origin

HostArray = npt.NDArray[np.generic]


class PlanTensors:
    """The copies between the host and the tensors of one bundle, as operations of a stream.

    Tensors with a host form go through the tables ``dci/NAME.*.json``, others are given and returned in device form.
    """

    def __init__(self, bundle: Bundle) -> None:
        self.manifest = bundle.manifest
        self.root = bundle.root
        self._bundle = bundle
        self._arguments = {item.name: item for item in bundle.manifest.arguments}
        self._cleared: dict[str, bool] = {}

    def constant(self, name: str) -> HostArray:
        """Return the values of a constant."""
        return self._bundle.constants[name]

    def copy_in(  # noqa: PLR0913 -- what is copied, and two options by name
        self,
        name: str,
        array: HostArray,
        place: DeviceBytes,
        origin: Origin,
        *,
        layout: DeviceLayout | None = None,
        is_lent: bool = False,
    ) -> ControlBlock:
        """Return what brings a host array to the device; one that ``is_lent`` is read when the copy is executed.

        ``layout``: how the tensor lies there, where not as compiled.
        """
        conversion = self.conversion(name, Direction.HOST_TO_DEVICE, array.shape, layout)
        origin = origin._replace(tensor=name)
        argument = self._arguments[name]
        is_cleared = self._cleared.get(name)
        if is_cleared is None:
            is_cleared = self._cleared[name] = self._is_cleared(argument)
        is_cleared |= layout is None and _is_zero_behind(argument, array.shape)
        return host_to_device(array, place, origin, conversion, is_lent=is_lent, is_cleared=is_cleared)

    def copy_out(  # noqa: PLR0913 -- what is copied, and an option by name
        self,
        name: str,
        place: DeviceBytes,
        origin: Origin,
        shape: tuple[int, ...] | None = None,
        layout: DeviceLayout | None = None,
        *,
        memory: ResultMemory | None = None,
    ) -> tuple[HostArray, ControlBlock]:
        """Return a host array, and what fills it; ``shape`` and ``layout``: of a run, where not as compiled.

        ``memory``: where the array may lie.

        Errors: SPY0315 the table copies another shape.
        """
        argument, conversion = self._arguments[name], self.conversion(name, Direction.DEVICE_TO_HOST, shape, layout)
        array: HostArray
        if isinstance(conversion, DeviceForm):
            array = np.empty(conversion.shape, np.float32)
        else:
            assert argument.shape is not None
            assert argument.dtype is not None
            array = host_array_of(conversion, shape or argument.shape, argument.dtype, memory)
        return array, device_to_host(place, array, origin._replace(tensor=name), conversion)

    def copy_out_exact(
        self, name: str, place: DeviceBytes, origin: Origin, shape: tuple[int, ...] | None = None
    ) -> tuple[HostArray, ControlBlock]:
        """Return a host array that loses nothing of a tensor, and what fills it.

        It is float32 of a float of 16 bits and more; the bits of an 8-bit float, which no copy converts, are its own.
        ``shape``: of a run, where not as compiled.
        """
        argument = self._arguments[name]
        assert argument.shape is not None
        assert argument.stride_map is not None
        assert argument.dtype is not None
        dtype = DType.FLOAT32 if argument.dtype.is_float and argument.dtype.item_bytes > 1 else argument.dtype
        if shape is not None and argument.symbolic_axes and shape != argument.shape:
            table = _run_table(argument, Direction.DEVICE_TO_HOST, shape, dtype)
        else:
            shape = argument.shape
            layout = DeviceLayout(argument.device_size, argument.stride_map, argument.device_dtype)
            table = layout.dci(Direction.DEVICE_TO_HOST, shape, row_major_strides(shape), host_dtype=dtype)
        array = host_array_of(table, shape, dtype)
        return array, device_to_host(place, array, origin._replace(tensor=name), table)

    def conversion(
        self,
        name: str,
        direction: Direction,
        shape: tuple[int, ...] | None = None,
        layout: DeviceLayout | None = None,
    ) -> Conversion:
        """Return how a tensor is copied; ``shape`` and ``layout``: of a run, where not as compiled."""
        argument = self._arguments[name]
        if layout is not None and shape is not None:
            return layout.dci(direction, shape, row_major_strides(shape), host_dtype=argument.dtype)
        if not has_host_form(argument):
            is_whole = shape is None or shape == argument.device_size
            return DeviceForm(argument.device_size, argument.device_dtype, None if is_whole else shape)
        return self._table(argument, direction, shape)

    def table_file(self, name: str, direction: Direction) -> str | None:
        """Return the file of a tensor's conversion table, ``None`` where the bundle has none."""
        tables = self._arguments[name].dci
        return None if tables is None else tables[direction.value]

    def _is_cleared(self, argument: Argument) -> bool:
        """Whether an argument is filled with zeros before it is copied in.

        Its table then has more rows than the host tensor: those of a matmul's second operand are padding of K, which
        has to be zero in every lane, and a bundle written by others has no other way to say so.
        """
        if argument.dci is not None or not has_host_form(argument):
            return False
        lanes = argument.device_size[-1]
        reached = sum(
            math.prod(
                size for size, stride in zip(nest.sizes, nest.destination_strides, strict=True) if stride % lanes == 0
            )
            for nest in self._table(argument, Direction.HOST_TO_DEVICE, None).nests
        )
        return reached < math.prod(argument.device_size[:-1])

    def _table(self, argument: Argument, direction: Direction, shape: tuple[int, ...] | None) -> DataConversionInfo:
        """Return the conversion table of an argument that has a host form.

        The bundle's tables are for the largest extents; a run with others gets one for its ``shape``.
        """
        if argument.symbolic_axes and shape is not None and shape != argument.shape:
            return _run_table(argument, direction, shape, argument.dtype)
        if argument.dci is not None:
            return self._bundle.dci[argument.dci[direction.value]]
        # Only a bundle written by others is without tables: they follow from the layout its argument table states.
        assert argument.stride_map is not None
        layout = DeviceLayout(argument.device_size, argument.stride_map, argument.device_dtype)
        return layout.dci(
            direction, host_shape=argument.shape, host_strides=argument.host_strides, host_dtype=argument.dtype
        )


def _is_zero_behind(argument: Argument, shape: tuple[int, ...]) -> bool:
    """Whether a host tensor has less than the largest extents: zero lies behind it on the device (D214).

    No row number names a row that is none, no mask lets in what is computed behind the extents, and two runs on the
    same inputs compute the same there.
    """
    return bool(argument.symbolic_axes) and shape != argument.shape


def _run_table(
    argument: Argument, direction: Direction, shape: tuple[int, ...], dtype: DType | None
) -> DataConversionInfo:
    """Return the table that copies a contiguous host tensor of a run's shape."""
    assert argument.stride_map is not None
    largest = DeviceLayout(argument.device_size, argument.stride_map, argument.device_dtype, argument.shape)
    strides = tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
    return largest.dci(direction, host_shape=shape, host_strides=strides, host_dtype=dtype)
