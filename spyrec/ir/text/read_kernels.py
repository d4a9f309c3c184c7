"""Reads what ``print_kernels.py`` prints: a kernel graph, whose references are checked where they stand."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, replace

from spyrec.device_ops import DEVICE_OPERATIONS, WindowForm
from spyrec.diagnostics import Location, SpyrecError
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.hardware.plan_record import Decision, PlannerName, PlanNote
from spyrec.ir.access import Access, Coordinate, Term
from spyrec.ir.device_access import Inexpressible
from spyrec.ir.device_layout import BufferLayout, Digit, device_layout_of
from spyrec.ir.graph import Graph
from spyrec.ir.inference import MAX_ELEMENTS
from spyrec.ir.kernel import (
    BufferRole,
    ConstantSource,
    Kernel,
    KernelBuffer,
    KernelGraph,
    KernelProgram,
    LayoutCost,
    Loop,
    Owners,
    Use,
)
from spyrec.ir.kernel_form import Rule
from spyrec.ir.near_names import nearest
from spyrec.ir.sliding import Slide, Window
from spyrec.ir.text.numbers import read_data
from spyrec.ir.text.read_graph import (
    FAULTS,
    MAX_RANK,
    GraphReader,
    MadeOf,
    SourcePlaces,
    read_has,
    read_pin,
    read_type,
    take_made_of,
)
from spyrec.ir.text.tokens import BROKEN, Cursor, Token, TokenKind
from spyrec.ir.types import TensorType
from spyrec.layout.device_layout import DeviceLayout

_MOST = MAX_ELEMENTS - 1
_MOST_SLICES = 1 << 10
"""Cores that a division may name: more than any target has."""

_MOST_LOOP = 1 << 20


class KernelReader:
    """One kernel graph; the word ``kernels`` has been taken."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._buffers: dict[str, KernelBuffer] = {}
        self._kernels: list[Kernel] = []
        self._made_of: dict[int, MadeOf] = {}
        self._buffers_made_of: dict[str, MadeOf] = {}
        self._outputs: tuple[tuple[str, str], ...] | None = None
        self._programs: list[KernelProgram] = []
        self._places: dict[str, Use] = {}
        self._loops: dict[int, Loop] = {}
        self._open: list[int] = []
        self._cost: LayoutCost | None = None
        self._expects: frozenset[str] = frozenset()
        self._notes: list[PlanNote] = []
        self._planner: PlannerName | None = None
        self._source: Graph | None = None
        self.has: tuple[str, ...] = ()

    def read(self) -> KernelGraph:
        """Take name and body of the graph."""
        cursor = self._cursor
        first = cursor.peek()
        name = cursor.name()
        self.has = read_has(cursor)
        cursor.expect("{")
        while not cursor.accept("}"):
            self._statement()
        if self._outputs is None or self._source is None:
            missing = "outputs" if self._outputs is None else "the source graph"
            raise cursor.refuse(f"{missing} of the kernels are missing", first, BROKEN)
        inputs = tuple(name for name, buffer in self._buffers.items() if buffer.role is BufferRole.INPUT)
        places = SourcePlaces(cursor, self._source)
        for number, made in self._made_of.items():
            self._kernels[number] = replace(self._kernels[number], origin=places.of(made))
        for buffer, made in self._buffers_made_of.items():
            self._buffers[buffer] = replace(self._buffers[buffer], origin=places.of(made))
        graph = KernelGraph(
            name, self._buffers, tuple(self._kernels), inputs, self._outputs, tuple(self._programs),
            self._source, self._places, self._cost, self._loops, tuple(self._notes), self._planner, self._expects,
        )  # fmt: skip
        return self._with_forms(graph)

    def _statement(self) -> None:
        cursor = self._cursor
        token = cursor.peek()
        role = next((item for item in BufferRole if cursor.accept(item.value)), None)
        if role is not None:
            self._buffer(role)
        elif cursor.at("for") or cursor.at("loop"):
            self._nest()
        elif cursor.accept("outputs"):
            self._outputs = tuple(cursor.listed(self._output))
        elif cursor.accept("program"):
            self._programs.append(self._program())
        elif cursor.accept("place"):
            self._place()
        elif cursor.accept("cost"):
            cost = cursor.integer(0)
            cursor.expect("at")
            cursor.expect("least")
            self._cost = LayoutCost(cost, cursor.integer(0))
        elif cursor.accept("expects"):
            self._expects = frozenset(cursor.listed(self._known))
        elif cursor.accept("note"):
            self._notes.append(self._note())
        elif cursor.accept("planner"):
            self._planner = PlannerName(cursor.string(), cursor.string())
        elif cursor.accept("source"):
            cursor.expect("graph")
            self._source = GraphReader(cursor, is_source=True).read()
        else:
            raise cursor.refuse('a statement of a kernel graph or "}" is due', token)

    # --- names ---

    def _known(self) -> str:
        """Take the name of a buffer that is there."""
        token = self._cursor.peek()
        name = self._cursor.name()
        if name not in self._buffers:
            meant = nearest(name, list(self._buffers))
            hint = f'; did you mean "{meant}"?' if meant is not None else ""
            raise self._broken(f'no buffer is there by the name "{name[:80]}"{hint}', token)
        return name

    def _broken(self, message: str, token: Token) -> SpyrecError:
        return self._cursor.refuse(message, token, BROKEN)

    def _output(self) -> tuple[str, str]:
        name = self._cursor.name()
        self._cursor.expect("=")
        return name, self._known()

    # --- buffers ---

    def _buffer(self, role: BufferRole) -> None:
        cursor = self._cursor
        token, place = cursor.peek(), cursor.place()
        name = cursor.name()
        if name in self._buffers:
            raise self._broken(f'the buffer "{name}" is there already', token)
        cursor.expect(":")
        found, _ = read_type(cursor)
        layout = self._layout(found) if cursor.accept("layout") else None
        pin = None
        if cursor.accept("pin"):
            pin = read_pin(cursor, found.rank)
        host_shape = cursor.integers(0, _MOST) if cursor.accept("host") else None
        home = cursor.integers(0, _MOST_LOOP) if cursor.accept("home") else ()
        constant = self._constant(found) if role is BufferRole.CONSTANT else None
        if host_shape is not None and math.prod(host_shape) != found.element_count:
            raise self._broken(f"host shape {list(host_shape)} has not the elements of {found}", token)
        self._buffers[name] = KernelBuffer(name, found, role, place, layout, pin, constant, host_shape, home)
        if cursor.at("@"):
            self._buffers_made_of[name] = take_made_of(cursor)

    def _constant(self, found: TensorType) -> ConstantSource:
        cursor = self._cursor
        token = cursor.peek()
        shape = cursor.integers(0, _MOST) if cursor.accept("of") else found.shape
        is_inside = len(shape) == found.rank and all(own <= extent for own, extent in zip(shape, found.shape))
        if not is_inside:
            raise self._broken(f"numbers of shape {list(shape)} do not lie inside of {found}", token)
        cursor.expect("=")
        return ConstantSource(read_data(cursor, shape, found.dtype), shape)

    def _layout(self, found: TensorType) -> BufferLayout:
        cursor = self._cursor
        token = cursor.peek()
        sizes = cursor.integers(1, _MOST)
        cursor.expect("of")
        owners = cursor.items("[", "]", lambda: self._owner(found.rank), MAX_RANK)
        if len(owners) != len(sizes):
            raise self._broken(f"{len(sizes)} device sizes stand beside {len(owners)} dims", token)
        digits = tuple(Digit(dim, divisor, size) for (dim, divisor), size in zip(owners, sizes, strict=True))
        try:
            if cursor.accept("strides"):
                device = DeviceLayout(sizes, cursor.integers(-1, _MOST), self._format())
            else:
                device = device_layout_of(digits, found.shape, found.dtype.device_format)
        except SpyrecError as error:
            item = error.diagnostics[0]
            raise cursor.refuse(item.message, token, item.code) from None
        return BufferLayout(device, digits)

    def _owner(self, rank: int) -> tuple[int | None, int]:
        cursor = self._cursor
        dim = None if cursor.accept("-") else self._numbered("h", rank)
        return dim, cursor.integer(1, _MOST) if cursor.accept("/") else 1

    def _format(self) -> DeviceFormat:
        found = next((item for item in DeviceFormat if self._cursor.accept(item.name)), None)
        if found is None:
            raise self._cursor.expected("a format of the device")
        return found

    def _numbered(self, letter: str, count: int) -> int:
        """Take ``h3``, ``i0`` or ``l2``: a number below ``count`` behind a letter."""
        token = self._cursor.peek()
        digits = token.text.removeprefix(letter)
        is_right = token.kind is TokenKind.NAME and digits.isascii() and digits.isdigit() and len(digits) < 8
        if not is_right or digits == token.text or int(digits) >= count:
            raise self._cursor.expected(f'"{letter}" with a number below {count}')
        self._cursor.take()
        return int(digits)

    # --- kernels ---

    def _nest(self) -> None:
        """Take a kernel, or a loop with what stands in it."""
        cursor = self._cursor
        if not cursor.accept("loop"):
            self._kernels.append(self._kernel())
            return
        token = cursor.peek()
        number = self._numbered("l", _MOST_LOOP)
        cursor.expect(":")
        is_symbolic = cursor.accept("at")
        if is_symbolic:
            cursor.expect("most")
        count = cursor.integer(1, _MOST)
        cursor.expect("tiles")
        cursor.expect("of")
        tile = cursor.integer(1, _MOST)
        cursor.expect("along")
        loop = Loop(count, cursor.name(), tile, is_symbolic)
        if number in self._open or self._loops.setdefault(number, loop) != loop:
            raise self._broken(f"loop l{number} is there already, and another one", token)
        cursor.expect("{")
        self._open.append(number)
        cursor.deeper(self._body)
        self._open.pop()

    def _body(self) -> None:
        cursor = self._cursor
        while not cursor.accept("}"):
            if not cursor.at("for") and not cursor.at("loop"):
                raise cursor.expected('"for", "loop" or "}"')
            self._nest()

    def _kernel(self) -> Kernel:
        cursor = self._cursor
        place, token = cursor.place(), cursor.expect("for")
        ranges = cursor.items("[", "]", self._range, MAX_RANK)
        if [index for index, _, _ in ranges] != list(range(len(ranges))):
            raise self._broken("the iteration dims are i0, i1 and so on, in order", token)
        extents = tuple(extent for _, extent, _ in ranges)
        dims = tuple(name for _, _, name in ranges)
        output = self._use(extents)
        cursor.expect("=")
        op_func = self._device_op()
        inputs = tuple(cursor.items("(", ")", lambda: self._use(extents)))
        kernel = Kernel(output.buffer, op_func, op_func, Rule.SAME_STICK, extents, inputs, output, place, dims=dims)
        return self._with_details(replace(kernel, loops=tuple(self._open)))

    def _range(self) -> tuple[int, int, str | None]:
        """Take ``i0<64 of A``: index, extent, and the dim's name."""
        cursor = self._cursor
        index = self._numbered("i", MAX_RANK)
        cursor.expect("<")
        extent = cursor.integer(1, _MOST)
        return index, extent, cursor.name() if cursor.accept("of") else None

    def _device_op(self) -> str:
        token = self._cursor.peek()
        name = self._cursor.name()
        if name not in DEVICE_OPERATIONS:
            meant = nearest(name, list(DEVICE_OPERATIONS))
            hint = f'; did you mean "{meant}"?' if meant is not None else ""
            raise self._broken(f'the device has no operation "{name[:80]}"{hint}', token)
        return name

    def _with_details(self, kernel: Kernel) -> Kernel:
        """Take what stands behind the operands of a kernel."""
        cursor = self._cursor
        count = len(kernel.extents)
        if cursor.accept("on"):
            kernel = replace(kernel, division=self._slices())
            cursor.expect("cores")
        if cursor.accept("named"):
            kernel = replace(kernel, name=cursor.name())
        if cursor.accept("op"):
            kernel = replace(kernel, op=cursor.name())
        if cursor.accept("unnamed"):
            kernel = replace(kernel, dims=())
        if cursor.accept("rule"):
            kernel = replace(kernel, rule=self._one_of({item.name.lower(): item for item in Rule}, "rule"))
        if cursor.accept("reduced"):
            kernel = replace(kernel, reduced=cursor.integers(0, count - 1))
        if cursor.accept("with"):
            kernel = replace(kernel, constants=dict(cursor.items("{", "}", self._number)))
        if cursor.accept("elidable"):
            kernel = replace(kernel, is_elidable=True)
        if cursor.accept("tiled"):
            tiled = cursor.items("[", "]", lambda: cursor.integers(0, count - 1))
            kernel = replace(kernel, tiled=tuple(tiled))
        if cursor.accept("pinned"):
            kernel = replace(kernel, pinned=self._pinned(count))
        if cursor.accept("owners"):
            kernel = replace(kernel, owners=self._owners())
        if cursor.accept("window"):
            kernel = replace(kernel, window=self._window(kernel))
        if cursor.accept("because"):
            kernel = replace(kernel, reason=cursor.string())
        if cursor.at("@"):
            self._made_of[len(self._kernels)] = take_made_of(cursor)
        return kernel

    def _pinned(self, count: int) -> tuple[int, ...]:
        token = self._cursor.peek()
        found = self._cursor.integers(0, _MOST_SLICES)
        if len(found) != count:
            raise self._broken(f"{len(found)} pins stand for {count} iteration dims", token)
        return found

    def _number(self) -> tuple[str, float]:
        name = self._cursor.name()
        self._cursor.expect(":")
        return name, self._cursor.number()

    def _slices(self) -> tuple[int, ...]:
        """Take ``1x32``; a kernel without dims has ``1`` slice."""
        cursor = self._cursor
        token = cursor.peek()
        found = [cursor.integer(1, _MOST_SLICES)]
        while cursor.peek().kind is TokenKind.NAME and cursor.peek().text.startswith("x"):
            word = cursor.take()
            parts = word.text[1:].split("x")
            if not all(part.isdigit() and 0 < len(part) < 5 and int(part) for part in parts):
                raise cursor.refuse("slices are numbers with x between", word)
            found += [int(part) for part in parts]
        if math.prod(found) > _MOST_SLICES or len(found) > MAX_RANK:
            raise self._broken(f"{len(found)} numbers of slices make {math.prod(found)} cores", token)
        return tuple(found)

    def _owners(self) -> tuple[Owners, ...]:
        cursor = self._cursor
        found: list[Owners] = []
        while cursor.peek().kind is TokenKind.NUMBER:
            division = self._slices()
            found.append(Owners(division, cursor.integers(0, MAX_RANK)))
        return tuple(found)

    def _one_of(self, known: Mapping[str, Rule], what: str) -> Rule:
        token = self._cursor.peek()
        name = self._cursor.name()
        if name not in known:
            raise self._broken(f'there is no {what} "{name[:80]}": one of {", ".join(known)}', token)
        return known[name]

    def _window(self, kernel: Kernel) -> Window:
        cursor = self._cursor
        token = cursor.peek()
        form = next((item for item in WindowForm if cursor.accept(item.value)), None)
        if form is None:
            raise cursor.expected("pool, convolution or depthwise")
        count = len(kernel.extents)
        numbers = cursor.integers(0, count - 1)
        slides = (self._slide(), self._slide())
        rank = len(self._buffers[kernel.inputs[0].buffer].type.shape) if kernel.inputs else 0
        inside = all(
            slide.output < count and slide.tap < count and (slide.host_dim is None or slide.host_dim < rank)
            for slide in slides
        )
        if len(numbers) != 3 or not inside:
            raise self._broken("a window names iteration dims and dims of its operand that are not there", token)
        return Window(form, slides, *numbers)

    def _slide(self) -> Slide:
        cursor = self._cursor
        token = cursor.peek()
        found = cursor.items("[", "]", lambda: None if cursor.accept("null") else cursor.number(), len(fields(Slide)))
        if len(found) != len(fields(Slide)):
            raise cursor.refuse(f"a slide has {len(fields(Slide))} entries", token)
        host_dim, *numbers, has_steps = found
        if not isinstance(has_steps, bool) or not all(_is_count(number) for number in numbers):
            raise cursor.refuse("a slide is whole numbers, and last true or false", token)
        if host_dim is not None and not _is_count(host_dim):
            raise cursor.refuse("the dim of a slide is a whole number or null", token)
        extent, output, tap, stride, dilation, front = (int(number or 0) for number in numbers)
        if not extent or not stride or not dilation:
            raise cursor.refuse("extent, stride and dilation of a slide are 1 or more", token)
        dim = None if host_dim is None else int(host_dim)
        return Slide(dim, extent, output, tap, stride, dilation, front, has_steps)

    # --- accesses ---

    def _use(self, extents: tuple[int, ...], *, is_place: bool = False) -> Use:
        """Take ``a[i1, i0 + 3]``; a place of a value may name a buffer that has been dropped since."""
        cursor = self._cursor
        token = cursor.peek()
        name = cursor.name() if is_place else self._known()
        rank = self._buffers[name].type.rank if name in self._buffers else None
        moves: list[dict[int, int]] = []
        coordinates: list[Coordinate] = []

        def coordinate() -> None:
            steps: dict[int, int] = {}
            coordinates.append(self._coordinate(extents, steps))
            moves.append(steps)

        cursor.items("[", "]", coordinate, MAX_RANK)
        if rank is not None and len(coordinates) != rank:
            raise self._broken(f'"{name}" has {rank} dims, {len(coordinates)} are named', token)
        steps = tuple(tuple(move.get(loop, 0) for move in moves) for loop in self._open) if any(moves) else ()
        return Use(name, Access(extents, tuple(coordinates)), steps)

    def _coordinate(self, extents: tuple[int, ...], steps: dict[int, int]) -> Coordinate:
        """Take ``256*l0 + 64*(i1//64) + i0%8 + 3``; ``steps`` takes how it moves by loop."""
        cursor = self._cursor
        terms: list[Term] = []
        while True:
            token = cursor.peek()
            if token.kind is not TokenKind.NUMBER:
                terms.append(self._term(1, extents))
            else:
                number = cursor.integer()
                if not cursor.accept("*"):
                    return Coordinate(number, tuple(terms))
                if cursor.peek().text.startswith("l"):
                    loop = self._numbered("l", _MOST_LOOP)
                    if loop not in self._open or loop in steps or not number:
                        raise self._broken(f"l{loop} is no loop around, or moves twice or not at all", token)
                    steps[loop] = number
                else:
                    terms.append(self._factor(number, extents))
            if not cursor.accept("+"):
                return Coordinate(0, tuple(terms))

    def _factor(self, coefficient: int, extents: tuple[int, ...]) -> Term:
        if not self._cursor.accept("("):
            return self._term(coefficient, extents)
        term = self._term(coefficient, extents)
        self._cursor.expect(")")
        return term

    def _term(self, coefficient: int, extents: tuple[int, ...]) -> Term:
        cursor = self._cursor
        dim = self._numbered("i", len(extents))
        divisor = cursor.integer(1, _MOST) if cursor.accept("//") else 1
        modulus = cursor.integer(1, _MOST) if cursor.accept("%") else -(-extents[dim] // divisor)
        return Term(coefficient, dim, divisor, modulus)

    # --- the rest ---

    def _program(self) -> KernelProgram:
        cursor = self._cursor
        token = cursor.peek()
        for word in ("of", "kernels"):
            cursor.expect(word)
        first = cursor.integer(0, _MOST_LOOP)
        cursor.expect("..")
        end = cursor.integer(-1, _MOST_LOOP) + 1
        if not first < end <= len(self._kernels) or (self._programs and self._programs[-1].end_kernel != first):
            raise self._broken(f"kernels {first} to {end - 1} are no program beside the others", token)
        arguments = tuple(cursor.items("(", ")", self._known))
        cursor.expect("pool")
        pool_bytes = cursor.integer(0)
        cursor.expect("bytes")
        cursor.expect("{")
        lx: dict[str, int] = {}
        pool: dict[str, int] = {}
        while not cursor.accept("}"):
            name = self._known()
            cursor.expect("in")
            offsets = lx if cursor.accept("LX") else pool
            if offsets is pool:
                cursor.expect("pool")
            cursor.expect("at")
            offsets[name] = cursor.integer(0)
        return KernelProgram(first, end, arguments, pool, pool_bytes, lx)

    def _place(self) -> None:
        cursor = self._cursor
        name = cursor.name()
        cursor.expect("=")
        ranges = cursor.items("[", "]", self._range, MAX_RANK)
        self._places[name] = self._use(tuple(extent for _, extent, _ in ranges), is_place=True)

    def _note(self) -> PlanNote:
        cursor = self._cursor
        subject = cursor.string()
        token = cursor.peek()
        word = cursor.name()
        decision = next((item for item in Decision if item.name.lower() == word), None)
        if decision is None:
            raise self._broken(f'there is no decision "{word[:80]}"', token)
        reason = cursor.string()
        alternative = cursor.string() if cursor.accept("against") else None
        cursor.expect("saved")
        saved_bytes = cursor.integer()
        return PlanNote(subject, decision, reason, alternative, saved_bytes, float(cursor.number()))

    # --- what follows from the rest ---

    def _with_forms(self, graph: KernelGraph) -> KernelGraph:
        """Return the graph with the device forms of its kernels, which follow from layouts."""
        self._refuse_unknown_loops(graph)
        if not all(buffer.layout is not None for buffer in graph.buffers.values()):
            return graph
        kernels: list[Kernel] = []
        for kernel in graph.kernels:
            try:
                form = graph.form_of(kernel)
            except FAULTS as fault:
                form = Inexpressible(f"its accesses contradict each other ({type(fault).__name__})")
            if isinstance(form, Inexpressible):
                raise _at(kernel, f"{kernel.name} has no form on the device: {form.reason}")
            wanted = len(form.variables)
            # a kernel without variables is written as 1 slice
            division = () if not wanted and kernel.division == (1,) else kernel.division
            owners = tuple(replace(own, division=own.division if wanted else ()) for own in kernel.owners)
            if division is not None and len(division) != wanted:
                raise _at(kernel, f"{kernel.name} is cut along {len(division)} variables, its form has {wanted}")
            if any(len(own.division) != wanted or sorted(own.order) != list(range(wanted)) for own in owners):
                raise _at(kernel, f"{kernel.name} has owners along other variables than its form")
            kernels.append(replace(kernel, form=form, division=division, owners=owners))
        return graph.with_kernels(tuple(kernels))

    def _refuse_unknown_loops(self, graph: KernelGraph) -> None:
        for buffer in graph.buffers.values():
            if not set(buffer.home) <= graph.loops.keys():
                place = buffer.origin if isinstance(buffer.origin, Location) else None
                fact = f'"{buffer.name}" is written anew in loops {list(buffer.home)}, which are not there'
                raise _refused(fact, place)


def _is_count(number: float | bool | None) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and 0 <= number <= _MOST


def _at(kernel: Kernel, message: str) -> SpyrecError:
    return _refused(message, kernel.origin if isinstance(kernel.origin, Location) else None)


def _refused(message: str, place: Location | None) -> SpyrecError:
    from spyrec.diagnostics import refuse

    return refuse(BROKEN, message, place)
