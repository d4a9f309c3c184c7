"""A report of any length, drawn from a seed, in which every name is hostile: what no bundle of a test is large enough for."""

from __future__ import annotations

import random
from typing import Any

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "</script><script>alert(3)</script>",
    "\u2028&amp;--><!--",
)
LAYER = 50
CORES = 32
_LX_BYTES = 1_677_696
_PART = 4096

Json = dict[str, Any]


def name_of(op: int) -> str:
    """Return the name of what an operation writes: every tenth is hostile."""
    return f"{HOSTILE[op // 10 % len(HOSTILE)]}{op}" if op % 10 == 0 else f"layer{op // LAYER}.t{op}"


def report_of(count: int) -> Json:
    """Return an object of ``spyrec.report/1`` with ``count`` operations, forty of them in a loop of eight rounds."""
    chance = random.Random(count)
    ops = [_op(op, chance) for op in range(count)]
    tensors = [_tensor(op, count) for op in range(count)]
    return {
        "format": "spyrec.report/1",
        "name": HOSTILE[0],
        "bundle": {
            "path": HOSTILE[1], "kind": "spyrec", "digest": "0", "target": "spyre", "cores": CORES,
            "lx_bytes": _LX_BYTES, "profile": HOSTILE[2], "compiled": "same",
        },
        "totals": {"us": sum(op["us"] for op in ops), "uncertainty": 0.1, "read": 1 << 30, "bound": 1 << 28, "lx_peak": 40 * _PART},
        "programs": [{"directory": ".", "first": 0, "past": count}],
        "loops": [{"name": HOSTILE[3], "program": 0, "count": 8, "first": 10, "past": 50, "dim": HOSTILE[0], "tile": 16}],
        "modules": ["model", *(f"model.layer{layer:03d}{HOSTILE[0]}" for layer in range(-(-count // LAYER)))],
        "ops": ops,
        "tensors": tensors,
        "outputs": [_output(count)],
        "decisions": [_decision(op) for op in range(count)],
        "memory": {"lx": [{"program": 0, "cores": [[0, CORES]], "usable": _LX_BYTES, "peak": 40 * _PART, "regions": [_region(op, count) for op in range(count) if op % 3]}]},
        "time": _time(count),
        **_texts(count),
        "run": {
            "ok": False, "numerics": "dl16", "engine": "fast", "is_same_bundle": True,
            "findings": [{"sanitizer": "bounds", "message": f"reads beyond {HOSTILE[1]}", "op": 7, "core": 3, "tensor": 7, "address": 4096, "details": list(HOSTILE)}],
        },
        "notes": list(HOSTILE),
    }  # fmt: skip


def _op(op: int, chance: random.Random) -> Json:
    sources = sorted({max(0, op - 1), max(0, op - chance.randrange(1, 20))} - {op})
    in_loop = 10 <= op < 50
    return {
        "op": chance.choice(["add", "mul", "batchmatmul", "exp", HOSTILE[0]]), "name": name_of(op), "file": f"sdsc_{op}.json",
        "program": 0, "loops": [0] if in_loop else [], "node": name_of(op), "module": 1 + op // LAYER, "source": HOSTILE[1],
        "unit": "sfp", "class": "pointwise", "cores": [[0, CORES]],
        "dims": [{"name": HOSTILE[0], "extent": 128, "parts": 32, "core": 4}],
        "inputs": [{"tensor": source, "memory": "lx", "core_bytes": _PART, "from": source} for source in sources],
        "outputs": [{"tensor": op, "memory": "lx" if op % 3 else "pool", "core_bytes": _PART}],
        "executions": 8 if in_loop else 1, "us": 5.0 * (8 if in_loop else 1), "read": chance.randrange(1 << 20),
        "written": chance.randrange(1 << 20), "bound": chance.randrange(1 << 18), "flops": chance.randrange(1, 1 << 24),
        "limit": chance.choice(["memory", "compute"]), "utilisation": 0.2, "flops_per_byte": chance.uniform(0.1, 100.0),
        "pattern": op % 4, "start_us": 5.0 * op, "decisions": [op],
    }  # fmt: skip


def _tensor(op: int, count: int) -> Json:
    return {
        "name": name_of(op), "role": "intermediate", "memory": "lx" if op % 3 else "pool", "program": 0, "shape": [128, 4096],
        "dtype": "float16", "size": 1 << 20, "writers": [op], "readers": [op + 1] if op + 1 < count else [], "decisions": [op],
    }  # fmt: skip


def _output(count: int) -> Json:
    cores = [row // 2 % CORES for row in range(64) for _ in range(64)]
    grid = {"rows": 64, "columns": 64, "row_step": 2, "column_step": 64, "cores": cores}
    return {
        "name": name_of(count - 1),
        "tensor": count - 1,
        "op": count - 1,
        "shape": [128, 4096],
        "dtype": "float16",
        "grid": grid,
    }


def _decision(op: int) -> Json:
    kind = "resident" if op % 3 else "spilled"
    return {
        "kind": kind,
        "subject": name_of(op),
        "ops": [op],
        "tensor": op,
        "reason": HOSTILE[op % 4],
        "alternative": "device memory",
        "saved_bytes": 1 << 20,
    }


def _region(op: int, count: int) -> Json:
    first, end = op % 40 * _PART, min(count - 1, op + 5)
    return {
        "tensor": op,
        "first": first,
        "past": first + _PART,
        "begin": op,
        "end": end,
        "writer": op,
        "readers": [end],
        "decision": op,
    }


def _time(count: int) -> Json:
    patterns = [
        {
            "us": 5.0,
            "groups": [
                {
                    "cores": [[0, CORES]],
                    "spans": [[0, 0.5, 2.0 + share / 2], [2, 1.0, 5.0]],
                    "waits": [[2, 0.0, 1.0, 1]],
                }
            ],
        }
        for share in range(4)
    ]
    body = [
        *({"op": op} for op in range(10)),
        {"loop": 0, "count": 8, "body": [{"op": op} for op in range(10, 50)]},
        *({"op": op} for op in range(50, count)),
    ]
    return {
        "from": "predicted", "us": 5.0 * (count + 280), "engines": ["DMA in", "PT", "SFP"], "waits": ["start", "operands"], "patterns": patterns,
        "schedule": [{"program": 0, "body": body}], "roof": {"bytes_per_us": 175_000.0, "flops_per_us": {"pt": 77_760_000.0, "sfp": 1_680_000.0}},
    }  # fmt: skip


def _texts(count: int) -> Json:
    forms = (
        '{{"name": "{0}", "op": "add"}}',
        "for [i0<128] {0}[i0] = add(...)",
        'sdsc_execute () {{sdsc_filename="{1}.json"}}',
    )
    strings = [form.format(name_of(op), op) for form in forms for op in range(count)]
    lines = list(range(count))
    return {
        "strings": strings,
        "texts": [
            {"pane": "source", "name": "graph.json", "kind": "json", "lines": lines},
            {"pane": "compiler", "name": HOSTILE[0], "kind": "kernels", "lines": [count + line for line in lines], "of": 0, "from": lines},
            {"pane": "product", "name": "bundle.mlir", "kind": "mlir", "lines": [2 * count + line for line in lines], "of": 1, "from": lines, "ops": lines},
        ],
    }  # fmt: skip
