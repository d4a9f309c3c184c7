"""Test cases that the onnx package has of its own operators: each is right, or refused by name.

The modules here are those of transformers and vision models, and of what was wrong once; ``python -m
tests.frontends.onnx.test_node_cases`` takes every module of the package, prints the count and each wrong one.
"""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false
from __future__ import annotations

import importlib.util
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import onnx
from onnx.backend.test.case import node as node_cases
from onnx.backend.test.case.test_case import TestCase as NodeCase

import spyrec
from spyrec.diagnostics import SpyrecError
from spyrec.frontends.model_import.names import legal_name
from spyrec.ir.evaluate import evaluate
from spyrec.ir.graph import Graph

Array = npt.NDArray[np.generic]

_MODULES = (
    "affinegrid", "attention", "averagepool", "bitshift", "center_crop_pad", "clip", "concat", "cumprod", "cumsum",
    "depthtospace", "dropout", "expand", "eyelike", "gather", "gatherelements", "gemm", "groupnormalization",
    "hardmax", "layernormalization", "lpnormalization", "lrn", "matmul", "meanvariancenormalization",
    "negativeloglikelihoodloss", "onehot", "pad", "reduce_log_sum_exp", "resize", "rmsnormalization",
    "rotaryembedding", "scatternd", "slice", "softmax", "softmax_cross_entropy_loss", "spacetodepth", "split",
    "swiglu", "topk", "trilu", "where",
)  # fmt: skip
_TOLERANCES = {"float64": 1e-5, "float32": 1e-5, "float16": 2e-3, "bfloat16": 2e-2}


def _cases(modules: Sequence[str]) -> Iterator[NodeCase]:
    """Yield the cases of these modules of the package, without those that write an operator out as a function."""
    names = {f"{node_cases.__name__}.{name}" for name in modules}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        held = cast("list[NodeCase]", node_cases._NodeTestCases)  # pyright: ignore[reportPrivateUsage] -- its list
        for name in sorted(names):
            importlib.import_module(name)
    yield from (case for case in held if not case.name.endswith("_expanded"))


def _array(item: object) -> Array:
    array = onnx.numpy_helper.to_array(item) if isinstance(item, onnx.TensorProto) else np.asarray(item)
    carriers = {"bfloat16": np.uint16, "float8_e4m3fn": np.uint8}
    return array.view(carriers[array.dtype.name]) if array.dtype.name in carriers else array


def _imported(case: NodeCase, inputs: dict[str, Any]) -> Graph:
    """Import a case; where shapes, axes and the like are inputs of it, with all operands but the first known.

    What becomes known is taken out of ``inputs``.
    """
    assert case.model is not None
    try:
        return spyrec.import_onnx(case.model, "keep").build()
    except SpyrecError as error:
        words = ("beforehand", "attribute", "no whole")
        if not any(word in item.message for item in error.diagnostics for word in words):
            raise
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    first = 0 if model.graph.node[0].op_type in ("Range", "ConstantOfShape") else 1
    for item in list(model.graph.input)[first:]:
        if item.name in inputs and isinstance(inputs[item.name], np.ndarray | np.generic):
            model.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(inputs.pop(item.name)), item.name))
            model.graph.input.remove(item)
    return spyrec.import_onnx(model, "keep").build()


def _verdict(case: NodeCase) -> str:
    """Return ``right``, ``refused``, or what is wrong."""
    assert case.model is not None
    assert case.data_sets is not None
    given, wanted = case.data_sets[0]
    given = list(given) if isinstance(given, list | tuple) else [given]
    inputs = dict(zip([item.name for item in case.model.graph.input], given, strict=False))
    try:
        graph = _imported(case, inputs)
        arrays = {legal_name(name): _array(item) for name, item in inputs.items()}
        found = evaluate(graph, {name: arrays[name] for name in graph.inputs})
    except SpyrecError:
        return "refused"
    if len(graph.outputs) != len(wanted):
        return f"{len(graph.outputs)} results of {len(wanted)}"
    for name, item in zip(graph.outputs, wanted, strict=True):
        expected = np.asarray(onnx.numpy_helper.to_array(item) if isinstance(item, onnx.TensorProto) else item)
        made, tolerance = found[name], _TOLERANCES.get(expected.dtype.name, 0.0)
        if made.shape != expected.shape:
            return f"{name} is of shape {made.shape}, not {expected.shape}"
        dtype = graph.type_of(name).dtype.value
        if made.dtype == np.int64 and dtype != "int64" and not np.array_equal(made, made.astype(dtype)):
            return "refused"  # by SPY0318, when it runs
        numbers = made.astype(np.float64), expected.astype(np.float64)
        rtol = max(10 * tolerance, case.rtol) if tolerance else 0.0
        if not np.allclose(*numbers, rtol=rtol, atol=tolerance, equal_nan=True):
            return f"{name} differs"
    return "right"


def _verdicts(modules: Sequence[str]) -> dict[str, str]:
    default = ("", "ai.onnx")
    return {
        case.name: _verdict(case)
        for case in _cases(modules)
        if case.model is not None and all(item.domain in default for item in case.model.opset_import)
    }


def test_no_case_of_the_package_is_wrong() -> None:
    found = _verdicts([name for name in _MODULES if importlib.util.find_spec(f"{node_cases.__name__}.{name}")])
    assert {name: verdict for name, verdict in found.items() if verdict not in ("right", "refused")} == {}
    count = Counter(found.values())
    assert count["right"] > 320
    assert count["right"] > 2 * count["refused"]


if __name__ == "__main__":
    import pkgutil

    verdicts = _verdicts(
        [item.name for item in pkgutil.iter_modules(node_cases.__path__) if item.name != "_image_decoder_data"]
    )
    print(Counter(item if item in ("right", "refused") else "wrong" for item in verdicts.values()))  # noqa: T201
    for case_name, verdict in verdicts.items():
        if verdict not in ("right", "refused"):
            print(case_name, verdict)  # noqa: T201
