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
        "check takes a graph, an OpSpec file, a SuperDSC file, a bundle.mlir or a bundle.",
        hint="name a graph, an OpSpec file, a SuperDSC, a bundle.mlir or the directory of a bundle",
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
}
