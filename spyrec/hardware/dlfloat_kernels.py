"""DLFloat16 as scalar functions inside kernels, written as LLVM instructions.

No branches: every case is computed and selected, so that LLVM vectorises a loop over them.  As numba functions the two
took longer to compile than the kernels that they are a part of.  They agree with ``dlfloat`` on every input (tested
over all patterns).
"""

# numba and llvmlite ship no type information: what they return is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownArgumentType=false
# pyright: reportUntypedFunctionDecorator=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from llvmlite import ir

from spyrec.files.numba_names import intrinsic, types

_WORD = ir.IntType(32)


def _word(value: int) -> ir.Constant:
    return ir.Constant(_WORD, value)


def decoded(builder: Any, bits: Any) -> Any:  # noqa: ANN401
    """Write what decodes 16 bits, and return the float32."""
    wide = builder.zext(bits, _WORD)
    magnitude = builder.and_(wide, _word(0x7FFF))
    pattern = builder.add(builder.shl(magnitude, _word(14)), _word(0x30000000))
    pattern = builder.select(builder.icmp_unsigned("==", magnitude, _word(0x7FFF)), _word(0x7F800000), pattern)
    pattern = builder.or_(pattern, builder.shl(builder.and_(wide, _word(0x8000)), _word(16)))
    pattern = builder.select(builder.icmp_unsigned("==", magnitude, _word(0)), _word(0), pattern)
    return builder.bitcast(pattern, ir.FloatType())


@intrinsic
def _decode_scalar(_context: Any, _bits: Any):  # noqa: ANN202, ANN401 - numba's own protocol
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        return decoded(builder, arguments[0])

    return types.float32(types.uint16), generate


@intrinsic
def _encode_scalar(_context: Any, _value: Any):  # noqa: ANN202, ANN401
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        pattern = builder.bitcast(arguments[0], _WORD)
        magnitude = builder.and_(pattern, _word(0x7FFFFFFF))
        # Half a unit is added before the shift: ties round away from zero.
        rounded = builder.sub(builder.lshr(builder.add(magnitude, _word(0x2000)), _word(14)), _word(0xC000))
        for order, limit in ((">", 1), ("<", 0x7FFF)):
            rounded = builder.select(builder.icmp_signed(order, rounded, _word(limit)), rounded, _word(limit))
        result = builder.or_(rounded, builder.and_(builder.lshr(pattern, _word(16)), _word(0x8000)))
        is_zero = builder.icmp_unsigned("<", magnitude, _word(0x2F804000))
        result = builder.select(is_zero, _word(0), result)
        is_nan = builder.icmp_unsigned(">", magnitude, _word(0x7F800000))
        return builder.trunc(builder.select(is_nan, _word(0x7FFF), result), ir.IntType(16))

    return types.uint16(types.float32), generate


decode_scalar = cast("Callable[[int | np.uint16], np.float32]", _decode_scalar)
"""The exact float32 value of one DLFloat16 pattern (inside kernels only)."""

encode_scalar = cast("Callable[[float | np.float32], np.uint16]", _encode_scalar)
"""Rounds one float32 to a DLFloat16 pattern: to nearest, ties away from zero (inside kernels only)."""
