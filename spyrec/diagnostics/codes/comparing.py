"""08xx: checking and comparing."""

from __future__ import annotations

from spyrec.diagnostics.codes.code import Code

COMPARING: dict[str, Code] = {
    # 08xx: 0801-0819 check, 0820 onward diff
    "SPY0801": Code(
        "no bound to check against",
        "No element of the output has a finite error bound: it lies beyond a pole, an overflow or an undecided "
        "comparison everywhere, so any value would pass. The check says nothing about this output.",
        hint="check a smaller part of the graph, or inputs farther from poles and overflow",
    ),
    "SPY0802": Code(
        "constant of the graph not in the bundle",
        "The bundle's graph.json names a constant whose numbers constants.safetensors does not hold, so the float64 "
        "reference cannot be evaluated. The bundle was altered or written by something else.",
        hint="compile the graph again, or run the bundle without the check",
    ),
    "SPY0803": Code(
        "bundle and graph do not match",
        "--bisect learns which SuperDSC computes which value by compiling the bundle's graph.json again. Plan, layouts "
        "or the number of operations differ: the bundle is of another version, or was changed beyond its SuperDSCs.",
        hint="compile the graph again with this version",
    ),
    "SPY0804": Code(
        "nothing to compare",
        "Numbers are given for outputs by name, with --bisect for any value of the graph; at least one of them.",
        hint="the manifest lists the outputs, graph.json names the values",
    ),
    # 0820-0829 the verb check
    "SPY0820": Code(
        "kind of file not known",
        "check takes a graph, an OpSpec file, a bundle, one file of a bundle, a launch artefact or an argument table; "
        "inspect takes a bundle or a SuperDSC.",
        hint="name a graph, an OpSpec file, a file of a bundle, or the directory of a bundle",
    ),
    "SPY0821": Code(
        "MLIR bindings not installed",
        "--mlir needs the extra mlir: pip install 'spyrec[mlir]'.",
        hint="pip install 'spyrec[mlir]', or leave out --mlir",
    ),
    "SPY0822": Code(
        "MLIR refuses the program",
        "MLIR's own parser and verifier do not accept the generic form.",
        hint="put the program right where MLIR points",
    ),
    # 0830-0839 the verbs inspect and diff
    "SPY0830": Code(
        "no such operation or core",
        "inspect shows an operation by its number, its file, its function or a tensor that it writes, and what a core "
        "does of it. The bundle has none of that name, or no core of that number takes part.",
        hint="leave out the name: all operations are listed with theirs",
    ),
    # 0850-0859 reports and records
    "SPY0850": Code(
        "no record, report or sidecar",
        "The file is not of the form spyrec.record/1 (run --record), spyrec.report/1 or spyrec.provenance/1: another "
        "version, an unknown key, a wrong type or a size out of range. docs/report_data.md describes the forms.",
        hint="write it again with this version of spyrec",
    ),
    "SPY0851": Code(
        "record that contradicts itself",
        "A number in a record or report is a position in one of its lists, and a map has as many cells as rows times "
        "columns. Here a position leads nowhere, or the lists have other lengths.",
        hint="write it again with run --record",
    ),
    "SPY0852": Code(
        "record of another bundle",
        "A record names the bundle that was run by its digest. It is shown with a bundle that has other files, so that "
        "what it found may stand at the wrong operations.",
        hint="run this bundle with --record",
    ),
    "SPY0853": Code(
        "report or record cannot be written",
        "The path of -o or --record leads to no place that a file can be written to.",
        hint="name a file in a directory that you may write to",
    ),
}
