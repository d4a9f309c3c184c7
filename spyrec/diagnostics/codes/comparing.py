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
    # 0840-0849 sweeps
    "SPY0840": Code(
        "Dask not installed",
        "sweep spreads its cases with dask.distributed, and writes Parquet with pyarrow: the extra sweep.",
        hint="pip install 'spyrec[sweep]'",
    ),
    "SPY0841": Code(
        "no scheduler or no workers",
        "A sweep runs on the workers of a Dask cluster. The scheduler at the address does not answer, or no worker has "
        "come to it in five minutes. What has been found until then is kept: the same command goes on.",
        hint="start them: dask scheduler, and dask worker ADDRESS on each machine",
    ),
    "SPY0842": Code(
        "workers that cannot run the cases",
        "A worker runs a case with its own spyrec: it needs the one that plans the sweep, with the same sources "
        "and the same Python. It has another one, does not begin what it is given, or has no room on its disk, and no "
        "other worker has. What was found until then is kept.",
        hint="install spyrec[sweep] in the same version on the workers",
    ),
    "SPY0843": Code(
        "wrong sweep file",
        "A sweep is a TOML file of the form spyrec.sweep/1. A key is unknown or missing, a value is of another type or "
        "out of range, what is named is not there or has changed while the sweep ran, or there are more than 4,194,304 "
        "cases. docs/sweep.md describes the form, spyrec schema sweep prints it.",
        hint="docs/sweep.md has an example",
    ),
    "SPY0844": Code(
        "results that cannot be written",
        "The directory of results cannot be made or written, or the disk is full. Every row that was written whole is "
        "kept: the same command goes on from there.",
        hint="make room or name another directory, and give the same command again",
    ),
    "SPY0845": Code(
        "no results of a sweep",
        "The directory holds no results that spyrec sweep wrote, or a line of them is damaged before the last one. A "
        "last line that was torn when the machine stopped is no damage: its case is run again.",
        hint="name the directory that sweep -o wrote",
    ),
    "SPY0846": Code(
        "Optuna not installed",
        "spyrec tune tries all plans of a small graph, and of a larger one those that Optuna's sampler proposes. It "
        "comes with the extra sweep.",
        hint="pip install 'spyrec[sweep]'",
    ),
    "SPY0847": Code(
        "no measured time",
        "The command of tune --measure is started without a shell, with the directory of a bundle as its last "
        "argument. It has to print the time in us on the last line of stdout, and to end with 0 within "
        "--trial-seconds. It did not for the planner's own plan. A later plan for which it fails counts as refused.",
        hint="try it: the command, and a bundle of spyrec compile as its last argument",
    ),
    "SPY0848": Code(
        "tuned graph that cannot be written",
        "The file of tune -o cannot be written, or the graph reads constants from files and the tuned one would lie in "
        "another directory, where they are not.",
        hint="name a file beside the graph",
    ),
    "SPY0849": Code(
        "tuned graph that is not what was found",
        "Before a tuned graph is written it is compiled once more, and has to take the time that the search found; it "
        "is run and checked, unless --no-check says otherwise. One of the two failed, or no worker could try the "
        "planner's own plan. Nothing was written.",
        hint="report it, with the graph: spyrec compile and run --check of the planner's plan tell more",
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
