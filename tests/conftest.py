"""How often properties are tried, and which test files need a package that is not there.

``--hypothesis-profile tenfold`` tries fresh examples, ten times as many.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from importlib.util import find_spec

import pytest
from hypothesis import settings

from spyrec.codegen.emit_opspecs import EmittedProgram, ProgramLowering
from spyrec.compare.mlir_bindings import verify_with_mlir
from spyrec.exec.cabi.build import lacking

pytest_plugins = ["spyrec.testing"]  # --update-goldens

os.environ.pop("COLUMNS", None)  # pytest-xdist sets it for its workers, and what verbs print follows it

settings.register_profile("tenfold", max_examples=1000, derandomize=False, deadline=None)
# what CI tries is what was tried here: new examples are for the larger profile
settings.register_profile("same", derandomize=True, database=None, deadline=None)  # a busy machine fails nothing
settings.load_profile("same")

NEEDS = {
    "catalogue/test_against_torch.py": ("torch", "torch"),
    "catalogue/test_promotion_against_torch.py": ("torch", "torch"),
    "catalogue/test_signatures_against_torch.py": ("torch", "torch"),
    "conformance/test_torch.py": ("torch", "torch"),
    "frontends/torch_export/test_export_variants.py": ("torch", "torch"),
    "frontends/torch_export/test_foreign_operations.py": ("torch", "torch"),
    "frontends/torch_export/test_keep_ops.py": ("torch", "torch"),
    "frontends/torch_export/test_models.py": ("torch", "torch"),
    "frontends/torch_export/test_state.py": ("torch", "torch"),
    "frontends/torch_export/test_symbolic_lengths.py": ("torch", "torch"),
    "frontends/torch_export/test_verification.py": ("torch", "torch"),
    "torch_backend/test_backend.py": ("torch", "torch"),
    "torch_backend/test_compared.py": ("torch", "torch"),
    "compare/test_mlir_bindings.py": ("torch_mlir", "mlir"),
    "exec/test_c_boundary.py": ("cffi", "cabi"),
    "exec/test_c_programs.py": ("cffi", "cabi"),
    "sweep/test_faults.py": ("distributed", "sweep"),
    "test_campaign.py": ("distributed", "sweep"),
    "sweep/test_sweep_page.py": ("distributed", "sweep"),
    "sweep/test_sweep_verb.py": ("distributed", "sweep"),
    "sweep/test_tune.py": ("optuna", "sweep"),
    "report/browser/test_views.py": ("selenium", "browser"),
}
"""Test file -> the package that it cannot do without, and the extra that brings it."""

NEEDS_COMPILER = ("exec/test_c_boundary.py", "exec/test_c_programs.py")
"""Test files that build the C library and programs that use it."""

collect_ignore = [
    file
    for file, (package, _) in NEEDS.items()
    if find_spec(package) is None or (file in NEEDS_COMPILER and lacking() is not None)
]


@pytest.fixture(autouse=True, scope="session")
def verified_modules() -> Iterator[None]:
    """Where the extra ``mlir`` is installed, MLIR verifies every module that any test has emitted."""
    if find_spec("torch_mlir") is None:
        yield
        return
    run = ProgramLowering.run

    def verified(self: ProgramLowering) -> EmittedProgram:
        emitted = run(self)
        verify_with_mlir(emitted.program, "bundle.mlir")
        return emitted

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ProgramLowering, "run", verified)
        yield


def pytest_collection_finish() -> None:
    """Modules and collected tests live to the end: no collection of garbage has to go over them."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was left out: nothing is skipped in silence."""
    for file in collect_ignore:
        package, extra = NEEDS[file]
        terminalreporter.write_line(f"not collected: tests/{file}, which needs {package} (extra: {extra})")
    if lacking() is not None:
        terminalreporter.write_line(f"not tried: the front cabi in tests/exec/test_conformance.py: {lacking()}")
