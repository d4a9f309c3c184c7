"""04xx: scheduling and memory."""

from __future__ import annotations

from spyrec.diagnostics.codes.code import REPORT, Code

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
    "SPY0415": Code(
        "option of a pass not understood",
        "A pass takes the options that it lists, as --pass NAME=option:value,option:value.",
        hint="`spyrec passes NAME` lists the options of a pass",
    ),
    "SPY0416": Code(
        "pass before what it needs",
        "A pass requires what other passes established before it; the text of a graph says what holds of it.",
        hint="run the passes that establish it first: `spyrec passes` lists them in order",
    ),
    "SPY0417": Code(
        "graph in several parts",
        "Between parts of the device the host computes what the device has no form of; passes run over one part.",
        hint="--part N takes the N-th",
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
        "operations of a loop are scattered", "The operations of one loop are neighbours, in one program.", hint=REPORT
    ),
    "SPY0431": Code(
        "loop is not one loop",
        "All operations of a loop agree on its trip count, on the dim it runs over and on the loops around it.",
        hint=REPORT,
    ),
    "SPY0432": Code(
        "tiled dims do not match the loops",
        "An operation names tiled dims and steps for each of the loops around it, and for no other.",
        hint=REPORT,
    ),
    "SPY0433": Code(
        "tile used outside of its round",
        "A tensor that each round of a loop writes anew is used by operations of that loop only.",
        hint=REPORT,
    ),
    "SPY0434": Code(
        "tile moves with its own loop",
        "A tensor that each round of a loop writes anew lies at one place in all rounds.",
        hint=REPORT,
    ),
    "SPY0435": Code(
        "passes out of order",
        "Loops are made after kernels, and before layouts are chosen, work is divided and scratchpads are filled.",
        hint=REPORT,
    ),
    "SPY0437": Code(
        "tile that does not move",
        "What a loop tiles moves with its rounds, unless each round writes it anew, or it is the same all along.",
        hint=REPORT,
    ),
    "SPY0436": Code("tile outside of its tensor", "No round of a loop leaves the tensors it works on.", hint=REPORT),
    "SPY0440": Code(
        "strides without corrections",
        "The stick strides of a launch reach a program with its correction. With baked addresses it has none.",
        hint="leave out --no-symbolic-args, or --symbolic-strides",
    ),
    "SPY0441": Code(
        "larger than any plan",
        "An intermediate may be larger than a segment where loops keep tiles of it only, but not beyond 2**44 bytes.",
        hint="make the tensor smaller",
    ),
    "SPY0442": Code(
        "longer than any plan",
        "An operation walks over at most 2**40 elements of one dim, and 2**56 in all.",
        hint="make the tensors smaller, or split the operation",
    ),
    "SPY0443": Code(
        "mask of the compiler too large",
        "is_causal, tril and triu make a mask that is a constant of the bundle, of at most 2**28 numbers.",
        hint="split the operation into parts, or give the mask as an input",
    ),
    # 0444 to 0446: rules of the compiler's own plans of scratchpads; a violation ends as SPY9901
    "SPY0444": Code(
        "scratchpad read as it was not written",
        "All operations cut a tensor in the scratchpads among the cores as its writer did: only a shuffle moves parts.",
        hint=REPORT,
    ),
    "SPY0445": Code(
        "shuffle without two divisions",
        "A shuffle copies a tensor from one division among its cores to another; in each, every part has one core.",
        hint=REPORT,
    ),
    "SPY0446": Code(
        "shuffle over itself",
        "Both states of what is shuffled lie in the scratchpads and do not overlap: cores read what others hold.",
        hint=REPORT,
    ),
    "SPY0448": Code(
        "loop over a step of the host",
        "A loop is in one program; between two programs the host computes.",
        hint="part the loop into two",
    ),
}
