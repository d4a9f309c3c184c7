"""Which name was meant: spellings of other libraries, and the closest of the names that there are."""

from __future__ import annotations

import re
from collections.abc import Collection
from difflib import get_close_matches
from itertools import islice

from spyrec.diagnostics import DiagnosticSink
from spyrec.diagnostics.near_names import LONGEST, nearest
from spyrec.hardware.dtypes import DType

MOST_GUESSES = 20
"""Wrong names of one file whose meaning is guessed: more say that the file is another thing."""

_DTYPES = {
    "half": "float16", "fp16": "float16", "f16": "float16",
    "float": "float32", "fp32": "float32", "f32": "float32", "single": "float32",
    "double": "float32", "float64": "float32", "fp64": "float32", "f64": "float32",
    "bf16": "bfloat16", "boolean": "bool", "byte": "uint8", "char": "int8", "short": "int16", "int": "int32",
    "long": "int64", "fp8": "float8_e4m3fn", "float8": "float8_e4m3fn", "float8_e4m3": "float8_e4m3fn",
}  # fmt: skip
"""Other names of dtypes; of a float wider than all that there are, the widest."""

_OPS = {
    "multiply": "mul", "subtract": "sub", "divide": "div", "true_divide": "div", "truediv": "div", "negative": "neg",
    "absolute": "abs", "power": "pow", "concat": "cat", "concatenate": "cat",
    "greater": "gt", "less": "lt", "greater_equal": "ge", "less_equal": "le", "equal": "eq", "not_equal": "ne",
}  # fmt: skip
"""Other names of ops, in PyTorch, NumPy or ONNX."""

_ATTRIBUTES = {"axis": "dim", "axes": "dim", "keepdims": "keepdim", "epsilon": "eps"}
"""NumPy's and ONNX's names of attributes."""


def may_guess(sink: DiagnosticSink) -> bool:
    """Whether so few diagnostics were found that it is worth the time to guess what the next wrong name means."""
    return len(sink.diagnostics) < MOST_GUESSES


def did_you_mean(found: str, known: Collection[str], sink: DiagnosticSink) -> str | None:
    """Return the hint that names what was meant, ``None`` where no known name is close or ``sink`` has very many."""
    name = nearest(found, known) if may_guess(sink) else None
    return None if name is None else f'did you mean "{name}"?'


def meant_dtype(found: str) -> str | None:
    """Return the dtype that another library's name or a misspelt one stands for."""
    known = [item.value for item in DType]
    text = found[:LONGEST].rpartition(".")[2].lower()
    return _DTYPES.get(text) or nearest(text, known)


def meant_attributes(found: Collection[str], known: Collection[str]) -> dict[str, str]:
    """Return which attributes of an op the unknown ones of ``found`` mean; of very many the first."""
    unknown = islice((name for name in found if name not in known), MOST_GUESSES)
    meant = {name: _ATTRIBUTES.get(name) or nearest(name, known) for name in unknown}
    return {name: other for name, other in meant.items() if other is not None and other in known}


def meant_ops(found: str, known: Collection[str]) -> list[str]:
    """Return the ops that may be meant: ``aten.add.Tensor``, ``torch.nn.functional.gelu``, ``ReLU``, ``multiply``."""
    parts = [part.strip("_").lower() for part in reversed(re.split(r"[.:]+", found[:LONGEST]))]
    for part in parts:
        name = _OPS.get(part, part)
        if name in known:
            return [name]
    for part in parts:
        close = get_close_matches(part, known, n=3)
        if close:
            return close
    return []
