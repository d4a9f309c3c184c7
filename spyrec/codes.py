"""The diagnostic codes: one record each, in the section of the stage that raises it.

A code is never reused for another meaning.  01xx reading, 02xx shapes and dtypes, 03xx layout, 04xx scheduling,
05xx code generation, 06xx bundle, 07xx runtime and emulator, 08xx checking and comparing,
09xx program execution: memory, streams, launches, 99xx ours.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Code:
    """What a code means: a title of a few words, and what to know to put it right.

    ``hint`` is what to do in general; it stands in a diagnostic that has no hint of its own.  ``rule`` is the rule of
    the executor, V1 to V14, that a diagnostic of this code says is broken.
    """

    title: str
    explanation: str
    hint: str | None = None
    rule: str | None = None


_REPORT = "please file a report together with the input"
"""What to do where a pass broke a rule of its own."""

READING: dict[str, Code] = {
    "SPY0101": Code(
        "not JSON",
        "The text is not JSON in UTF-8; line and column say where it stops being JSON.",
        hint="put the text right at the place shown; a JSON formatter finds the same place",
    ),
    "SPY0102": Code(
        "key stands twice",
        "One object names a key twice: readers would disagree on which one holds.",
        hint="keep one of the two",
    ),
    "SPY0103": Code(
        "number not finite",
        'NaN, Infinity and literals beyond float64 are refused; an infinity is written as the string "inf" or "-inf".',
        hint='write an infinity as the string "inf" or "-inf", and leave NaN out',
    ),
    "SPY0104": Code(
        "text too deep or too long",
        "Nesting is limited to 100 levels and a text to 256 MiB; numbers in bulk belong into safetensors or npy files.",
        hint="put numbers in bulk into a safetensors file",
    ),
    "SPY0110": Code(
        "value of another kind",
        "The message names the value found and what the format wants there.",
        hint="put a value of that kind there; `spyrec schema graph` says what each key takes",
    ),
    "SPY0111": Code(
        "unknown key",
        "Objects of a graph file are closed: a key that is not read would be ignored silently.",
        hint="remove the key, or correct its spelling",
    ),
    "SPY0112": Code("missing key", "The key has no default and must be given.", hint="add the key"),
    "SPY0113": Code(
        "another format", 'A graph file says "format": "spyrec.graph/1".', hint='write "format": "spyrec.graph/1"'
    ),
    "SPY0114": Code(
        "no name",
        "Names are a letter or _, then up to 127 letters, digits, _ and dots.",
        hint="rename it: a letter or _, then letters, digits, _ and dots",
    ),
    "SPY0115": Code(
        "name taken",
        "Every value of a graph has a name of its own: inputs, constants and results of nodes.",
        hint="rename one of the two",
    ),
    "SPY0116": Code(
        "name without a value",
        "A node, an output or a loop body names something that the graph does not have.",
        hint="correct the name, or declare it among inputs, constants or nodes",
    ),
    "SPY0117": Code(
        "cycle",
        "Nodes may stand in any order, but none may need its own result.",
        hint="break the cycle: let one of these nodes read something else",
    ),
    "SPY0118": Code(
        "unknown op",
        "`spyrec ops` lists the ops; names are those of PyTorch's functions, overload dropped.",
        hint="`spyrec ops` lists the ops",
    ),
    "SPY0120": Code(
        "wrong number of operands",
        'Tensor arguments stand in "inputs" in PyTorch\'s order; the rest is in "attrs".',
        hint="`spyrec ops NAME` lists an op's operands in their order",
    ),
    "SPY0121": Code(
        "attribute unknown or missing",
        "`spyrec ops NAME` lists the attributes of an op and their defaults.",
        hint="`spyrec ops NAME` lists the attributes of an op",
    ),
    "SPY0122": Code(
        "attribute of another kind",
        "The message names the value found and what the attribute takes.",
        hint="`spyrec ops NAME` lists the attributes of an op and what they take",
    ),
    "SPY0123": Code(
        "unknown extent",
        'A size is an int, a name in "dims", or in attributes a product of those: "A*64".',
        hint='add the dim to "dims", or write the extent as a number',
    ),
    "SPY0124": Code(
        "extent out of range",
        "Extents run from 1 to 2**63 - 1; empty tensors have no device form.",
        hint="choose an extent from 1 to 2**63 - 1",
    ),
    "SPY0125": Code("too many elements", "The product of a shape stays below 2**63.", hint="use a smaller shape"),
    "SPY0126": Code(
        "constant with two values or none",
        'A constant has either "value" or "data".',
        hint='give exactly one of "value" and "data"',
    ),
    "SPY0127": Code(
        "inline value of another shape",
        "A value is one number for all, or lists nested as the shape says.",
        hint="write a number, or nested lists of the constant's shape",
    ),
    "SPY0128": Code(
        "number that is no value of the dtype",
        "Integers must be whole and in range, bools true or false, floats in range.",
        hint="write values of the constant's dtype",
    ),
    "SPY0129": Code(
        "path leaves the directory",
        "Constant files lie in the directory of the graph; symbolic links are resolved first.",
        hint="put the file into the directory of the graph, and name it relative to it",
    ),
    "SPY0130": Code(
        "constant file not readable",
        "The file is missing, is no plain file, or cannot be read.",
        hint="name an existing file, relative to the directory of the graph",
    ),
    "SPY0131": Code(
        "constant file without the tensor",
        "The header is wrong, or the tensor is absent or has another shape or dtype.",
        hint="make declaration and file agree",
    ),
    "SPY0132": Code(
        "constant file of another kind",
        "Constants are read from .safetensors and .npy files.",
        hint="save the constant as .safetensors or .npy",
    ),
    "SPY0133": Code(
        "symbolic dim without an extent",
        "Some multiple of multiple_of must lie from min to max.",
        hint="choose bounds that hold a multiple of multiple_of",
    ),
    "SPY0134": Code(
        "loop that cannot be",
        "Loops name dims of the graph, have tiles or tile_size, and hold each node once.",
        hint="correct the loop, or remove it",
    ),
    "SPY0135": Code(
        "work division that cannot be",
        "Keys are dim names of the node's axes, or positions; counts fit the extents.",
        hint="name a dim of the node and a divisor of its extent",
    ),
    "SPY0136": Code(
        "pinned layout that cannot be",
        "A layout has device_size and stride_map of one length, or a dim_order.",
        hint="correct the layout, or remove it: the compiler then chooses",
    ),
    "SPY0137": Code("no outputs", "A graph computes at least one output.", hint='name at least one value in "outputs"'),
    "SPY0138": Code(
        "graph file not readable",
        "The file is missing, is no plain file, or cannot be read.",
        hint="name a readable graph file",
    ),
    "SPY0139": Code(
        "wrong number of results",
        '"outputs" names each result of the op once.',
        hint='name each result of the op once in "outputs"',
    ),
    "SPY0140": Code("unknown dtype", "The message lists the dtypes.", hint="choose one of the dtypes listed"),
    "SPY0141": Code(
        "oracle input missing",
        "The float64 evaluation of a graph needs every input in the graph's shape.",
        hint="give every input, in the shape of the graph",
    ),
    "SPY0142": Code(
        "dim of another extent",
        "A dim has one extent everywhere: where it is declared, and on every axis that carries its name.",
        hint="declare another dim, or give the axis the extent of this one",
    ),
    "SPY0143": Code(
        "value of another builder",
        "A graph is built by one GraphBuilder; values cannot be taken over from another one.",
        hint="declare the tensor as an input of this builder too",
    ),
    "SPY0144": Code(
        "builder used out of order",
        "Loops are left in the opposite order of entering them, and all of them before the graph is built.",
        hint="enter loops by `with` only, and build the graph after the last one",
    ),
    "SPY0145": Code(
        "value without numbers",
        "Values of a GraphBuilder stand for tensors of a later run; Python cannot branch on them.",
        hint="compare inside the graph: where, logical_and, logical_not",
    ),
    "SPY0146": Code(
        "constant too large for the text",
        "JSON holds constants of up to 4,096 elements without NaN; larger ones need a file beside the text.",
        hint="save the graph into a directory: builder.save(directory)",
    ),
    "SPY0147": Code(
        "axes that cannot be named",
        "Dims of inputs and constants are named before a node reads them; results take the names of their operands.",
        hint="name the dims where the tensor is declared",
    ),
    "SPY0148": Code(
        "examples or schemas missing",
        "They are part of every wheel, and stand beside the package in a checkout; files were taken out of this one.",
        hint="install spyrec again",
    ),
    "SPY0149": Code(
        "place of the example taken",
        "An example is copied into a directory of its own, which must not exist yet.",
        hint="name a directory that does not exist yet",
    ),
}

SHAPES: dict[str, Code] = {
    # 02xx
    "SPY0201": Code(
        "shapes do not broadcast",
        "Extents are equal or 1, counted from the last dim, as in PyTorch.",
        hint="reshape, unsqueeze or expand one operand",
    ),
    "SPY0202": Code(
        "dtype without this arithmetic",
        "The device computes on floats; integers can only be moved, bools be compared and selected.",
        hint="convert the operand with to(float16) or to(float32), where its values allow",
    ),
    "SPY0203": Code(
        "dtypes meet",
        "Nothing is cast silently: convert one operand with to(...).",
        hint="convert one operand with to(...)",
    ),
    "SPY0204": Code("dim out of range", "Dims run from -rank to rank - 1.", hint="choose a dim from -rank to rank - 1"),
    "SPY0205": Code(
        "dim named twice",
        "A list of dims names each at most once; permute names each exactly once.",
        hint="name each dim once",
    ),
    "SPY0206": Code(
        "rank that the op does not take",
        "The message names the ranks that it takes.",
        hint="reshape the operand to a rank that the op takes",
    ),
    "SPY0207": Code(
        "operand of another shape",
        "The message names the shape that the op needs there.",
        hint="reshape the operand, or correct its declaration",
    ),
    "SPY0208": Code(
        "sizes that do not fit",
        "Sizes hold as many elements as the operand; one of them may be -1.",
        hint="choose sizes that hold as many elements as the operand",
    ),
    "SPY0209": Code(
        "attribute out of range", "The message names the value and the range.", hint="choose a value in the range shown"
    ),
    "SPY0210": Code(
        "condition that is not bool",
        "where selects by a bool tensor; comparisons make one.",
        hint="make the condition with a comparison, such as ne(x, 0)",
    ),
    "SPY0211": Code(
        "attribute not supported",
        "PyTorch knows this value of the attribute, and the device has nothing for it.",
        hint="choose another value of the attribute, or build it from other ops",
    ),
    "SPY0212": Code(
        "index out of range",
        "A slice or selection must hold at least one element.",
        hint="choose start and end so that an element lies between them",
    ),
    "SPY0213": Code(
        "contraction of unequal extents",
        "The contracted dims of both operands are equal.",
        hint="transpose or reshape an operand so that the contracted dims agree",
    ),
    "SPY0214": Code(
        "format that the op does not take",
        "The device has a list of ops that run on IEEE_FP32; the others need to(float16).",
        hint="convert the operand with to(float16)",
    ),
    "SPY0215": Code(
        "number that does not fit the dtype beside it",
        "A number takes the dtype of the tensors beside it and never widens them.",
        hint="choose a number in the dtype's range, or a wider dtype beside it",
    ),
    "SPY0216": Code(
        "expand that does not fit",
        "Only extents of 1 grow; -1 keeps an extent; new dims stand in front.",
        hint="expand dims of extent 1 only; unsqueeze first for a new dim inside",
    ),
    "SPY0217": Code(
        "tensors that do not join",
        "cat needs equal extents in the other dims, stack equal shapes.",
        hint="make the extents of the other dims agree",
    ),
    "SPY0218": Code(
        "conversion that the device lacks",
        "Conversions run among float16, bfloat16, float32 and bool.",
        hint="convert by way of float32, or on the host",
    ),
    "SPY0219": Code(
        "operand that must be a tensor",
        "A number or nothing stands where the op needs a tensor.",
        hint="name a value there: an input, a constant or a node's result",
    ),
    "SPY0220": Code(
        "declared type disagrees",
        "A value's type is not what its node makes: a pass went wrong.",
        hint="this is a bug of a pass, not of the graph: please report it",
    ),
}

LAYOUT: dict[str, Code] = {
    "SPY0301": Code(
        "dtype has no device form",
        "The device holds formats that fill a stick of 128 bytes evenly; float64, complex and a few others have none.",
        hint="choose a dtype that the device holds, such as float16",
    ),
    "SPY0302": Code(
        "lengths disagree",
        "Shape, strides and dim_order have one entry per dim; device_size and stride_map one per device dim.",
        hint="give lists of one length",
    ),
    "SPY0303": Code(
        "rank too high",
        "A dense tensor has at most 6 dims; a sparse one, with one element per stick, at most 5.",
        hint="merge or split off dims until the rank fits",
    ),
    "SPY0304": Code(
        "dim_order is no permutation",
        "dim_order names every dim once; a last entry -1 makes it sparse.",
        hint="name every dim from 0 to rank - 1 once",
    ),
    "SPY0305": Code(
        "size or stride out of range",
        "Sizes are integers of at least 1, host strides of at least 0; a stride_map may hold -1: no host dim.",
        hint="give integers in the range that the message names",
    ),
    "SPY0306": Code(
        "last extent is no stick",
        "The last device dim is one full stick: 128 bytes of the device format.",
        hint="end device_size with the elements of one stick: 64 for 16-bit formats, 32 for 32-bit ones",
    ),
    "SPY0307": Code(
        "layout does not hold the tensor",
        "Every element of the host tensor needs exactly one place: sizes and stride map must match shape and strides.",
        hint="leave the layout out, or make sizes and stride map those of the tensor",
    ),
    "SPY0308": Code(
        "tiling does not divide",
        "A tile that does not divide its dim needs a finer one inside it (the stick, say) to take the remainder.",
        hint="choose an extent that the tile divides, or tile inside it once more",
    ),
    "SPY0309": Code(
        "elements overlap",
        "Two elements of the tensor would lie at one place. Stride 0 (one element, expanded) is legal in sources only.",
        hint="make the tensor contiguous before the copy",
    ),
    "SPY0310": Code(
        "index outside the tensor",
        "An index, device coordinate or address must lie inside the tensor.",
        hint="choose a place inside the tensor",
    ),
    "SPY0311": Code(
        "index expression not understood",
        "An index is made of integers, loop variables, + - *, floor(a/n), FloorDiv(a, n), Mod(a, n), ModularIndexing.",
        hint="write the index with the functions listed by the message",
    ),
    "SPY0312": Code(
        "layout cannot follow the index",
        "The coordinates found would not read the offsets of the expression, so a copy has to be made first.",
        hint="copy the operand into the layout that the index needs",
    ),
    "SPY0313": Code(
        "coordinate leaves its dim",
        "The index runs over the end of a stick or another dim inside one access, so a copy has to be made first.",
        hint="copy the operand first, so that the access stays in one dim",
    ),
    "SPY0315": Code(
        "no such copy",
        "The table's formats, direction or shape do not fit the array, or no conversion exists between the formats.",
        hint="use the table that belongs to the array: its shape, dtype and direction",
    ),
    "SPY0316": Code(
        "conversion table malformed",
        "A DCI file has a missing, unknown or ill-typed key, or absurd sizes.",
        hint="write the bundle again, or mend the table at the place shown",
    ),
    "SPY0317": Code(
        "copy leaves a buffer",
        "The loop nests of the table reach outside the host array or the device allocation.",
        hint="use the table of this argument: it was made for another shape or layout",
    ),
    "SPY0318": Code(
        "integer does not fit",
        "The device holds int64 tensors as 32-bit integers; nothing is truncated.",
        hint="keep values from -2**31 to 2**31 - 1, or store them as float32",
    ),
    "SPY0319": Code(
        "tensor too large",
        "The sizes ask for more elements than can be addressed or drawn.",
        hint="ask for a smaller tensor",
    ),
    "SPY0320": Code(
        "direction unknown", 'A copy goes "h2d", host to device, or "d2h", device to host.', hint='say "h2d" or "d2h"'
    ),
    "SPY0322": Code(
        "picture cannot be written",
        "The directory of the picture must exist and be writable.",
        hint="name a file in an existing, writable directory",
    ),
    "SPY0321": Code(
        "nothing to inspect",
        "The path is neither a graph file nor a bundle directory.",
        hint="name a graph file or the directory of a bundle",
    ),
    "SPY0350": Code(
        "no layout serves a kernel",
        "Where no copy helps either, the message names the kernel and why.",
        hint="remove pinned layouts near the kernel, or split the operation named",
    ),
    "SPY0351": Code(
        "pinned layout cannot be served",
        "The layout is not one that any kernel can read or write.",
        hint="remove the pinned layout: the compiler then chooses",
    ),
}

SCHEDULING: dict[str, Code] = {
    # 04xx
    "SPY0401": Code(
        "larger than a segment",
        "A tensor, and the intermediates of one program, fit a segment of 16 GiB.",
        hint="make the tensor smaller, or split it over several nodes",
    ),
    "SPY0403": Code(
        "span limit",
        "One core touches at most 256 MiB of an operand in every operation.",
        hint="allow more cores, or split the operand along its outermost dim",
    ),
    "SPY0412": Code(
        "work division cannot be honoured",
        "Pinned slices are even in every operation that has the dim, along sticks whole sticks, and at most the cores.",
        hint='remove "work_division": the compiler divides the work itself',
    ),
    "SPY0413": Code(
        "no such pass", "The pipeline's passes are listed in the message.", hint="name one of the passes listed"
    ),
    "SPY0414": Code(
        "LX planner not there",
        "best-fit is built in; omnimalloc needs the extra alloc, cpsat the extra solver.",
        hint="pip install 'spyrec[alloc]' or 'spyrec[solver]', or leave out --lx-planner",
    ),
    "SPY0420": Code(
        "more tiles than elements",
        "Inside an outer loop over the same dim a loop has the elements of one of its tiles.",
        hint="choose fewer tiles",
    ),
    "SPY0421": Code(
        "two dims of one name in a loop",
        "An operation that a node becomes has two dims of the name that a loop tiles: which one is meant is open.",
        hint="give the axes different dim names",
    ),
    "SPY0422": Code(
        "too many tensors for one loop",
        "A loop is emitted in one program, and a program names at most six tensors, five beside a pool.",
        hint="part the loop into two",
    ),
    "SPY0424": Code(
        "loop depends on itself through an operation outside",
        "The operations of a loop run together: one that stands outside can run before or after it only.",
        hint="put the operation into the body, or part the loop into two",
    ),
    "SPY0425": Code(
        "symbolic dim reduced without whole tiles",
        "Memory holds the largest extent of a symbolic dim: a sum over it would take what lies behind a run's own.",
        hint="put it into a loop over the dim whose tile_size divides its multiple_of",
    ),
    "SPY0426": Code(
        "symbolic dim taken apart",
        "A view or a copy that cuts or merges a symbolic dim would move what lies behind a run's extent among its own.",
        hint="keep its axis whole, and give its size in attributes as -1",
    ),
    # 0430 to 0436: rules of the compiler's own loops; a violation is a mistake of a pass, and ends as SPY9901
    "SPY0430": Code(
        "operations of a loop are scattered", "The operations of one loop are neighbours, in one program.", hint=_REPORT
    ),
    "SPY0431": Code(
        "loop is not one loop",
        "All operations of a loop agree on its trip count, on the dim it runs over and on the loops around it.",
        hint=_REPORT,
    ),
    "SPY0432": Code(
        "tiled dims do not match the loops",
        "An operation names tiled dims and steps for each of the loops around it, and for no other.",
        hint=_REPORT,
    ),
    "SPY0433": Code(
        "tile used outside of its round",
        "A tensor that each round of a loop writes anew is used by operations of that loop only.",
        hint=_REPORT,
    ),
    "SPY0434": Code(
        "tile moves with its own loop",
        "A tensor that each round of a loop writes anew lies at one place in all rounds.",
        hint=_REPORT,
    ),
    "SPY0435": Code(
        "passes out of order",
        "Loops are made after kernels, and before layouts are chosen, work is divided and scratchpads are filled.",
        hint=_REPORT,
    ),
    "SPY0437": Code(
        "tile that does not move",
        "What a loop tiles moves with its rounds, unless it is a tile that each round writes anew.",
        hint=_REPORT,
    ),
    "SPY0436": Code("tile outside of its tensor", "No round of a loop leaves the tensors it works on.", hint=_REPORT),
    "SPY0440": Code(
        "strides without corrections",
        "The stick strides of a launch reach a program with its correction. With baked addresses it has none.",
        hint="leave out --no-symbolic-args, or --symbolic-strides",
    ),
}

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
        "Rows are read through an index tensor of 32-bit elements in device memory, by an input, in one dim.",
        hint="keep the index tensor in device memory with 32-bit elements, one gathered dim an input",
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
}

BUNDLE: dict[str, Code] = {
    # 0601-0606 files of a bundle, 0610-0617 manifest and directory, 0620-0625 SuperDSC, 0630-0635 bundle.mlir,
    # 0640-0659 launch artefact and program image (0641-0651 are its rules J1 to J11)
    "SPY0601": Code(
        "file of a bundle missing",
        "The bundle, or a file its manifest or bundle.mlir names, is absent.",
        hint="name the bundle's directory, or write the bundle again",
    ),
    "SPY0602": Code(
        "file of a bundle altered",
        "The SHA-256 of a file is not the one in the manifest: it was changed, truncated or damaged after the bundle "
        "was written. Compile again, or pass --no-verify if the change is meant.",
        hint="compile again, or pass --no-verify if the change is meant",
    ),
    "SPY0603": Code(
        "path leaves the bundle",
        "Names in a bundle are relative and may not leave its directory, by links neither.",
        hint="keep every file of the bundle inside its directory",
    ),
    "SPY0604": Code(
        "file too large",
        "The file is longer than anything spyrec writes; it is not read into memory.",
        hint="write the bundle again",
    ),
    "SPY0605": Code(
        "file cannot be read",
        "The path is no regular file, or the system refuses to read it.",
        hint="check the permissions, and that the path is a plain file",
    ),
    "SPY0606": Code(
        "file not listed",
        "A verified bundle uses a file that the manifest gives no hash of.",
        hint="write the bundle again, so that its manifest lists every file",
    ),
    "SPY0610": Code(
        "manifest or argument table malformed",
        "The JSON has another format version, an unknown or missing key, or a value of the wrong type or range.",
        hint="`spyrec schema bundle` says what each key takes",
    ),
    "SPY0611": Code(
        "manifest contradicts itself",
        "Two places of the manifest, or the manifest and a conversion table, disagree.",
        hint="write the bundle again, or mend the manifest by hand",
    ),
    "SPY0612": Code(
        "output exists",
        "Nothing is overwritten without --force.",
        hint="pass --force to replace a bundle, or name another output",
    ),
    "SPY0613": Code(
        "output cannot be written",
        "The directory above is absent or not writable, or the disk is full.",
        hint="name an output in an existing, writable directory",
    ),
    "SPY0614": Code(
        "output is no bundle",
        "--force replaces an existing bundle, and never another kind of directory.",
        hint="name another output, or remove it yourself",
    ),
    "SPY0615": Code(
        "bundle without manifest",
        "A bundle written by others runs with a table of its arguments: --args ARGS.json.",
        hint="describe its arguments with --args ARGS.json",
    ),
    "SPY0616": Code(
        "constants damaged",
        "constants.safetensors does not hold exactly the constants that the manifest lists.",
        hint="write the bundle again: the constants must be those that the manifest lists",
    ),
    "SPY0617": Code(
        "argument table contradicts itself",
        "Every argument is described once, numbered from 0.",
        hint="describe every argument once, numbered from 0 without gaps",
    ),
    "SPY0620": Code(
        "SuperDSC malformed",
        "A key is missing, or a value has the wrong type or is out of range.",
        hint="`spyrec schema superdsc` says what each key takes",
    ),
    "SPY0621": Code(
        "SuperDSC form not understood",
        "Rule V14: a form whose meaning would have to be guessed is refused by name (several DSCs, distinct corelets, "
        "start addresses by other functions than Map, several compute operations, padding_, unknown keys).",
        rule="V14",
        hint="write the file in the form that torch-spyre emits",
    ),
    "SPY0622": Code(
        "SuperDSC contradicts itself",
        "Fields that must agree (rules V1, V2, V9, V11) do not.",
        hint="generate the file again, or make the fields agree",
    ),
    "SPY0623": Code(
        "SuperDSC repeats wrongly",
        "A field that only repeats what follows from others (folds, names, memOrg_, maskingConstId_) disagrees with "
        "them. Execution does not depend on it, so this is a warning.",
        hint="generate the file again; it runs all the same",
    ),
    "SPY0624": Code(
        "not as torch-spyre emits",
        "A key that torch-spyre's writer always writes is absent.",
        hint="generate the file again with a current torch-spyre",
    ),
    "SPY0625": Code(
        "not as the public schema says",
        "spyrec check --profile spec holds SuperDSCs against the public sdscbundle schema 1.2.0, which forbids some of "
        "what torch-spyre writes.",
        hint="use --profile emitted for files as torch-spyre writes them",
    ),
    "SPY0630": Code(
        "bundle.mlir syntax",
        "The text is not the subset of MLIR that device programs are written in.",
        hint="put the text right at the place shown",
    ),
    "SPY0631": Code(
        "operation outside the subset",
        "bundle.mlir uses an operation or attribute that is not executed.",
        hint="keep to constants, additions, affine.apply, loops, argument extraction and sdsc_execute",
    ),
    "SPY0632": Code(
        "value undefined",
        "A value or map is unknown where it is used, defined twice, or of another kind.",
        hint="define each value once, before its use",
    ),
    "SPY0633": Code(
        "symbol ids disagree",
        "Rule V9: operands and ids of a call pair up, and bind exactly the SuperDSC's ids.",
        rule="V9",
        hint="take bundle.mlir and SuperDSCs from one compilation",
    ),
    "SPY0634": Code(
        "parameter not provided",
        "The program takes an argument or a pool that no table describes.",
        hint="describe every argument, and the pool, in the manifest or in --args",
    ),
    "SPY0635": Code(
        "loop not countable",
        "Bounds and step of a loop are constants, and the step is positive.",
        hint="give the loop constant bounds and a step above 0",
    ),
    "SPY0640": Code(
        "launch plan of another form",
        "spyrecode.json has a preparation (one Allocate, then InitTransfers), a JobExecPlan of known commands with all "
        "their properties, and the correction slots, of which the first is that of the JobExecPlan.",
        hint="the form is described in docs/program_image.md; write the bundle again",
    ),
    "SPY0641": Code(
        "number not in decimal digits",
        "Rule J1: every number of spyrecode.json is a string of decimal digits and fits 64 bits.",
        hint='write the number as "128"',
    ),
    "SPY0642": Code(
        "outside the job's allocation",
        "Rule J2: what a step copies or writes lies in the job's allocation, which lies in the program segment.",
        hint="make the allocation as large as the image and its correction areas",
    ),
    "SPY0643": Code(
        "transfer of another size than its file",
        "Rule J3: the size of an InitTransfer is that of the file it names.",
        hint="write the bundle again: the file was cut short, or the plan is that of another file",
    ),
    "SPY0644": Code(
        "file outside the artefact's directory",
        "Rule J4: init_bin_file names a file in the directory of spyrecode.json; no path or link leaves it.",
        hint="put the file beside spyrecode.json",
    ),
    "SPY0645": Code(
        "pointer not on a stick",
        "Rule J5: device pointers are multiples of 128 bytes.",
        hint="align the pointer to 128 bytes",
    ),
    "SPY0646": Code(
        "start of no program",
        "Rule J6: job_bin_ptr is an entry of an image that the preparation copies.",
        hint="point at an entry of the image: 128 bytes behind its start and every 128 bytes from there",
    ),
    "SPY0647": Code(
        "transfer of the wrong size",
        "Rule J7: a transfer has the size of what the host computed, or fits the buffer that it reads.",
        hint="give computation and transfer the size of the correction tensor",
    ),
    "SPY0648": Code(
        "correction over code",
        "Rule J8: correction areas lie apart from what the preparation copies, and apart from each other.",
        hint='move the area behind the image, or state "correctionOverlapsCode": "true"',
    ),
    "SPY0649": Code(
        "steps out of order",
        "Rule J9: host computations are followed by their transfers to the device and these by a program; a buffer is "
        "made once, and before it is used.",
        hint="order the steps ComputeOnHost, DataTransfer, ComputeOnDevice",
    ),
    "SPY0650": Code(
        "version or key of a launch plan",
        "Rule J10: schemaVersion is there and not newer than what is read; other keys are not read, a warning.",
        hint="write the bundle again with this version of spyrec",
    ),
    "SPY0651": Code(
        "correction of another job",
        "Rule J11: a job is self-contained: each start of a program that takes a correction has its own, computed and "
        "transferred by the same plan to where the entry takes it.",
        hint="put ComputeOnHost and DataTransfer before the ComputeOnDevice that they correct",
    ),
    "SPY0652": Code(
        "program image damaged",
        "Header, entries, sections or the table of a program image contradict each other or its length.",
        hint="write the bundle again",
    ),
    "SPY0653": Code(
        "code of a program image altered",
        "The SHA-256 of the code section is not the one in the image's header.",
        hint="write the bundle again: the image was altered or damaged",
    ),
    "SPY0654": Code(
        "no program image",
        "The bytes do not begin with the header of a program image, or its version is another.",
        hint="write the bundle again with this version of spyrec",
    ),
    "SPY0655": Code(
        "image of another program",
        "The image of a bundle's program holds its bundle.mlir and its SuperDSCs byte for byte, and its arguments.",
        hint="compile again; with --no-verify the files are taken, and the image is made of them anew",
    ),
    "SPY0656": Code(
        "host computation not understood",
        "The hcm object of a ComputeOnHost lists the words of a correction in a version that is known.",
        hint="the form is described in docs/program_image.md; write the bundle again",
    ),
    "SPY0657": Code(
        "words of a correction differ",
        "A host computation gives the words that the table of the program's image lists, in that order.",
        hint="take plan and image from one compilation",
    ),
    "SPY0658": Code(
        "correction without a number",
        "A host computation needs an address or a value that the launch does not give, or one that is no unsigned "
        "64-bit number.",
        hint="launch with every argument, the pool and every value that the program takes",
    ),
}

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
        "A gather reads rows of the value argument; its device_size gives their number.",
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
        "argument table describes with device_size.",
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
        "An LX operand fits the core's LX, and is read under the slices it was written with: nothing moves data "
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
    "SPY0754": Code(
        "no place for compiled kernels",
        "Kernels are compiled once and kept beside spyrec or in the user's cache; where neither can be written, or "
        "others can write there, they are kept in a private directory among the temporary files.",
        hint="name a directory of your own in NUMBA_CACHE_DIR, or make ~/.cache writable",
    ),
}

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
    "SPY0780": Code(
        "the reference engine cannot be watched",
        "The interpreter that defines what programs do only executes them; sanitizers and --bisect see the fast path.",
        hint="leave the engine out, or what watches the run",
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

EXECUTION: dict[str, Code] = {
    # 09xx the program execution pipeline: 0901-0919 memory, 0920-0949 streams, 0950-0979 launches, 0980-0989 findings
    "SPY0901": Code(
        "out of device memory",
        "No region has a free block of that size. Device memory is a pool of regions; one allocation lies in one "
        "region, and the free bytes of a region need not lie side by side.",
        hint="free tensors that are done with, or make the tensor smaller than a region",
    ),
    "SPY0902": Code(
        "allocation used after it was freed",
        "The handle's generation is over: its memory may belong to another tensor by now.",
        hint="keep the tensor until its last use has been enqueued; what is enqueued keeps the memory itself",
    ),
    "SPY0903": Code(
        "allocation freed twice",
        "The handle was freed before. Nothing was changed.",
        hint="free each allocation once; a tensor frees its own",
    ),
    "SPY0904": Code(
        "no such memory region",
        "A virtual address is a region and an offset in it; the device has no such region, or the offset lies outside.",
        hint="resolve the allocation on the device that it belongs to",
    ),
    "SPY0905": Code(
        "bytes outside of an allocation",
        "What an operation touches must lie inside one live allocation.",
        hint="check offset and size against the allocation",
    ),
    "SPY0906": Code(
        "size or stride not possible",
        "Sizes are not negative, and strides (in elements) place every element of the shape at a place of its own.",
        hint="check shape, strides and dtype",
    ),
    "SPY0920": Code(
        "stream has an error",
        "An operation of this stream failed and what was queued behind it was skipped. The stream takes nothing until "
        "the error is cleared. Nothing was enqueued.",
        hint="read the error, then call clear_error()",
    ),
    "SPY0921": Code(
        "operation failed while it ran",
        "The note names the launch, its step and its tile iteration. What stood behind it in the stream, and what "
        "waits for events recorded there, was skipped.",
        hint="put the cause right, call clear_error() on the stream, and launch again",
    ),
    "SPY0922": Code(
        "synchronisation took too long",
        "The work was not done in the time given. It stays enqueued and goes on.",
        hint="synchronize again, or give it more time",
    ),
    "SPY0923": Code(
        "not permitted in a host function",
        "A host function runs inside of its stream: waiting for a stream there could never end, and enqueueing would "
        "have no place in the order.",
        hint="do it after synchronize()",
    ),
    "SPY0924": Code(
        "event not reached",
        "Both events must have been recorded and reached before there is a time between them.",
        hint="synchronize with the later event first",
    ),
    "SPY0925": Code(
        "event without timing",
        "Only an event made with enable_timing=True knows when it was reached.",
        hint="make both events with enable_timing=True",
    ),
    "SPY0926": Code(
        "copy onto itself",
        "Source and destination of a copy on the device share bytes; the result would depend on the order of parts.",
        hint="copy through a tensor of its own",
    ),
    "SPY0927": Code(
        "no such schedule",
        "The order in which ready streams are served: fifo, rr, lifo, adversarial, random:SEED, or threads.",
        hint="choose fifo, rr, lifo, adversarial, random:SEED or threads",
    ),
    "SPY0928": Code(
        "device closed",
        "The device was closed; its memory is gone.",
        hint="open a device and allocate again",
    ),
    "SPY0929": Code(
        "device broken",
        "An error of the device that no check caught. Its memory can no longer be trusted.",
        hint="call reset() on the device, and file a report",
    ),
    "SPY0930": Code(
        "not permitted while a stream records",
        "A stream between begin_capture() and end_capture() only records: it can neither wait nor be asked, and it "
        "records one sequence at a time. The capture was given up.",
        hint="end the capture first",
    ),
    "SPY0931": Code(
        "not a call of the execution contract",
        "An argument is out of its range, an object is destroyed or another context's (status INVALID). Nothing was "
        "enqueued.",
        hint="check the argument against docs/execution_contract.md",
    ),
    "SPY0932": Code(
        "no variant with this key",
        "A graph replays exactly the key that is asked for, and keeps its max_variants most recently used ones (status "
        "NO_VARIANT). Nothing was enqueued.",
        hint="capture or adopt the key first; has_variant() tells",
    ),
    "SPY0933": Code(
        "port without buffer",
        "A variant was captured with ports that stand for memory to be bound later (status UNBOUND). Nothing was "
        "enqueued.",
        hint="bind a buffer to each of the ports before replaying",
    ),
    "SPY0934": Code(
        "capture failed",
        "The record callback raised, or did what a capture cannot record (status CAPTURE). The graph and its streams "
        "are as they were.",
        hint="read the cause; synchronize and load programs before capturing",
    ),
    "SPY0935": Code(
        "backend failed",
        "The device or one of its streams reports an error of its own (status BACKEND); the cause is chained.",
        hint="read the cause, put it right, and clear the stream's error",
    ),
    "SPY0936": Code(
        "out of device memory in the execution contract",
        "There is no room for the buffer (status OOM). Nothing was allocated.",
        hint="destroy buffers and graphs that are done with",
    ),
    "SPY0937": Code(
        "C library not built",
        "The execution contract's C ABI is made by cffi and the system's C compiler.",
        hint="pip install 'spyrec[cabi]', and install a C compiler and Python's headers",
    ),
    "SPY0938": Code(
        "tensor among programs",
        "A tensor of a launch lies in the memory of programs, which holds images and corrections; programs reach their "
        "tensors in the other regions only.",
        hint="allocate the tensor's memory with MemoryKind.TENSOR",
    ),
    "SPY0939": Code(
        "argument of another kind",
        "A call of the runtime was given what it does not take there: another type, or a number out of its range. "
        "Whole numbers may be NumPy's. Nothing was done.",
        hint="pass what the call's documentation says; docs/runtime.md has examples",
    ),
    "SPY0940": Code(
        "memory that no device has",
        "A device has 2 to 8 regions of whole sticks, of at most 16 GiB each; the last one holds programs.",
        hint="choose sizes that are multiples of 128 bytes, as MemoryOptions(region_bytes=(1 << 30,) * 8)",
    ),
    "SPY0950": Code(
        "wrong number of tensors",
        "A plan takes as many tensors as it was compiled for, inputs and outputs. Nothing was enqueued.",
        hint="pass the tensors in the plan's order",
    ),
    "SPY0951": Code(
        "dtype does not match",
        "Nothing is cast silently. Nothing was enqueued.",
        hint="convert the array on the host first",
    ),
    "SPY0952": Code(
        "device layout does not match",
        "The elements of the tensor lie elsewhere in device memory than asked for. Nothing was enqueued.",
        hint="make the tensor with the layout asked for",
    ),
    "SPY0953": Code(
        "shape does not match",
        "The tensor's shape is not the one asked for. Nothing was enqueued.",
        hint="check the shape against the message",
    ),
    "SPY0954": Code(
        "belongs to another device",
        "Tensors, events and streams work together on one device only. Nothing was enqueued.",
        hint="copy through the host, or make it on the same device",
    ),
    "SPY0955": Code(
        "tiled launch not allowed",
        "The tensors are larger than the program was compiled for. A launch may repeat the program over tiles of them, "
        "but this one does not allow it. Nothing was enqueued.",
        hint="allow it (allow_tiled_launch), or compile for these shapes",
    ),
    "SPY0956": Code(
        "shapes do not determine the loops",
        "Without a tile contract only one reading of the shapes is accepted: a pointwise program, and in every tensor "
        "the same dim larger, by the same number of tiles. Nothing was enqueued.",
        hint="compile with named axes, so that the bundle has a tile contract",
    ),
    "SPY0957": Code(
        "tensors disagree on a loop",
        "Every dim that follows a loop of the tile contract has the same number of elements. Nothing was enqueued.",
        hint="give the tensors the same extent along the loop",
    ),
    "SPY0958": Code(
        "iterations would overwrite one another",
        "Two iterations of the launch would write the same bytes, or one would write what another reads. "
        "Nothing was enqueued.",
        hint="let every dim of the loops appear in each output, with a place of its own for every element",
    ),
    "SPY0959": Code(
        "tile begins inside a stick",
        "Device addresses are multiples of a stick of 128 bytes, so a tile of the stick's dim is whole sticks. "
        "Nothing was enqueued.",
        hint="tile the dim of the stick in multiples of the elements of a stick, or another dim",
    ),
    "SPY0960": Code(
        "tiles not reachable",
        "No mode of a tiled launch reaches the tiles of the argument: moving its base, setting its stick strides, "
        "runs of sticks, or copies through scratch memory (docs/tiled_launch.md). Nothing was enqueued.",
        hint="give the tensor the layout that the message names, or allow scratch memory",
    ),
    "SPY0961": Code(
        "too many tiles",
        "The number of iterations of one launch is limited. Nothing was enqueued.",
        hint="compile for larger tiles, or raise max_tiles",
    ),
    "SPY0962": Code(
        "elements left over",
        "The tiles of a loop do not fill the tensors, and none of the policies applies: beginning the last tile "
        "earlier, a program of its own, room beyond the tensor. Nothing was enqueued.",
        hint="make the extent a multiple of the tile, or compile a variant for what is left over",
    ),
    "SPY0963": Code(
        "tile contract malformed",
        "The loops, axes and extents of a tile contract agree with one another and with the arguments' shapes.",
        hint="compile the bundle again; the form is described in docs/tiled_launch.md",
    ),
    "SPY0964": Code(
        "program not on the device",
        "A job's program is copied to each device once, by loading its plan; a launch needs it there.",
        hint="load the plan on a stream of the device, or launch it with launch_kernel, which does",
    ),
    "SPY0965": Code(
        "job not self-contained",
        "A job's steps make everything they use: the HostOperation makes the correction tensor, the DMA copies all of "
        "it, the DeviceCompute starts the job's own program. A correction made by another job is refused.",
        hint="put HostOperation, DMA and DeviceCompute into one JobPlan",
    ),
    "SPY0966": Code(
        "correction missing",
        "A program that takes addresses from a correction tensor was started, and there is none in its area: the copy "
        "was left out, comes too late, or the tensor was used by a computation before. Each serves one computation.",
        hint="enqueue the correction's HostOperation and DMA before each DeviceCompute",
    ),
    "SPY0967": Code(
        "program outside of its operands",
        "Every address that a program uses must lie in memory that its launch names, and what it writes in memory that "
        "the launch writes. Another launch's correction, or a stale one, shows here.",
        hint="launch the job through a stream, which makes correction and operands agree",
    ),
    "SPY0968": Code(
        "no entry of a program",
        "A computation starts at an entry of a program image in the program segment, one for each correction slot.",
        hint="start at a job_bin_ptr of the launch artefact",
    ),
    "SPY0969": Code(
        "tensors not in their segments",
        "A program with baked addresses finds each tensor at a fixed place of a segment. Tensors that share a segment "
        "must have the distance that it was compiled for.",
        hint="compile with symbolic addresses, or give each tensor a segment of its own",
    ),
    "SPY0970": Code(
        "not a tensor of a device",
        "A launch takes tensors that lie on the stream's device, by position. Nothing was enqueued.",
        hint="bring arrays to the device with `SpyreTensor.to_device(device, array)`",
    ),
    "SPY0971": Code(
        "array cannot be written",
        "A copy to the host writes its array where it lies, as contiguous bytes. Nothing was enqueued.",
        hint="pass a contiguous array that is not read-only, as np.empty makes them",
    ),
    "SPY0972": Code(
        "stick strides without words",
        "A tile contract says that launches set the stick strides of an argument, and the program that is to walk it "
        "by them takes none from its correction: it would store at the compiled distances.",
        hint="compile the graph again",
    ),
    "SPY0973": Code(
        "program of a contract missing",
        "A tile contract names the programs that launches run: the body, what joins the parts of a reduction, variants "
        "for what is left over. A job that is launched by a contract has all of them.",
        hint="give the job the programs that the contract names, or none of the contract",
    ),
    "SPY0980": Code(
        "race between streams",
        "Two operations touch the same sticks, one of them writes, and neither happens before the other: the result "
        "depends on the schedule. The notes name both and the missing edge.",
        hint="record an event behind the first and let the second's stream wait for it",
    ),
    "SPY0981": Code(
        "read of memory nobody wrote",
        "The operation reads sticks that no copy and no program has written since they were allocated.",
        hint="copy to the tensor or compute it before it is read",
    ),
    "SPY0982": Code(
        "wait for an event that was never recorded",
        "Such a wait orders nothing, as in CUDA; most often the record was forgotten or comes too late.",
        hint="record the event before the wait is enqueued",
    ),
    "SPY0983": Code(
        "stick strides that a program cannot take",
        "A correction sets other distances between the sticks of an argument, and the program goes through them in a "
        "way that only the compiled distances allow: one of its dims, or a loop's step, covers several device dims.",
        hint="launch without stick strides: the tile is then copied",
    ),
    "SPY0984": Code(
        "no check at larger shapes",
        "The inputs of a run are larger than the bundle was compiled for, and its graph states sizes that no longer "
        "fit them, as those of a reshape.",
        hint="run without the check, or check at the compiled shapes",
    ),
    "SPY0990": Code(
        "profiled already",
        "A device is profiled by one profile at a time.",
        hint="end the other profile first",
    ),
    "SPY0991": Code(
        "memory given back while it is still to be used",
        "Copies and launches hold their memory until they are done; host functions hold nothing of what they touch.",
        hint="`tensor.record_stream(stream)` behind the host function, before the tensor is freed",
    ),
    "SPY0992": Code(
        "instruction of another program",
        "Only an instruction that was added to a program, or that its plan brought, can be removed from it.",
        hint="look at `program.instructions`",
    ),
}

OURS: dict[str, Code] = {
    "SPY9901": Code(
        "internal error",
        "A bug in spyrec: a report with command, versions and traceback was written.",
        hint="please file the report together with the input",
    ),
}

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
}

CODES: dict[str, Code] = {
    **READING,
    **SHAPES,
    **LAYOUT,
    **SCHEDULING,
    **CODE_GENERATION,
    **BUNDLE,
    **EMULATOR,
    **RUNNING,
    **COMPARING,
    **EXECUTION,
    **OURS,
}
