"""05xx: code generation."""

from __future__ import annotations

from spyrec.diagnostics.codes.code import Code

CODE_GENERATION: dict[str, Code] = {
    "SPY0501": Code(
        "coordinate not understood",
        "A coordinate is a sum of symbols, floor(..), Mod(..) and IndirectAccess(..) with integer coefficients.",
        hint="write sums of symbol, floor(e/n), Mod(e,n) and IndirectAccess(name) with integer factors",
    ),
    "SPY0502": Code(
        "coordinate too large",
        "Length, nesting and numbers of a coordinate are bounded; offsets stay below 2**63.",
        hint="simplify the coordinate, or make the tensor smaller",
    ),
    "SPY0503": Code(
        "OpSpec file malformed",
        "A key is missing or unknown, or a value has the wrong type or is out of range.",
        hint="`spyrec schema opspec` says what each key takes",
    ),
    "SPY0504": Code(
        "OpSpec format unknown",
        "The file must say which format and version it has: spyrec.opspec/1.",
        hint='write "format": "spyrec.opspec/1"',
    ),
    "SPY0505": Code(
        "allocation not possible",
        "An operand lies in one memory, begins at a whole stick and stays inside its segment.",
        hint="give exactly one of hbm, lx and pool: a multiple of 128 bytes inside it",
    ),
    "SPY0506": Code(
        "operands do not fit the operation",
        "Inputs come first, the output is last, and their number is the operation's.",
        hint="give the operation its inputs in order, then its one output",
    ),
    "SPY0507": Code(
        "too many dims",
        "A SuperDSC names its dims from a short list: 7 for a matmul, 8 for every other operation.",
        hint="merge iteration dims, or split the operation",
    ),
    "SPY0508": Code(
        "coordinate cannot be expressed",
        "A SuperDSC gives each device dim one iteration dim plus a constant; align the coordinates first.",
        hint="align the coordinates: one iteration symbol for each device dim",
    ),
    "SPY0509": Code(
        "coordinate outside the tensor",
        "The iterated window must lie inside device_size, whose last dim is one stick.",
        hint="make device_size cover the whole iteration, its last dim one stick",
    ),
    "SPY0510": Code(
        "more cores than the target has",
        "The product of the work divisions is at most the number of cores.",
        hint="lower the work divisions, or choose a target with more cores",
    ),
    "SPY0511": Code(
        "split does not divide",
        "Every core gets the same extent; nothing is rounded or left out.",
        hint="choose a divisor of the extent",
    ),
    "SPY0512": Code(
        "core slice is no whole number of sticks",
        "A stick cannot be shared by two cores, so a core's slice of the stick dim is whole sticks.",
        hint="divide another dim, or into fewer slices",
    ),
    "SPY0513": Code(
        "device format without sticks",
        "Unknown, or its elements are no whole number of bytes.",
        hint="choose a format with whole sticks, such as SEN169_FP16 or IEEE_FP32",
    ),
    "SPY0514": Code(
        "too many layouts",
        "One SuperDSC has labels for four distinct layouts, and a gather for one besides its index tensor.",
        hint="restickify operands until four layouts remain",
    ),
    "SPY0515": Code(
        "sticks do not fit together",
        "An operand's stick dim cannot be described beside that of the reference operand: restickify it.",
        hint="restickify the operand first",
    ),
    "SPY0516": Code(
        "operand shorter than the padded iteration",
        "A ragged stick dim is iterated up to whole sticks; every operand must have room for them.",
        hint="give the operand whole sticks: round its device_size up",
    ),
    "SPY0517": Code(
        "restickify of a narrow window",
        "A gap below one stick cannot be told from padding in a restickify: copy the slice first.",
        hint="copy the slice into a tensor of its own first",
    ),
    "SPY0518": Code(
        "LX window on a divided dim",
        "Each core's scratchpad holds its slice only, so a window across slices has no place there.",
        hint="keep the window in device memory, or divide another dim",
    ),
    "SPY0519": Code(
        "output window would overwrite its neighbour",
        "Whole sticks are stored; a ragged window may only end in the last stick of its buffer.",
        hint="let the window end with a stick, or with the buffer",
    ),
    "SPY0520": Code(
        "span of a core too large",
        "One core touches at most 256 MiB of an operand, from the first byte to the last.",
        hint="divide the operand among more cores, or split the operation",
    ),
    "SPY0521": Code(
        "gather not possible",
        "An index tensor of 32-bit elements in device memory names rows, along one dim of an operand: of an input, or, "
        "in a dialect that scatters, of the output.",
        hint="keep the index tensor in device memory with 32-bit elements, one gathered dim an operand",
    ),
    "SPY0522": Code(
        "partial results cannot be combined",
        "Only matmul, sum, mean, exx2, max and min may be divided along a dim they reduce.",
        hint="divide a dim that is not reduced",
    ),
    "SPY0523": Code(
        "tiling contradicts itself",
        "Each tiled symbol belongs to one loop, tiles are whole sticks, and the last tile stays in the buffer.",
        hint="give each tiled symbol one loop and tiles of whole sticks",
    ),
    "SPY0524": Code(
        "kept loop with baked addresses",
        "Every iteration would use the same tile: keep the addresses symbolic or unroll the loops.",
        hint="set symbolic_args, or unroll_loops",
    ),
    "SPY0525": Code(
        "LX operand moves along a kept loop",
        "Scratchpad addresses are constants of a SuperDSC: unroll, or reuse one buffer for all tiles.",
        hint="set unroll_loops, or mark the operand per_tile_fixed",
    ),
    "SPY0526": Code(
        "operand without argument",
        "A program with symbolic arguments finds operands through kernel arguments or the pool.",
        hint="give the operand an arg_index, or allocate it in the pool",
    ),
    "SPY0527": Code(
        "too many operations",
        "Unrolling would produce more files than is sensible.",
        hint="keep the loops instead of unrolling them",
    ),
    "SPY0528": Code(
        "OpSpec file unreadable",
        "The system refuses to read the file, or it is longer than any OpSpec file.",
        hint="name a readable OpSpec file",
    ),
    "SPY0529": Code(
        "scratchpad too small",
        "The operand ends beyond the scratchpad of a core.",
        hint="choose a lower address, or a smaller operand",
    ),
    "SPY0530": Code(
        "operation not known",
        "The message's hint lists the operations that the device has.",
        hint="`spyrec check` names the operations that are known",
    ),
    "SPY0531": Code(
        "operation on a format it does not take",
        "Arithmetic runs on SEN169_FP16, part of it on IEEE_FP32 too; its operands have one format. Copies take any.",
        hint="convert the operand to a format that the operation takes",
    ),
    "SPY0532": Code(
        "shared-weight unit matmul not lowered",
        "torch-spyre adds a batch dim of size 1 to such a matmul and reorders its operands' device dims; that form is "
        "not written here. Without it the matmul computes the same.",
        hint='leave "shared_weight_unit_bmm" out: the plain matmul computes the same',
    ),
    "SPY0533": Code(
        "loop over a symbolic dim unrolled",
        "How often it goes round is known when the bundle runs, not before.",
        hint="keep the loops, or give the dim one extent",
    ),
    "SPY0548": Code(
        "OpSpec not evaluated",
        "A bundle without a graph is checked against the float64 evaluation of its OpSpecs, which knows all "
        "operations in loops whose steps the operands state; of a window it asks which device dims its axes are.",
        hint="run the bundle without the check",
    ),
    "SPY0549": Code(
        "no OpSpecs in the source",
        "Python source is read as text and never executed; it has to hold the OpSpecs of one program as literals.",
        hint="name a spyrec.opspec/1 file, or the source that torch-spyre has generated for one kernel",
    ),
    "SPY0550": Code(
        "part of an OpSpec that is no literal",
        "Calls of OpSpec, TensorArg, LoopSpec, DebugHandle and SourceLoc have keywords of numbers, texts, lists, "
        "dictionaries, sympify('..') and DataFormats.NAME; nothing is computed.",
        hint="write the value out",
    ),
    "SPY0534": Code(
        "the dialect does not have it",
        "Its writer knows no such addresses or loops: the files would be none of that dialect.",
        hint="leave the option out, or choose another dialect",
    ),
    "SPY0535": Code(
        "top-k takes too many elements",
        "A target limits how many elements of a row a top-k takes, all cores together and each alone (4; since August "
        "2026 128 and 4), and none takes more than there are.",
        hint="divide the dim of the elements taken among more cores, or name another --target",
    ),
    "SPY0538": Code(
        "dims of a window unclear",
        "The iteration space of a pool or convolution does not fit the operation: a dim has no part in it, or two have "
        "the same.",
        hint="give node_output_ranges [N, C, H, W], and iterate the dims of extents above 1 in the operation's order",
    ),
    "SPY0539": Code(
        "parameter of a window",
        "A pool or convolution lacks a parameter, or has one that is no such number.",
        hint="give kernel, strides, padding and, of a depthwise convolution, total sizes as integers",
    ),
    "SPY0540": Code(
        "input does not fit the window",
        "The input's device layout is not what the window slides over: rows or columns are missing or stand elsewhere.",
        hint="lay rows and columns out in whole steps of the window",
    ),
    "SPY0557": Code(
        "padding that memory holds in an unknown form",
        "What memory holds of an axis of kind lowered_padded is not published.",
        hint="give pad_type padded_nozeropad, or padded_wzeropad where the input holds zeros around its elements",
    ),
    "SPY0541": Code(
        "no fields for windows",
        "The dialect has no fields for operations that slide a window.",
        hint="write a newer dialect",
    ),
    "SPY0542": Code(
        "owners without a shuffle",
        "Who owns what of a tensor is said of both operands of a copy from scratchpad to scratchpad, in a dialect that "
        "has shuffles, and of nothing else.",
        hint='leave "work_division" out: the operation\'s own division counts',
    ),
    "SPY0543": Code(
        "slices of a shuffle do not make the cores",
        "The slices along all dims, multiplied, are the cores of the operation, and divide the extents.",
        hint="divide both operands among as many cores as the operation",
    ),
    "SPY0544": Code(
        "slice of a shuffle that nobody can own",
        "A core's slice lies below the number of slices of its dim, and every slice has an owner.",
        hint='for n slices write "Mod(core_id, n)", or floor(core_id / m) where m cores come first',
    ),
    "SPY0545": Code(
        "sticks of pairs along the wrong dims",
        "A stick of 8-bit weights holds pairs of rows of the contracted dim, interleaved along the dim of the sticks.",
        hint="put the contracted dim next to the sticks, and give qfp8wt an input with the same stick dim",
    ),
    "SPY0546": Code(
        "dynamic size without bounds",
        "A size that is a name is an entry of symbolic_dim_bounds, with one maximum and one granularity in a program.",
        hint="give the name a maximum and a granularity, or the dim a number",
    ),
    "SPY0547": Code(
        "dynamic dim divided",
        "Where the slices of a dynamic dim begin depends on a size that only the launch knows; torch-spyre writes "
        "addresses that count from nothing there.",
        hint="divide the work along another dim",
    ),
}
