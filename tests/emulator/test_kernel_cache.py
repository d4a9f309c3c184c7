"""Compiled kernels are kept on disk until what they are made of changes, and run by nobody but who compiled them."""

from __future__ import annotations

import ast
import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from shutil import copytree, ignore_patterns
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pytest

import spyrec
from spyrec.files import kernel_cache, kernel_compiler
from spyrec.files.kernel_cache import cached_kernel, kernel_name, source_modules
from spyrec.files.kernel_operands import OperandKind, kind_of
from spyrec.files.kernel_store import KernelStore
from spyrec.files.machine_code import MachineCode, loaded
from spyrec.files.numba_names import Ingredient
from spyrec.files.private_directory import PrivateDirectory, private_directory

ROOT = Path(__file__).resolve().parent.parent.parent

MARKS = ("@cached_kernel", "    return cached_kernel(", "@linked")
KERNEL_MODULES = sorted(
    ".".join(file.relative_to(ROOT).with_suffix("").parts)
    for file in (ROOT / "spyrec").rglob("*.py")
    if any(line.startswith(MARKS) for line in file.read_text(encoding="utf-8").splitlines())
)


def functions_compiled(project: Path, cache: Path, operation: str = "restickify") -> set[str]:
    """Run one operation in a process of its own and return what numba compiled for it."""
    command = [sys.executable, "-m", "benchmarks.emulator_parts.first_run", operation]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(project)}
    done = subprocess.run(command, cwd=project, env=environment, check=True, capture_output=True, text=True)
    return set(json.loads(done.stdout)["compiled_s"])


def test_a_second_process_compiles_nothing_until_a_file_that_kernels_inline_has_changed(tmp_path: Path) -> None:
    copytree(ROOT / "spyrec", tmp_path / "spyrec", ignore=ignore_patterns("__pycache__"))
    for folder in ("benchmarks", "tests"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    assert functions_compiled(tmp_path, tmp_path / "cache")
    assert functions_compiled(tmp_path, tmp_path / "cache") == set()
    with (tmp_path / "spyrec" / "emulator" / "kernels" / "jit.py").open("a", encoding="utf-8") as file:
        file.write("# a word more\n")
    assert functions_compiled(tmp_path, tmp_path / "cache")


@pytest.mark.parametrize(("operation", "most"), [("add", 2), ("sum", 6), ("matmul", 7)])
def test_a_first_run_compiles_few_functions_and_none_of_numbas_own(operation: str, most: int, tmp_path: Path) -> None:
    # Each takes 30 to 500 ms; "impl" is how numba names its own, as those that make an array.
    compiled = functions_compiled(ROOT, tmp_path, operation)
    assert "impl" not in compiled
    assert len(compiled) <= most, compiled


def imported_by(file: Path) -> set[str]:
    """Return the modules of the package that a file imports at its top."""
    body = ast.parse(file.read_text(encoding="utf-8")).body
    found = {node.module for node in body if isinstance(node, ast.ImportFrom) and node.module is not None}
    return {name for name in found if name.startswith("spyrec.")}


@pytest.mark.parametrize("name", KERNEL_MODULES)
def test_a_kernel_is_made_of_all_that_its_file_and_theirs_import(name: str) -> None:
    import_module(name)
    made_of = source_modules(name)
    assert name in made_of
    for other in made_of:
        file = import_module(other).__file__
        if file is not None:
            assert imported_by(Path(file)) <= made_of, other


def kernels_of(module: str) -> list[Ingredient]:
    """Return all that a module makes kernels of, those in its tables too."""
    found: list[Ingredient] = []
    waiting: list[object] = [*vars(import_module(module)).values()]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            waiting += [*cast("dict[object, object]", item).values()]
        elif callable(item) and not isinstance(item, type) and hasattr(item, "py_func"):
            found.append(cast("Ingredient", item))
    return found


@pytest.mark.parametrize("module", KERNEL_MODULES)
def test_every_kernel_has_a_name_of_its_own_to_be_kept_under(module: str) -> None:
    kernels = {id(item.py_func): item for item in kernels_of(module)}.values()
    names = [kernel_name(item.py_func, (int,)) for item in kernels]
    assert names
    assert None not in names
    assert len(set(names)) == len(names)


def test_the_name_tells_what_a_kernel_closes_over_and_what_it_is_called_with() -> None:
    def adding(number: object) -> Callable[[int], object]:
        return lambda x: x + number  # type: ignore[operator]

    array = np.zeros((2, 2), np.int64)
    kinds = [(int,), (float,), *((kind_of(item),) for item in (array, array[0], array.T, array[:, :1]))]
    given = [(adding(number), (int,)) for number in (1, 2, 1.0, True, "1")] + [(adding(3), kind) for kind in kinds]
    names = [kernel_name(function, kind) for function, kind in given]
    assert None not in names
    assert len(set(names)) == len(names)
    assert kernel_name(adding(1), (int,)) == names[0]
    assert kernel_name(adding(object()), (int,)) is None


def test_a_kernel_works_where_nothing_can_be_kept() -> None:
    made: dict[str, Any] = {}
    exec(compile("def add(a, b):\n    return a + b\n", "/nowhere/at/all.py", "exec"), made)
    assert kernel_name(made["add"], (int, int)) is None
    assert cached_kernel(made["add"])(1, 2) == 3


PROGRAM = """
import sys
from spyrec.cli import _console, _failures
from spyrec.files.kernel_cache import cached_kernel
def work():
    def add(a, b):
        return a + b
    assert cached_kernel(add)(1, 2) == 3
    print(int("numba" in sys.modules))
    return 0
sys.exit(_failures.exit_code_of_failure(work, _console.Console(), []))
"""


def run_a_kernel(folder: Path, **environment: str) -> tuple[bool, str]:
    """Run a kernel in a process of its own; return whether it was compiled there, and what was said."""
    source = folder / "program.py"
    source.write_text(PROGRAM)
    temporary = folder / "tmp"
    temporary.mkdir(exist_ok=True)
    settings = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary), **environment}
    done = subprocess.run([sys.executable, source], env=settings, check=True, capture_output=True, text=True)
    return bool(int(done.stdout)), done.stderr


def only_file(folder: Path) -> Path:
    (found,) = folder.iterdir()
    return found


def test_a_kept_kernel_runs_without_numba_in_a_directory_of_this_user_alone(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert run_a_kernel(tmp_path, NUMBA_CACHE_DIR=str(cache)) == (True, "")
    folder = only_file(cache)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(only_file(folder).stat().st_mode) == 0o600
    assert run_a_kernel(tmp_path, NUMBA_CACHE_DIR=str(cache)) == (False, "")


def test_the_users_cache_is_the_place_where_none_is_named(tmp_path: Path) -> None:
    settings = {"NUMBA_CACHE_DIR": "", "XDG_CACHE_HOME": str(tmp_path / "xdg"), "HOME": str(tmp_path / "home")}
    assert run_a_kernel(tmp_path, **settings) == (True, "")
    assert only_file(tmp_path / "xdg" / "spyrec" / "kernels").suffix == ".kernel"
    assert run_a_kernel(tmp_path, **settings | {"XDG_CACHE_HOME": "relative"}) == (True, "")
    assert only_file(tmp_path / "home" / ".cache" / "spyrec" / "kernels").suffix == ".kernel"


@pytest.mark.parametrize("spoil", ["written by others", "read by others", "a link", "of another user", "no place"])
def test_a_directory_that_is_not_this_users_alone_is_not_used_which_is_said_once(spoil: str, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    run_a_kernel(tmp_path, NUMBA_CACHE_DIR=str(cache))
    folder = cache / "spyrec-kernels"
    assert only_file(cache) == folder
    match spoil:
        case "written by others":
            folder.chmod(0o722)
        case "read by others":
            folder.chmod(0o755)
        case "a link":
            folder.rename(tmp_path / "theirs")
            folder.symlink_to(tmp_path / "theirs")
        case "of another user":
            if os.geteuid() != 0:
                pytest.skip("only the administrator can give a directory away")
            os.chown(folder, 12345, 12345)
        case _:
            cache = tmp_path / "program.py" / "cache"
    is_compiled, said = run_a_kernel(tmp_path, NUMBA_CACHE_DIR=str(cache))
    assert is_compiled, "code that others may have put there was loaded"
    kept = only_file(tmp_path / "tmp")
    assert (said.count("SPY0754"), said.count(str(kept)), said.count(str(cache))) == (1, 1, 1)
    assert "RuntimeWarning" not in said
    assert stat.S_IMODE(kept.stat().st_mode) == 0o700
    assert run_a_kernel(tmp_path, NUMBA_CACHE_DIR=str(cache)) == (False, "")


def test_another_users_directory_is_not_used_whoever_this_user_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "kernels"
    folder.mkdir(mode=0o700)
    store = KernelStore(folder)
    store.write("name", b"code")
    assert store.read("name") == b"code"
    monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
    assert store.read("name") is None
    store.write("other", b"code")
    assert len(list(folder.iterdir())) == 1


@pytest.mark.parametrize("spoil", ["open to others", "a link", "of another user"])
def test_a_directory_that_may_be_anybodys_is_never_taken(spoil: str, tmp_path: Path) -> None:
    theirs = tmp_path / "spyrec-kernels-aaaa"
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    if spoil == "a link":
        theirs.symlink_to(tmp_path / "elsewhere")
    else:
        theirs.mkdir(mode=0o700)
    if spoil == "open to others":
        theirs.chmod(0o755)
    if spoil == "of another user":
        if os.geteuid() != 0:
            pytest.skip("only the administrator can give a directory away")
        os.chown(theirs, 12345, 12345)
    found = private_directory("spyrec-kernels", tmp_path)
    assert found is not None
    assert found.is_new
    assert found.path != theirs
    assert private_directory("spyrec-kernels", tmp_path) == PrivateDirectory(found.path, is_new=False)


def test_no_directory_is_private_where_anybody_can_replace_it(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    assert private_directory("spyrec-kernels", tmp_path) is None
    tmp_path.chmod(0o1777)
    assert private_directory("spyrec-kernels", tmp_path) is not None
    assert private_directory("spyrec-kernels", tmp_path / "absent") is None


def test_where_nothing_can_be_kept_a_run_says_so_once(tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp").chmod(0o777)
    for _ in range(2):
        is_compiled, said = run_a_kernel(tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "program.py" / "cache"))
        assert is_compiled
        assert said.count("SPY0754") == 1


def cut_in_two(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def changed_in_one_bit(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-100] ^= 1
    file.write_bytes(content)


def of_another_version(file: Path) -> None:
    file.write_bytes(file.read_bytes().replace(b"spyrec.kernel/1", b"spyrec.kernel/0"))


def empty(file: Path) -> None:
    file.write_bytes(b"")


def too_large(file: Path) -> None:
    with file.open("r+b") as handle:
        handle.truncate(1 << 40)


def a_link(file: Path) -> None:
    file.rename(file.parent.parent / "code")
    file.symlink_to(file.parent.parent / "code")


def a_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


@pytest.mark.parametrize(
    "spoil", [cut_in_two, changed_in_one_bit, of_another_version, empty, too_large, a_link, a_pipe]
)
def test_a_kept_kernel_that_is_not_whole_is_compiled_again_and_kept(
    spoil: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def add(a: int, b: int) -> int:
        return a + b

    compilations: list[object] = []

    def compiled(function: Callable[..., object], operands: Sequence[OperandKind]) -> MachineCode:
        compilations.append(function)
        return kernel_compiler.compiled(function, operands)

    store = KernelStore(tmp_path / "kernels")
    store.path.mkdir(mode=0o700)
    monkeypatch.setattr(kernel_cache, "_store", lambda: store)
    monkeypatch.setitem(sys.modules, "spyrec.files.kernel_compiler", SimpleNamespace(compiled=compiled))
    assert cached_kernel(add)(1, 2) == 3
    kept = only_file(store.path)
    spoil(kept)
    assert cached_kernel(add)(1, 2) == 3
    assert stat.S_ISREG(kept.lstat().st_mode)
    assert kept.stat().st_size < 10_000
    assert len(compilations) == 2
    assert cached_kernel(add)(1, 2) == 3
    assert len(compilations) == 2


def test_processes_that_fill_the_cache_at_once_all_find_what_they_need(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.emulator_parts.first_run", "add"]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    running = [
        subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    assert [item.wait() for item in running] == [0] * 3
    for item in running:
        assert item.stdout is not None
        item.stdout.close()
    store = KernelStore(only_file(tmp_path))
    names = [file.name for file in store.path.iterdir()]
    assert all(name.endswith(".kernel") for name in names)
    assert all(store.read(name.removesuffix(".kernel")) is not None for name in names)
    assert functions_compiled(ROOT, tmp_path, "add") == set()


def test_code_that_needs_what_this_process_has_not_is_not_loaded() -> None:
    kept = MachineCode.of(MachineCode("f", "none", ("a_symbol_of_nobody",), b"no object file").written())
    assert kept == MachineCode("f", "none", ("a_symbol_of_nobody",), b"no object file")
    assert loaded(kept) is None


def test_where_too_many_kernels_are_kept_the_oldest_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spyrec.files.kernel_store.MOST_FILES", 4)
    store = KernelStore(tmp_path / "kernels")
    store.path.mkdir(mode=0o700)
    for number in range(4):
        store.write(f"k{number}", b"code")
        os.utime(store.path / f"k{number}.kernel", (number, number))
    abandoned = store.path / ".unfinished-0123"
    abandoned.write_bytes(b"half")
    os.utime(abandoned, (0, 0))
    (store.path / ".unfinished-4567").write_bytes(b"of a process that still writes")
    store.write("k4", b"code")
    assert {item.name for item in store.path.iterdir()} == {"k3.kernel", "k4.kernel", ".unfinished-4567"}


def test_a_kernel_gets_numbers_and_arrays_of_any_layout_and_returns_what_python_does() -> None:
    def weighed(array: npt.NDArray[np.int64], factor: int, is_turned: bool) -> int:
        total = 0
        for i in range(array.shape[0]):
            for j in range(array.shape[1]):
                total += array[i, j] * (3 * i + j) * (-1 if is_turned else 1)
        return total * factor

    kernel = cached_kernel(weighed)
    array = np.arange(24, dtype=np.int64).reshape(4, 6)
    for view in (array, array.T, array[::2, 1::2], array[::-1], np.asfortranarray(array)):
        for is_turned in (False, True):
            assert kernel(view, 2, is_turned) == weighed(view, 2, is_turned)
    array.flags.writeable = False
    assert cast("Any", kernel)(array, np.int64(-2), np.bool_(True)) == weighed(array, -2, True)


def test_a_kernel_calls_another_one(tmp_path: Path) -> None:
    source = tmp_path / "two.py"
    source.write_text(
        "import sys\n"
        "import numpy as np\n"
        "from spyrec.files.kernel_cache import cached_kernel\n"
        "@cached_kernel\n"
        "def doubled(x, out):\n    out[0] = 2 * x\n"
        "@cached_kernel\n"
        "def quadrupled(x, out):\n    doubled(x, out)\n    doubled(out[0], out[:1])\n    return out[0]\n"
        "out = np.zeros(1, np.int64)\n"
        "doubled(5, out)\n"
        "assert out[0] == 10 and quadrupled(6, out) == 24\n"
        "sys.exit('numba' in sys.modules)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    done = [subprocess.run([sys.executable, source], env=environment, check=False).returncode for _ in range(2)]
    assert done == [1, 0]
    assert len(list((tmp_path / "cache" / "spyrec-kernels").iterdir())) == 2


@pytest.mark.parametrize("verb", ["run --check", "run --sanitize all"])
def test_a_run_of_kept_kernels_imports_no_numba(verb: str, tmp_path: Path) -> None:
    bundle = spyrec.compile(ROOT / "examples" / "seed_tiling_rows" / "graph.json")
    bundle.save(tmp_path / "bundle")
    text = "import sys; from spyrec.cli import main; sys.exit(main(sys.argv[1:]) or 'numba' in sys.modules)"
    name, *options = verb.split()
    command = [sys.executable, "-c", text, name, str(tmp_path / "bundle"), "--random", "1", *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    # kernels are those of whoever ran before; where some were not kept, this compiled them, which takes 10 s
    is_cold = subprocess.run(command, env=environment, check=False).returncode
    assert not is_cold or subprocess.run(command, env=environment, check=False).returncode == 0
