"""The planner's regret: how much quicker ``spyrec tune`` makes ten graphs, in simulated time (docs/tuning.md).

Times are the model's, the same on every machine and whatever the number of workers.  Claims: no graph gets slower, and
none gains more than ``CLAIM``.  The table goes to stderr.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

from benchmarks.measure import Figures, rounded
from benchmarks.planning_parts.workloads import attention, gated_mlp, layer_norm, residual_blocks, rms_norm, softmax
from examples.granite_block.make_graph import NARROW, write
from spyrec.sweep.clusters import cluster_at
from spyrec.sweep.tuning.tune import Settings, Tuned, Tuner
from tests.support.graphs import JsonObject, graph_data, node, tensor

TRIALS = 80
CLAIM = 0.25
"""The largest gain that the graphs below have had: more is a planner that has become worse."""


def _product(rows: int, depth: int, columns: int) -> JsonObject:
    return graph_data([tensor("x", rows, depth), tensor("w", depth, columns)], [node("y", "mm", "x", "w")], ["y"])


def _chain(rows: int, *widths: int) -> JsonObject:
    """Return a chain of products with an activation between any two."""
    inputs = [tensor("x", rows, widths[0])]
    nodes: list[JsonObject] = []
    last = "x"
    for number, (depth, columns) in enumerate(pairwise(widths)):
        inputs.append(tensor(f"w{number}", depth, columns))
        nodes.append(node(f"p{number}", "mm", last, f"w{number}"))
        nodes.append(node(f"a{number}", "relu", f"p{number}"))
        last = f"a{number}"
    return graph_data(inputs, nodes, [last])


GRAPHS: Mapping[str, JsonObject] = {
    "softmax 512x1024": softmax(512, 1024),
    "softmax 4096x2048": softmax(4096, 2048),
    "layer_norm 512x4096": layer_norm(512, 4096),
    "rms_norm 512x4096": rms_norm(512, 4096),
    "matmul 1024x2048x2048": _product(1024, 2048, 2048),
    "3 matmuls 256x1024": _chain(256, 1024, 1024, 1024, 1024),
    "gated MLP 256x1024x2816": gated_mlp(256, 1024, 2816),
    "attention 8x256x128": attention(8, 256, 128),
    "2 residual blocks 512x2048": residual_blocks(2, 512, 2048),
}
"""Beside them stands the block of Granite with small shapes."""


def measure() -> Figures:
    """Print the table on stderr; return the gains in per cent by graph."""
    with tempfile.TemporaryDirectory(prefix="spyrec-tune-") as folder:
        paths: dict[str, Path] = {}
        for number, (name, data) in enumerate(GRAPHS.items()):
            paths[name] = Path(folder) / f"{number}.json"
            paths[name].write_text(json.dumps(data))
        paths["Granite's block, narrow"] = write(Path(folder) / "granite", NARROW)
        gains: Figures = {}
        worst = 0.0
        with cluster_at("local") as cluster:
            for name, path in paths.items():
                tuner = Tuner(path, Settings(trials=TRIALS, is_checked=False))
                with tuner.on(cluster, lambda line: print(line, file=sys.stderr)) as evaluate:
                    tuned = tuner.run(evaluate)
                print(_row(name, tuned), file=sys.stderr, flush=True)
                gains[name] = rounded(100 * tuned.gain, 2)
                worst = max(worst, tuned.gain)
    return {**gains, "worst_gain_percent": rounded(100 * worst, 2), "claims": f"worst_gain_percent <= {100 * CLAIM:g}"}


def _row(name: str, tuned: Tuned) -> str:
    """Return a row of the table in docs/tuning.md."""
    share = "-" if tuned.uncertainty is None else f"± {100 * tuned.uncertainty:.0f} %"
    what = ", ".join(sorted({change.choice.kind.value for change in tuned.changes})) or "-"
    refused = sum(tuned.refused.values())
    cells = (
        name, f"{tuned.planner.us:,.3f}", f"{tuned.best.us:,.3f}", f"{100 * tuned.gain:.1f} %", share, what,
        f"{len(tuned.changes)}", f"{tuned.plans:.2g}", f"{refused} of {tuned.trials}",
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"
