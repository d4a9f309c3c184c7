"""Compiled functions as bytes, and back into this process: by LLVM alone, which is a tenth of numba's imports."""

# llvmlite ships no type information: what it returns is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import json
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any, Self, cast

from spyrec.dataclass import dataclass
from spyrec.files.host_processor import host_processor

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class MachineCode:
    """An object file's bytes: the function in it, what that returns (numba's name), the symbols that it needs."""

    symbol: str
    result: str
    needs: tuple[str, ...]
    object_code: bytes

    def written(self) -> bytes:
        """Return it as bytes: a line of JSON, then the object file."""
        head = {"symbol": self.symbol, "result": self.result, "needs": self.needs}
        return json.dumps(head).encode() + b"\n" + self.object_code

    @classmethod
    def of(cls, content: bytes) -> Self:
        """Return what :meth:`written` gave; its bytes are checked by whoever kept them."""
        head, _, object_code = content.partition(b"\n")
        about = cast("dict[str, Any]", json.loads(head))
        return cls(about["symbol"], about["result"], tuple(about["needs"]), object_code)


_NEVER_CALLED = "NRT_MemInfo_call_dtor"
"""What numba's code calls to free an array that it holds; those that it is given here have no owner."""

_OWN_SYMBOLS = f"""
declare void @llvm.trap()
define void @{_NEVER_CALLED}(ptr %owner) {{
  call void @llvm.trap()
  unreachable
}}
"""

_ONE_AT_A_TIME = Lock()
_CODE: list[object] = []  # lives as long as the process: addresses in it are known to all


def loaded(code: MachineCode) -> int | None:
    """Return the address of the function, now that it is in this process; ``None`` where it needs what is not here.

    LLVM would end the process then.
    """
    with _ONE_AT_A_TIME:
        if lacking(code.needs):
            return None
        binding = _binding()
        engine = _new_engine(binding, _OWN_SYMBOLS if _NEVER_CALLED in code.needs else "")
        engine.add_object_file(binding.ObjectFileRef.from_data(code.object_code))
        engine.finalize_object()
        _CODE.append(engine)
        return int(engine.get_function_address(code.symbol)) or None


def lacking(symbols: Sequence[str]) -> list[str]:
    """Return the symbols that are not in this process."""
    found = (name for name in symbols if name != _NEVER_CALLED)
    return [name for name in found if _binding().address_of_symbol(name) is None]


def _new_engine(binding: Any, assembly: str = "") -> Any:  # noqa: ANN401
    """Return an engine for one object file, beside functions in LLVM's language: symbols of others are not its own."""
    machine = binding.Target.from_default_triple().create_target_machine()
    return binding.create_mcjit_compiler(binding.parse_assembly(assembly), machine)


def processor() -> tuple[str, ...]:
    """Return what code is compiled for, and by which LLVM: it runs on this processor alone; errors SPY0753."""
    import llvmlite

    host = host_processor()
    llvm = ".".join(map(str, cast("tuple[int, ...]", _binding().llvm_version_info)))
    return str(llvmlite.__version__), llvm, host.triple, host.name, host.features


@cache
def _binding() -> Any:  # noqa: ANN401
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    _CODE.append(_new_engine(binding))  # the first one makes the symbols of this process known to LLVM
    return binding
