"""A process that lets torch read a program and writes down what stands in it; started by ``program_process.py``.

``python -m spyrec.frontends.torch_export.reader IN.pt2 OUT.json BOUND KEPT``
"""

from __future__ import annotations

import json
import logging
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from spyrec.frontends.torch_export.traced import to_json
from spyrec.frontends.torch_export.walk import walk

if TYPE_CHECKING:
    from torch.export import ExportedProgram


def main(source: str, target: str, bound: str, kept: str) -> int:
    """Read ``source``, bind the dims that the JSON text ``bound`` names, and write the program to ``target``.

    ``kept``: JSON text, the operations that are not taken apart.
    """
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    import torch

    program = torch.export.load(source)
    give_buffers_room(program)
    Path(target).write_text(json.dumps(to_json(walk(program, json.loads(bound), json.loads(kept)))))
    return 0


def give_buffers_room(program: ExportedProgram) -> None:
    """Let no element of a buffer lie where another does: torch refuses to trace what writes to such a buffer.

    The memory is never touched.
    """
    import torch

    for spec in program.graph_signature.input_specs:
        for held in (program.state_dict, program.constants):
            if spec.kind.name == "BUFFER" and spec.target is not None and spec.target in held:
                found = held[spec.target]
                held[spec.target] = torch.empty(found.shape, dtype=found.dtype)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
