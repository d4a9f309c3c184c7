"""0700 to 0749: what the device refuses at load, and what sanitizers find."""

from __future__ import annotations

from spyrec.diagnostics.codes.code import Code

EMULATOR: dict[str, Code] = {
    # 0701-0759
    "SPY0701": Code(
        "allocation does not fit",
        "Device memory has seven data segments of 16 GiB; a tensor lies in one of them.",
        hint="make the tensor smaller than 16 GiB, or use fewer of them",
    ),
    "SPY0702": Code(
        "bytes outside an allocation",
        "Every copy and every argument must lie in memory that was allocated.",
        hint="make the table's address and size those of an argument",
    ),
    "SPY0703": Code(
        "launch without an argument",
        "Each argument of the table, and the pool if there is one, needs an address.",
        hint="launch with an address for each argument of the table",
    ),
    "SPY0704": Code(
        "program cannot be walked",
        "bundle.mlir uses a value before its definition, an unknown map or file, a parameter the argument table does "
        "not have, or a loop bound that is no constant.",
        hint="take bundle.mlir, SuperDSCs and argument table from one compilation",
    ),
    "SPY0705": Code(
        "core that the device lacks",
        "A SuperDSC uses core ids 0 up to the number of cores less one.",
        hint="compile for fewer cores, or run on a target with more",
    ),
    "SPY0706": Code(
        "row outside the table",
        "An index names rows of the table that is read or stored; the argument's device_size gives their number.",
        hint="keep the index values below the number of rows",
    ),
    "SPY0707": Code(
        "too many executions",
        "Loops are counted before they run; the device has a limit.",
        hint="raise --max-executions if the loop bounds are meant",
    ),
    "SPY0708": Code(
        "value of a parameter missing or out of range",
        "A launch gives each value parameter an integer from 0 to the largest that the program was loaded for.",
        hint="give every value parameter a value in its range, and no others",
    ),
    "SPY0711": Code(
        "cores do not cover the grid (V1)",
        "The slice tuples of the cores cover the grid of slices exactly once.",
        rule="V1",
        hint="give every slice of the grid to exactly one core",
    ),
    "SPY0712": Code(
        "slices do not make the whole (V2)",
        "The iteration extent is the extent per core times the slices, exactly.",
        rule="V2",
        hint="make the extent the slices times the extent per core",
    ),
    "SPY0713": Code(
        "stick dim split inside a stick (V3)",
        "A core's slice of a stick dim is a whole number of sticks of every operand.",
        rule="V3",
        hint="divide the dim into whole sticks, or divide another one",
    ),
    "SPY0714": Code(
        "starts contradict strides (V4)",
        "Each core's start follows from another's by the slice indices and strides.",
        rule="V4",
        hint="make each core's start follow from its slice indices and the strides",
    ),
    "SPY0715": Code(
        "start not aligned (V5)",
        "Operands start at whole sticks of 128 bytes, index tensors at whole elements.",
        rule="V5",
        hint="start operands at multiples of 128 bytes",
    ),
    "SPY0716": Code(
        "operand contradicts its argument (V6)",
        "Every byte lies in one argument or the pool, and the buffer that the strides describe is the one that the "
        "argument table describes with device_size; a single row of sticks takes any that fits into it.",
        rule="V6",
        hint="make the argument table and the SuperDSC describe the same buffer",
    ),
    "SPY0717": Code(
        "cores race (V7)",
        "In one SuperDSC no core stores or loads what another stores; only cores that differ in the slice of a reduced "
        "dim may share an output, and combine.",
        rule="V7",
        hint="let each core store a part of its own",
    ),
    "SPY0718": Code(
        "scratchpad rule broken (V8)",
        "An LX operand fits the core's LX, and is read under the slices it was written with: only a shuffle moves data "
        "between cores' LX.",
        rule="V8",
        hint="read from LX what the same core wrote there, in the same slices",
    ),
    "SPY0719": Code(
        "symbols not bound (V9)",
        "sdsc_execute binds each symbol id of the file exactly once, and no others.",
        rule="V9",
        hint="bind each symbol id of the file once in its sdsc_execute",
    ),
    "SPY0720": Code(
        "loop step is no tile step (V10)",
        "A loop advances an operand by the sum of whole-tile steps of its device layout over the dims the loop tiles.",
        rule="V10",
        hint="let the loop advance each operand by whole tiles of its layout",
    ),
    "SPY0721": Code(
        "malformed operand (V11)",
        "Word length, stick size, layout order, scales and gaps of an operand agree.",
        rule="V11",
        hint="generate the operand's description again: its fields disagree",
    ),
    "SPY0722": Code(
        "scratchpad gap on a split dim (V12)",
        "LX holds slices; the gap of a whole buffer has no meaning there.",
        rule="V12",
        hint="leave the gap out: an LX buffer holds the slice alone",
    ),
    "SPY0723": Code(
        "too large (V13)",
        "One core spans at most 256 MiB of an operand, and a buffer fits a segment.",
        rule="V13",
        hint="divide the operand among more cores, or make it smaller",
    ),
    "SPY0724": Code(
        "not executed (V14)",
        "Operations, formats and forms that nobody has seen executed are refused by name.",
        rule="V14",
        hint="use operations and formats that `spyrec check` knows",
    ),
    "SPY0725": Code(
        "folds of a shuffle that do not count the tensor",
        "The folds of each dim of a shuffle's operands (cores, corelets, elements) name every element of it once.",
        hint="each alpha is the product of the factors of all smaller ones; `spyrec codegen` writes such folds",
    ),
    "SPY0726": Code(
        "slice of a shuffle without an owner",
        "Every slice of both operands of a shuffle belongs to a core: what nobody owns has no value, and what nobody "
        "shall own is lost.",
        hint="give every combination of slices in coreIdToWkSlice_ to one core or more",
    ),
    # 0730-0749 sanitizers
    "SPY0730": Code(
        "access out of bounds",
        "A SuperDSC reached outside its argument, the pool or LX while it ran.",
        hint="find who computes the address: the finding names operation, core and byte",
    ),
    "SPY0731": Code(
        "undefined value used",
        "A lane that nothing wrote, or that was computed from one, reached a reduction, a contraction, a selection, an "
        "index or a host copy. Padding lanes may hold anything as long as they stay among themselves.",
        hint="write the value before it is read: the finding names operation, core and byte",
    ),
    "SPY0732": Code(
        "scratchpad misused",
        "A core read LX data that was never written, overwritten in part, divided in another way, or left unread.",
        hint="read from LX what the same core wrote there and nothing has replaced",
    ),
    "SPY0733": Code(
        "race",
        "Two cores stored one byte, or one read what another stored, in one SuperDSC.",
        hint="order the two accesses, or let them touch different bytes",
    ),
    "SPY0734": Code(
        "store outside the window",
        "A store ran into a back gap, or overwrote lanes that belong to a neighbour.",
        hint="let the window end with what the operation is to store",
    ),
    "SPY0735": Code(
        "sanitizer not known",
        "--sanitize takes a list of bounds, init, lx, race, gap, or all.",
        hint="choose among the sanitizers listed",
    ),
    "SPY0750": Code(
        "unknown timing profile",
        "Simulated times come from a named set of parameters of the cost model.",
        hint="choose one of the profiles listed",
    ),
    "SPY0751": Code(
        "trace file cannot be written",
        "Its directory must exist and be writable; it is written whole.",
        hint="name a file in an existing, writable directory",
    ),
    "SPY0752": Code(
        "file of somebody else",
        "Outputs, traces and pictures carry a mark of their kind, and a file without it is replaced by --force alone.",
        hint="pass --force to replace it, or name another file",
    ),
    "SPY0753": Code(
        "kernels for another processor",
        "SPYREC_PROCESSOR names a variant of kernels that this processor can execute (avx512, avx2, portable), before "
        "numba has compiled anything in the process.",
        hint="unset SPYREC_PROCESSOR, or name a variant that the processor has",
    ),
    "SPY0754": Code(
        "no place for compiled kernels",
        "Kernels are compiled once and kept in the user's cache, in a directory that nobody else can enter; where "
        "there can be none, they are kept in a private directory among the temporary files.",
        hint="name a directory of your own in NUMBA_CACHE_DIR, or make ~/.cache writable; what is in it is yours alone",
    ),
    "SPY0755": Code(
        "results of DSCs that do not make up the tensor",
        "The cores of all DSCs of a SuperDSC store every element of its result once: a DSC begins where its slices "
        "say, in the tensor that the others store.",
        hint="the start addresses of one DSC are wrong, or its coreIdToWkSlice_",
    ),
    "SPY0756": Code(
        "operation that unequal DSCs do not share",
        "Cores with unequal work do not join partial results, select among all elements, or follow an index, a window "
        "or a mask along the dim that is cut unevenly: no text says how.",
        hint="cut another dim unevenly, or this one evenly",
    ),
    "SPY0757": Code(
        "element of a data DSC without a source",
        "Every element of every piece of the destination lies in a piece of the source.",
        hint="the source lacks a piece, or the destination has one too many",
    ),
    "SPY0758": Code(
        "byte that a data DSC stores twice",
        "Pieces of the destination lie apart in each memory.",
        hint="give each piece of the destination a place of its own",
    ),
    "SPY0759": Code(
        "sources of a data DSC that differ",
        "Where several pieces of the source hold one element, they hold the same bits. Found while it runs.",
        hint="the pieces were not written alike, or one of them was overwritten",
    ),
}
