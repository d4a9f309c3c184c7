"""0750 to 0799: running a bundle."""

from __future__ import annotations

from spyrec.diagnostics.codes.code import Code

RUNNING: dict[str, Code] = {
    # 0760-0799
    "SPY0760": Code(
        "run input missing",
        "Every input that a program of the bundle reads must be given.",
        hint="give the input, by its name in the manifest",
    ),
    "SPY0761": Code(
        "unknown run input",
        "The inputs of a bundle are those of its manifest, in graph order.",
        hint="leave it out, or correct the name",
    ),
    "SPY0762": Code(
        "run input of another shape",
        "A bundle is compiled for one shape of each input.",
        hint="give an array of the shape that the bundle was compiled for",
    ),
    "SPY0763": Code(
        "run input of another dtype",
        "Nothing is cast silently: convert the array on the host.",
        hint="convert the array on the host",
    ),
    "SPY0764": Code(
        "inputs file unreadable",
        "Inputs are read from .npz or .safetensors files, never unpickled.",
        hint="write the file with numpy.savez or safetensors.numpy.save_file",
    ),
    "SPY0765": Code(
        "inputs file contradicts itself",
        "Declared sizes must agree with shapes before memory is taken.",
        hint="write the file again with numpy.savez or safetensors.numpy.save_file",
    ),
    "SPY0766": Code(
        "outputs file cannot be written",
        "Its directory must exist and be writable; it is written whole.",
        hint="name a file in an existing, writable directory",
    ),
    "SPY0767": Code(
        "too many executions",
        "Loops are counted before they run; --max-executions sets the limit.",
        hint="raise --max-executions if the loop bounds are meant",
    ),
    "SPY0768": Code(
        "no such SuperDSC file",
        "--only takes one sdsc_N.json, with its directory where several have one.",
        hint="name one sdsc_N.json of the bundle, with its directory where several have one",
    ),
    "SPY0769": Code(
        "nothing to check against",
        "--check needs the graph that the bundle was compiled from.",
        hint="run without the check, or compile the graph again",
    ),
    "SPY0771": Code(
        "option out of range",
        "The message names the option, the value given and the values allowed.",
        hint="choose a value in the range shown",
    ),
    "SPY0772": Code(
        "no random values for a dtype",
        "Only dtypes with a stated distribution can be drawn from a seed.",
        hint="give the inputs with --inputs",
    ),
    "SPY0773": Code(
        "format without device form",
        "Arguments in device form hold values of a few plain formats.",
        hint="describe shape, dtype and stride_map of the argument",
    ),
    "SPY0774": Code(
        "target not usable",
        "A target is a known name, or a JSON file of format spyrec.target/1.",
        hint='write "format": "spyrec.target/1" and the figures of the device',
    ),
    "SPY0775": Code(
        "no directory for compilations",
        "Compilations are kept in the directory that was named, where nobody else can write; without it the graph is "
        "compiled as if none were named.",
        hint="name a directory of your own, on a disk with room",
    ),
    "SPY0780": Code(
        "the reference engine cannot be watched",
        "The interpreter that defines what programs do only executes them; sanitizers and --bisect see the fast path.",
        hint="leave the engine out, or what watches the run",
    ),
    "SPY0781": Code(
        "call of a model that was closed",
        "A loaded model gives its device back when it is closed, at the end of its `with` block.",
        hint="make the call inside of the `with` block, or load the bundle again",
    ),
    "SPY0782": Code(
        "input without a name",
        "A call of a model takes its inputs by their names in the manifest, in any order.",
        hint="name every input: model(x=x)",
    ),
    "SPY0783": Code(
        "call with a wrong result",
        "A call returns arrays and nothing else, so that it cannot report what its options look for.",
        hint="`model.run(inputs)` returns the report",
    ),
    "SPY0784": Code(
        "no entry named",
        "A directory of several entries holds a bundle for each of them; whoever runs one says which.",
        hint="name the entry: `run DIR --entry NAME`, `model.NAME(...)`, or the bundle DIR/NAME",
    ),
    "SPY0785": Code(
        "launch of a plan with steps of the host",
        "A launch is work of the device alone; between the programs of this bundle the host computes operations that "
        "the device has no form of.",
        hint="run the bundle: `spyrec.load` and `spyrec.run` do both",
    ),
    "SPY0786": Code(
        "bisection over steps of the host",
        "A bisection holds every SuperDSC against the graph compiled again as one; this graph was compiled in parts.",
        hint="check the outputs instead, or bisect a graph without these operations",
    ),
    "SPY0787": Code(
        "unknown output",
        "The results that a run returns are named as the graph names its outputs.",
        hint="the manifest lists them; `outputs=None` returns all",
    ),
    "SPY0788": Code(
        "unknown entry",
        "A loaded model has the entries that its directory lists.",
        hint="`model.entries` lists them",
    ),
    "SPY0789": Code(
        "no list of measured times",
        "A profile is fitted to a CSV file with a row per measured configuration; docs/planning.md names its columns.",
        hint="give every row its shape, cores, division and time",
    ),
    "SPY0790": Code(
        "extra for fitting profiles missing",
        "A profile is fitted with SciPy, which is installed as an extra.",
        hint='pip install "spyrec[calibrate]"',
    ),
    "SPY0791": Code(
        "no timing profile",
        "A profile file has figures of the cost model, each a positive number within the peaks of the device.",
        hint="write it with `spyrec calibrate`",
    ),
    "SPY0792": Code(
        "profile cannot be written",
        "Its directory must exist and be writable; it is written whole.",
        hint="name a file in an existing, writable directory",
    ),
    "SPY0796": Code(
        "kernels cannot be compiled",
        "Found by spyrec doctor: a kernel of one addition was to be compiled, loaded and called.",
        hint="install spyrec again, with the numba and llvmlite that it asks for",
    ),
    "SPY0797": Code(
        "operating system refused",
        "A full disk, a closed directory or a limit of this machine.",
        hint="free what the system lacks (space, permission, open files), and repeat",
    ),
    "SPY0798": Code(
        "out of memory",
        "This machine has not enough memory for the work.",
        hint="close other programs, or run a smaller graph",
    ),
    "SPY0799": Code(
        "command line not understood",
        "The verb's --help lists its options and arguments.",
        hint="the verb's --help lists its options",
    ),
}
