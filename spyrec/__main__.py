"""``python -m spyrec`` is the command ``spyrec``."""

from __future__ import annotations

import sys

from spyrec.cli import main

if __name__ == "__main__":
    sys.exit(main())
