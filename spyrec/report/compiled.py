"""A bundle's graph compiled again: the forms between passes, and from which kernel each operation was made.

Compiling is deterministic, and a bundle holds its graph and its options.  What comes out is held against the bundle,
SuperDSC by SuperDSC: where it is another one, nothing of the compilation is shown as this bundle's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from spyrec.bundle.bundle_content import CONSTANTS_FILE, BundleContent
from spyrec.bundle.dialects import DIALECTS, NEWEST
from spyrec.bundle.program import For, Statement
from spyrec.bundle.superdsc import SuperDsc
from spyrec.codegen.emit import emit_bundle
from spyrec.codegen.emit_opspecs import CodegenOptions
from spyrec.compare.bundle_graph import graph_of_bundle
from spyrec.compare.provenance import options_of, scheduled_kernels, with_contents
from spyrec.dataclass import dataclass
from spyrec.diagnostics import SpyrecError
from spyrec.ir.graph import ConstantData, Graph
from spyrec.ir.kernel import Kernel, KernelGraph, KernelProgram
from spyrec.ir.parts import Staged
from spyrec.passes.base import PipelineOptions
from spyrec.passes.driver import DriverOptions, PassRecord
from spyrec.passes.stages import run_stages

SAME, OTHER, NONE = "same", "other", "none"


@dataclass(frozen=True, slots=True)
class MadeOf:
    """What an operation was made of: a kernel, by its position in a graph of kernels, and the program that it is in."""

    part: int
    position: int
    kernel: Kernel
    program: KernelProgram


@dataclass(frozen=True, slots=True)
class Compiled:
    """A compilation: the graph of the bundle, what each pass made of each part, and the kernels that came out.

    ``options``: what it was planned with.  ``passes``: by part, the passes that ran.  ``made_of``: by number of an
    operation of the plan.
    """

    source: Graph
    options: PipelineOptions
    passes: tuple[tuple[PassRecord, ...], ...]
    parts: tuple[KernelGraph, ...]
    made_of: Mapping[int, MadeOf]


def compiled_again(bundle: BundleContent, counts: Sequence[int], notes: list[str]) -> tuple[str, Compiled | None]:
    """Return how a compilation of a bundle's graph compares with it, and the compilation where it is the same.

    ``counts``: operations of each program of the plan.  ``notes`` takes why there is none.
    """
    if bundle.graph_json is None:
        notes.append("the bundle holds no graph, so there is nothing to be said of how it was compiled")
        return NONE, None
    try:
        found = _compile(bundle)
    except SpyrecError as error:
        notes.append(f"the bundle's graph does not compile again: {error.diagnostics[0].message}")
        return OTHER, None
    if found is None:
        notes.append("the bundle's graph does not compile again in one plan")
        return OTHER, None
    source, passes, parts = found
    made_of = _matched(bundle, parts, counts)
    if isinstance(made_of, str):
        notes.append(f"the bundle is not what this version of spyrec makes of its graph: {made_of}")
        return OTHER, None
    return SAME, Compiled(source, options_of(bundle), passes, parts, made_of)


def _compile(
    bundle: BundleContent,
) -> tuple[Graph, tuple[tuple[PassRecord, ...], ...], tuple[KernelGraph, ...]] | None:
    source, stored = graph_of_bundle(bundle)
    source = _with_numbers(with_contents(source, stored, bundle), stored, bundle)
    records: list[PassRecord] = []
    kernels = run_stages(source, options_of(bundle), DriverOptions(observe=records.append))
    if isinstance(kernels, Graph):
        return None
    parts = (
        tuple(item for item in kernels.parts if isinstance(item, KernelGraph))
        if isinstance(kernels, Staged)
        else (kernels,)
    )
    return source, _by_part(records, len(parts)), parts


def _with_numbers(source: Graph, stored: frozenset[str], bundle: BundleContent) -> Graph:
    """Return the graph with constants that can be read where the bundle has them: what depends on them is folded."""
    file = None if bundle.root is None else Path(bundle.root).absolute() / CONSTANTS_FILE
    if file is None or not file.is_file():
        return source
    held = {
        name: ConstantData(file=str(file), tensor=data.tensor)
        for name, data in source.constants.items()
        if name in stored
    }
    return replace(source, constants={**source.constants, **held})


def _by_part(records: Sequence[PassRecord], parts: int) -> tuple[tuple[PassRecord, ...], ...]:
    """Return the passes of each part: each begins again with the first pass."""
    found: list[list[PassRecord]] = []
    for record in records:
        if not found or record.name == found[0][0].name:
            found.append([])
        found[-1].append(record)
    return tuple(map(tuple, found[:parts]))


def _matched(bundle: BundleContent, parts: Sequence[KernelGraph], counts: Sequence[int]) -> dict[int, MadeOf] | str:
    """Return by operation what it was made of, or the first difference between a bundle and its compilation.

    Programs that no part has take rows by an index or the largest elements: they are made of no kernels.
    """
    programs = {program.directory: program for program in bundle.programs}
    remaining = [
        (number, program, emitted)
        for number, part in enumerate(parts)
        for program, emitted in zip(part.programs, _emitted(bundle, part), strict=True)
    ]
    spare = len(bundle.manifest.plan) - len(remaining)
    made_of: dict[int, MadeOf] = {}
    first = 0
    for step, count in zip(bundle.manifest.plan, counts, strict=True):
        own = programs[step.program]
        if remaining and (own.superdscs, own.program.body) == remaining[0][2]:
            part, program, _ = remaining.pop(0)
            kept = scheduled_kernels(parts[part], program, is_kept=_has_loops(own.program.body))
            if len(kept) == count:
                for place, (position, _) in enumerate(kept):
                    made_of[first + place] = MadeOf(part, position, parts[part].kernels[position], program)
        elif spare <= 0:
            return f'program "{step.program}" has other files'
        else:
            spare -= 1
        first += count
    return "it has fewer programs" if remaining else made_of


def _has_loops(body: Sequence[Statement]) -> bool:
    return any(isinstance(item, For) for item in body)


def _emitted(bundle: BundleContent, part: KernelGraph) -> list[tuple[Mapping[str, SuperDsc], Sequence[Statement]]]:
    """Return the SuperDSCs and the text of each program of a part, as they are generated of it."""
    has_loops = any(_has_loops(program.program.body) for program in bundle.programs)
    options = CodegenOptions(
        dialect=DIALECTS.get(bundle.manifest.dialect or "", NEWEST),
        symbolic_args=options_of(bundle).symbolic_args,
        unroll_loops=bool(part.loops) and not has_loops,
        target=bundle.manifest.target,
        planned_with=bundle.manifest.planned_with,
    )
    return [(item.superdscs, item.program.body) for item in emit_bundle(part, options).programs]
