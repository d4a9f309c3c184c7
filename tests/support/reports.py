"""Random reports: programs with loops in loops, modules, tensors, timelines and runs, with names of every kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from spyrec.report.model import (
    Against,
    Bisected,
    BundleFacts,
    Choice,
    LxCores,
    LxRegion,
    Memory,
    Op,
    OpDim,
    OpOperand,
    OpPair,
    Output,
    OutputCheck,
    Pattern,
    PatternGroup,
    Report,
    ReportLoop,
    ReportProgram,
    Run,
    SeenBug,
    Step,
    Tensor,
    TensorCopy,
    Time,
    Totals,
    Worst,
)
from spyrec.report.numbers import Span

HOSTILE = (
    "</script><script>alert(1)</script>", 'a"b', "a\\", "\\N\\G\\l", "&lt;&#34;&amp;", "end", "1. list", "- list",
    "`md`",
    "**b**", "__i__", "#quot;#35;", "%%{init: {}}%%", "a --> b", "subgraph x", "}; digraph", "\u202ebidi", "\ud800",
    "\n}\n", "\x1b[31mred", "\x00", "界界界界", "e\u0301", "", " ", "/", "a/b/../c", "x" * 300, "🚀", "op0", "tensor0",
    ".", "..", "a..b", "graph", "constructor", "__proto__",
)  # fmt: skip
"""Names that files may have and that mean something to one of the formats, a page or a terminal."""

_ENGINES = ("DMA in", "PT", "SFP", "ring", "DMA out")
_WAITS = ("start", "operands", "compute", "ring", "store", "other cores")


@dataclass
class _Builder:
    random: Random
    names: Sequence[str] | None
    modules: list[str] = field(default_factory=list[str])
    programs: list[ReportProgram] = field(default_factory=list[ReportProgram])
    loops: list[ReportLoop] = field(default_factory=list[ReportLoop])
    ops: list[Op] = field(default_factory=list[Op])
    tensors: list[Tensor] = field(default_factory=list[Tensor])
    writers: dict[int, int] = field(default_factory=dict[int, int])

    def name(self, plain: str) -> str:
        """Return a name: the plain one, or one of those that are given."""
        return plain if self.names is None else self.random.choice(self.names)

    def tensor(self, role: str, memory: str) -> int:
        shape = tuple(self.random.choice((1, 64, 100)) for _ in range(self.random.randint(0, 3)))
        number = len(self.tensors)
        size = 128 * self.random.randint(1, 999)
        self.tensors.append(Tensor(self.name(f"t{number}"), role, memory, shape=shape, dtype="float16", size=size))
        return number

    def operation(self, loops: tuple[int, ...], patterns: int) -> Step:
        number, random = len(self.ops), self.random
        inputs: list[OpOperand] = []
        for _ in range(random.randint(1, 3)):
            if self.tensors and random.random() < 0.8:
                tensor = random.randrange(len(self.tensors))
            else:
                tensor = self.tensor(random.choice(("input", "constant")), "argument")
            inputs.append(OpOperand(tensor, self.tensors[tensor].memory, 0, 128, self.writers.get(tensor)))
        outputs = [OpOperand(self.tensor("intermediate", "lx"), "lx", 0, 128) for _ in range(random.randint(1, 2))]
        moved = random.choice((0, 128, 1 << 20)), random.choice((0, 4096))
        rounds = 1
        for loop in loops:
            rounds *= self.loops[loop].count
        self.ops.append(
            Op(
                op=self.name("add"),
                name=self.name(f"op{number}"),
                file=f"sdsc_{number}.json",
                program=len(self.programs),
                loops=loops,
                cores=((0, 4),),
                executions=rounds,
                module=random.randrange(len(self.modules)) if self.modules and random.random() < 0.7 else None,
                source=random.choice((None, self.name("m.py:1"))),
                dims=(OpDim("mb_", 64, 4, 16),),
                inputs=tuple(inputs),
                outputs=tuple(outputs),
                us=random.choice((None, 0.0, random.random() * 10)),
                uncertainty=random.choice((None, 0.15)),
                read=moved[0],
                written=moved[1],
                bound=random.choice((0, moved[0])),
                flops=random.randrange(1000),
                limit=random.choice((None, "memory", "compute")),
                pattern=random.choice((None, *range(patterns))),
            )
        )
        self.writers |= {item.tensor: number for item in outputs}
        return Step(op=number)

    def body(self, loops: tuple[int, ...], patterns: int, depth: int = 0) -> tuple[Step, ...]:
        steps: list[Step] = []
        for _ in range(self.random.randint(1, 4)):
            if depth < 2 and self.random.random() < 0.3:
                number = len(self.loops)
                count = self.random.choice((1, 2, 5))
                tile = self.random.choice(((None, 0), (self.name("S"), 64)))
                parent = loops[-1] if loops else None
                first = len(self.ops)
                made = ReportLoop(self.name("i"), len(self.programs), count, first, first, parent, *tile)
                self.loops.append(made)
                inner = self.body((*loops, number), patterns, depth + 1)
                steps.append(Step(loop=number, count=count, body=inner))
            else:
                steps.append(self.operation(loops, patterns))
        return tuple(steps)


def _pattern(random: Random) -> Pattern:
    groups: list[PatternGroup] = []
    us = random.random() * 9 + 1
    cut = random.randint(1, 3)
    for cores in ((0, cut), (cut, 4))[: random.choice((1, 2))]:
        spans: list[Span] = []
        waits: list[Span] = []
        for engine in range(len(_ENGINES)):
            at = 0.0
            while random.random() < 0.6 and at < us:
                last = min(us, at + random.random() * us / 2)
                is_wait = random.random() < 0.4
                (waits if is_wait else spans).append(Span(engine, at, last, random.randrange(6) if is_wait else None))
                at = last
        groups.append(PatternGroup((cores,), tuple(spans), tuple(waits)))
    return Pattern(us, tuple(groups))


def random_report(seed: int, names: Sequence[str] | None = None, *, most_programs: int = 3) -> Report:
    """Return a report as the model describes it; ``names``: what things are called, by default plain names."""
    random = Random(seed)
    builder = _Builder(random, names)
    for path in ("model", "model.a", "model.a.b", "model.c", "other.deep"):
        if random.random() < 0.8:
            builder.modules.append(path if names is None else builder.name(path))
    builder.modules = list(dict.fromkeys(builder.modules))
    patterns = tuple(_pattern(random) for _ in range(random.randint(1, 3)))
    schedule: list[Step] = []
    for number in range(random.randint(1, most_programs)):
        first = len(builder.ops)
        steps = builder.body((), len(patterns))
        builder.programs.append(ReportProgram(builder.name(f"kernels/{number}"), first, len(builder.ops)))
        schedule.append(Step(program=number, body=steps))
    ops = builder.ops
    results = [item.outputs[0].tensor for item in ops[-2:]]
    outputs = tuple(
        Output(builder.name(f"y{place}"), tensor, (64,), builder.writers[tensor])
        for place, tensor in enumerate(results)
    )
    if random.random() < 0.3:
        outputs = (*outputs, Output(builder.name("same"), 0, (64,), builder.writers.get(0)))
    copies = (TensorCopy(0, 128, True, 1.5), TensorCopy(results[0], 256, False, 2.25)) if random.random() < 0.5 else ()
    time = Time(random.choice(("run", "predicted")), 10.0, _ENGINES, _WAITS, patterns, tuple(schedule), None, copies)
    moved = sum(op.read for op in ops), sum(op.written for op in ops)
    totals = Totals(sum(op.us or 0.0 for op in ops), 0.15, *moved, bound=sum(op.bound for op in ops))
    return Report(
        name=builder.name("model"),
        bundle=BundleFacts(builder.name("out"), "spyrec", "0", "spyre", 32, 2048, builder.name("profile"), "same"),
        totals=totals,
        memory=Memory(lx=_scratchpads(builder)),
        time=time,
        programs=tuple(builder.programs),
        loops=tuple(builder.loops),
        modules=tuple(builder.modules),
        ops=tuple(ops),
        tensors=tuple(builder.tensors),
        outputs=outputs,
        decisions=(Choice("spilled", builder.name("x"), builder.name("does not fit"), saved_us=-1.5),),
        run=_run(builder, outputs) if random.random() < 0.6 else None,
        against=_against(builder, totals) if random.random() < 0.5 else None,
        notes=(builder.name("a note"),),
    )


def _scratchpads(builder: _Builder) -> tuple[LxCores, ...]:
    pads: list[LxCores] = []
    for number, program in enumerate(builder.programs):
        regions: list[LxRegion] = []
        for op in range(program.first, program.past):
            end = builder.random.randint(op, program.past - 1)
            tensor = builder.ops[op].outputs[0].tensor
            first = 128 * builder.random.randint(0, 8)
            regions.append(LxRegion(tensor, first, first + 128 * builder.random.randint(1, 8), op, end, op))
        pads.append(LxCores(number, ((0, 3), (3, 4)), 2048, max(item.past for item in regions), tuple(regions)))
    return tuple(pads)


def _run(builder: _Builder, outputs: Sequence[Output]) -> Run:
    random = builder.random
    ratio = random.choice((0.5, 3.0, float("inf"), float("nan")))
    worst = Worst((1, 2), 1.0, 2.0, None, random.choice((None, 3)))
    checks = tuple(OutputCheck(place, ratio <= 2, 1.0, 1.0, ratio, 64, 64, 1, worst) for place in range(len(outputs)))
    op = random.randrange(len(builder.ops))
    bisect = random.choice(
        (None, Bisected(True, 3, 3, 0.5, op), Bisected(False, 1, 3, guilt="result", op=op, bound=0.0))
    )
    found = SeenBug("race", builder.name("two cores write"), random.choice((None, op)))
    return Run(not random.getrandbits(1), True, "dl16", "fast", checks, (), (found,) * random.choice((0, 1, 7)), bisect)


def _against(builder: _Builder, totals: Totals) -> Against:
    pairs = [
        OpPair(number, number, builder.name("old"), op.us * 2, changed=("us",))
        for number, op in enumerate(builder.ops)
        if op.us is not None
    ]
    return Against(builder.name("other"), builder.name("yesterday"), totals, tuple(pairs))
