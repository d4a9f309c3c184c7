"""A BERT of random weights: from its configuration class to results of the emulated device, beside PyTorch's.

``python examples/import_bert/run.py [--layers N] [--hidden N]``; needs ``pip install 'spyrec[torch]' transformers``.
Nothing is downloaded.
"""

# torch and transformers are no dependency of the checks: what they return is unknown to them.
# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportAttributeAccessIssue=false
from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np

import spyrec

_TOKENS = 64
_VOCABULARY = 1000


def main(layers: int, hidden: int) -> int:
    """Export, import, compile and run the model; exit code 1 where a result is off by more than a hundredth."""
    import torch
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    config = BertConfig(
        num_hidden_layers=layers, hidden_size=hidden, intermediate_size=4 * hidden, num_attention_heads=hidden // 64,
        vocab_size=_VOCABULARY,
    )  # fmt: skip
    module = BertModel(config).eval()
    tokens = torch.randint(0, _VOCABULARY, (2, _TOKENS))
    mask = torch.ones(2, _TOKENS, dtype=torch.int64)
    mask[1, _TOKENS // 2 :] = 0
    with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
        program = torch.export.export(module, (tokens,), {"attention_mask": mask}, strict=False)
        torch.export.save(program, str(Path(folder, "bert.pt2")))
        builder = spyrec.import_program(Path(folder, "bert.pt2"))
        wanted = module.double()(tokens, attention_mask=mask).last_hidden_state.numpy()
    graph = builder.build()
    inputs = {"input_ids": tokens.numpy(), "attention_mask": mask.numpy()}
    result = spyrec.run(spyrec.compile(builder), inputs, spyrec.RunOptions(check=True))
    found = result.outputs[graph.outputs[0]].astype(np.float64)
    error = float(np.abs(found - wanted).max() / np.abs(wanted).max())
    is_checked = all(report.ok for report in (result.check or {}).values())
    prologue = sum(node.on_host for node in graph.nodes)
    print(f"{len(graph.nodes)} nodes, {prologue} of them in the prologue; inputs {', '.join(graph.inputs)}")
    print(f"largest error {error:.4f} of the largest number; check {'ok' if is_checked else 'failed'}")
    return 0 if is_checked and error < 0.01 else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A BERT of random weights through import and the emulated device.")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--hidden", type=int, default=128)
    options = parser.parse_args()
    sys.exit(main(options.layers, options.hidden))
