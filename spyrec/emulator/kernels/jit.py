"""How kernels reach device memory by address.

Kernels take byte addresses as int64: operands of any format, in any allocation, then share one signature, so that each
kernel is compiled once.  Rule V6 and V8 have bounded every address before a kernel sees it.
"""

# numba ships no type information: what it returns is unknown to the checker, here and nowhere else.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownArgumentType=false
# pyright: reportUntypedFunctionDecorator=false, reportAttributeAccessIssue=false, reportCallIssue=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from llvmlite import ir

from spyrec.files.numba_names import arrayobj, intrinsic, types


@intrinsic
def _data_address(_context: Any, array: Any):  # noqa: ANN202, ANN401 - numba's own protocol
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> object:  # noqa: ANN401
        held = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.ptrtoint(held.data, ir.IntType(64))

    return types.int64(array), generate


address_of = cast("Callable[[npt.NDArray[np.generic]], int]", _data_address)
"""The address of an array's first element (inside kernels only); unlike ``ctypes``, counts no reference.

An array that is used no more is freed, whoever still knows its address.
"""


def _array_at(name: str) -> Any:  # noqa: ANN401
    """Return ``(address, count)`` for use inside kernels: memory as an array of a type, which owns nothing."""

    @intrinsic
    def view(_context: Any, _address: Any, _count: Any):  # noqa: ANN202, ANN401
        element = getattr(types, name)
        kind = types.Array(element, 1, "C")

        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
            array = context.make_array(kind)(context, builder)
            item = context.get_constant(types.intp, element.bitwidth // 8)
            data = builder.inttoptr(arguments[0], context.get_data_type(element).as_pointer())
            arrayobj.populate_array(array, data, [arguments[1]], [item], item, meminfo=None)
            return array._getvalue()  # noqa: SLF001 - numba's way to say: the value

        return kind(types.int64, types.int64), generate

    return view


@intrinsic
def _table_at(_context: Any, _address: Any, _rows: Any, _columns: Any):  # noqa: ANN202, ANN401
    kind = types.Array(types.int64, 2, "C")

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        address, rows, columns = arguments
        array = context.make_array(kind)(context, builder)
        item = context.get_constant(types.intp, 8)
        data = builder.inttoptr(address, ir.IntType(64).as_pointer())
        steps = [builder.mul(columns, item), item]
        arrayobj.populate_array(array, data, [rows, columns], steps, item, meminfo=None)
        return array._getvalue()  # noqa: SLF001 - as above

    return kind(types.int64, types.int64, types.int64), generate


table_at = cast("Callable[[int, int, int], npt.NDArray[np.int64]]", _table_at)
"""``(address, rows, columns)``: int64 from an address on as rows (inside kernels only)."""

# Written as instructions and not as functions: numba compiles a function for each mix of types it is called with.
bytes_at = cast("Callable[[int, int], npt.NDArray[np.uint8]]", _array_at("uint8"))
"""``count`` bytes of memory from ``address`` on as an array (inside kernels only); so are the others, by their type."""

words16_at = cast("Callable[[int, int], npt.NDArray[np.uint16]]", _array_at("uint16"))
words32_at = cast("Callable[[int, int], npt.NDArray[np.uint32]]", _array_at("uint32"))
integers_at = cast("Callable[[int, int], npt.NDArray[np.int64]]", _array_at("int64"))
floats_at = cast("Callable[[int, int], npt.NDArray[np.float32]]", _array_at("float32"))
doubles_at = cast("Callable[[int, int], npt.NDArray[np.float64]]", _array_at("float64"))
