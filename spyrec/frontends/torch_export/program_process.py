"""Lets torch read a program in a process of its own: with limits on time and memory, and without a network.

What torch is given holds no data, no pickled entries and no classes; a file that makes it fail or hang ends as a
diagnostic.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from spyrec.diagnostics import Location, refuse
from spyrec.frontends.torch_export.archive import Archive
from spyrec.frontends.torch_export.traced import TracedProgram, from_json

MOST_SECONDS = 900
"""Seconds of processor time that torch may take for a program."""

MOST_MEMORY_BYTES = 1 << 35
"""Bytes of address space that the process may have, 32 GiB: torch alone reserves several."""

_CLONE_NEWNET = 0x40000000
_CLONE_NEWUSER = 0x10000000
_EXCEPTION = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*(?:Error|Exception): ")
_MODULE = "spyrec.frontends.torch_export.reader"


def traced(archive: Archive, bound: Mapping[str, int | None], kept: Collection[str] = ()) -> TracedProgram:
    """Return the program of an archive; ``kept`` operations are not taken apart.

    Errors: SPY0163 torch is not installed, SPY0164 it does not read the program, SPY0165 it took too long.
    """
    with tempfile.TemporaryDirectory(prefix="spyrec-import-") as folder:
        source, target = Path(folder, "stripped.pt2"), Path(folder, "program.json")
        archive.write_stripped(source)
        texts = json.dumps(dict(bound)), json.dumps(sorted(kept))
        run_with_torch(_MODULE, [str(source), str(target), *texts], Location(str(archive.path)))
        return from_json(json.loads(target.read_bytes()))


def run_with_torch(module: str, arguments: Sequence[str], place: Location) -> None:
    """Run a module of ours in a process of its own, with limits; what it makes, it writes to files.

    ``place``: the model's file.  Errors: as :func:`traced`.
    """
    try:
        found = subprocess.run(  # noqa: S603 -- this interpreter, our own module
            [sys.executable, "-m", module, *arguments],
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=MOST_SECONDS,
            env=_environment(),
            preexec_fn=_limit,
        )
    except subprocess.TimeoutExpired:
        raise refuse("SPY0165", f"torch read the program for {MOST_SECONDS} seconds", place) from None
    if found.returncode != 0:
        _refuse(found.stderr.decode("utf-8", "replace"), found.returncode, place)


def _environment() -> dict[str, str]:
    kept = {
        name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "PYTHONPATH", "TMPDIR")
    }
    return {**kept, "TORCHDYNAMO_DISABLE": "1", "CUDA_VISIBLE_DEVICES": ""}


def _limit() -> None:
    """Limit the process before torch starts in it."""
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # where the system does not allow it, the process keeps the network, which it has no reason to use
    ctypes.CDLL(None).unshare(_CLONE_NEWUSER | _CLONE_NEWNET)


def _refuse(text: str, code: int, place: Location) -> None:
    """Raise why the process failed.  Errors: SPY0163, SPY0164, SPY0165."""
    lines = [line for line in text.strip().splitlines() if line.strip()]
    named = [line for line in lines if _EXCEPTION.match(line)]
    last = (named or lines or [f"it ended with {code}"])[-1]
    if "No module named 'torch'" in text:
        hint = "pip install 'spyrec[torch]'"
        raise refuse("SPY0163", "torch is not installed, and it reads programs of torch.export", place, hint=hint)
    if code < 0 and -code in (9, 24):
        raise refuse("SPY0165", f"torch read the program for {MOST_SECONDS} seconds or took too much memory", place)
    raise refuse("SPY0164", f"torch does not read the program: {last[:300]}", place)
