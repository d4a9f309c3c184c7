"""An example of what provokes a code: what ``spyrec explain`` shows, and ``make test`` runs.

A graph, OpSpec file or program is the whole file; a line of Python is run as it stands.
"""

from __future__ import annotations

from enum import Enum

from spyrec.dataclass import dataclass


class ExampleKind(Enum):
    """What the text of an example is."""

    GRAPH = "graph"
    OPSPECS = "opspecs"
    PROGRAM = "program"
    PYTHON = "python"


HOW = {
    ExampleKind.GRAPH: "refused by `spyrec compile graph.json -o bundle`",
    ExampleKind.OPSPECS: "refused by `spyrec codegen opspecs.json -o bundle`",
    ExampleKind.PROGRAM: "refused by `spyrec check bundle.mlir`",
    ExampleKind.PYTHON: "in Python",
}
"""How the text of each kind provokes its code."""


@dataclass(frozen=True, slots=True)
class Example:
    """One example: its kind, and its text without a last newline."""

    kind: ExampleKind
    text: str


def _graph(text: str) -> Example:
    return Example(ExampleKind.GRAPH, text)


def _opspecs(text: str) -> Example:
    return Example(ExampleKind.OPSPECS, text)


def _program(text: str) -> Example:
    return Example(ExampleKind.PROGRAM, text)


def _python(text: str) -> Example:
    return Example(ExampleKind.PYTHON, text)


EXAMPLES: dict[str, Example] = {
    "SPY0101": _graph('{"format": "spyrec.graph/1", outputs: ["y"]}'),
    "SPY0102": _graph("""\
{"format": "spyrec.graph/1",
 "format": "spyrec.graph/1"}"""),
    "SPY0103": _graph("""\
{"format": "spyrec.graph/1",
 "dims": {"A": 4},
 "inputs": [{"name": "x", "shape": ["A", 6], "dtype": "float16"}],
 "nodes": [{"name": "y", "op": "clamp", "inputs": ["x"],
   "attrs": {"min": NaN}}],
 "outputs": ["y"]}"""),
    "SPY0110": _graph("[]"),
    "SPY0111": _graph("""\
{"format": "spyrec.graph/1",
 "dims": {"A": 4},
 "inputs": [{"name": "x", "shape": ["A", 6], "dtype": "float16"}],
 "nodes": [{"name": "y", "op": "exp", "input": ["x"]}],
 "outputs": ["y"]}"""),
    "SPY0112": _graph("""\
{"format": "spyrec.graph/1",
 "dims": {"A": 4},
 "inputs": [{"name": "x", "shape": ["A", 6], "dtype": "float16"}],
 "nodes": [{"name": "y"}],
 "outputs": ["y"]}"""),
    "SPY0113": _graph('{"outputs": ["x"]}'),
    "SPY0114": _graph("""\
{"format": "spyrec.graph/1",
 "dims": {"A": 4},
 "inputs": [{"name": "x", "shape": ["A", 6], "dtype": "float16"}],
 "nodes": [{"name": "1y", "op": "exp", "inputs": ["x"]}],
 "outputs": ["x"]}"""),
    "SPY0115": _graph("""\
{"format": "spyrec.graph/1",
 "dims": {"A": 4},
 "inputs": [{"name": "x", "shape": ["A", 6], "dtype": "float16"}],
 "nodes": [{"name": "x", "op": "exp", "inputs": ["x"]}],
 "outputs": ["x"]}"""),
    "SPY0116": _graph("""\
{"format": "spyrec.graph/1",
 "dims": {"A": 4},
 "inputs": [{"name": "x", "shape": ["A", 6], "dtype": "float16"}],
 "nodes": [{"name": "y", "op": "exp", "inputs": ["x"]}],
 "outputs": ["z"]}"""),
    "SPY0117": _graph("""\
{"format": "spyrec.graph/1",
 "dims": {"A": 4},
 "inputs": [{"name": "x", "shape": ["A", 6], "dtype": "float16"}],
 "nodes": [{"name": "y", "op": "exp", "inputs": ["y"]}],
 "outputs": ["y"]}"""),
    "SPY0118": _graph("""\
{"format": "spyrec.graph/1",
 "name": "small",
 "inputs": [{"name": "x", "shape": [4], "dtype": "float16"}],
 "nodes": [{"name": "y", "op": "copy", "inputs": ["x"]}],
 "outputs": ["y"]}"""),
    "SPY0120": _graph("""\
{"format": "spyrec.graph/1",
 "name": "small",
 "inputs": [{"name": "x", "shape": [64, 128], "dtype": "float16"}],
 "nodes": [{"name": "y", "op": "conv2d", "inputs": ["x"]}],
 "outputs": ["y"]}"""),
    "SPY0121": _graph("""\
{"format": "spyrec.graph/1",
 "dims": {"A": 4},
 "inputs": [{"name": "x", "shape": ["A", 6], "dtype": "float16"}],
 "nodes": [{"name": "y", "op": "softmax", "inputs": ["x"]}],
 "outputs": ["y"]}"""),
    "SPY0122": _graph("""\
{"format": "spyrec.graph/1",
 "dims": {"A": 3},
 "inputs": [],
 "nodes": [{"name": "y", "op": "eye", "inputs": [],
   "attrs": {"n": [4]}}],
 "outputs": ["y"]}"""),
    "SPY0123": _graph("""\
{"format": "spyrec.graph/1",
 "dims": {"A": 3},
 "inputs": [],
 "nodes": [{"name": "y", "op": "ones", "inputs": [],
   "attrs": {"size": "none"}}],
 "outputs": ["y"]}"""),
    "SPY0124": _graph("""\
{"format": "spyrec.graph/1",
 "dims": {"A": 4},
 "inputs": [{"name": "x", "shape": [-1], "dtype": "float16"}],
 "nodes": [{"name": "y", "op": "exp", "inputs": ["x"]}],
 "outputs": ["y"]}"""),
    "SPY0125": _graph("""\
{"format": "spyrec.graph/1",
 "dims": {"A": 4},
 "inputs": [{"name": "x", "shape": [4294967296, 2147483648],
   "dtype": "float16"}],
 "nodes": [{"name": "y", "op": "exp", "inputs": ["x"]}],
 "outputs": ["y"]}"""),
    "SPY0126": _graph("""\
{"format": "spyrec.graph/1",
 "dims": {"A": 4},
 "inputs": [{"name": "x", "shape": ["A", 6], "dtype": "float16"}],
 "nodes": [{"name": "y", "op": "exp", "inputs": ["x"]}],
 "outputs": ["y"],
 "constants": [{"name": "k", "shape": [2], "dtype": "float16"}]}"""),
    "SPY0127": _graph("""\
{"format": "spyrec.graph/1",
 "dims": {"A": 4},
 "inputs": [{"name": "x", "shape": ["A", 6], "dtype": "float16"}],
 "nodes": [{"name": "y", "op": "exp", "inputs": ["x"]}],
 "outputs": ["y"],
 "constants": [{"name": "k", "shape": [2], "dtype": "float16",
   "value": [1]}]}"""),
    "SPY0128": _graph("""\
{"format": "spyrec.graph/1",
 "name": "small",
 "inputs": [{"name": "x", "shape": [64, 128], "dtype": "float16"}],
 "nodes": [{"name": "y", "op": "neg", "inputs": ["x"]}],
 "outputs": ["y"],
 "constants": [{"name": "c", "shape": [], "dtype": "bool", "value": 2}]}"""),
    "SPY0129": _graph("""\
{"format": "spyrec.graph/1",
 "constants": [{"name": "k", "shape": [2, 3], "dtype": "float16",
   "data": {"file": "../numbers.npy"}}],
 "outputs": ["k"]}"""),
    "SPY0130": _graph("""\
{"format": "spyrec.graph/1",
 "constants": [{"name": "k", "shape": [2, 3], "dtype": "float16",
   "data": {"file": "absent.npy"}}],
 "outputs": ["k"]}"""),
    "SPY0132": _graph("""\
{"format": "spyrec.graph/1",
 "constants": [{"name": "k", "shape": [2, 3], "dtype": "float16",
   "data": {"file": "numbers.bin"}}],
 "outputs": ["k"]}"""),
    "SPY0133": _graph("""\
{"format": "spyrec.graph/1",
 "dims": {"A": {"min": 5, "max": 7, "multiple_of": 4}},
 "inputs": [{"name": "x", "shape": ["A", 6], "dtype": "float16"}],
 "nodes": [{"name": "y", "op": "exp", "inputs": ["x"]}],
 "outputs": ["y"]}"""),
    "SPY0134": _graph("""\
{"format": "spyrec.graph/1",
 "dims": {"A": 4},
 "inputs": [{"name": "x", "shape": ["A", 6], "dtype": "float16"}],
 "nodes": [{"name": "y", "op": "exp", "inputs": ["x"]}],
 "outputs": ["y"],
 "loops": [{"dim": "Q", "tiles": 2, "body": ["y"]}]}"""),
    "SPY0135": _graph("""\
{"format": "spyrec.graph/1",
 "dims": {"A": 4},
 "inputs": [{"name": "x", "shape": ["A", 6], "dtype": "float16"}],
 "nodes": [{"name": "y", "op": "exp", "inputs": ["x"],
   "work_division": {"Q": 2}}],
 "outputs": ["y"]}"""),
    "SPY0136": _graph("""\
{"format": "spyrec.graph/1",
 "dims": {"A": 4},
 "inputs": [{"name": "x", "shape": ["A", 6], "dtype": "float16"}],
 "nodes": [{"name": "y", "op": "exp", "inputs": ["x"],
   "layout": {"dim_order": [0, 0]}}],
 "outputs": ["y"]}"""),
    "SPY0137": _graph("""\
{"format": "spyrec.graph/1",
 "dims": {"A": 4},
 "inputs": [{"name": "x", "shape": ["A", 6], "dtype": "float16"}],
 "nodes": [{"name": "y", "op": "exp", "inputs": ["x"]}],
 "outputs": []}"""),
    "SPY0138": _python("""\
import spyrec

spyrec.compile("absent.json")"""),
    "SPY0139": _graph("""\
{"format": "spyrec.graph/1",
 "dims": {"A": 3},
 "inputs": [{"name": "x0", "shape": [1], "dtype": "float16"}],
 "nodes": [{"name": "y", "op": "unbind", "inputs": ["x0"],
   "attrs": {}}],
 "outputs": ["y"]}"""),
    "SPY0140": _graph("""\
{"format": "spyrec.graph/1",
 "dims": {"A": 3},
 "inputs": [],
 "nodes": [{"name": "y", "op": "eye", "inputs": [],
   "attrs": {"n": 3, "dtype": 0.5}}],
 "outputs": ["y"]}"""),
    "SPY0201": _graph("""\
{"format": "spyrec.graph/1",
 "name": "small",
 "inputs": [{"name": "x0", "shape": [1, 3], "dtype": "float16"}],
 "nodes": [{"name": "y", "op": "einsum", "inputs": ["x0"],
   "attrs": {"equation": "ii->i"}}],
 "outputs": ["y"]}"""),
    "SPY0202": _graph("""\
{"format": "spyrec.graph/1",
 "name": "small",
 "inputs": [],
 "nodes": [{"name": "y", "op": "linspace", "inputs": [],
   "attrs": {"start": -1.0, "end": 1.0, "steps": 5,
    "dtype": "int64"}}],
 "outputs": ["y"]}"""),
    "SPY0203": _graph("""\
{"format": "spyrec.graph/1",
 "name": "g",
 "inputs": [{"name": "x0", "shape": [3], "dtype": "int64"},
  {"name": "x1", "shape": [2], "dtype": "int64"}],
 "nodes": [{"name": "y", "op": "index_fill",
   "inputs": ["x0", "x1", 0.5], "attrs": {"dim": 0}}],
 "outputs": ["y"]}"""),
    "SPY0204": _graph("""\
{"format": "spyrec.graph/1",
 "dims": {"A": 3},
 "inputs": [{"name": "x0", "shape": [], "dtype": "bool"}],
 "nodes": [{"name": "y", "op": "any", "inputs": ["x0"],
   "attrs": {"dim": [1]}}],
 "outputs": ["y"]}"""),
    "SPY0205": _graph("""\
{"format": "spyrec.graph/1",
 "dims": {"A": 3},
 "inputs": [{"name": "x0", "shape": [], "dtype": "int64"}],
 "nodes": [{"name": "y", "op": "flip", "inputs": ["x0"],
   "attrs": {"dims": [0, -1]}}],
 "outputs": ["y"]}"""),
    "SPY0206": _graph("""\
{"format": "spyrec.graph/1",
 "name": "one",
 "inputs": [{"name": "x0", "shape": [3], "dtype": "float16"}],
 "nodes": [{"name": "y", "op": "tril", "inputs": ["x0"],
   "attrs": {}}],
 "outputs": ["y"]}"""),
    "SPY0207": _graph("""\
{"format": "spyrec.graph/1",
 "dims": {"A": 3},
 "inputs": [{"name": "x0", "shape": [2, 12, 6], "dtype": "float16"}],
 "nodes": [{"name": "y", "op": "col2im", "inputs": ["x0"],
   "attrs": {"output_size": 4, "kernel_size": [2, 2]}}],
 "outputs": ["y"]}"""),
    "SPY0208": _graph("""\
{"format": "spyrec.graph/1",
 "name": "one",
 "inputs": [],
 "nodes": [{"name": "y", "op": "zeros", "inputs": [],
   "attrs": {"size": [-1]}}],
 "outputs": ["y"]}"""),
    "SPY0209": _graph("""\
{"format": "spyrec.graph/1",
 "name": "one",
 "inputs": [],
 "nodes": [{"name": "y", "op": "arange", "inputs": [],
   "attrs": {}}],
 "outputs": ["y"]}"""),
    "SPY0210": _graph("""\
{"format": "spyrec.graph/1",
 "name": "g",
 "inputs": [{"name": "x0", "shape": [8], "dtype": "int64"},
  {"name": "x1", "shape": [8], "dtype": "int64"}],
 "nodes": [{"name": "n", "op": "masked_fill",
   "inputs": ["x0", "x1", 1], "outputs": ["y"],
   "attrs": {}}],
 "outputs": ["y"]}"""),
    "SPY0211": _graph("""\
{"format": "spyrec.graph/1",
 "name": "one",
 "inputs": [{"name": "x0", "shape": [3], "dtype": "int64"}],
 "nodes": [{"name": "y", "op": "one_hot", "inputs": ["x0"],
   "attrs": {}}],
 "outputs": ["y"]}"""),
    "SPY0212": _graph("""\
{"format": "spyrec.graph/1",
 "dims": {"A": 3},
 "inputs": [{"name": "x0", "shape": [2, 3, 4], "dtype": "float16"}],
 "nodes": [{"name": "y", "op": "select", "inputs": ["x0"],
   "attrs": {"dim": 2, "index": 65}}],
 "outputs": ["y"]}"""),
    "SPY0213": _graph("""\
{"format": "spyrec.graph/1",
 "dims": {"A": 3},
 "inputs": [{"name": "x0", "shape": [1], "dtype": "float16"},
  {"name": "x1", "shape": [5], "dtype": "float16"}],
 "nodes": [{"name": "y", "op": "dot", "inputs": ["x0", "x1"],
   "attrs": {}}],
 "outputs": ["y"]}"""),
    "SPY0214": _graph("""\
{"format": "spyrec.graph/1",
 "inputs": [{"name": "a", "shape": [3, 5], "dtype": "float16"},
  {"name": "b", "shape": [5, 4], "dtype": "float16"},
  {"name": "v", "shape": [5], "dtype": "float16"},
  {"name": "w", "shape": [4], "dtype": "float16"},
  {"name": "s", "shape": [], "dtype": "float16"},
  {"name": "x3", "shape": [2, 3, 5], "dtype": "float16"},
  {"name": "y3", "shape": [3, 5, 4], "dtype": "float16"},
  {"name": "f", "shape": [3, 5], "dtype": "float32"},
  {"name": "m", "shape": [3, 5], "dtype": "bool"},
  {"name": "i", "shape": [3, 5], "dtype": "int64"},
  {"name": "e", "shape": [3, 5],
   "dtype": "float8_e4m3fn"},
  {"name": "q", "shape": [6, 3, 8], "dtype": "float16"},
  {"name": "k", "shape": [4, 5, 8], "dtype": "float16"},
  {"name": "mask", "shape": [4, 5], "dtype": "bool"},
  {"name": "huge", "shape": [1099511627776, 1],
   "dtype": "float16"}],
 "nodes": [{"name": "r", "op": "gelu", "inputs": ["e"],
   "attrs": {}}],
 "outputs": ["r"]}"""),
    "SPY0215": _graph("""\
{"format": "spyrec.graph/1",
 "name": "one",
 "inputs": [],
 "nodes": [{"name": "y", "op": "arange", "inputs": [],
   "attrs": {"end": 300, "dtype": "uint8"}}],
 "outputs": ["y"]}"""),
    "SPY0216": _graph("""\
{"format": "spyrec.graph/1",
 "dims": {"A": 3},
 "inputs": [{"name": "x0", "shape": [], "dtype": "float16"}],
 "nodes": [{"name": "y", "op": "expand", "inputs": ["x0"],
   "attrs": {"size": [-1]}}],
 "outputs": ["y"]}"""),
    "SPY0217": _graph("""\
{"format": "spyrec.graph/1",
 "dims": {"A": 3},
 "inputs": [{"name": "x0", "shape": [3, 5], "dtype": "float16"},
  {"name": "x1", "shape": [4], "dtype": "float16"}],
 "nodes": [{"name": "y", "op": "cat", "inputs": ["x0", "x1"],
   "attrs": {}}],
 "outputs": ["y"]}"""),
    "SPY0218": _graph("""\
{"format": "spyrec.graph/1",
 "inputs": [{"name": "a", "shape": [3, 5], "dtype": "float16"},
  {"name": "b", "shape": [5, 4], "dtype": "float16"},
  {"name": "v", "shape": [5], "dtype": "float16"},
  {"name": "w", "shape": [4], "dtype": "float16"},
  {"name": "s", "shape": [], "dtype": "float16"},
  {"name": "x3", "shape": [2, 3, 5], "dtype": "float16"},
  {"name": "y3", "shape": [3, 5, 4], "dtype": "float16"},
  {"name": "f", "shape": [3, 5], "dtype": "float32"},
  {"name": "m", "shape": [3, 5], "dtype": "bool"},
  {"name": "i", "shape": [3, 5], "dtype": "int64"},
  {"name": "e", "shape": [3, 5],
   "dtype": "float8_e4m3fn"},
  {"name": "q", "shape": [6, 3, 8], "dtype": "float16"},
  {"name": "k", "shape": [4, 5, 8], "dtype": "float16"},
  {"name": "mask", "shape": [4, 5], "dtype": "bool"},
  {"name": "huge", "shape": [1099511627776, 1],
   "dtype": "float16"}],
 "nodes": [{"name": "r", "op": "to", "inputs": ["e"],
   "attrs": {"dtype": "int64"}}],
 "outputs": ["r"]}"""),
    "SPY0219": _graph("""\
{"format": "spyrec.graph/1",
 "dims": {"A": 3},
 "inputs": [{"name": "x0", "shape": [1], "dtype": "int64"},
  {"name": "x1", "shape": [100, 4], "dtype": "float16"}],
 "nodes": [{"name": "y", "op": "embedding_bag",
   "inputs": ["x0", "x1", null, null], "attrs": {}}],
 "outputs": ["y"]}"""),
    "SPY0222": _graph("""\
{"format": "spyrec.graph/1",
 "dims": {"A": 3},
 "inputs": [{"name": "x0", "shape": [0, 3], "dtype": "float16"}],
 "nodes": [{"name": "y", "op": "amax", "inputs": ["x0"],
   "attrs": {"dim": -2}}],
 "outputs": ["y"]}"""),
    "SPY0226": _graph("""\
{"format": "spyrec.graph/1",
 "name": "small",
 "inputs": [{"name": "x", "shape": [4], "dtype": "float16"}],
 "nodes": [{"name": "y", "op": "qr", "inputs": ["x"]}],
 "outputs": ["y"]}"""),
    "SPY0230": _graph("""\
{"format": "spyrec.graph/1",
 "name": "g",
 "inputs": [{"name": "x0", "shape": [3, 4], "dtype": "float16"},
  {"name": "x1", "shape": [3, 4], "dtype": "float16"}],
 "nodes": [{"name": "y", "op": "embedding",
   "inputs": ["x0", "x1"], "attrs": {}}],
 "outputs": ["y"]}"""),
    "SPY0233": _graph("""\
{"format": "spyrec.graph/1",
 "name": "g",
 "inputs": [{"name": "x0", "shape": [3, 4], "dtype": "float16"},
  {"name": "x1", "shape": [3, 4], "dtype": "bool"}],
 "nodes": [{"name": "y", "op": "index", "inputs": ["x0", "x1"],
   "attrs": {}}],
 "outputs": ["y"]}"""),
    "SPY0234": _graph("""\
{"format": "spyrec.graph/1",
 "dims": {"A": 3},
 "inputs": [{"name": "x0", "shape": [2, 3, 6, 5, 4],
   "dtype": "float16"}],
 "nodes": [{"name": "y", "op": "avg_pool3d", "inputs": ["x0"],
   "attrs": {"kernel_size": [12]}}],
 "outputs": ["y"]}"""),
    "SPY0235": _graph("""\
{"format": "spyrec.graph/1",
 "dims": {"A": 3},
 "inputs": [{"name": "x0", "shape": [2, 4, 9], "dtype": "float16"}],
 "nodes": [{"name": "y", "op": "group_norm",
   "inputs": ["x0", null, null],
   "attrs": {"num_groups": 7, "eps": 0.001}}],
 "outputs": ["y"]}"""),
    "SPY0301": _python("""\
import spyrec

spyrec.DeviceLayout.default((4, 64), "float64")"""),
    "SPY0302": _python("""\
import spyrec

spyrec.DeviceLayout.default((4, 64), "float16", stride=(1,))"""),
    "SPY0303": _python("""\
import spyrec

spyrec.DeviceLayout.default((2,) * 7, "float16")"""),
    "SPY0304": _python("""\
import spyrec

spyrec.DeviceLayout.default((4, 64), "float16", dim_order=(1, 1))"""),
    "SPY0305": _python("""\
import spyrec

spyrec.DeviceLayout.default((4, -64), "float16")"""),
    "SPY0306": _python("""\
import spyrec

spyrec.DeviceLayout([4, 32], [32, 1], "SEN169_FP16")"""),
    "SPY0307": _python("""\
import spyrec

spyrec.DeviceLayout([4, 64], [64, 1], "SEN169_FP16",
    host_shape=(8, 64))"""),
    "SPY0309": _python("""\
import spyrec

spyrec.DeviceLayout.default((4, 64), "float16", stride=(1, 1))"""),
    "SPY0310": _python("""\
import spyrec

spyrec.DeviceLayout.default((4, 64), "float16").device_coordinate((4, 0))"""),
    "SPY0311": _python("""\
import spyrec

spyrec.DeviceLayout.default((4, 64), "float16").coordinates(
    "64*r + sin(c)", {"r": 4, "c": 64})"""),
    "SPY0313": _python("""\
import spyrec

spyrec.DeviceLayout.default((4, 64), "float16").coordinates(
    "64*r + c", {"r": 4, "c": 65})"""),
    "SPY0315": _python("""\
import spyrec

spyrec.DeviceLayout.default((4, 64), "float16").dci("h2d", host_dtype="int64")"""),
    "SPY0319": _python("""\
import spyrec

spyrec.DeviceLayout.default((2**40, 2**40), "float16")"""),
    "SPY0320": _python("""\
import spyrec

spyrec.DeviceLayout.default((4, 64), "float16").dci("sideways")"""),
    "SPY0350": _graph("""\
{"format": "spyrec.graph/1",
 "name": "small",
 "inputs": [{"name": "a", "shape": [3, 1024], "dtype": "float16"},
  {"name": "b", "shape": [1024, 64], "dtype": "float16",
   "layout": {"device_size": [2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 64],
    "stride_map": [32768, 512, 256, 128, 64, 1024, 2048, 4096, 8192,
     16384, 1]}}],
 "nodes": [{"name": "y", "op": "matmul", "inputs": ["a", "b"]}],
 "outputs": ["y"]}"""),
    "SPY0351": _graph("""\
{"format": "spyrec.graph/1",
 "name": "small",
 "inputs": [{"name": "a", "shape": [192, 130], "dtype": "float16",
   "layout": {"device_size": [2, 192, 64],
    "stride_map": [64, 130, 1]}}],
 "nodes": [{"name": "y", "op": "neg", "inputs": ["a"]}],
 "outputs": ["y"]}"""),
    "SPY0401": _graph("""\
{"format": "spyrec.graph/1",
 "name": "good",
 "dims": {"A": 1048576, "B": 16384},
 "inputs": [{"name": "a", "shape": ["A", "B"], "dtype": "float16"},
  {"name": "b", "shape": ["A", "B"], "dtype": "float16"}],
 "constants": [],
 "nodes": [{"name": "s", "op": "add", "inputs": ["a", "b"]}],
 "outputs": ["s"]}"""),
    "SPY0412": _graph("""\
{"format": "spyrec.graph/1",
 "name": "small",
 "inputs": [{"name": "x", "shape": [64, 128], "dtype": "float16"}],
 "nodes": [{"name": "y", "op": "neg", "inputs": ["x"],
   "work_division": {"out.0": 6}}],
 "outputs": ["y"]}"""),
    "SPY0414": _python("""\
import spyrec

GRAPH = {"format": "spyrec.graph/1",
    "inputs": [{"name": "x", "shape": [4, 64],
                "dtype": "float16"}],
    "nodes": [{"name": "y", "op": "exp", "inputs": ["x"]}],
    "outputs": ["y"]}
spyrec.compile(GRAPH,
               spyrec.CompileOptions(lx_planner="worst-fit"))"""),
    "SPY0420": _graph("""\
{"format": "spyrec.graph/1",
 "name": "small",
 "inputs": [{"name": "a", "shape": ["A", 64], "dtype": "float16"}],
 "nodes": [{"name": "p", "op": "neg", "inputs": ["a"]},
  {"name": "q", "op": "exp", "inputs": ["p"]},
  {"name": "r", "op": "add", "inputs": ["q", "p"]}],
 "outputs": ["r"],
 "dims": {"A": 64},
 "loops": [{"dim": "A", "tiles": 4,
   "body": [{"dim": "A", "tiles": 20, "body": ["p", "q", "r"]}]}]}"""),
    "SPY0421": _graph("""\
{"format": "spyrec.graph/1",
 "name": "small",
 "inputs": [{"name": "q", "shape": ["S", 64], "dtype": "float16"},
  {"name": "k", "shape": ["S", 64], "dtype": "float16"},
  {"name": "v", "shape": ["S", 64], "dtype": "float16"}],
 "nodes": [{"name": "o", "op": "scaled_dot_product_attention",
   "inputs": ["q", "k", "v"]}],
 "outputs": ["o"],
 "dims": {"S": 128},
 "loops": [{"dim": "S", "tiles": 2, "body": ["o"]}]}"""),
    "SPY0424": _graph("""\
{"format": "spyrec.graph/1",
 "name": "small",
 "inputs": [{"name": "a", "shape": ["A", 64], "dtype": "float16"}],
 "nodes": [{"name": "p", "op": "neg", "inputs": ["a"]},
  {"name": "q", "op": "exp", "inputs": ["p"]},
  {"name": "r", "op": "add", "inputs": ["q", "p"]}],
 "outputs": ["r"],
 "dims": {"A": 64},
 "loops": [{"dim": "A", "tiles": 4, "body": ["p", "r"]}]}"""),
    "SPY0425": _graph("""\
{"format": "spyrec.graph/1",
 "name": "small",
 "inputs": [{"name": "x", "shape": [8, "S"], "dtype": "float16"}],
 "nodes": [{"name": "y", "op": "mean", "inputs": ["x"],
   "attrs": {"dim": -1}}],
 "outputs": ["y"],
 "dims": {"S": {"min": 64, "max": 256, "multiple_of": 64}},
 "loops": [{"dim": "S", "tile_size": 64, "body": ["y"]}]}"""),
    "SPY0426": _graph("""\
{"format": "spyrec.graph/1",
 "name": "small",
 "inputs": [{"name": "a", "shape": ["S", "B"], "dtype": "float16"},
  {"name": "b", "shape": ["S", "B"], "dtype": "float16"}],
 "nodes": [{"name": "y", "op": "cat", "inputs": ["a", "b"],
   "attrs": {"dim": 0}}],
 "outputs": ["y"],
 "dims": {"S": {"min": 1, "max": 1000, "multiple_of": 1},
  "B": 256}}"""),
    "SPY0440": _python("""\
import spyrec

GRAPH = {"format": "spyrec.graph/1",
    "inputs": [{"name": "x", "shape": [4, 64],
                "dtype": "float16"}],
    "nodes": [{"name": "y", "op": "exp", "inputs": ["x"]}],
    "outputs": ["y"]}
spyrec.compile(GRAPH,
               spyrec.CompileOptions(symbolic_args=False,
                                     symbolic_strides=True))"""),
    "SPY0501": _opspecs("""\
{"format": "spyrec.opspec/1", "symbolic_args": false,
 "unroll_loops": true,
 "specs": [{"op": "add", "is_reduction": false,
   "iteration_space": [{"symbol": "c0", "size": 1024, "work_division": 32},
    {"symbol": "c1", "size": 4096, "work_division": 1}],
   "op_info": {}, "tiled_symbols": [],
   "args": [{"is_input": true, "arg_index": 0,
     "device_dtype": "SEN169_FP16",
     "device_size": [64, 1024, 64],
     "device_coordinates": ["floor(c1 / 64)", "c0", "Mod(c1, 64)"],
     "allocation": {"hbm": 0},
     "stride_map": [64, 4096, 64],
     "per_tile_fixed": false, "name": null},
    {"is_input": true, "arg_index": 1,
     "device_dtype": "SEN169_FP16",
     "device_size": [64, 1024, 64],
     "device_coordinates": ["floor(c1 / 64)", "c0 *", "Mod(c1, 64)"],
     "allocation": {"hbm": 17179869184},
     "stride_map": [64, 4096, 64],
     "per_tile_fixed": false, "name": null},
    {"is_input": false, "arg_index": 2,
     "device_dtype": "SEN169_FP16",
     "device_size": [64, 1024, 64],
     "device_coordinates": ["floor(c1 / 64)", "c0", "Mod(c1, 64)"],
     "allocation": {"hbm": 34359738368},
     "stride_map": [64, 4096, 64],
     "per_tile_fixed": false, "name": null}]}]}"""),
    "SPY0503": _opspecs('{"format": "spyrec.opspec/1", "specs": 3}'),
    "SPY0504": _opspecs("""\
{"symbolic_args": false, "unroll_loops": true,
 "specs": [{"op": "add", "is_reduction": false,
   "iteration_space": [{"symbol": "c0", "size": 1024, "work_division": 32},
    {"symbol": "c1", "size": 4096, "work_division": 1}],
   "op_info": {}, "tiled_symbols": [],
   "args": [{"is_input": true, "arg_index": 0,
     "device_dtype": "SEN169_FP16",
     "device_size": [64, 1024, 64],
     "device_coordinates": ["floor(c1 / 64)", "c0", "Mod(c1, 64)"],
     "allocation": {"hbm": 0},
     "stride_map": [64, 4096, 64],
     "per_tile_fixed": false, "name": null},
    {"is_input": true, "arg_index": 1,
     "device_dtype": "SEN169_FP16",
     "device_size": [64, 1024, 64],
     "device_coordinates": ["floor(c1 / 64)", "c0", "Mod(c1, 64)"],
     "allocation": {"hbm": 17179869184},
     "stride_map": [64, 4096, 64],
     "per_tile_fixed": false, "name": null},
    {"is_input": false, "arg_index": 2,
     "device_dtype": "SEN169_FP16",
     "device_size": [64, 1024, 64],
     "device_coordinates": ["floor(c1 / 64)", "c0", "Mod(c1, 64)"],
     "allocation": {"hbm": 34359738368},
     "stride_map": [64, 4096, 64],
     "per_tile_fixed": false, "name": null}]}]}"""),
    "SPY0505": _opspecs("""\
{"format": "spyrec.opspec/1", "symbolic_args": false,
 "unroll_loops": true,
 "specs": [{"op": "add", "is_reduction": false,
   "iteration_space": [{"symbol": "c0", "size": 1024, "work_division": 32},
    {"symbol": "c1", "size": 4096, "work_division": 1}],
   "op_info": {}, "tiled_symbols": [],
   "args": [{"is_input": true, "arg_index": 0,
     "device_dtype": "SEN169_FP16",
     "device_size": [64, 1024, 64],
     "device_coordinates": ["floor(c1 / 64)", "c0", "Mod(c1, 64)"],
     "allocation": {"hbm": 0},
     "stride_map": [64, 4096, 64],
     "per_tile_fixed": false, "name": null},
    {"is_input": true, "arg_index": 1,
     "device_dtype": "SEN169_FP16",
     "device_size": [64, 1024, 64],
     "device_coordinates": ["floor(c1 / 64)", "c0", "Mod(c1, 64)"],
     "allocation": {}, "stride_map": [64, 4096, 64],
     "per_tile_fixed": false, "name": null},
    {"is_input": false, "arg_index": 2,
     "device_dtype": "SEN169_FP16",
     "device_size": [64, 1024, 64],
     "device_coordinates": ["floor(c1 / 64)", "c0", "Mod(c1, 64)"],
     "allocation": {"hbm": 34359738368},
     "stride_map": [64, 4096, 64],
     "per_tile_fixed": false, "name": null}]}]}"""),
    "SPY0513": _opspecs("""\
{"format": "spyrec.opspec/1", "symbolic_args": false,
 "unroll_loops": true,
 "specs": [{"op": "add", "is_reduction": false,
   "iteration_space": [{"symbol": "c0", "size": 1024, "work_division": 32},
    {"symbol": "c1", "size": 4096, "work_division": 1}],
   "op_info": {}, "tiled_symbols": [],
   "args": [{"is_input": true, "arg_index": 0,
     "device_dtype": "SEN169_FP16",
     "device_size": [64, 1024, 64],
     "device_coordinates": ["floor(c1 / 64)", "c0", "Mod(c1, 64)"],
     "allocation": {"hbm": 0},
     "stride_map": [64, 4096, 64],
     "per_tile_fixed": false, "name": null},
    {"is_input": true, "arg_index": 1,
     "device_dtype": "FP99",
     "device_size": [64, 1024, 64],
     "device_coordinates": ["floor(c1 / 64)", "c0", "Mod(c1, 64)"],
     "allocation": {"hbm": 17179869184},
     "stride_map": [64, 4096, 64],
     "per_tile_fixed": false, "name": null},
    {"is_input": false, "arg_index": 2,
     "device_dtype": "SEN169_FP16",
     "device_size": [64, 1024, 64],
     "device_coordinates": ["floor(c1 / 64)", "c0", "Mod(c1, 64)"],
     "allocation": {"hbm": 34359738368},
     "stride_map": [64, 4096, 64],
     "per_tile_fixed": false, "name": null}]}]}"""),
    "SPY0532": _opspecs("""\
{"format": "spyrec.opspec/1", "symbolic_args": false,
 "unroll_loops": true,
 "specs": [{"op": "clip", "is_reduction": false,
   "iteration_space": [{"symbol": "c0", "size": 128, "work_division": 32},
    {"symbol": "c1", "size": 256, "work_division": 1}],
   "op_info": {"constants": {"clipMin": 0.0, "clipMax": 6.0},
    "shared_weight_unit_bmm": {"batch_dim": 0}},
   "tiled_symbols": [],
   "args": [{"is_input": true, "arg_index": 0,
     "device_dtype": "SEN169_FP16",
     "device_size": [4, 128, 64],
     "device_coordinates": ["floor(c1 / 64)", "c0", "Mod(c1, 64)"],
     "allocation": {"hbm": 0},
     "stride_map": [64, 256, 64],
     "per_tile_fixed": false, "name": null},
    {"is_input": false, "arg_index": 1,
     "device_dtype": "SEN169_FP16",
     "device_size": [4, 128, 64],
     "device_coordinates": ["floor(c1 / 64)", "c0", "Mod(c1, 64)"],
     "allocation": {"hbm": 17179869184},
     "stride_map": [64, 256, 64],
     "per_tile_fixed": false, "name": null}]}]}"""),
    "SPY0601": _python("""\
import spyrec

spyrec.Bundle.load("absent")"""),
    "SPY0630": _program("""\
module {
  func.func @sdsc_bundle( {
    return
  }
}"""),
    "SPY0631": _program("""\
module {
  func.func @sdsc_bundle() {
    scf.if %a {
    }
    return
  }
}"""),
    "SPY0750": _python("""\
import spyrec

GRAPH = {"format": "spyrec.graph/1",
    "inputs": [{"name": "x", "shape": [4, 64],
                "dtype": "float16"}],
    "nodes": [{"name": "y", "op": "exp", "inputs": ["x"]}],
    "outputs": ["y"]}
spyrec.compile(GRAPH,
               spyrec.CompileOptions(profile="fastest"))"""),
    "SPY0760": _python("""\
import spyrec

GRAPH = {"format": "spyrec.graph/1",
    "inputs": [{"name": "x", "shape": [4, 64],
                "dtype": "float16"}],
    "nodes": [{"name": "y", "op": "exp", "inputs": ["x"]}],
    "outputs": ["y"]}
bundle = spyrec.compile(GRAPH)
spyrec.run(bundle, {})"""),
    "SPY0761": _python("""\
import numpy
import spyrec

GRAPH = {"format": "spyrec.graph/1",
    "inputs": [{"name": "x", "shape": [4, 64],
                "dtype": "float16"}],
    "nodes": [{"name": "y", "op": "exp", "inputs": ["x"]}],
    "outputs": ["y"]}
x = numpy.zeros((4, 64), "float16")
bundle = spyrec.compile(GRAPH)
spyrec.run(bundle, {"x": x, "z": 1})"""),
    "SPY0762": _python("""\
import numpy
import spyrec

GRAPH = {"format": "spyrec.graph/1",
    "inputs": [{"name": "x", "shape": [4, 64],
                "dtype": "float16"}],
    "nodes": [{"name": "y", "op": "exp", "inputs": ["x"]}],
    "outputs": ["y"]}
x = numpy.zeros((64, 4), "float16")
bundle = spyrec.compile(GRAPH)
spyrec.run(bundle, {"x": x})"""),
    "SPY0763": _python("""\
import numpy
import spyrec

GRAPH = {"format": "spyrec.graph/1",
    "inputs": [{"name": "x", "shape": [4, 64],
                "dtype": "float16"}],
    "nodes": [{"name": "y", "op": "exp", "inputs": ["x"]}],
    "outputs": ["y"]}
x = numpy.zeros((4, 64), "int64")
bundle = spyrec.compile(GRAPH)
spyrec.run(bundle, {"x": x})"""),
    "SPY0767": _python("""\
import numpy
import spyrec

GRAPH = {"format": "spyrec.graph/1",
    "inputs": [{"name": "x", "shape": [4, 64],
                "dtype": "float16"}],
    "nodes": [{"name": "y", "op": "exp", "inputs": ["x"]}],
    "outputs": ["y"]}
x = numpy.zeros((4, 64), "float16")
bundle = spyrec.compile(GRAPH)
spyrec.run(bundle, {"x": x},
           spyrec.RunOptions(max_executions=0))"""),
    "SPY0768": _python("""\
import numpy
import spyrec

GRAPH = {"format": "spyrec.graph/1",
    "inputs": [{"name": "x", "shape": [4, 64],
                "dtype": "float16"}],
    "nodes": [{"name": "y", "op": "exp", "inputs": ["x"]}],
    "outputs": ["y"]}
x = numpy.zeros((4, 64), "float16")
bundle = spyrec.compile(GRAPH)
spyrec.run(bundle, {"x": x},
           spyrec.RunOptions(only="sdsc_9.json"))"""),
    "SPY0771": _python("""\
import spyrec

GRAPH = {"format": "spyrec.graph/1",
    "inputs": [{"name": "x", "shape": [4, 64],
                "dtype": "float16"}],
    "nodes": [{"name": "y", "op": "exp", "inputs": ["x"]}],
    "outputs": ["y"]}
spyrec.compile(GRAPH,
               spyrec.CompileOptions(cores=99))"""),
    "SPY0780": _python("""\
import numpy
import spyrec

GRAPH = {"format": "spyrec.graph/1",
    "inputs": [{"name": "x", "shape": [4, 64],
                "dtype": "float16"}],
    "nodes": [{"name": "y", "op": "exp", "inputs": ["x"]}],
    "outputs": ["y"]}
x = numpy.zeros((4, 64), "float16")
bundle = spyrec.compile(GRAPH)
spyrec.run(bundle, {"x": x},
           spyrec.RunOptions(engine="reference",
                             sanitize="all"))"""),
    "SPY0781": _python("""\
import numpy
import spyrec

GRAPH = {"format": "spyrec.graph/1",
    "inputs": [{"name": "x", "shape": [4, 64],
                "dtype": "float16"}],
    "nodes": [{"name": "y", "op": "exp", "inputs": ["x"]}],
    "outputs": ["y"]}
x = numpy.zeros((4, 64), "float16")
bundle = spyrec.compile(GRAPH)
with spyrec.load(bundle) as model:
    pass
model(x=x)"""),
    "SPY0782": _python("""\
import numpy
import spyrec

GRAPH = {"format": "spyrec.graph/1",
    "inputs": [{"name": "x", "shape": [4, 64],
                "dtype": "float16"}],
    "nodes": [{"name": "y", "op": "exp", "inputs": ["x"]}],
    "outputs": ["y"]}
x = numpy.zeros((4, 64), "float16")
bundle = spyrec.compile(GRAPH)
with spyrec.load(bundle) as model:
    model(x)"""),
    "SPY0787": _python("""\
import numpy
import spyrec

GRAPH = {"format": "spyrec.graph/1",
    "inputs": [{"name": "x", "shape": [4, 64],
                "dtype": "float16"}],
    "nodes": [{"name": "y", "op": "exp", "inputs": ["x"]}],
    "outputs": ["y"]}
x = numpy.zeros((4, 64), "float16")
bundle = spyrec.compile(GRAPH)
spyrec.run(bundle, {"x": x},
           spyrec.RunOptions(outputs=("z",)))"""),
    "SPY0993": _python("""\
import numpy
import spyrec

GRAPH = {"format": "spyrec.graph/1",
    "inputs": [{"name": "x", "shape": [4, 64],
                "dtype": "float16"}],
    "nodes": [{"name": "y", "op": "exp", "inputs": ["x"]}],
    "outputs": ["y"]}
x = numpy.zeros((4, 64), "float16")
bundle = spyrec.compile(GRAPH)
spyrec.run(bundle, {"x": x},
           spyrec.RunOptions(dims={"S": 3}))"""),
}
"""Code -> what provokes it."""
