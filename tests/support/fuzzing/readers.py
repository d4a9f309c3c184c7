"""What is fuzzed: for each kind of input, files that are right, and the command lines that read them.

Command lines name files with ``{in}``, the folder of the seed, and ``{out}``, where a product may be written.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import spyrec
from spyrec.cli import main
from spyrec.ir.attribute_text import write_attributes
from spyrec.ir.opdef import catalogue
from tests.ir.graphs import everything, write_files, write_safetensors
from tests.support.measured import HEAD, row

ROOT = Path(__file__).resolve().parent.parent.parent.parent
FIXTURES = ROOT / "tests" / "fixtures"
OLDER, NEWER = FIXTURES / "examples", FIXTURES / "examples_2026_08"

Command = tuple[str, ...]

ARCHIVE = "read-archive"
"""In place of a verb: read a .pt2 as far as that is done without PyTorch."""


@dataclass(frozen=True, slots=True)
class Seed:
    """A folder of right files, which of them are damaged, and what reads them."""

    folder: Path
    damaged: tuple[str, ...]
    commands: tuple[Command, ...]


@dataclass(frozen=True, slots=True)
class Reader:
    """A kind of input: ``share`` of the cases it gets, beside others, and what makes its seeds in a new folder."""

    name: str
    share: int
    seeds: Callable[[Path], list[Seed]]


def _verbs(*lines: str) -> tuple[Command, ...]:
    return tuple(tuple(line.split()) for line in lines)


def _write(folder: Path, name: str, data: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(data), encoding="utf-8")


# --- graphs and weights ---

_ON_GRAPHS = _verbs(
    "check {in}/graph.json", "check --json {in}/graph.json", "compile {in}/graph.json -o {out}",
    "compile {in}/graph.json -o {out} --loops unroll --cores 4", "compile {in}/graph.json -o {out} --fixed-io-layouts",
    "compile {in}/graph.json -o {out} --no-symbolic-args", "compile {in}/graph.json --explain-plan",
    "opt {in}/graph.json", "opt {in}/graph.json --stop-after decompose -o {out}", "inspect-layout {in}/graph.json",
)  # fmt: skip


def _tensor(name: str, *shape: int | str) -> dict[str, Any]:
    return {"name": name, "shape": list(shape), "dtype": "float16"}


def _small_graphs() -> dict[str, dict[str, Any]]:
    """Return graphs whose compilation takes milliseconds: chains, products, loops, symbolic dims, state, host steps."""
    attention = {
        "dims": {"S": {"min": 1, "max": 128, "multiple_of": 64}},
        "inputs": [_tensor("q", 2, "S", 64), _tensor("k", 2, "S", 64), _tensor("v", 2, "S", 64)],
        "nodes": [{"name": "y", "op": "scaled_dot_product_attention", "inputs": ["q", "k", "v"]}],
    }
    loops = {
        "dims": {"A": 256, "B": 128},
        "inputs": [_tensor("a", "A", "B"), _tensor("b", "A", "B")],
        "nodes": [
            {"name": "x", "op": "add", "inputs": ["a", "b"]},
            {"name": "y", "op": "softmax", "inputs": ["x"], "attrs": {"dim": -1}},
        ],
        "loops": [{"dim": "A", "tiles": 4, "body": ["x", "y"]}],
    }
    product = {
        "inputs": [_tensor("a", 128, 64), _tensor("b", 64, 192), _tensor("c", 192)],
        "nodes": [
            {"name": "m", "op": "mm", "inputs": ["a", "b"], "work_division": {"out.0": 2, "reduce.0": 1}},
            {"name": "y", "op": "layer_norm", "inputs": ["m", "c"], "attrs": {"normalized_shape": [192]}},
        ],
    }
    state = {
        "inputs": [_tensor("s", 4, 64), {"name": "i", "shape": [2], "dtype": "int64"}, _tensor("x", 2, 64)],
        "nodes": [
            {"name": "n", "op": "index_copy", "inputs": ["s", "i", "x"], "attrs": {"dim": 0}},
            {"name": "y", "op": "embedding", "inputs": ["i", "n"], "origin": {"module": "m", "line": 3}},
        ],
        "outputs": ["y", "n"],
        "updates": {"n": "s"},
    }
    host = {
        "inputs": [_tensor("x", 4, 64), {"name": "p", "shape": [4], "dtype": "int64"}],
        "prologue": [{"name": "m", "op": "gt", "inputs": ["p", 0]}],
        "nodes": [
            {"name": "v", "op": "sort", "inputs": ["x"], "outputs": ["v", "i"]},
            {"name": "e", "op": "reshape", "inputs": ["m"], "attrs": {"shape": [4, 1]}},
            {"name": "y", "op": "where", "inputs": ["e", "v", 0.5]},
        ],
    }
    found = {"attention": attention, "loops": loops, "product": product, "state": state, "host": host}
    return {
        name: {"format": "spyrec.graph/1", "name": name, "outputs": ["y"], **graph} for name, graph in found.items()
    }


def _op_samples() -> dict[str, dict[str, Any]]:
    """Return a call of every public op, as its declaration shows it."""
    found: dict[str, dict[str, Any]] = {}
    for op in catalogue().values():
        if not op.is_public or not op.samples:
            continue
        types, chosen = op.samples[0]
        inputs = [
            {"name": f"x{index}", "shape": list(item.shape), "dtype": item.dtype.value}
            for index, item in enumerate(types)
            if item is not None
        ]
        operands = [None if item is None else f"x{index}" for index, item in enumerate(types)]
        node = {"name": "y", "op": op.name, "inputs": operands, "attrs": write_attributes(chosen)}
        data = {"format": "spyrec.graph/1", "dims": {"A": 3}, "inputs": inputs, "nodes": [node], "outputs": ["y"]}
        found[f"op_{op.name}"] = data
    return found


def _everything(folder: Path) -> Path:
    folder.mkdir(parents=True)
    data = everything()
    data["nodes"][2]["work_division"] = {"A": 8}
    _write(folder, "graph.json", data)
    write_files(folder)
    return folder


def graphs(home: Path) -> list[Seed]:
    """Return the graph that uses every part of the format, small ones, those of examples, a call of each op."""
    folders = [_everything(home / "everything")]
    for name, data in {**_small_graphs(), **_op_samples()}.items():
        _write(home / name, "graph.json", data)
        folders.append(home / name)
    for name in ("seed_add_mul", "seed_tiling_rows"):
        shutil.copytree(ROOT / "examples" / name, home / name, ignore=shutil.ignore_patterns("golden"))
        folders.append(home / name)
    small = [Seed(folder, ("graph.json",), _ON_GRAPHS) for folder in folders]
    return [*small[:6] * 10, *small]  # half of the cases are of graphs with several parts of the format


def weights(home: Path) -> list[Seed]:
    """Return a graph beside a safetensors and an npy file."""
    folder = _everything(home / "everything")
    return [Seed(folder, ("w.safetensors", "sub/n.npy"), (*_ON_GRAPHS[:3], _ON_GRAPHS[7]))]


# --- what the back half reads ---


def opspecs(home: Path) -> list[Seed]:
    """Return the OpSpecs of both dates of the format."""
    seeds: list[Seed] = []
    verbs = _verbs(
        "codegen {in}/opspecs.json -o {out}", "codegen {in}/opspecs.json -o {out} --loops unroll --no-symbolic-args",
        "check {in}/opspecs.json", "check {in}/opspecs.json --profile pre-flight",
    )  # fmt: skip
    for date, examples in (("2026-06", OLDER), ("2026-08", NEWER)):
        for path in sorted(examples.glob("*/opspecs.json")):
            folder = home / f"{date}_{path.parent.name}"
            folder.mkdir(parents=True)
            shutil.copyfile(path, folder / path.name)
            compatible = ("codegen", "{in}/opspecs.json", "-o", "{out}", "--compat", f"torch-spyre@{date}")
            seeds.append(Seed(folder, ("opspecs.json",), (*verbs, compatible)))
    return seeds


_CAPTURED = """
from torch_spyre import OpSpec
specs = [OpSpec(op='add', is_reduction=False,
    iteration_space={sympify('c0'): (sympify('128'), 2), sympify('c1'): (sympify('64'), 1)},
    args=[TensorArg(is_input=True, arg_index=0, device_dtype=DataFormats.SEN169_FP16, device_size=[1, 128, 64],
        device_coordinates=[sympify('floor(c1/64)'), sympify('c0'), sympify('Mod(c1, 64)')], allocation={'hbm': 0}),
      TensorArg(is_input=True, arg_index=1, device_dtype=DataFormats.SEN169_FP16, device_size=[1, 128, 64],
        device_coordinates=[sympify('floor(c1/64)'), sympify('c0'), sympify('Mod(c1, 64)')],
        allocation={'hbm': 17179869184}),
      TensorArg(is_input=False, arg_index=2, device_dtype=DataFormats.SEN169_FP16, device_size=[1, 128, 64],
        device_coordinates=[sympify('floor(c1/64)'), sympify('c0'), sympify('Mod(c1, 64)')],
        allocation={'hbm': 34359738368})],
    op_info={'constants': {'a': 1.5}}, tiled_symbols=[], debug_handle=None)]
"""


def captures(home: Path) -> list[Seed]:
    """Return OpSpecs as Python source."""
    home.mkdir(parents=True)
    (home / "specs.txt").write_text(_CAPTURED, encoding="utf-8")
    return [Seed(home, ("specs.txt",), _verbs("codegen {in}/specs.txt -o {out}"))]


def superdscs(home: Path) -> list[Seed]:
    """Return single SuperDSC files of both dates."""
    seeds: list[Seed] = []
    verbs = _verbs(
        "check {in}/sdsc.json", "check {in}/sdsc.json --profile spec --strict", "inspect {in}/sdsc.json",
        "check {in}/sdsc.json --profile pre-flight", "inspect {in}/sdsc.json --core 0", "inspect {in}/sdsc.json --json",
    )  # fmt: skip
    for examples in (OLDER, NEWER):
        for path in sorted(examples.glob("*/sdsc_[01].json")):
            if path.stat().st_size < 100_000:
                folder = home / f"{examples.name}_{path.parent.name}_{path.stem}"
                folder.mkdir(parents=True)
                shutil.copyfile(path, folder / "sdsc.json")
                seeds.append(Seed(folder, ("sdsc.json",), verbs))
    return seeds


def programs(home: Path) -> list[Seed]:
    """Return bundle.mlir files alone."""
    seeds: list[Seed] = []
    for examples in (OLDER, NEWER):
        for path in sorted(examples.glob("*/bundle.mlir")):
            folder = home / f"{examples.name}_{path.parent.name}"
            folder.mkdir(parents=True)
            shutil.copyfile(path, folder / path.name)
            seeds.append(Seed(folder, (path.name,), _verbs("check {in}/bundle.mlir", "check --json {in}/bundle.mlir")))
    return seeds


_FOREIGN = ("sum_stick", "softmax_lx_symbolic", "pool_symbolic", "where3", "indirect_gather_1d")


def foreign(home: Path) -> list[Seed]:
    """Return bundles of others, with an argument table."""
    run = "run {in} --args {in}/args.json --random 1 --max-executions 200"
    verbs = _verbs(
        run, f"{run} --json --stats --sanitize all", f"{run} --engine reference --only sdsc_0.json", "check {in}",
        "check {in} --args {in}/args.json", "check {in}/args.json",
        "check {in} --profile pre-flight --json", "inspect {in}", "inspect {in} sdsc_0 --core 0", "diff {in} {seed}",
        "diff {seed} {in} --semantic --json", "report {in} --json", "report {in} --args {in}/args.json --json",
    )  # fmt: skip
    seeds: list[Seed] = []
    for name in _FOREIGN:
        folder = home / name
        shutil.copytree(OLDER / name, folder)
        shutil.copyfile(FIXTURES / "examples_args" / f"{name}.device.json", folder / "args.json")
        files = [path.name for path in sorted(folder.iterdir()) if path.name != "opspecs.json"]
        seeds.append(Seed(folder, tuple(files), verbs))
    return seeds


# --- bundles ---


def _files(folder: Path) -> tuple[str, ...]:
    return tuple(str(path.relative_to(folder)) for path in sorted(folder.rglob("*")) if path.is_file())


_ON_BUNDLES = _verbs(
    "check {in}", "check {in} --profile spec --strict --json", "inspect {in}", "inspect {in} --json",
    "inspect-layout {in}", "inspect-layout {in} --lx", "inspect-layout {in} --json", "diff {in} {seed}",
    "diff {in} {seed} --semantic --json", "diff {seed} {in} --stat", "run {in} --random 1 --max-executions 200",
    "run {in} --random 1 --no-verify --max-executions 200 --check --stats",
    "run {in} --random 1 --no-verify --max-executions 200 --engine reference --json --outputs {out}",
    "run {in} --random 1 --no-verify --max-executions 200 --sanitize all --trace {out}",
    "run {in} --random 1 --no-verify --max-executions 200 --bisect", "report {in} --json",
)  # fmt: skip


def _compiled(home: Path, name: str, graph: dict[str, Any], options: spyrec.CompileOptions | None = None) -> Path:
    folder = home / name
    home.mkdir(parents=True, exist_ok=True)
    spyrec.compile(graph, options).save(folder)
    return folder


def bundles(home: Path) -> list[Seed]:
    """Return compiled bundles: with constants, loops, symbolic dims, state, steps of the host."""
    found = _small_graphs()
    constant = {
        "inputs": [_tensor("x", 4, 64)],
        "constants": [{"name": "w", "shape": [64], "dtype": "float16", "value": [0.25 * i for i in range(64)]}],
        "nodes": [{"name": "y", "op": "mul", "inputs": ["x", "w"]}],
    }
    found["constant"] = {"format": "spyrec.graph/1", "name": "constant", "outputs": ["y"], **constant}
    folders = [_compiled(home, name, found[name]) for name in ("constant", "loops", "state", "host", "attention")]
    folders.append(_compiled(home, "unrolled", found["loops"], spyrec.CompileOptions(loops="unroll", cores=2)))
    return [Seed(folder, _files(folder), _ON_BUNDLES) for folder in folders]


def records(home: Path) -> list[Seed]:
    """Return what a run found, and handles of operations, beside their bundle."""
    folder = home / "record"
    bundle = _compiled(folder, "bundle", _small_graphs()["loops"])
    run = ["run", str(bundle), "--random", "1", "--check", "--sanitize", "init", "--record", str(folder / "run.json")]
    handles = ["report", str(bundle), "--format", "provenance", "-o", str(folder / "handles.json")]
    for line in (run, handles):
        with redirect_stdout(StringIO()):
            assert main(["-q", *line]) == 0
    verbs = _verbs(
        "report {in}/run.json --json", "report {in}/bundle --run {in}/run.json --json",
        "report {in}/bundle --provenance {in}/handles.json --json",
    )  # fmt: skip
    return [Seed(folder, ("run.json", "handles.json"), verbs)]


def artifacts(home: Path) -> list[Seed]:
    """Return launch artefacts alone, with two correction slots."""
    folder = (
        _compiled(home, "bundle", _small_graphs()["loops"], spyrec.CompileOptions(correction_slots=2)) / "spyreCodeDir"
    )
    return [Seed(folder, _files(folder), _verbs("check {in}", "check {in} --json --strict"))]


def entries(home: Path) -> list[Seed]:
    """Return two entries in one directory."""
    source = home / "source"
    for name in ("prefill", "decode"):
        folder = source / name
        _write(folder, "graph.json", {**everything(), "name": name, "loops": [], "outputs": ["r"]})
        data = json.loads((folder / "graph.json").read_bytes())
        data["nodes"] = [{"name": "r", "op": "mul", "inputs": ["a", "w"]}]
        data["constants"] = [item for item in data["constants"] if item["name"] == "w"]
        data["inputs"] = data["inputs"][:1]
        data["dims"].pop("S")
        _write(folder, "graph.json", data)
    write_safetensors(source / "w.safetensors", {"w": np.arange(128).astype(np.float16)})
    code = main(["-q", "compile", str(source), "-o", str(home / "entries")])
    assert code == 0, "the entries compile"
    verbs = _verbs("check {in}", "run {in} --entry decode --random 1 --no-verify", "inspect {in}/decode")
    return [Seed(home / "entries", _files(home / "entries"), verbs)]


def inputs(home: Path) -> list[Seed]:
    """Return inputs of a run, and numbers to compare with."""
    folder = _compiled(home, "state", _small_graphs()["state"])
    generator = np.random.default_rng(1)
    arrays = {
        "s": generator.standard_normal((4, 64)).astype(np.float16),
        "i": np.array([1, 3]),
        "x": generator.standard_normal((2, 64)).astype(np.float16),
    }
    np.savez(folder / "inputs.npz", **arrays)  # pyright: ignore[reportArgumentType]
    write_safetensors(folder / "inputs.safetensors", arrays)
    np.savez(folder / "wanted.npz", y=arrays["x"])
    run = "run {in} --no-verify"
    verbs = _verbs(
        f"{run} --inputs {{in}}/inputs.npz", f"{run} --inputs {{in}}/inputs.safetensors --outputs {{out}}",
        f"{run} --inputs {{in}}/inputs.npz --compare {{in}}/wanted.npz",
    )  # fmt: skip
    files = ("inputs.npz", "inputs.safetensors", "wanted.npz")
    return [
        Seed(folder, (file,), tuple(verb for verb in verbs if any(word.endswith(file) for word in verb)))
        for file in files
    ]


# --- texts, models, tables ---


_STOPS = ("decompose", "form-kernels", "assign-layouts", "divide-work", "group-bundles", "place-scratchpad")


def texts(home: Path) -> list[Seed]:
    """Return the texts of graphs and kernels between passes, as opt prints them."""
    folder = home
    folder.mkdir(parents=True)
    seeds: list[Seed] = []
    for name, data in _small_graphs().items():
        source = home / name
        _write(source, "graph.json", data)
        for stop, following in pairwise(_STOPS):
            target = source / f"{stop}.txt"
            code = main(
                ["-q", "opt", str(source / "graph.json"), "--stop-after", stop, "-o", str(target), *_part(name)]
            )
            if code == 0:
                again = ("opt", f"{{in}}/{stop}.txt", "--pass", stop)
                verbs = (("opt", f"{{in}}/{stop}.txt"), ("opt", f"{{in}}/{stop}.txt", "--pass", following), again)
                seeds.append(Seed(source, (target.name,), verbs))
    assert seeds
    return seeds


def _part(name: str) -> list[str]:
    return ["--part", "1"] if name == "host" else []


_ONNX = """
<ir_version: 10, opset_import: ["" : 22]>
small (int64[1, 4] tokens, float[1, 4, 8] x) => (float[1, 4, 8] y, int64[1, 4] total)
<int64[3] shape = {1, 4, 8}, int64 axis = {1}, float[8] scale = {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0}>
{
    rows = Gather <axis = 0> (table, tokens)
    turned = Transpose <perm = [0, 2, 1]> (x)
    scores = MatMul (rows, turned)
    shares = Softmax <axis = -1> (scores)
    mixed = MatMul (shares, x)
    same = Reshape (mixed, shape)
    scaled = Mul (same, scale)
    y = LayerNormalization <axis = -1, epsilon = 0.00001> (scaled, scale)
    total = CumSum (tokens, axis)
}
"""


def onnx_models(home: Path) -> list[Seed]:
    """Return an ONNX model; none where the package is not there."""
    try:
        import onnx
    except ImportError:
        return []
    home.mkdir(parents=True)
    model = onnx.parser.parse_model(_ONNX)
    table = np.random.default_rng(1).standard_normal((10, 8)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(table, "table"))
    (home / "model.onnx").write_bytes(model.SerializeToString())
    verbs = _verbs("import {in}/model.onnx -o {out}", "import {in}/model.onnx --list-unsupported --json")
    return [Seed(home, ("model.onnx",), verbs)]


def archives(home: Path) -> list[Seed]:
    """Return a .pt2 archive, written by hand."""
    import zipfile

    def row(path: str, sizes: list[int], strides: list[int]) -> dict[str, object]:
        counts = {"sizes": [{"as_int": size} for size in sizes], "strides": [{"as_int": size} for size in strides]}
        device: dict[str, object] = {"type": "cpu", "index": None}
        about = {"dtype": 7, "storage_offset": {"as_int": 0}, "requires_grad": False, "layout": 7}
        meta: dict[str, object] = {**about, **counts, "device": device}
        return {"path_name": path, "is_param": True, "use_pickle": False, "tensor_meta": meta}

    home.mkdir(parents=True)
    tree = '[1, {"type": "builtins.tuple", "context": "null", "children_spec": []}]'
    signature = {"in_spec": tree, "out_spec": tree}
    model = {"graph_module": {"module_call_graph": [{"fqn": "", "signature": signature}]}}
    rows = {"w": row("weight_0", [4, 6], [6, 1]), "t": row("weight_0", [6, 4], [1, 6])}
    with zipfile.ZipFile(home / "model.pt2", "w") as archive:
        archive.writestr("m/models/model.json", json.dumps(model))
        archive.writestr("m/data/weights/model_weights_config.json", json.dumps({"config": rows}))
        archive.writestr("m/data/constants/model_constants_config.json", json.dumps({"config": {}}))
        archive.writestr("m/data/weights/weight_0", np.arange(24, dtype=np.float32).tobytes())
    return [Seed(home, ("model.pt2",), ((ARCHIVE, "{in}/model.pt2", "{out}"),))]


def tables(home: Path) -> list[Seed]:
    """Return device models, timing profiles and measurements."""
    from spyrec.hardware.profile_file import profile_to_json
    from spyrec.hardware.target import MEASURED_2026_08

    _write(home, "graph.json", _small_graphs()["product"])
    _write(home, "target.json", {"format": "spyrec.target/1", "name": "t", "cores": 8, "lx_bytes": 1 << 20})
    profile = replace(MEASURED_2026_08, name="measured-here")
    (home / "profile.json").write_text(profile_to_json(profile), encoding="utf-8")
    rows = [row(op, f"{size}x1024", us=size / 100) for op in ("neg", "add") for size in (512, 2048)]
    rows.append(row("mm", "1x512x1024x512", split="2x4k2"))
    (home / "measured.csv").write_text("\n".join([HEAD, *rows]) + "\n", encoding="utf-8")
    by_file = {
        "target.json": _verbs("compile {in}/graph.json -o {out} --target {in}/target.json"),
        "profile.json": _verbs("compile {in}/graph.json -o {out} --profile {in}/profile.json"),
        "measured.csv": _verbs("calibrate {in}/measured.csv -o {out}"),
    }
    return [Seed(home, (file,), verbs) for file, verbs in by_file.items()]


def caches(home: Path) -> list[Seed]:
    """Return a directory of kept compilations."""
    _write(home, "graph.json", _small_graphs()["product"])
    verb = ("compile", "{in}/graph.json", "-o", "{out}", "--cache", "{in}/cache")
    made = home / "made"
    assert main(["-q", *(word.replace("{in}", str(home)).replace("{out}", str(made)) for word in verb)]) == 0
    shutil.rmtree(made)
    files = tuple(f"cache/{name}" for name in _files(home / "cache"))
    return [Seed(home, files, (verb,))]


def sweeps(home: Path) -> list[Seed]:
    """Return results of sweeps."""
    from spyrec.sweep.results import Results
    from spyrec.sweep.rows import Row

    rows = [
        Row(
            key=f"{number:032x}", case=f"{number:032x}", graph="g", kind="file", digest="d",
            options={"cores": str(number)}, checks="compile", status="ok", figures="plan", simulated_us=1.5 * number,
            hbm_bytes=100, lx_peak_bytes=number, calls={"m": 1}, spyrec="0", program="p", versions="v",
        )
        for number in range(3)
    ]  # fmt: skip
    for name in ("new", "old"):
        with Results(home / name) as results:
            results.begin("nightly", [row.key for row in rows])
            for row in rows:
                results.append(row)
    verbs = _verbs(
        "sweep report {in}/new", "sweep report {in}/new --format json", "sweep report {in}/new --against {in}/old",
        "sweep report {in}/new -o {out} --format html", "sweep report {in}/new --format svg",
    )  # fmt: skip
    return [Seed(home, ("new/rows.jsonl", "new/sweep.json"), verbs)]


READERS = (
    Reader("graph", 25, graphs),
    Reader("weights", 5, weights),
    Reader("opspec", 12, opspecs),
    Reader("capture", 2, captures),
    Reader("superdsc", 12, superdscs),
    Reader("mlir", 10, programs),
    Reader("foreign", 8, foreign),
    Reader("bundle", 8, bundles),
    Reader("record", 2, records),
    Reader("artifact", 3, artifacts),
    Reader("entries", 2, entries),
    Reader("inputs", 4, inputs),
    Reader("text", 8, texts),
    Reader("onnx", 3, onnx_models),
    Reader("pt2", 2, archives),
    Reader("tables", 3, tables),
    Reader("cache", 1, caches),
    Reader("sweep", 2, sweeps),
)
"""In the order in which seeds are made; shares are of 112: the verbs that execute get few, as they take longest."""
