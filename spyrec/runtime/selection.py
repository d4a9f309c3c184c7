"""Which SuperDSCs of a bundle run, and how often: ``--only`` and ``--max-executions``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from spyrec.bundle.bundle import Bundle, DeviceProgram
from spyrec.bundle.execution_count import execution_count
from spyrec.bundle.program import For, Program, SdscExecute, Statement
from spyrec.diagnostics import refuse
from spyrec.diagnostics.near_names import one_of
from spyrec.runtime.jobs.execution_plan import ExecutionPlan


def selected_plan(bundle: Bundle, only: str | None = None, max_executions: int | None = None) -> ExecutionPlan:
    """Return the plan of a bundle, or of the calls of one SuperDSC file.

    ``only``: ``sdsc_3.json``, or with its directory where the plan has several programs; ``max_executions``: most
    SuperDSCs that one run may execute, where that is limited.  Errors: SPY0768 ``only`` names no or several files,
    SPY0767 too many executions, those of the plan.
    """
    programs = {item.directory: item for item in bundle.programs}
    executed = programs
    if only is not None:
        directory, file = _file_named(programs, only)
        program = programs[directory]
        kept = only_calls_of(program.program, file)
        programs[directory] = replace(program, program=kept, superdscs={file: program.superdscs[file]})
        executed = {directory: programs[directory]}
        bundle = replace(bundle, programs=tuple(programs.values()))
    if max_executions is not None:
        refuse_too_many_executions({name: item.program for name, item in executed.items()}, max_executions)
    plan = ExecutionPlan(bundle)
    for number, step in reversed(list(enumerate(bundle.manifest.plan))):
        if step.program not in executed:
            plan.remove(number)
    return plan


def _file_named(programs: Mapping[str, DeviceProgram], only: str) -> tuple[str, str]:
    """Return directory and name of a file of a bundle; errors SPY0768."""
    full_names = {
        ("" if directory == "." else f"{directory}/") + file: (directory, file)
        for directory, program in programs.items()
        for file in program.superdscs
    }
    matches = [name for name in full_names if name == only or name.endswith(f"/{only}")]
    if len(matches) != 1:
        found = "no SuperDSC file" if not matches else f"{len(matches)} SuperDSC files"
        hint = one_of(only, sorted(matches or full_names), "name one of")
        raise refuse("SPY0768", f'"{only}" names {found} of the bundle', hint=hint)
    return full_names[matches[0]]


def only_calls_of(program: Program, sdsc_filename: str) -> Program:
    """Return the program with every ``sdsc_execute`` of another file left out; addresses are still computed."""
    return Program(program.maps, program.parameters, _filtered(program.body, sdsc_filename))


def _filtered(body: tuple[Statement, ...], sdsc_filename: str) -> tuple[Statement, ...]:
    kept: list[Statement] = []
    for statement in body:
        match statement:
            case SdscExecute() if statement.sdsc_filename != sdsc_filename:
                continue
            case For():
                inner = _filtered(statement.body, sdsc_filename)
                kept.append(For(statement.induction, statement.lower, statement.upper, statement.step, inner))
            case _:
                kept.append(statement)
    return tuple(kept)


def refuse_too_many_executions(programs: Mapping[str, Program], max_executions: int) -> None:
    """Refuse a plan that would execute more than ``max_executions`` SuperDSCs; errors SPY0767."""
    total = sum(execution_count(program) for program in programs.values())
    if total > max_executions:
        raise refuse(
            "SPY0767",
            f"the bundle would execute {total} SuperDSCs, more than the {max_executions} allowed",
            hint="raise the limit with --max-executions if the loop bounds are meant",
        )
