"""The verbs of the public front that execute: ``spyrec.load``, and ``spyrec.run``, which is one call of a model."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Self

from spyrec.bundle.bundle import Bundle
from spyrec.diagnostics import Diagnostic, DiagnosticSink, listed, refuse
from spyrec.front import OpenedBundle, open_bundle
from spyrec.options import HostArray, RunOptions, RunResult
from spyrec.runtime.findings import sanitizers_named


def load(bundle: Bundle | str | os.PathLike[str], options: RunOptions | None = None) -> Model:
    """Load a bundle, or the one in a directory, on an emulated device, for any number of calls.

    Errors: SPY06xx for the bundle, SPY07xx for the options and what the device finds in the programs.
    """
    return Model(bundle, options)


def run(
    bundle: Bundle | str | os.PathLike[str], inputs: Mapping[str, HostArray], options: RunOptions | None = None
) -> RunResult:
    """Execute a bundle on the emulated device: load it, call it once, and close it.

    ``inputs`` are host arrays by name, of the bundle's shapes and dtypes (bfloat16 as raw bits in uint16).  Larger
    ones are launched in tiles where the bundle's tile contracts say how; then, too, errors SPY0921, SPY0950 to SPY0962.
    Errors: SPY06xx for the bundle, SPY07xx for inputs, options and what the device finds.
    """
    with Model(bundle, options) as model:
        return model.run(inputs)


class Model:
    """A bundle that stays loaded: device, thread, plan, programs, constants and tensors serve every call.

    A call that is refused or fails leaves the model as it was; where it broke off half-way the next one loads the
    bundle anew.  Threads may share a model: their calls take turns.  It is closed by :meth:`close` or ``with``; one
    that is dropped leaves nothing.  Where ``sanitize`` is set every call has a fresh device, because a sanitizer tells
    memory that nobody wrote from what an earlier call left.

    Inputs that the graph's ``updates`` name are a model's state: the content that a call gave them is there in the next
    one, which may leave them out.  Every model has its own.
    """

    def __init__(self, bundle: Bundle | str | os.PathLike[str], options: RunOptions | None = None) -> None:
        self._options = options or RunOptions()
        sink = DiagnosticSink()
        self._bundle = (
            bundle
            if isinstance(bundle, Bundle)
            else Bundle.load(Path(bundle), strict=self._options.strict, warnings=sink)
        )
        self._warnings: tuple[Diagnostic, ...] = tuple(listed(sink.diagnostics))
        self._is_watched = bool(sanitizers_named(self._options.sanitize))
        self._turn = Lock()
        self._is_closed = False
        self._opened: OpenedBundle | None = None
        self._state: dict[str, HostArray] = {}
        """Of a model that is watched, inputs that results have replaced: each call has a fresh device."""

        if not self._is_watched:
            self._open()

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of what a call takes, in graph order."""
        return self._bundle.manifest.inputs

    def __call__(self, /, *unnamed: object, **inputs: HostArray) -> dict[str, HostArray]:
        """Execute the bundle and return its outputs by name, in graph order: arrays that nobody else has.

        Inputs go by name, as for :func:`spyrec.run`; the order of a graph's inputs is no part of what it promises.
        Errors: as :meth:`run`, SPY0782 an input without a name, SPY0783 a check, bisection or sanitizer that the
        options ask for found something wrong.
        """
        if unnamed:
            names = ", ".join(f"{name}=..." for name in self.inputs)
            count = f"{len(unnamed)} inputs" if len(unnamed) > 1 else "an input"
            raise refuse("SPY0782", f"{count} without a name", hint=f"name every input: model({names})")
        result = self.run(inputs)
        if not result.is_ok:
            raise refuse("SPY0783", f'a call of "{self._bundle.manifest.name}": {_what_is_wrong(result)}')
        return result.outputs

    def run(self, inputs: Mapping[str, HostArray]) -> RunResult:
        """Execute the bundle and return what :func:`spyrec.run` does: outputs, counters, checks and findings.

        Errors: as :func:`spyrec.run`, SPY0781 the model is closed.
        """
        with self._turn:
            self._refuse_if_closed()
            found = self._open()
            if isinstance(found, OpenedBundle):
                found = self._executed(found, {**self._state, **inputs})
                if self._is_watched:
                    updates = self._bundle.manifest.updates
                    self._state = {name: found.outputs[result] for result, name in updates.items() if found.outputs}
        return replace(found, warnings=(*self._warnings, *found.warnings)) if self._warnings else found

    def close(self) -> None:
        """Give the device back after the call that it is at; a second time does nothing."""
        with self._turn:
            self._is_closed = True
            self._drop()

    @property
    def is_closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return self._is_closed

    def __enter__(self) -> Self:
        """Return the model; errors SPY0781 it is closed."""
        self._refuse_if_closed()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f'Model("{self._bundle.manifest.name}"{", closed" if self._is_closed else ""})'

    def _open(self) -> OpenedBundle | RunResult:
        if self._opened is None:
            found = open_bundle(self._bundle, self._options)
            if isinstance(found, RunResult):
                return found
            self._opened = found
        return self._opened

    def _executed(self, opened: OpenedBundle, inputs: Mapping[str, HostArray]) -> RunResult:
        try:
            return opened.run(inputs)
        finally:
            if self._is_watched or opened.prepared.is_in_doubt:
                self._drop()

    def _drop(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise refuse("SPY0781", f'the model "{self._bundle.manifest.name}" is closed')


def _what_is_wrong(result: RunResult) -> str:
    """Return in words why a result is not ok."""
    failed = [f'the check of "{name}" failed' for name, report in (result.check or {}).items() if not report.ok]
    if result.bisect is not None and not result.bisect.ok:
        failed.append("the bisection found a wrong operation")
    if result.sanitizer:
        failed.append(f"a sanitizer found: {result.sanitizer[0].to_diagnostic().message}")
    return "; ".join(failed)
