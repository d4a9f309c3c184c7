"""01xx: reading text and graph files."""

from __future__ import annotations

from spyrec.diagnostics.codes.code import Code

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
    "SPY0150": Code(
        "update that is none",
        "An update names an output of the graph and the input whose new content it is; both have one shape and dtype.",
        hint='"updates": {"output": "input"}, each input once',
    ),
    "SPY0151": Code(
        "not for the prologue",
        "The prologue is computed by the host before the copy in: ops of NumPy semantics over inputs of integers and "
        "bools, constants and its own values, each of 2**24 elements at most.",
        hint='move the node to "nodes"',
    ),
    "SPY0152": Code(
        "float64 constant",
        "No value of a graph is float64; a constant that is becomes float32, each number rounded once.",
        hint="write the constant as float32, or in the dtype that the graph computes in",
    ),
    "SPY0160": Code(
        "model file unreadable", "The file of a model cannot be opened.", hint="check path and permissions"
    ),
    "SPY0161": Code(
        "no model file",
        "A .pt2 file is a zip archive that torch.export.save wrote, a .onnx file a model in protobuf; what its tables "
        "say has to lie inside of it.",
        hint="write the file again with torch.export.save or the ONNX exporter",
    ),
    "SPY0162": Code(
        "model file with code",
        "Pickled entries and custom objects execute code when they are read; they are refused before anything reads "
        "them.",
        hint="export a module whose weights are plain tensors",
    ),
    "SPY0163": Code(
        "importer not installed",
        "torch reads programs of torch.export, and the onnx package reads ONNX models; neither comes with spyrec.",
        hint="pip install 'spyrec[torch]' or 'spyrec[onnx]'",
    ),
    "SPY0164": Code(
        "program not read",
        "torch, or the onnx package, does not read the model; the message is its own.",
        hint="read the file with the library itself first",
    ),
    "SPY0165": Code(
        "program too large to read",
        "A model is read in a process of its own, with limits on time and memory.",
        hint="export a smaller part of the model",
    ),
    "SPY0166": Code(
        "not in a graph",
        "The model calls something that a graph does not have: the operation, how often, with which dtypes, and where.",
        hint="write that part of the model with other functions",
    ),
    "SPY0167": Code(
        "operation that cannot be kept",
        "An operation is kept whole (--keep-op) as one op of the graph: the catalogue's, or an operator of ONNX that "
        "the importer knows. The program has to call it.",
        hint="NAME=OP says which op it is; `spyrec ops` lists them",
    ),
    "SPY0168": Code(
        "symbolic dim not importable",
        "A dim stays symbolic with a least and a largest extent, within those that the model was exported for.",
        hint="bind the dim: --dim NAME=N",
    ),
    "SPY0180": Code(
        "text of a graph not understood",
        "The text form is what --print-after and spyrec opt print; docs/ir_text.md has its grammar.",
        hint="print the text again, or correct it by the grammar",
    ),
    "SPY0181": Code(
        "text of a graph that cannot be",
        "A text names values, dims, buffers and loops that are there, and says of kernels what follows from the rest.",
        hint="correct what the message names",
    ),
}
