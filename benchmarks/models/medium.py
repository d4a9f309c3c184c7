"""Models of medium size beside PyTorch: import, compile, first and warm run, and float32 eager, in one process.

``SPYREC_PROCESSOR=avx2`` with ``ATEN_CPU_CAPABILITY=avx2``, ``ONEDNN_MAX_CPU_ISA=AVX2`` and
``MKL_ENABLE_INSTRUCTIONS=AVX2`` compares like with like on a processor that has AVX-512.
"""

# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportAttributeAccessIssue=false, reportUnknownParameterType=false
from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import spyrec
from benchmarks.measure import Seconds, Stopwatch, interleaved_seconds
from benchmarks.models.architectures import Example, made
from benchmarks.models.trip import distance, export, given_inputs, quiet, wanted_outputs

ROUNDS = 9
_PAUSE_SECONDS = 0.05
"""Before each call: idle threads of torch spin for a while, which would count as the next one's time."""

_POSITIONS = 512


@dataclass(frozen=True, slots=True)
class Journey:
    """How long one model takes: each step once, and medians of a loaded model's call and of torch's in turns.

    ``error``, ``tolerance``: as :class:`benchmarks.models.trip.Trip`.  ``first_run``: loading and the first call.
    """

    name: str
    nodes: int
    error: float
    tolerance: float
    imported: Seconds
    compiled: Seconds
    first_run: Seconds
    warm_run: Seconds
    eager: Seconds

    @property
    def over_eager(self) -> float:
        """A warm call's time over that of PyTorch in float32; claim: at most 1.5."""
        return self.warm_run.wall / self.eager.wall

    @property
    def cpu_over_eager(self) -> float:
        """The same in processor time of all threads."""
        return self.warm_run.cpu / self.eager.cpu

    @property
    def is_right(self) -> bool:
        """Whether the error is within what rounding does."""
        return self.error <= self.tolerance


def _granite() -> Example:
    """Half of Granite 3's 2B in every width, with four of its layers."""
    import torch
    import transformers

    config = transformers.GraniteConfig(
        hidden_size=1024, intermediate_size=4096, num_hidden_layers=4, num_attention_heads=16, num_key_value_heads=4,
        max_position_embeddings=_POSITIONS, pad_token_id=0, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    tokens = torch.randint(0, config.vocab_size, (1, _POSITIONS))
    return Example(transformers.GraniteForCausalLM(config), (tokens,), {"use_cache": False})


def _bert(length: int) -> Callable[[], Example]:
    def make() -> Example:
        import torch
        import transformers

        config = transformers.BertConfig(num_hidden_layers=2)
        mask = torch.ones(1, length, dtype=torch.int64)
        mask[0, -length // 8 :] = 0
        tokens = torch.randint(0, config.vocab_size, (1, length))
        return Example(transformers.BertModel(config), (tokens,), {"attention_mask": mask})

    return make


def _vit() -> Example:
    import torch
    import transformers

    config = transformers.ViTConfig(num_hidden_layers=1)
    return Example(transformers.ViTModel(config), (torch.randn(1, 3, config.image_size, config.image_size),))


MEDIUM: Mapping[str, Callable[[], Example]] = {
    "granite_1024": _granite,
    "bert_base_128": _bert(128),
    "bert_base_512": _bert(512),
    "vit_base": _vit,
}


def beside() -> str:
    """Return what stands beside: torch, for which vectors it computes, and its threads."""
    import torch

    _take_all_processors()
    return f"torch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}, {torch.get_num_threads()} threads"


def journey(name: str, make: Callable[[], Example], rounds: int = ROUNDS) -> Journey:
    """Take one model through ``.pt2`` and time it; raises what any step raises."""
    _take_all_processors()
    example = made(make)
    with quiet(), tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.pt2")
        names = export(example, path)
        watch = Stopwatch()
        builder = spyrec.import_program(path)
        imported, graph = watch.read(), builder.build()
        watch = Stopwatch()
        bundle = spyrec.compile(builder)
        compiled, given = watch.read(), given_inputs(example, names, graph)
        watch = Stopwatch()
        with spyrec.load(bundle) as model:
            outputs = model(**given)
            first_run = watch.read()
            calls: dict[str, Callable[[], object]] = {"warm": lambda: model(**given), "eager": lambda: _eager(example)}
            times = interleaved_seconds(calls, rounds, pause_seconds=_PAUSE_SECONDS, statistic=median)
        found = distance(graph, given, outputs, wanted_outputs(example))
    return Journey(
        name, len(graph.nodes), found.error, found.tolerance, imported, compiled, first_run, times["warm"],
        times["eager"],
    )  # fmt: skip


def _take_all_processors() -> None:
    import torch

    torch.set_num_threads(len(os.sched_getaffinity(0)))


def _eager(example: Example) -> object:
    import torch

    with torch.no_grad():
        return example.module(*example.arguments, **example.keywords)
