"""The result of a run as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spyrec.cli._stats_report import stats_lines

if TYPE_CHECKING:
    from spyrec.compare.check import CheckReport
    from spyrec.compare.divergence import BisectReport, Divergence
    from spyrec.options import RunResult
    from spyrec.runtime.launch.tile_plan import TilePlan


def _tiles_to_lines(plan: TilePlan) -> list[str]:
    from spyrec.runtime.launch.render import render_plan  # late: only runs in tiles need it

    return render_plan(plan, 0, _program_name(plan)).splitlines()


def result_to_text(result: RunResult, *, sanitized: str | None = None, with_stats: bool) -> str:
    """Return outputs, check lines and (where asked for) what sanitizers say, and the counters, as text."""
    lines = [
        f"{name}: {result.dtypes[name]}[{','.join(map(str, array.shape))}]" for name, array in result.outputs.items()
    ]
    for plan in result.tiles:
        lines += _tiles_to_lines(plan)
    for name, report in (result.check or {}).items():
        lines.append(_check_line(f"check {name}", report, "bound"))
    for name, report in (result.compare or {}).items():
        lines.append(_check_line(f"compare {name}", report, "tolerance"))
    if result.bisect is not None:
        lines += _bisect_lines(result.bisect)
    if sanitized is not None:
        count = len(result.sanitizer)
        lines.append(f"sanitize {sanitized}: {count or 'nothing'} found")
    if with_stats:
        lines += ["", *stats_lines(result.stats)]
    return "\n".join(lines)


def _program_name(plan: TilePlan) -> str:
    directory = plan.body.contract.program
    return "tiled launch" if directory == "." else f"tiled launch of {directory}"


def _check_line(title: str, report: CheckReport, limit: str) -> str:
    verdict = "ok" if report.ok else f"FAILED in {report.failed_elements} of {report.element_count} elements"
    line = f"{title}: {verdict}, error/{limit} {report.bound_ratio:.3g}"
    line += f", max abs error {report.max_abs:.3g}, max rel error {report.max_rel:.3g}"
    place = f"[{','.join(map(str, report.worst.index))}]"
    if report.worst.device_coordinate is not None:
        place += f", device [{','.join(map(str, report.worst.device_coordinate))}]"
    if report.worst.core is not None:
        place += f", core {report.worst.core}"
    return f"{line}\n  worst at {place}: got {report.worst.got:.7g}, want {report.worst.want:.7g}"


def _bisect_lines(report: BisectReport) -> list[str]:
    compared = f"{report.compared} of {report.total} operations compared"
    if report.given is not None:
        compared += f", {len(report.given)} value{'s'[: len(report.given) != 1]} with given numbers"
    if report.divergence is None:
        worst = (
            "" if report.worst_file is None else f", worst error/bound {report.worst_ratio:.3g} in {report.worst_file}"
        )
        return [f"bisect: none guilty, {compared}{worst}"]
    found = report.divergence
    lines = [f"bisect: {_guilt_line(found)}; {compared}"]
    if found.node is not None:
        lines.append(f'  node "{found.node}" at {found.location}')
    if found.provenance is not None:
        lines.append(f"  from {found.provenance}")
    if found.element is not None:
        element = found.element
        index, device = (",".join(map(str, part)) for part in (element.index, element.device_coordinate))
        core = "no core stores it" if element.core is None else f"core {element.core}"
        lines.append(f'  worst of "{found.tensor}" at [{index}], device [{device}], {core}:')
        numbers = (
            f"got {element.got:.7g}, want {element.want:.7g}, error {element.error:.3g}, bound {element.bound:.3g}"
        )
        lines.append(f"    {numbers}; {found.failed_elements} of {found.element_count} elements are wrong")
    inputs = ((item, ",".join(map(str, item.shape))) for item in found.inputs)
    return [*lines, *(f'  reads "{item.name}": {item.dtype}[{shape}] ({item.memory})' for item, shape in inputs)]


def _guilt_line(found: Divergence) -> str:
    is_named = found.op == found.found_op
    op = f'{found.op} "{found.name}"' if is_named else f'{found.op} "{found.name}" (the file says {found.found_op})'
    match found.guilt.value:
        case "copy in":
            return f'the copy of "{found.tensor}" from the host is guilty'
        case "copy out":
            return f'the copy of "{found.tensor}" to the host is guilty: no operation has stored what it gives'
        case "given":
            return f'{found.file}, {op}, stores "{found.tensor}" farther from what was given than the tolerance'
        case "altered":
            return f'the constants were altered; first read by {found.file}, {op}, as "{found.tensor}"'
        case "overwritten":
            return f'{found.file}, {op}, is guilty{_iteration(found)}: it overwrites "{found.tensor}"'
        case "rounds":
            return f"{found.file}, {op}, is guilty{_iteration(found)}: its loops do not go round as the graph asks"
        case _:
            return f"{found.file}, {op}, is guilty{_iteration(found)}"


def _iteration(found: Divergence) -> str:
    return f" in iteration ({', '.join(map(str, found.iteration))})" if found.iteration else ""
