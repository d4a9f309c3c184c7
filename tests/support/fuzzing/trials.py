"""One case: right files with one or two of them damaged, a command line that reads them, and what it may do.

It may end with exit code 0, or refuse (1, 2) with diagnostics of known codes.  It may not report a bug, print anything
else on stderr, write outside its output, leave half of one behind, run programs, unpickle, or take too much time or
memory.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Generator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from random import Random
from types import FrameType

from spyrec.cli import main
from spyrec.diagnostics import SpyrecError
from spyrec.diagnostics.codes import CODES
from spyrec.files.kernel_cache import wanted_directory
from tests.support.fuzzing.mutations import damage_of
from tests.support.fuzzing.readers import ARCHIVE, READERS, Command, Reader, Seed

MOST_SECONDS = 5.0
"""Processor time that a case may take."""
STOPPED_AFTER_SECONDS = 20.0
"""Processor time after which a case is ended: a first run compiles kernels, which is no fault of the input."""
MOST_BYTES = 1 << 30
"""Memory that a case may hold, all of its process."""
_FRESH_BYTES = 256 << 20
"""Of it what a process holds before a case that has run nothing but such cases; a campaign's worker runs others."""

_OUT_OF_MEMORY = "SPY0798"
_KERNELS = "spyrec-kernels-"
"""How a directory of compiled kernels begins, where the user has no cache of his own."""


@dataclass(frozen=True, slots=True)
class Case:
    """A reader's seed with files in place of its own, and the command line that reads them."""

    reader: str
    seed: Path
    files: dict[str, bytes]
    command: Command


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a case: its exit code, and what it did that nothing may do; empty where all is well.

    ``where`` tells finds apart: the innermost frames of an exception, or what was found in few words.  ``refused_by``:
    the first code that was printed.
    """

    exit_code: int
    fault: str
    where: str
    seconds: float
    refused_by: str = ""


class StoppedError(BaseException):
    """The case took too long; nothing in the program may catch it."""


class Laboratory:
    """A folder with seeds of readers, copies to damage, and a place for products; for one process."""

    def __init__(self, home: Path, readers: tuple[Reader, ...] = READERS) -> None:
        """Make the seeds of ``readers`` below ``home``, which is to be resolved and empty."""
        self.home = home
        self._out, self._temporary = home / "products" / "out", home / "temporary"
        for folder in (self._out.parent, self._temporary):
            folder.mkdir(parents=True)
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()), self._temporary_files():
            self.seeds = {reader.name: reader.seeds(home / "seeds" / reader.name) for reader in readers}
        shutil.copytree(home / "seeds", home / "damaged")
        self._watch = _Watch(home)

    def case(self, reader: str, number: int, run_seed: int) -> Case:
        """Return a case, the same for the same numbers."""
        generator = Random(f"{run_seed}/{reader}/{number}")
        seed = generator.choice(self.seeds[reader])
        command = generator.choice(seed.commands)
        names = set(generator.choices(seed.damaged, k=generator.choice((1, 1, 1, 2))))
        files: dict[str, bytes] = {}
        for name in sorted(names):
            same = generator.sample(self.seeds[reader], k=min(3, len(self.seeds[reader])))
            kind = Path(name).suffix
            others = [
                (item.folder / other).read_bytes() for item in same for other in item.damaged if other.endswith(kind)
            ]
            content = (seed.folder / name).read_bytes()
            files[name] = damage_of(name)(content, others or [content], generator)
        if "manifest.json" in seed.damaged and generator.random() < 0.5:
            files = _listed(seed, files)
        return Case(reader, seed.folder, files, command)

    def damaged_folder(self, case: Case) -> Path:
        """Return where the copy of a case's seed lies."""
        return self.home / "damaged" / case.seed.relative_to(self.home / "seeds")

    def run(self, case: Case, *, is_text: bool = False) -> Outcome:
        """Write the files of a case, run its command line, judge what it does, and put the right files back."""
        folder = self.damaged_folder(case)
        for name, content in case.files.items():
            (folder / name).write_bytes(content)
        try:
            return self._judged(case, folder, is_text)
        finally:
            for name in case.files:
                shutil.copyfile(case.seed / name, folder / name)

    def _judged(self, case: Case, folder: Path, is_text: bool) -> Outcome:
        words = {"{in}": str(folder), "{out}": str(self._out), "{seed}": str(case.seed)}
        arguments = [_filled(word, words) for word in case.command]
        before = self._watch.tree(folder)
        out, err = StringIO(), StringIO()
        fault, code = "", -1
        peak, held = _peak_bytes(), _held_bytes()
        begin = time.process_time()
        with (
            redirect_stdout(out),
            redirect_stderr(err),
            self._temporary_files(),
            self._watch.watching(),
            _warnings_printed(),
        ):
            try:
                with _limited_seconds():
                    code = _executed(arguments, is_text=is_text)
            except StoppedError:
                fault = f"takes more than {STOPPED_AFTER_SECONDS:.0f} s"
            except BaseException as error:  # noqa: BLE001 -- what comes through is what is looked for
                fault = f"raises {type(error).__name__}: {error}"
        seconds = time.process_time() - begin
        where = fault
        for check in (
            self._reported,
            lambda: _badly_told(code, err.getvalue(), case.command, is_text=is_text),
            lambda: self._left_behind(code, case.command),
            lambda: "" if self._watch.tree(folder) == before else "changes its inputs",
            self._watch.fault,
            lambda: f"takes {seconds:.1f} s" if seconds > MOST_SECONDS else "",
            lambda: _memory_fault(peak, held),
        ):
            found = check()
            if found and not fault:
                fault, where = found, found.partition("\n")[0]
                if "\n" in found:
                    where = _innermost(found)
        self._clean()
        told = re.search(r"SPY\d{4}", err.getvalue())
        return Outcome(code, fault, where[:300], seconds, "" if told is None else told[0])

    @contextmanager
    def _temporary_files(self) -> Generator[None]:
        before, tempfile.tempdir = tempfile.tempdir, str(self._temporary)
        try:
            yield
        finally:
            tempfile.tempdir = before

    def _reported(self) -> str:
        """Return what a report of a bug says."""
        reports = sorted(self._temporary.glob("spyrec-bug-*"))
        return reports[0].read_text(encoding="utf-8") if reports else ""

    def _left_behind(self, code: int, command: Command) -> str:
        found = sorted(path.name for path in self._out.parent.iterdir())
        if command[0] == "run" or code == 0:  # outputs that a check finds wrong are written
            found = [name for name in found if name != "out"]
        left = sorted(path.name for path in self._temporary.iterdir() if not path.name.startswith(_KERNELS))
        return f"leaves {', '.join([*found, *left])} behind" if found or left else ""

    def _clean(self) -> None:
        for folder in (self._out.parent, self._temporary):
            for path in folder.iterdir():
                if path.name.startswith(_KERNELS):
                    continue
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink()


def _filled(word: str, words: dict[str, str]) -> str:
    for mark, value in words.items():
        word = word.replace(mark, value)
    return word


def _listed(seed: Seed, files: dict[str, bytes]) -> dict[str, bytes]:
    """Return files with the manifest saying their hashes, so that a reader looks into them."""
    from hashlib import sha256

    try:
        manifest = json.loads(files.get("manifest.json", (seed.folder / "manifest.json").read_bytes()))
        for name, content in files.items():
            if name in manifest["files"]:
                manifest["files"][name] = sha256(content).hexdigest()
        return {**files, "manifest.json": json.dumps(manifest).encode("utf-8", "surrogatepass")}
    except (ValueError, KeyError, TypeError, RecursionError):
        return files


def _executed(arguments: list[str], *, is_text: bool) -> int:
    if arguments[0] != ARCHIVE:
        return main(arguments if is_text else ["--diagnostics=json", *arguments])
    from spyrec.frontends.torch_export.archive import read_archive

    try:
        archive = read_archive(Path(arguments[1]))
        archive.check_contents()
        for weight in archive.weights().values():
            weight.read()
        archive.write_stripped(Path(arguments[2]))
    except SpyrecError as error:
        for item in error.diagnostics:
            sys.stderr.write(f"{item.render() if is_text else json.dumps(item.to_json())}\n")
        return 1
    return 0


@contextmanager
def _warnings_printed() -> Generator[None]:
    """Print every warning that Python shows users by default, each time: a test run may have other rules."""

    def show(message: Warning | str, *_: object, **__: object) -> None:
        sys.stderr.write(f"{type(message).__name__}: {message}\n")

    with warnings.catch_warnings():
        warnings.resetwarnings()
        warnings.simplefilter("always")
        for silent in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
            warnings.simplefilter("ignore", silent)
        warnings.showwarning = show
        yield


@contextmanager
def _limited_seconds() -> Generator[None]:
    def stop(number: int, frame: FrameType | None) -> None:
        del number, frame
        raise StoppedError

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, STOPPED_AFTER_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _badly_told(code: int, printed: str, command: Command, *, is_text: bool) -> str:
    """Return what is wrong with the exit code and the messages."""
    if code not in (0, 1, 2):
        return f"exit code {code}"
    if is_text:
        return "prints a traceback" if "Traceback" in printed else ""
    errors = 0
    for line in printed.splitlines():
        try:
            message = json.loads(line)
        except ValueError:
            return f"prints {line[:200]!r}"
        if message["severity"] == "note":
            continue
        if message["code"] not in CODES or not message["message"]:
            return f"has no code {message['code']}"
        if message["code"] == _OUT_OF_MEMORY and command[0] != "run":
            return f"has not enough memory: {line[:200]}"
        errors += message["severity"] == "error"
    if code and not errors and command[0] not in ("diff", "import", "run", "sweep"):  # which say on stdout what differs
        return f"exit code {code} without an error"
    return "" if code or not errors else "exit code 0 with an error"


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _held_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def _memory_fault(peak_before: int, held_before: int) -> str:
    """Return what a case held too much; what others have left in its process is not its own."""
    peak, left = _peak_bytes(), max(0, held_before - _FRESH_BYTES)
    return f"holds {(peak - left) >> 20} MiB" if peak > peak_before and peak - left > MOST_BYTES else ""


def _innermost(report: str) -> str:
    """Return the kind of an exception and its three innermost places, without numbers of lines."""
    lines = [line.strip() for line in report.splitlines()]
    frames = [line for line in lines if line.startswith('File "')][-3:]
    places: list[str] = []
    for frame in frames:
        file, _, rest = frame.removeprefix('File "').partition('"')
        places.append(f"{'/'.join(Path(file).parts[-2:])}:{rest.rpartition(' in ')[2]}")
    last = [line for line in lines if line][-1]
    return f"{last.partition(':')[0]} in {' <- '.join(reversed(places))}"


_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGES = frozenset(
    {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.symlink", "os.link", "os.truncate", "os.chmod"}
)
_NEVER = frozenset(
    {"os.system", "os.exec", "os.posix_spawn", "subprocess.Popen", "socket.connect", "pickle.find_class", "os.fork"}
)


class _Watch:
    """What the process writes and runs while a case is executed, told by Python's audit events."""

    def __init__(self, home: Path) -> None:
        self._allowed = (f"{home}{os.sep}", "/dev/null", "/proc/", str(wanted_directory()))
        self._is_on = False
        self._found: list[str] = []
        sys.addaudithook(self._see)

    @contextmanager
    def watching(self) -> Generator[None]:
        """Look while the block runs."""
        self._found.clear()
        self._is_on = True
        try:
            yield
        finally:
            self._is_on = False

    def fault(self) -> str:
        """Return the first thing that was seen and may not be."""
        return self._found[0] if self._found else ""

    def _see(self, event: str, arguments: tuple[object, ...]) -> None:
        if not self._is_on:
            return
        if event in _NEVER:
            self._found.append(f"{event} {arguments[0]!r:.100}")
        elif event == "open":
            path, _, flags = arguments
            writes = isinstance(flags, int) and flags & _WRITES and not flags & getattr(os, "O_DIRECTORY", 0)
            if writes and isinstance(path, str | bytes):
                self._wrote(event, os.fsdecode(path))
        elif event in _CHANGES and isinstance(arguments[0], str | bytes):
            self._wrote(event, os.fsdecode(arguments[0]))

    def _wrote(self, event: str, path: str) -> None:
        full = os.path.abspath(path)  # noqa: PTH100 -- resolves nothing: the hook may not open files
        if os.sep not in path or "/__pycache__/" in full or self._allowed[-1].startswith(full):
            return  # a name below an open directory, which was looked at; the directories above compiled kernels
        if not full.startswith(self._allowed):
            self._found.append(f"{event} {path}")

    def tree(self, folder: Path) -> list[tuple[str, int, int]]:
        """Return names, sizes and times of change of all files of a case's inputs."""
        found: list[tuple[str, int, int]] = []
        pending = [str(folder)]
        while pending:
            with os.scandir(pending.pop()) as items:
                for item in items:
                    if item.name == "cache" and item.is_dir():
                        continue  # a directory of kept compilations is written to
                    if item.is_dir(follow_symlinks=False):
                        pending.append(item.path)
                    else:
                        about = item.stat(follow_symlinks=False)
                        found.append((item.path, about.st_size, about.st_mtime_ns))
        return sorted(found)
