"""The diagnostic codes: one record each, in the section of the stage that raises it.

A code is never reused for another meaning.  01xx reading, 02xx shapes and dtypes, 03xx layout, 04xx scheduling,
05xx code generation, 06xx bundle, 07xx runtime and emulator, 08xx checking and comparing,
09xx program execution: memory, streams, launches, 99xx ours.
"""

from __future__ import annotations

from spyrec.diagnostics.codes.bundles import BUNDLE
from spyrec.diagnostics.codes.code import Code
from spyrec.diagnostics.codes.code_generation import CODE_GENERATION
from spyrec.diagnostics.codes.comparing import COMPARING
from spyrec.diagnostics.codes.launching import EXECUTION
from spyrec.diagnostics.codes.layouts import LAYOUT
from spyrec.diagnostics.codes.ours import OURS
from spyrec.diagnostics.codes.reading import READING
from spyrec.diagnostics.codes.rules import EMULATOR
from spyrec.diagnostics.codes.running import RUNNING
from spyrec.diagnostics.codes.scheduling import SCHEDULING
from spyrec.diagnostics.codes.shapes import SHAPES

CODES: dict[str, Code] = {
    **READING,
    **SHAPES,
    **LAYOUT,
    **SCHEDULING,
    **CODE_GENERATION,
    **BUNDLE,
    **EMULATOR,
    **RUNNING,
    **COMPARING,
    **EXECUTION,
    **OURS,
}
