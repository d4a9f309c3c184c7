"""99xx: mistakes of this project."""

from __future__ import annotations

from spyrec.diagnostics.codes.code import Code

OURS: dict[str, Code] = {
    "SPY9901": Code(
        "internal error",
        "A bug in spyrec: a report with command, versions and traceback was written.",
        hint="please file the report together with the input",
    ),
}
