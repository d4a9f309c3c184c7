"""03xx: device layouts."""

from __future__ import annotations

from spyrec.diagnostics.codes.code import Code

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
        "A tensor has at most 6 dims; a sparse one, with one element per stick, at most 5 before August 2026.",
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
