"""Error bounds of a device graph: how far each output of the device may lie from the exact one, element by element.

Two bounds are kept, and the smaller holds.  The worst case adds up first-order errors node by node; it is sharp for a
few ops and useless after several contractions (a decoder block has none that is finite).  The statistical one runs
the graph several times in float64 with a random rounding at every store and takes six standard errors around the
evaluation in which every store rounds as the device does.  Inputs and constants are rounded in one known way, so their
error is known, not guessed.  Values are dropped after their last use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from spyrec.compare.error_rule import ErrorRule, Step, as_wrapped
from spyrec.compare.op_roundings import held_to_op
from spyrec.compare.propagation import SINGLE_ROUNDOFF, cast_rule, error_rule, host_rule, term_count
from spyrec.compare.simulation import Simulation, simulation_of
from spyrec.compare.storage import Array, Floats, Storage, absolute_difference, storage_of
from spyrec.compare.tracks import Track, statistical_bound, stored_exactly_known
from spyrec.dataclass import dataclass
from spyrec.hardware.dtypes import DType
from spyrec.ir.graph import Graph, Node, Operand
from spyrec.ir.host_ops import host_reason
from spyrec.ir.inference import operand_types
from spyrec.ir.numbers import decode
from spyrec.ir.opdef import OpDef, OpKind, catalogue
from spyrec.ir.promotion import Promotion, promotion
from spyrec.ir.types import TensorType
from spyrec.progress import counted

SAMPLES = 8
"""Random evaluations of the graph."""

_SEED = 20240229
"""Of all random roundings: a check gives the same figures every time."""

_WORST_CASE_LIMIT = 1 << 30
"""Multiply-adds of a contraction above which its worst case is left out: it lies far above the statistical bound."""

LoadConstant = Callable[[str], Array]
"""Gives the host array of a constant by name."""


@dataclass(frozen=True, slots=True)
class ValueBound:
    """One output: its exact values by the device graph, the simulated ones, and the bound of the stored ones."""

    exact: Array
    device: Array
    bound: Floats


def bound_outputs(  # noqa: PLR0913 -- a run, and how its graph became the device's
    graph: Graph,
    inputs: Mapping[str, Array],
    load_constant: LoadConstant,
    numerics: str,
    source: Graph | None = None,
    tiles: Mapping[str, tuple[int, ...]] | None = None,
) -> tuple[ValueBound, ...]:
    """Return the bounds of the outputs of a device graph, in the order of ``graph.outputs``.

    ``inputs`` are host arrays in the graph's dtypes; ``numerics`` is ``dl16``, ``ieee`` or ``f32``.  ``source``: the
    graph that was decomposed; what became of an op of it is held to the roundings that the op states (D185), under
    ``dl16`` alone: constants inside of operations are DLFloat16 under the others, too, and stated roundings theirs.
    ``tiles``: of sums that a launch makes of parts, by result, the shape of one part's first operand (:func:`tiled`).
    """
    walk = _Walk(graph, inputs, load_constant, numerics, tiles or {})
    if source is not None and numerics == "dl16":
        walk.hold(source)
    with np.errstate(all="ignore"):
        for index, node in counted(enumerate(graph.nodes), "operations checked", len(graph.nodes)):
            walk.run(node, index)
        tracks = [walk.track(name) for name in graph.outputs]
        return tuple(ValueBound(track.exact, track.device, np.asarray(track.bound())) for track in tracks)


def tiled(compiled: Graph, graph: Graph) -> dict[str, tuple[int, ...]]:
    """Return what a launch sums in parts: results with the shape that their first operand was compiled for.

    ``graph``: the same device graph at the shapes of the launch.
    """
    found: dict[str, tuple[int, ...]] = {}
    was = {node.output: node for node in compiled.nodes}
    for node in graph.nodes:
        other, kind = was.get(node.output), catalogue()[node.op].kind
        if other is None or kind not in {OpKind.REDUCTION, OpKind.CONTRACTION}:
            continue
        name, small = node.inputs[0], other.inputs[0]
        if isinstance(name, str) and isinstance(small, str):
            whole, part = graph.type_of(name).shape, compiled.type_of(small).shape
            if len(whole) == len(part) and whole != part:
                found[node.output] = part
    return found


class _Walk:
    """One pass over the nodes; ``_tracks`` holds the live values."""

    def __init__(
        self,
        graph: Graph,
        inputs: Mapping[str, Array],
        load_constant: LoadConstant,
        numerics: str,
        tiles: Mapping[str, tuple[int, ...]],
    ) -> None:
        self._graph = graph
        self._tiles = tiles
        self._inputs = inputs
        self._load_constant = load_constant
        self._numerics = numerics
        self._remaining = graph.use_counts()
        self._tracks: dict[str, Track] = {}
        self._held: dict[str, tuple[Graph, Node]] = {}

    def hold(self, source: Graph) -> None:
        """Hold what became of the ops of ``source`` to the roundings that they state.

        An op that states none at all is held to its number where the host computes it whole, too.
        """
        made = {name: (node.op, node.attributes) for node in self._graph.nodes for name in node.outputs}
        for node in source.nodes:
            if len(node.outputs) != 1:
                continue  # each result is an op of its own
            operands = [name for name in node.inputs if isinstance(name, str)]
            roundings = catalogue()[node.op].stated_roundings(node.attributes)
            became = made.get(node.output)
            is_other = became not in (None, (node.op, node.attributes))
            is_exact = became is not None and roundings is not None and roundings.is_exact
            if roundings is not None and (is_other or is_exact) and self._knows(operands):
                self._held[node.output] = (source, node)
                for name in operands:
                    self._remaining[name] = self._remaining.get(name, 0) + 1

    def _knows(self, names: Sequence[str]) -> bool:
        return all(name in self._graph.values for name in names)

    def _held_track(self, name: str, track: Track) -> Track:
        """Return the track of a result that was made of several nodes, with no more than its op's error."""
        source, node = self._held[name]
        definition = catalogue()[node.op]
        operands = self._operands(node, definition, source)
        for operand in {operand for operand in node.inputs if isinstance(operand, str)}:
            self._remaining[operand] -= node.inputs.count(operand)
            if self._remaining[operand] == 0:
                self._tracks.pop(operand, None)
        return held_to_op(definition, node.attributes, operands, track)

    def track(self, name: str) -> Track:
        """Return a live value; inputs and constants come to life at their first use."""
        if name not in self._tracks:
            is_constant = name in self._graph.constants
            values = self._load_constant(name) if is_constant else self._inputs[name]
            dtype = self._graph.type_of(name).dtype
            is_ieee = values.dtype.kind == "f"
            values = values if is_ieee else decode(values, dtype)
            self._tracks[name] = stored_exactly_known(values, storage_of(dtype, self._numerics))
        return self._tracks[name]

    def run(self, node: Node, index: int) -> None:
        """Evaluate one node and drop the values it used last."""
        definition = catalogue()[node.op]
        operands = self._operands(node, definition)
        names = [operand for operand in node.inputs if isinstance(operand, str)]
        for name in names:
            self._remaining[name] -= 1
        types = [self._graph.type_of(name) for name in node.outputs]
        reason = host_reason(definition, self._types(node, definition), types, node.attributes)
        on_host = node.on_host or reason is not None
        for number, name in enumerate(node.outputs):
            result = _NodeRun(
                definition, node, operands, types[number].dtype, self._numerics, index, number, on_host,
                self._tiles.get(name),
            )  # fmt: skip
            track = result.track()
            self._tracks[name] = self._held_track(name, track) if name in self._held else track
        for name in {*names, *node.outputs}:
            if self._remaining[name] == 0:
                self._tracks.pop(name, None)

    def _types(self, node: Node, definition: OpDef) -> list[TensorType | None]:
        return list(operand_types(definition, node.inputs, self._graph.values))

    def _operands(self, node: Node, definition: OpDef, source: Graph | None = None) -> tuple[Track | None, ...]:
        """Return what is known of a node's operands as it computes with them, absent ones as ``None``.

        ``source``: the graph that the node is of, by default the device's.
        """
        promoted = promotion(source or self._graph, node)
        found = [self._operand(index, operand, promoted) for index, operand in enumerate(node.inputs)]
        if not definition.is_variadic:
            found.extend([None] * (len(definition.operands) - len(found)))
        return tuple(found)

    def _operand(self, index: int, operand: Operand, promoted: Promotion) -> Track | None:
        if isinstance(operand, str):
            track = self.track(operand)
            return track.promoted(partial(promoted.tensor, index)) if promoted.whole is not None else track
        if operand is None:
            return None
        assert promoted.held is not None, operand
        return stored_exactly_known(promoted.number(index, operand), storage_of(promoted.held, self._numerics))


def rule_of(definition: OpDef, operands: Sequence[Storage | None], result: Storage) -> ErrorRule:
    """Return the error rule of a node whose operands and result are stored so."""
    if definition.kind is OpKind.CAST:
        (operand,) = operands
        assert operand is not None
        return cast_rule(operand.unit_roundoff, result.unit_roundoff)
    rule = error_rule(definition)
    assert rule is not None, f"check has no error rule for {definition.name}"
    return rule


def store_error(storage: Storage, rule: ErrorRule, magnitudes: Floats) -> Floats:
    """Return the largest error of a store, and of a float32 function of ``rule.ulps`` roundoffs before it."""
    roundoff = storage.unit_roundoff
    if roundoff <= SINGLE_ROUNDOFF:
        return storage.rounding_error(magnitudes, rule.ulps)
    return storage.rounding_error(magnitudes, 1.0 + rule.ulps * SINGLE_ROUNDOFF / roundoff)


@dataclass(frozen=True, slots=True)
class _NodeRun:
    """The evaluation of one result of a node; ``number`` of its results, ``index`` of the graph's nodes.

    ``tile``: the shape of the first operand of each part that is stored before the parts are added up.
    """

    definition: OpDef
    node: Node
    operands: tuple[Track | None, ...]
    dtype: DType
    numerics: str
    index: int
    number: int = 0
    is_on_host: bool = False
    tile: tuple[int, ...] | None = None

    def track(self) -> Track:
        """Return what is known of the result."""
        if self.definition.kind is OpKind.CREATION:
            values = self.definition.reference(
                [track and track.exact for track in self.operands], self.node.attributes
            )[0]
            return stored_exactly_known(as_wrapped(values, self.dtype), self._storage)
        if self.definition.kind in (OpKind.VIEW, OpKind.MOVEMENT) and len(self.operands) == 1:
            (operand,) = self.operands
            assert operand is not None
            return operand.moved(lambda values: self.definition.reference((values,), self.node.attributes)[self.number])
        step = self._step()
        rule = self._rule()
        devices = [track and track.device for track in self.operands]
        noise: Floats | None = None
        if self.is_on_host:
            simulation = Simulation(self.definition, self.node.attributes, 1.0, self.number)
            unrounded = simulation.run(devices)
        else:
            simulation = simulation_of(self.definition, self.node.attributes, rule, step, self.dtype)
            unrounded, noise = simulation.run_with_partial_sums(devices)
        parts = self._parts_error(step)
        if parts is not None:
            noise = parts if noise is None else noise + parts
        device = self._storage.rounded(as_wrapped(unrounded, self.dtype))
        samples = self._samples(simulation, rule, noise)
        statistical = self._statistical(step, device, samples, rule)
        worst, jump = self._worst_case(step, simulation, rule)
        worst = worst if worst is None or parts is None else worst + parts
        if jump is not None:
            statistical = statistical + jump
        missed = None if samples is None else self._missed(step, rule, worst, statistical)
        if missed is not None and samples is not None:
            statistical = statistical + missed
            samples = self._reaching(samples, missed)
        error = statistical
        if worst is not None:
            # what is only chosen or moved has the error it had: samples of the result alone would be less sure
            error = np.minimum(worst, statistical) if rule.rounds else worst
        lost = ~np.isfinite(step.result) & (step.result != device)
        if lost.any():  # the reference is infinite or NaN, the device something else: what follows may be anything
            error = np.where(lost, np.inf, error)
            jump = np.where(lost, np.inf, 0.0 if jump is None else jump)
        return Track(step.result, device, self._storage, samples, error, jump)

    def _parts_error(self, step: Step) -> Floats | None:
        """Return what storing the parts of a sum may change, which are joined in float32; ``None`` without parts."""
        if self.tile is None:
            return None
        first = step.value(0)
        axes = range(first.ndim - 1, first.ndim) if self.definition.kind is OpKind.CONTRACTION else range(first.ndim)
        error: Floats = np.zeros(step.result.shape)
        for axis in axes:
            extent, width = first.shape[axis], self.tile[axis]
            reduced = step.apply(np.take(first, [0], axis), *self._beside(step, slice(0, 1)))
            if extent == width or reduced.shape != step.result.shape:
                continue  # a dim of the result: what is computed by itself is stored once
            for start in range(0, extent, width):
                cut = slice(start, start + width)
                within = first[(slice(None),) * axis + (cut,)]
                error = error + self._storage.rounding_error(np.abs(step.apply(within, *self._beside(step, cut))))
        return error

    def _beside(self, step: Step, cut: slice) -> tuple[Array | None, ...]:
        """Return the other operands of a part: of a product the same stretch of its second."""
        if self.definition.kind is not OpKind.CONTRACTION:
            return step.values[1:]
        second = step.value(1)
        return (second[..., cut, :], *step.values[2:])

    @property
    def _storage(self) -> Storage:
        return storage_of(self.dtype, self.numerics)

    def _step(self) -> Step:
        values = tuple(track and track.exact for track in self.operands)
        result = np.asarray(self.definition.reference(values, self.node.attributes)[self.number])
        result = as_wrapped(result, self.dtype)
        return Step(self.definition, self.node.attributes, values, result, self.number, self.dtype)

    def _rule(self) -> ErrorRule:
        stored = [track and track.storage for track in self.operands]
        is_whole = all(storage is not None and storage.is_exact for storage in stored)
        is_cast = self.definition.kind is OpKind.CAST
        # integers have more digits than floats; a bool is cast on the device, and is 0 or 1 in any format
        if self.is_on_host and (not is_cast or is_whole):
            return host_rule(self.definition.stated_roundings(self.node.attributes), self._storage.is_exact)
        return rule_of(self.definition, stored, self._storage)

    def _samples(self, simulation: Simulation, rule: ErrorRule, noise: Floats | None) -> tuple[Array, ...] | None:
        has_samples = any(track is not None and track.samples is not None for track in self.operands)
        if not has_samples and not rule.rounds:
            return None
        results: list[Array] = []
        values = simulation.run([track and track.sample(0) for track in self.operands])
        for index in range(SAMPLES):
            if has_samples and index > 0:
                values = simulation.run([track and track.sample(index) for track in self.operands])
            held = as_wrapped(values, self.dtype)
            results.append(self._perturbed(held, noise, rule, index) if rule.rounds else held)
        return tuple(results)

    def _perturbed(self, values: Array, noise: Floats | None, rule: ErrorRule, index: int) -> Array:
        """Return the values after a random rounding: uniform within the largest error of one store."""
        if self._storage.is_exact:
            return values
        values = values.astype(np.float64, copy=False)
        amplitude = self._store_error(np.abs(values), rule)
        if noise is not None:
            amplitude += noise
        generator = np.random.Generator(np.random.PCG64([_SEED, self.index, index]))
        random = generator.random(values.shape, dtype=np.float32)
        return values + amplitude * (2.0 * random - 1.0)

    def _statistical(self, step: Step, device: Array, samples: tuple[Array, ...] | None, rule: ErrorRule) -> Floats:
        if samples is None:
            return absolute_difference(step.result, device)
        bound = statistical_bound(step.result, device, samples)
        return bound + self._rounding_error(step, bound, rule) if rule.rounds else bound

    def _rounding_error(self, step: Step, error: Floats, rule: ErrorRule) -> Floats:
        """Return the largest error of the store where the operands have made this error already."""
        return self._store_error(np.abs(step.result.astype(np.float64, copy=False)) + error, rule)

    def _store_error(self, magnitudes: Floats, rule: ErrorRule) -> Floats:
        """Return the largest error of a store, and of a float32 function of ``rule.ulps`` roundoffs before it."""
        return store_error(self._storage, rule, magnitudes)

    def _worst_case(self, step: Step, simulation: Simulation, rule: ErrorRule) -> tuple[Floats | None, Floats | None]:
        """Return the worst case, if it is worth its cost, and the jump part."""
        if self._is_costly(step):
            return None, self._jump(step, rule, None)
        errors = [None if track is None else self._possible(track) for track in self.operands]
        spread = rule.spread(step, errors)
        jump = self._jump(step, rule, spread)
        if rule.constants or rule.scale is not None:
            spread = spread + self._constant_error(step, simulation, errors[0])
        if rule.arithmetic is not None:
            spread = spread + rule.arithmetic(step, errors)
        if rule.rounds:
            spread = spread + self._rounding_error(step, spread, rule)
        return np.where(np.isnan(spread), np.inf, spread), jump

    @staticmethod
    def _possible(track: Track) -> Floats:
        """Return the operand's errors, NaN where it may be NaN: no function of NaN has a bound, not even a clamp."""
        error = track.bound()
        if track.storage.merges_nan or track.storage.is_exact or np.isfinite(error).all():
            return error
        return np.where(np.isfinite(error), error, np.nan)

    @staticmethod
    def _constant_error(step: Step, simulation: Simulation, error: Floats | None) -> Floats:
        """Return what the rounding of the op's constants changes, anywhere within the error of the first operand."""
        value, rest = step.value(0), step.values[1:]
        assert error is not None
        worst = np.zeros(step.result.shape)
        for point in (value - error, value, value + error, np.abs(value) + error):
            change = absolute_difference(simulation.run((point, *rest)), step.apply(point, *rest))
            np.maximum(worst, change, out=worst)
        return worst

    def _missed(self, step: Step, rule: ErrorRule, worst: Floats | None, statistical: Floats) -> Floats | None:
        """Return what random samples may have missed of the worst case behind a kink."""
        if rule.is_at_kink is None or worst is None:
            return None
        errors = [None if track is None else self._possible(track) for track in self.operands]
        missed = np.where(rule.is_at_kink(step, errors) & (worst > statistical), worst - statistical, 0.0)
        return missed if missed.any() else None

    def _reaching(self, samples: tuple[Array, ...], missed: Floats) -> tuple[Array, ...]:
        """Return samples that show what they missed, so that what follows takes it up as it does a rounding.

        Half of it is each element's own, half goes the same way in all elements of a sample: what moves many operands
        over their kinks at once, a norm's scale for one, moves their results together.
        """
        results: list[Array] = []
        for index, sample in enumerate(samples):
            generator = np.random.Generator(np.random.PCG64([_SEED, self.index, index, 1]))
            ways = 2.0 * (generator.random() + generator.random(missed.shape)) - 2.0
            results.append(sample.astype(np.float64, copy=False) + missed * ways)
        return tuple(results)

    def _is_costly(self, step: Step) -> bool:
        if self.is_on_host:
            return False
        is_product = self.definition.kind in {OpKind.CONTRACTION, OpKind.WINDOW}
        return is_product and step.result.size * term_count(step) > _WORST_CASE_LIMIT

    def _jump(self, step: Step, rule: ErrorRule, spread: Floats | None) -> Floats | None:
        """Return what undecided choices may add: those made here, and those of the operands passed on."""
        if not rule.is_continuous:
            assert spread is not None
            return spread if spread.any() else None
        jump: Floats | None = None
        if any(track is not None and track.jump is not None for track in self.operands):
            jump = rule.spread(step, [None if track is None else track.jump_or_zero() for track in self.operands])
            jump = np.where(np.isnan(jump), np.inf, jump)
        if spread is not None and not np.isfinite(spread).all():
            pole = np.where(np.isfinite(spread) | ~np.isfinite(step.result.astype(np.float64)), 0.0, np.inf)
            jump = pole if jump is None else np.maximum(jump, pole)
        return jump if jump is not None and jump.any() else None
