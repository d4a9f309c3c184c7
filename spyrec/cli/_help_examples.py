"""One command line per verb that shows what it is for: the last lines of its ``--help``; ``make test`` runs each."""

from __future__ import annotations

HELP_EXAMPLES: dict[str, str] = {
    "calibrate": "spyrec calibrate measured.csv -o card.json",
    "check": "spyrec check add_mul.bundle",
    "codegen": "spyrec codegen opspecs.json -o add.bundle",
    "compile": "spyrec compile graph.json -o add_mul.bundle",
    "completion": "spyrec completion bash >> ~/.bashrc",
    "diff": "spyrec diff add_mul.bundle add_mul.bundle",
    "doctor": "spyrec doctor",
    "examples": "spyrec examples digits -o digits",
    "explain": "spyrec explain SPY0213",
    "import": "spyrec import model.onnx -o model",
    "inspect": "spyrec inspect add_mul.bundle",
    "inspect-layout": "spyrec inspect-layout --shape 5,100,150 --dtype float16",
    "ops": "spyrec ops softmax",
    "opt": "spyrec opt graph.json --stop-after divide-work",
    "passes": "spyrec passes divide-work",
    "report": "spyrec report add_mul.bundle --json",
    "run": "spyrec run add_mul.bundle --random 1 --check",
    "schema": "spyrec schema graph",
    "sweep": "spyrec sweep SWEEP.toml -o nightly --parquet",
    "tune": "spyrec tune graph.json -o tuned.json --trials 50",
}
"""Verb -> command line.  Files that it names are made by the lines of other verbs, or are a graph of one's own."""
