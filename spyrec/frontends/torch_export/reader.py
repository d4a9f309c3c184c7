"""A process that lets torch read a program and writes down what stands in it; started by ``program_process.py``.

``python -m spyrec.frontends.torch_export.reader IN.pt2 OUT.json BOUND.json``
"""

from __future__ import annotations

import json
import logging
import sys
import warnings
from pathlib import Path

from spyrec.frontends.torch_export.traced import to_json
from spyrec.frontends.torch_export.walk import walk


def main(source: str, target: str, bound: str) -> int:
    """Read ``source``, bind the dims that the JSON text ``bound`` names, and write the program to ``target``."""
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    import torch

    program = torch.export.load(source)
    Path(target).write_text(json.dumps(to_json(walk(program, json.loads(bound)))))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
