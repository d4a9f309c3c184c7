"""Count how spyrec is built: packages, files, lines, imports between rooms, circles, and three walks through them.

``python -m scripts.structure`` prints Markdown.  A room is a folder of spyrec; the ground floor is one, too.  The walks
are one value from the reader to its address (a compilation), from input to output (a run), and one launch.  They are
counted on what is executed, not on what is read.  A *stay* is a run of files in one room, in the order in which files
are entered for the first time; a stay that lies in a layer above the one before it is a *climb*.
"""

from __future__ import annotations

import ast
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "spyrec"

Arrows = Mapping[str, frozenset[str]]


def modules() -> dict[str, Path]:
    """Return every module of spyrec by name."""
    found: dict[str, Path] = {}
    for path in sorted(SOURCES.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def room_of(module: str, known: Mapping[str, Path]) -> str:
    """Return the folder that a module stands in."""
    return module if known[module].name == "__init__.py" else module.rpartition(".")[0]


def imports(known: Mapping[str, Path], *, for_types: bool) -> Arrows:
    """Return which modules each module imports; those imported for types alone count where ``for_types``."""
    arrows: dict[str, frozenset[str]] = {}
    for name, path in known.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        unused = set[int]() if for_types else {id(item) for item in _for_types_alone(tree)}
        found = {
            target
            for item in ast.walk(tree)
            if id(item) not in unused and isinstance(item, ast.Import | ast.ImportFrom)
            for target in _targets(item, known)
        }
        arrows[name] = frozenset(found - {name})
    return arrows


def _for_types_alone(tree: ast.Module) -> Iterable[ast.AST]:
    for item in ast.walk(tree):
        if isinstance(item, ast.If) and ast.unparse(item.test) == "TYPE_CHECKING":
            for statement in item.body:
                yield from ast.walk(statement)


def _targets(item: ast.Import | ast.ImportFrom, known: Mapping[str, Path]) -> Iterable[str]:
    if isinstance(item, ast.Import):
        yield from (alias.name for alias in item.names if alias.name in known)
    elif item.module is not None:
        for alias in item.names:
            inner = f"{item.module}.{alias.name}"
            if inner in known:
                yield inner
            elif item.module in known:
                yield item.module


def circles(arrows: Arrows) -> list[list[str]]:
    """Return the sets of modules that reach each other (strongly connected components), largest first."""
    order: list[str] = []
    seen: set[str] = set()
    for name in arrows:
        _visit(name, arrows, seen, order)
    backwards: dict[str, set[str]] = defaultdict(set)
    for name, targets in arrows.items():
        for target in targets:
            backwards[target].add(name)
    found: list[list[str]] = []
    seen = set()
    for name in reversed(order):
        component: list[str] = []
        _visit(name, backwards, seen, component)
        if len(component) > 1:
            found.append(sorted(component))
    return sorted(found, key=lambda item: (-len(item), item))


def _visit(start: str, arrows: Mapping[str, Iterable[str]], seen: set[str], order: list[str]) -> None:
    """Add what is reached from ``start`` to ``order``, each after what it reaches (depth first, without recursion)."""
    if start in seen:
        return
    seen.add(start)
    stack = [(start, iter(sorted(arrows.get(start, ()))))]
    while stack:
        name, left = stack[-1]
        following = next((item for item in left if item not in seen), None)
        if following is None:
            order.append(name)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, iter(sorted(arrows.get(following, ())))))


@dataclass
class Walk:
    """What was executed of spyrec between two moments: functions and files, in their order, and how deep."""

    known: Mapping[str, Path]
    calls: Counter[str] = field(default_factory=Counter[str])
    functions: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    steps: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    deepest: list[str] = field(default_factory=list[str])
    _names: dict[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        self._names = {str(path): name for name, path in self.known.items()}

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Note a call (``sys.setprofile``)."""
        module = self._names.get(frame.f_code.co_filename)
        if event != "call" or module is None or frame.f_code.co_name.startswith("<"):
            return
        self.calls[module] += 1
        self.functions[module, frame.f_code.co_qualname] += 1
        stack: list[str] = []
        above: FrameType | None = frame
        while above is not None:
            caller = self._names.get(above.f_code.co_filename)
            if caller is not None and not above.f_code.co_name.startswith("<"):
                stack.append(f"{caller}.{above.f_code.co_qualname}")
                if len(stack) == 2:
                    self.steps[room_of(caller, self.known), room_of(module, self.known)] += 1
            above = above.f_back
        if len(stack) > len(self.deepest):
            self.deepest = stack[::-1]

    def stays(self) -> list[str]:
        """Return the rooms in the order of first visits to their files."""
        return [room for room, _ in groupby(room_of(module, self.known) for module in self.calls)]

    def climbs(self, order: list[str]) -> int:
        """Return how many stays lie above the one before (``order``: layers from the top; the ground floor is none)."""
        rank = {room: number for number, room in enumerate(order)}
        layers = [rank[_layer_of(room)] for room in self.stays() if _layer_of(room) in rank]
        return sum(other < one for one, other in pairwise(layers))

    def lines(self, order: list[str]) -> list[str]:
        """Return the counts as a list of Markdown."""
        counts = f"files {len(self.calls)}, functions {len(self.functions)}, calls {self.calls.total():,}"
        rooms = {room_of(module, self.known) for module in self.calls}
        pairs = {pair for pair in self.steps if pair[0] != pair[1]}
        return [
            f"* rooms {len(rooms)}, {counts}",
            f"* stays {len(self.stays())}, climbs {self.climbs(order)}, pairs of rooms that call {len(pairs)}",
            f"* frames of spyrec in the deepest stack {len(self.deepest)}",
        ]


def _layer_of(room: str) -> str:
    return ".".join(room.split(".")[:2])


def walked(known: Mapping[str, Path], action: Callable[[], object]) -> Walk:
    """Return what an action executes; it runs once before, so that nothing is imported or compiled on the way.

    In a thread that is not the main one a device works in the thread that waits for it: so all of it is seen.
    """
    action()
    walk = Walk(known)

    def watched() -> None:
        sys.setprofile(walk)
        try:
            action()
        finally:
            sys.setprofile(None)

    thread = threading.Thread(target=watched)
    thread.start()
    thread.join()
    return walk


LAYERS = [
    f"spyrec.{name}"
    for name in (
        *("cli", "front", "contracts", "compare", "exec", "frontends", "codegen", "emulator"),
        *("passes", "runtime", "ir", "bundle", "device_ops", "layout", "hardware", "diagnostics"),
    )
]
"""From the top; rooms that are not there yet, or no more, do not count."""


def main() -> int:
    """Print the counts."""
    known = modules()
    print("\n".join([*_table(known), "", *_arrows(known), "", *_fragments(known), "", *_walks(known)]))
    return 0


def _table(known: Mapping[str, Path]) -> Iterable[str]:
    lines: Counter[str] = Counter()
    files: Counter[str] = Counter()
    for path in known.values():
        parts = path.relative_to(SOURCES).parts
        package = parts[0] if len(parts) > 1 else "(ground floor)"
        files[package] += 1
        lines[package] += _line_count(path)
    yield "## Packages"
    yield ""
    yield "| package | files | lines |"
    yield "|---|---:|---:|"
    yield from (f"| {name} | {files[name]} | {lines[name]:,} |" for name in sorted(files))
    yield f"| **spyrec** | **{files.total()}** | **{lines.total():,}** |"
    for folder in ("tests", "scripts", "benchmarks", "examples"):
        paths = sorted((ROOT / folder).rglob("*.py"))
        yield f"| {folder} | {len(paths)} | {sum(map(_line_count, paths)):,} |"


def _line_count(path: Path) -> int:
    return path.read_bytes().count(b"\n")


def _arrows(known: Mapping[str, Path]) -> Iterable[str]:
    yield "## Rooms, arrows, circles"
    yield ""
    yield "| imports | rooms | arrows between rooms | arrows between files | circles of files | circles of rooms |"
    yield "|---|---:|---:|---:|---|---|"
    for label, for_types in (("executed", False), ("with those for types", True)):
        arrows = imports(known, for_types=for_types)
        between: dict[str, set[str]] = {room_of(name, known): set() for name in known}
        for name, targets in arrows.items():
            between[room_of(name, known)] |= {room_of(target, known) for target in targets} - {room_of(name, known)}
        sizes = ", ".join(str(len(item)) for item in circles(arrows))
        rooms = ", ".join(str(len(item)) for item in circles({name: frozenset(to) for name, to in between.items()}))
        count = sum(map(len, arrows.values()))
        room_arrows = sum(map(len, between.values()))
        yield f"| {label} | {len(between)} | {room_arrows} | {count} | {sizes or '-'} | {rooms or '-'} |"
    yield ""
    yield "Arrows between packages (executed):"
    yield ""
    packages: dict[str, set[str]] = defaultdict(set)
    for name, targets in imports(known, for_types=False).items():
        one = _package_of(name, known)
        packages[one] |= {_package_of(target, known) for target in targets} - {one}
    yield from (f"* {name} -> {', '.join(sorted(to)) or 'nothing'}" for name, to in sorted(packages.items()))


def _package_of(module: str, known: Mapping[str, Path]) -> str:
    parts = known[module].relative_to(SOURCES).parts
    return parts[0] if len(parts) > 1 else "(ground floor)"


def _fragments(known: Mapping[str, Path]) -> Iterable[str]:
    arrows = imports(known, for_types=True)
    importers = Counter(target for targets in arrows.values() for target in targets)
    inner = [name for name, path in known.items() if path.name != "__init__.py"]
    trees = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in known.items()}
    homes: dict[str, list[str]] = defaultdict(list)
    for name, tree in trees.items():
        for item in ast.walk(tree):
            if isinstance(item, ast.ClassDef) and not item.name.startswith("_"):
                homes[item.name].append(name.removeprefix("spyrec."))
    twice = {name: owners for name, owners in sorted(homes.items()) if len(owners) > 1}
    import_lines = sum(
        (item.end_lineno or item.lineno) - item.lineno + 1
        for tree in trees.values()
        for item in ast.walk(tree)
        if isinstance(item, ast.Import | ast.ImportFrom)
    )
    yield "## Fragments"
    yield ""
    yield f"* modules with one importer: {sum(importers[name] == 1 for name in inner)}"
    yield f"* files under 50 lines: {sum(_line_count(known[name]) < 50 for name in inner)}"
    yield f"* lines of imports: {import_lines:,}"
    yield f"* public class names that stand twice or more: {len(twice)}"
    yield from (f"  * {name}: {', '.join(owners)}" for name, owners in twice.items())


def _walks(known: Mapping[str, Path]) -> Iterable[str]:
    import numpy as np

    import spyrec
    from spyrec.runtime import ExecutionPlan, SpyreTensor, launch_kernel

    builder = spyrec.GraphBuilder("walk")
    x, y = (builder.input(name, (64, 64), "float16") for name in "xy")
    builder.output(builder.relu(x + y))
    graph = builder.build()
    bundles: list[spyrec.Bundle] = []
    compiling = walked(known, lambda: bundles.append(spyrec.compile(graph)))
    ones = np.ones((64, 64), np.float16)
    inputs = {"x": ones, "y": ones}
    running = walked(known, lambda: spyrec.run(bundles[-1], inputs))
    with spyrec.open_device() as device:
        plan = ExecutionPlan(bundles[-1])
        tensors = [SpyreTensor.to_device(device, ones) for _ in range(3)]
        plan.load(device.default_stream)
        device.synchronize()

        def launch() -> None:
            launch_kernel(device.default_stream, plan, tensors)
            device.synchronize()

        launching = walked(known, launch)
    yield "## Walks: relu(x + y) on 64 x 64, the second time each"
    for title, walk in (
        ("One value, reader to address: `spyrec.compile`", compiling),
        ("Input to output: `spyrec.run`", running),
        ("One launch: `launch_kernel` on the compiled shape, and until it is done", launching),
    ):
        yield from ("", f"### {title}", "", *walk.lines(LAYERS))
        yield f"* the deepest stack: {' > '.join(_short(name) for name in walk.deepest)}"
    yield from ("", "### Records of one argument, from the front to the device", "")
    words = ("Argument", "Operand")
    named = sorted(
        f"`{item.name}` ({name.removeprefix('spyrec.')})"
        for name, path in known.items()
        if name.startswith(("spyrec.runtime", "spyrec.bundle", "spyrec.emulator", "spyrec.exec"))
        for item in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(item, ast.ClassDef) and any(word in item.name for word in words) and "Error" not in item.name
    )
    yield f"{len(named)} classes are named after it: {', '.join(named)}"


def _short(name: str) -> str:
    return ".".join(name.removeprefix("spyrec.").split(".")[-2:])


if __name__ == "__main__":
    sys.exit(main())
