"""A small decoder of transformers with a static cache of keys and values, as programs that read and write the cache."""

# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportAttributeAccessIssue=false
from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

LENGTH = 32
"""Positions of the cache."""

_SEED = 20261123
_VOCABULARY = 128


def exported_decoder(path: Path, length: int) -> Path:
    """Write the program that takes ``length`` tokens at given positions of the cache; its weights are fixed."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM
    from transformers.integrations.executorch import TorchExportableModuleWithStaticCache

    torch.manual_seed(_SEED)
    config = LlamaConfig(
        hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        vocab_size=_VOCABULARY, max_position_embeddings=64, pad_token_id=0,
    )  # fmt: skip
    model = LlamaForCausalLM(config).eval()
    model.generation_config.use_cache = True
    model.generation_config.cache_implementation = "static"
    module = TorchExportableModuleWithStaticCache(model, batch_size=1, max_cache_len=LENGTH)
    given = {"input_ids": torch.ones(1, length, dtype=torch.int64), "cache_position": torch.arange(length)}
    with torch.no_grad():
        torch.export.save(torch.export.export(module, (), given, strict=True), str(path))
    return path


def tokens() -> npt.NDArray[np.int64]:
    """Return a text that fills the cache."""
    return np.random.default_rng(_SEED).integers(0, _VOCABULARY, (1, LENGTH))
