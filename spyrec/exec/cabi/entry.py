"""Python's side of the shared library: every exported function, from C values to ``spyrec.exec.flat`` and back.

Nothing of Python goes out but numbers, and text in memory of the library's own.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from typing import Protocol, cast

import numpy as np
import numpy.typing as npt

from spyrec.exec import flat, flat_backend
from spyrec.exec.cabi.header import HEADERS, ExportedFunction, Parameter, functions
from spyrec.exec.errors import InvalidCall, Status
from spyrec.exec.flat_calls import HANDLES, status_of

CValue = object
"""A value of C as cffi hands it over: a number, or a pointer object."""

_NUMBERS = {"int", "size_t", "uint64_t", "frt_shape_key"}


class ForeignFunctions(Protocol):
    """What is used of cffi."""

    NULL: CValue

    def cast(self, kind: str, value: CValue) -> CValue:
        """Return a value as another C type."""
        ...

    def string(self, value: CValue) -> bytes:
        """Return the bytes up to the terminating zero."""
        ...

    def new(self, kind: str, value: bytes) -> CValue:
        """Return memory of C that lives as long as this object."""
        ...

    def buffer(self, value: CValue, size: int) -> memoryview:
        """Return bytes of C, in place."""
        ...

    def unpack(self, value: CValue, count: int) -> list[CValue]:
        """Return the items of an array of C."""
        ...

    def def_extern(self, *, name: str, error: CValue) -> Callable[[Callable[..., object]], object]:
        """Return what lets a function of Python be called as an exported one."""
        ...


def install(ffi: ForeignFunctions) -> None:
    """Let every function of the headers be called: what the library does when it is first used."""
    boundary = Boundary(ffi)
    for header, module in zip(HEADERS, (flat, flat_backend), strict=True):
        for function in functions(header):
            target = cast("Callable[..., object]", getattr(module, function.name))
            error = None if function.result == "void" else boundary.failure(function.result)
            ffi.def_extern(name=function.name, error=error)(boundary.wrapped(function, target))


class Boundary:
    """Converts arguments and results; keeps the texts that were handed out."""

    def __init__(self, ffi: ForeignFunctions) -> None:
        self._ffi = ffi
        self._names: dict[int, CValue] = {}
        self._here = threading.local()

    def failure(self, result: str) -> CValue:
        """Return what a function answers that failed in a way it did not foresee."""
        if result == "int":
            return int(Status.BACKEND)
        return 0 if result in _NUMBERS else self._ffi.NULL

    def wrapped(self, function: ExportedFunction, target: Callable[..., object]) -> Callable[..., object]:
        """Return the function that C calls."""
        parameters, result = function.parameters, function.result

        def call(*values: CValue) -> CValue:
            try:
                arguments = tuple(self._arguments(parameters, values))
            except Exception as error:  # noqa: BLE001 -- nothing may be raised into a caller that is not Python
                status = status_of(error)
                return int(status) if result == "int" else self.failure(result)
            answer = target(*arguments)
            if result == "void":
                self._forget_names()
                return None
            return self._result(result, answer, values)

        return call

    def _arguments(self, parameters: tuple[Parameter, ...], values: tuple[CValue, ...]) -> Iterator[object]:
        pairs = iter(zip(parameters, values, strict=True))
        for parameter, value in pairs:
            if parameter.type == "callback":
                yield self._callback(value, next(pairs)[1])
            elif parameter.name in {"source", "destination"} and parameter.type.endswith("void*"):
                yield self._memory(value, cast("int", next(pairs)[1]))
            elif parameter.name == "buffers":
                yield self._handles(value, cast("int", next(pairs)[1]))
            elif parameter.type == "const char*":
                yield self._text(value)
            elif parameter.type in _NUMBERS:
                yield value
            else:
                yield self._token(value)

    def _result(self, result: str, answer: object, values: tuple[CValue, ...]) -> CValue:
        if result in _NUMBERS:
            return answer
        if result != "const char*":
            return self._ffi.cast(result, answer)
        if answer is None:
            return self._ffi.NULL
        text = str(answer)
        if values:
            # asked again, it is the same text: what was handed out stays
            return self._names.setdefault(self._token(values[0]), self._c_text(text))
        if getattr(self._here, "text", None) != text:
            self._here.text, self._here.c_text = text, self._c_text(text)
        return self._here.c_text

    def _forget_names(self) -> None:
        """Free the texts of handles that are gone."""
        for token in [item for item in self._names if item not in HANDLES]:
            del self._names[token]

    def _token(self, value: CValue) -> int:
        return int(cast("int", self._ffi.cast("uintptr_t", value)))

    def _text(self, value: CValue) -> str:
        """Return a text of C; bytes that are no UTF-8 stay what they are."""
        return "" if value == self._ffi.NULL else self._ffi.string(value).decode(errors="surrogateescape")

    def _c_text(self, text: str) -> CValue:
        return self._ffi.new("char[]", text.encode(errors="surrogateescape"))

    def _memory(self, value: CValue, size_bytes: int) -> npt.NDArray[np.uint8]:
        if size_bytes > sys.maxsize:
            raise InvalidCall(f"{size_bytes} bytes of host memory")
        if size_bytes == 0:
            return np.zeros(0, np.uint8)
        if value == self._ffi.NULL:
            raise InvalidCall(f"NULL for {size_bytes} bytes of host memory")
        return np.frombuffer(self._ffi.buffer(value, size_bytes), np.uint8)

    def _handles(self, value: CValue, count: int) -> list[int]:
        if value == self._ffi.NULL or count <= 0:
            return []
        return [self._token(item) for item in self._ffi.unpack(value, count)]

    def _callback(self, record: CValue, user: CValue) -> Callable[[int], object]:
        if record == self._ffi.NULL:
            raise InvalidCall("NULL for a record callback")
        function = cast("Callable[[CValue, CValue], object]", record)
        return lambda handle: function(user, self._ffi.cast("void*", handle))
