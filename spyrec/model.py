"""The verbs of the public front that execute: ``spyrec.load``, and ``spyrec.run``, which is one call of a model."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Self

import numpy as np

from spyrec.bundle.bundle import Bundle
from spyrec.bundle.entries import BundleEntries
from spyrec.bundle.entry_directory import is_entries_directory
from spyrec.diagnostics import Diagnostic, DiagnosticSink, SpyrecError, listed, refuse
from spyrec.diagnostics.near_names import one_of
from spyrec.front import OpenedBundle, OpenedEntries, entry_options, open_bundle, open_entries
from spyrec.options import HostArray, RunOptions, RunResult
from spyrec.runtime.findings import sanitizers_named
from spyrec.runtime.state_memory import SavedState, StateKey, state_key


def load(bundle: Bundle | BundleEntries | str | os.PathLike[str], options: RunOptions | None = None) -> Model:
    """Load a bundle or entries, or those in a directory, on an emulated device, for any number of calls.

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


class Entry:
    """One entry of a loaded model: it is called as a model of one bundle is."""

    def __init__(self, model: Model, name: str, bundle: Bundle) -> None:
        self._model = model
        self.name = name
        self._bundle = bundle

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of what a call takes, in graph order."""
        return self._bundle.manifest.inputs

    def __call__(self, /, *unnamed: object, **inputs: HostArray) -> dict[str, HostArray]:
        """Execute the entry and return its outputs by name; as :meth:`Model.__call__`."""
        if unnamed:
            names = ", ".join(f"{name}=..." for name in self.inputs)
            count = f"{len(unnamed)} inputs" if len(unnamed) > 1 else "an input"
            raise refuse("SPY0782", f"{count} without a name", hint=f"name every input: model({names})")
        result = self.run(inputs)
        if not result.is_ok:
            raise refuse("SPY0783", f'a call of "{self._bundle.manifest.name}": {_what_is_wrong(result)}')
        return result.outputs

    def run(self, inputs: Mapping[str, HostArray]) -> RunResult:
        """Execute the entry and return the report; as :meth:`Model.run`."""
        return self._model.run_entry(self.name, inputs)

    def __repr__(self) -> str:
        return f'Entry("{self.name}" of {self._model!r})'


class Model:
    """A bundle, or the entries of a model, loaded: device, plans, programs, constants and tensors serve every call.

    A call that is refused or fails leaves the model as it was; where it broke off half-way the next one loads the
    bundle anew.  State that such a call had begun to write is lost: a later call has to give it, and is told so
    (SPY0760).  Threads may share a model: their calls take turns.  It is closed by :meth:`close` or ``with``; one that
    is dropped leaves nothing.  Where ``sanitize`` is set every call has a fresh device, because a sanitizer tells
    memory that nobody wrote from what an earlier call left.

    Inputs that the graph's ``updates`` name are a model's state: the content that a call gave them is there in the next
    one, which may leave them out.  Every model has its own.

    Where several entries are loaded ``model.NAME(...)`` calls one, or ``model["NAME"](...)`` where the model has an
    attribute of that name.  They share constants with equal numbers, and state of one name, shape and dtype: what one
    entry's call leaves in it the next call of any entry finds, on the device.
    """

    def __init__(
        self, bundle: Bundle | BundleEntries | str | os.PathLike[str], options: RunOptions | None = None
    ) -> None:
        self._options = options or RunOptions()
        self._asked = self._options.outputs
        sink = DiagnosticSink()
        found = bundle if isinstance(bundle, Bundle | BundleEntries) else _read(Path(bundle), self._options, sink)
        self._warnings: tuple[Diagnostic, ...] = tuple(listed(sink.diagnostics))
        self._source = found
        bundles = {"": found} if isinstance(found, Bundle) else found.bundles
        self._entries = {name: Entry(self, name, bundle) for name, bundle in bundles.items()}
        self._bundles = dict(bundles)
        self._is_watched = bool(sanitizers_named(self._options.sanitize))
        if self._is_watched and self._asked is not None:
            self._options = replace(self._options, outputs=_with_state(self._asked, bundles.values()))
        self._turn = Lock()
        self._is_closed = False
        self._opened: OpenedBundle | OpenedEntries | None = None
        self._state: dict[StateKey, HostArray] = {}
        """Of a model that is watched, inputs that results have replaced: each call has a fresh device."""

        self._calls = 0
        self._left: SavedState | None = None
        """What a call that broke off has left of the state of its device."""

        if not self._is_watched:
            self._open()
        elif isinstance(found, BundleEntries):
            entry_options(found, self._options)

    @property
    def entries(self) -> tuple[str, ...]:
        """The names of the entries; none where one bundle was loaded by itself."""
        return () if isinstance(self._source, Bundle) else tuple(self._bundles)

    def __getitem__(self, name: str) -> Entry:
        """Return an entry.  Errors: SPY0788 there is none of that name."""
        if name in self.entries:
            return self._entries[name]
        hint = (
            one_of(str(name), self.entries, "the entries are")
            if self.entries
            else "one bundle is loaded: call the model"
        )
        raise refuse("SPY0788", f"the model has no entry {name!r:.80}", hint=hint)

    def __getattr__(self, name: str) -> Entry:
        """Return an entry whose name is no attribute of the model."""
        entries = self.__dict__.get("_entries", {})
        if name and name in entries:
            return entries[name]
        known = f"; its entries are {', '.join(entries)}" if any(entries) else ""
        raise AttributeError(f"a model has no {name!r:.80}{known}", name=name, obj=self)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of what a call takes, in graph order.  Errors: SPY0784 there are several entries."""
        return self._only().inputs

    def __call__(self, /, *unnamed: object, **inputs: HostArray) -> dict[str, HostArray]:
        """Execute the bundle and return its outputs by name, in graph order: arrays that nobody else has.

        Inputs go by name, as for :func:`spyrec.run`; the order of a graph's inputs is no part of what it promises.
        Errors: as :meth:`run`, SPY0782 an input without a name, SPY0783 a check, bisection or sanitizer that the
        options ask for found something wrong.
        """
        return self._only()(*unnamed, **inputs)

    def run(self, inputs: Mapping[str, HostArray]) -> RunResult:
        """Execute the bundle and return what :func:`spyrec.run` does: outputs, counters, checks and findings.

        Errors: as :func:`spyrec.run`, SPY0781 the model is closed, SPY0784 there are several entries.
        """
        return self._only().run(inputs)

    def _only(self) -> Entry:
        if len(self._entries) > 1:
            names = tuple(self._bundles)
            call = f'model["{names[0]}"]' if hasattr(type(self), names[0]) else f"model.{names[0]}"
            fact = f"the model has the entries {', '.join(names)}, and the call names none"
            raise refuse("SPY0784", fact, hint=f"call one of them: {call}(...)")
        return next(iter(self._entries.values()))

    def run_entry(self, name: str, inputs: Mapping[str, HostArray]) -> RunResult:
        """Execute an entry; as :meth:`Entry.run`."""
        bundle = self._bundles[name]
        with self._turn:
            self._refuse_if_closed()
            found = self._opened_entry(name)
            if isinstance(found, OpenedBundle):
                found = self._executed(found, {**self._kept_state(bundle), **inputs})
                if self._is_watched and found.outputs:
                    self._keep_state(bundle, inputs, found)
                    found = _only_asked(found, self._asked)
        return replace(found, warnings=(*self._warnings, *found.warnings)) if self._warnings else found

    def _kept_state(self, bundle: Bundle) -> dict[str, HostArray]:
        """Return the inputs of a bundle that a model which is watched has."""
        if not self._state:
            return {}
        keys = {item.name: state_key(item) for item in bundle.manifest.arguments}
        return {name: self._state[keys[name]] for name in bundle.manifest.inputs if keys[name] in self._state}

    def _keep_state(self, bundle: Bundle, inputs: Mapping[str, HostArray], found: RunResult) -> None:
        known = {
            state_key(item)
            for each in self._bundles.values()
            for item in each.manifest.arguments
            if item.name in each.manifest.updates.values()
        }
        keys = {item.name: state_key(item) for item in bundle.manifest.arguments}
        for name, array in inputs.items():
            if keys.get(name) in known:
                self._state[keys[name]] = np.array(array)
        for result, name in bundle.manifest.updates.items():
            self._state[keys[name]] = np.array(found.outputs[result])

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
        return f'Model("{self._name()}"{", closed" if self._is_closed else ""})'

    def _name(self) -> str:
        return ", ".join(name or bundle.manifest.name for name, bundle in self._bundles.items())

    def _opened_entry(self, name: str) -> OpenedBundle | RunResult:
        """Return an entry that is open; where the model is watched, on a device of its own."""
        if self._is_watched and isinstance(self._source, BundleEntries):
            found = open_bundle(self._bundles[name], entry_options(self._source, self._options)[name])
            if isinstance(found, OpenedBundle):
                self._opened = found
            return found
        found = self._open()
        return found.bundles[name] if isinstance(found, OpenedEntries) else found

    def _open(self) -> OpenedBundle | OpenedEntries | RunResult:
        if self._opened is None:
            source = self._source
            found = (
                open_bundle(source, self._options)
                if isinstance(source, Bundle)
                else open_entries(source, self._options)
            )
            if isinstance(found, RunResult):
                return found
            self._opened = found
            if self._left is not None:
                memory = found.prepared.state_memory if isinstance(found, OpenedBundle) else found.state
                memory.restore(self._left)
                self._left = None
        return self._opened

    def _executed(self, opened: OpenedBundle, inputs: Mapping[str, HostArray]) -> RunResult:
        self._calls += 1
        try:
            return opened.run(inputs)
        except BaseException as error:
            if opened.prepared.is_in_doubt and not self._is_watched:
                self._save_state(opened, error)
            raise
        finally:
            if self._is_watched or opened.prepared.is_in_doubt:
                self._drop()

    def _save_state(self, opened: OpenedBundle, error: BaseException) -> None:
        """Keep what a call that broke off has left of the state: the next one has another device."""
        state = opened.prepared.state_memory
        how = f"was refused ({error.diagnostics[0].code})" if isinstance(error, SpyrecError) else "broke off"
        call = f"call {self._calls} of the model {how}"
        opened.prepared.lose_written(f"{call} when it had begun to write it")
        lost = state.all_lost(f"{call}, and its device could not be asked for it")
        if isinstance(error, SpyrecError):
            with suppress(SpyrecError):
                lost = state.saved()
        self._left = lost

    def _drop(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise refuse("SPY0781", f'the model "{self._name()}" is closed')


def _with_state(asked: Sequence[str], bundles: Iterable[Bundle]) -> tuple[str, ...]:
    """Return the results that a model which is watched needs of a call: those asked for, and the state."""
    states = (result for bundle in bundles for result in bundle.manifest.updates)
    return tuple(dict.fromkeys((*asked, *states)))


def _only_asked(found: RunResult, asked: Sequence[str] | None) -> RunResult:
    """Return a result with the outputs that were asked for."""
    if asked is None:
        return found
    outputs = {name: array for name, array in found.outputs.items() if name in asked}
    return replace(found, outputs=outputs, dtypes={name: found.dtypes[name] for name in outputs})


def _read(path: Path, options: RunOptions, sink: DiagnosticSink) -> Bundle | BundleEntries:
    kind = BundleEntries if is_entries_directory(path) else Bundle
    return kind.load(path, strict=options.strict, warnings=sink)


def _what_is_wrong(result: RunResult) -> str:
    """Return in words why a result is not ok."""
    failed = [f'the check of "{name}" failed' for name, report in (result.check or {}).items() if not report.ok]
    compared = (result.compare or {}).items()
    failed += [f'"{name}" differs from what was given' for name, report in compared if not report.ok]
    if result.bisect is not None and not result.bisect.ok:
        failed.append("the bisection found a wrong operation")
    if result.sanitizer:
        failed.append(f"a sanitizer found: {result.sanitizer[0].to_diagnostic().message}")
    return "; ".join(failed)
