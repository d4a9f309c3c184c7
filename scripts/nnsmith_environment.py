"""``nnsmith_environment.py``: NNSmith, PyTorch and what spyrec needs in ``.cache/nnsmith``, where the campaign looks.

It is an environment of its own because NNSmith brings a solver and a configuration library that nothing else needs.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / ".cache" / "nnsmith"
PACKAGES = ("nnsmith==0.1.0", "torch==2.13.0", "z3-solver==5.4.1.0")


def main() -> int:
    """Make the environment anew, and install what it needs."""
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(ENVIRONMENT)], check=True)
    python = ENVIRONMENT / "bin" / "python"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*PACKAGES, *project["dependencies"]]
    command = [str(python), "-m", "pip", "install", "--constraint", str(ROOT / "constraints.txt"), *wanted]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
