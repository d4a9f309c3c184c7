"""Builds the shared library: C made by cffi, compiled by the system's compiler, linked with this Python."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from contextlib import redirect_stdout
from importlib import import_module
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Protocol, cast

from spyrec.dataclass import dataclass
from spyrec.diagnostics import refuse
from spyrec.exec.cabi.header import HEADERS, declarations, include_directory

LIBRARY = "libflashrt_exec.so"
_MODULE = "_flashrt_exec"
_PROLOGUE = """
#include <stdlib.h>
/* Python looks for its library beside the first python3 of PATH: that may be any, so it is told, until it has begun. */
__attribute__((constructor)) static void find_python(void)
{
    if (!Py_IsInitialized()) setenv("PYTHONHOME", %s, 0);
}
#if PY_VERSION_HEX < 0x030C0000
/* Until 3.12 cffi takes the capsules' version tag as its lock, and waits while it is not 0.  In a Python that has
   begun, any look-up of a capsule's attribute has set it (importing hypothesis does); a type that changed has none. */
__attribute__((constructor)) static void free_lock_of_cffi(void)
{
    if (!Py_IsInitialized()) return;
    PyGILState_STATE state = PyGILState_Ensure();
    PyType_Modified(&PyCapsule_Type);
    PyGILState_Release(state);
}
#endif
"""
_VERSION_SCRIPT = "{ global: frt_*; spyrec_*; local: *; };\n"


class _Maker(Protocol):
    def embedding_api(self, text: str) -> None: ...
    def embedding_init_code(self, text: str) -> None: ...
    def set_source(self, name: str, text: str) -> None: ...
    def emit_c_code(self, path: str) -> None: ...


@dataclass(frozen=True, slots=True)
class CLibrary:
    """A built library: what programs are compiled and linked with."""

    path: Path
    include: Path

    @property
    def flags(self) -> tuple[str, ...]:
        """Flags of a C compiler for a program that uses it and finds it where it is."""
        folder = self.path.parent
        return (f"-I{self.include}", f"-L{folder}", f"-Wl,-rpath,{folder}", "-lflashrt_exec")


def lacking() -> str | None:
    """Return what is not there of what building needs: cffi, a C compiler, Python's headers."""
    if find_spec("cffi") is None:
        return "cffi is not installed"
    if _compiler() is None:
        return "there is no C compiler"
    if not (Path(str(sysconfig.get_config_var("INCLUDEPY"))) / "Python.h").is_file():
        return "Python's own headers are not installed"
    return None


def build(folder: Path) -> CLibrary:
    """Build the library in a folder; errors SPY0937 something it needs is not there, or what the compiler says."""
    compiler, lack = _compiler(), lacking()
    if compiler is None or lack is not None:
        raise refuse("SPY0937", lack or "there is no C compiler")
    folder.mkdir(parents=True, exist_ok=True)
    source, script, library = folder / f"{_MODULE}.c", folder / "exports.map", folder / LIBRARY
    maker = cast("_Maker", import_module("cffi").FFI())
    maker.set_source(_MODULE, _PROLOGUE % _c_text(sys.base_prefix))
    maker.embedding_api("\n".join(map(declarations, HEADERS)))
    maker.embedding_init_code(_init_code())
    with redirect_stdout(StringIO()):  # it says what it does
        maker.emit_c_code(str(source))
    script.write_text(_VERSION_SCRIPT, encoding="ascii")
    _run([compiler, "-shared", "-fPIC", "-O1", str(source), "-o", str(library), *_python_flags(),
          f"-Wl,--version-script,{script}", f"-Wl,-soname,{LIBRARY}"])  # fmt: skip
    return CLibrary(library, include_directory())


def _compiler() -> str | None:
    return shutil.which(os.environ.get("CC", "cc"))


def _python_flags() -> list[str]:
    names = sysconfig.get_config_vars("INCLUDEPY", "LIBDIR", "LDVERSION")
    include, folder, version = (str(item) for item in names)
    return [f"-I{include}", f"-L{folder}", f"-Wl,-rpath,{folder}", f"-lpython{version}"]


def _init_code() -> str:
    """Return what the library does first: find this installation, whoever starts it."""
    paths = [path for path in sys.path if path and Path(path).is_dir()]
    paths.append(str(Path(__file__).resolve().parents[3]))
    return (
        "import os, sys\n"
        f"if os.environ.get('PYTHONHOME') == {sys.base_prefix!r}: del os.environ['PYTHONHOME']\n"
        f"sys.path.extend(path for path in {paths!r} if path not in sys.path)\n"
        f"from {_MODULE} import ffi\n"
        "from spyrec.exec.cabi.entry import install\n"
        "install(ffi)\n"
    )


def _c_text(text: str) -> str:
    """Return a literal of C."""
    return '"' + "".join(f"\\{byte:03o}" for byte in os.fsencode(text)) + '"'


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 -- the system's compiler
    if done.returncode:
        lines = tuple(done.stderr.strip().splitlines()[:5])
        raise refuse("SPY0937", f"{Path(command[0]).name} ended with {done.returncode}", notes=lines)
