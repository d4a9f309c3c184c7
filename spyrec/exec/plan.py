"""A graph of graph replays across streams: data dependencies, and nothing else."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from spyrec.dataclass import dataclass
from spyrec.exec.arguments import KEY_INHERIT, require_key
from spyrec.exec.errors import ExecError, InvalidCall, exec_error, translated
from spyrec.exec.graph import Graph
from spyrec.runtime.argument_kinds import Whole, of, takes
from spyrec.runtime.errors import RuntimeFault
from spyrec.runtime.streams.spyre_stream import SpyreStream

if TYPE_CHECKING:
    from spyrec.exec.context import Context
    from spyrec.runtime.streams.events import Event


@dataclass(slots=True, eq=False)
class _Node:
    """One replay; ``after``: the nodes it waits for."""

    graph: Graph
    key: int
    stream_id: int
    after: set[int] = field(default_factory=set[int])


class Plan:
    """Replays of graphs: in the order of :meth:`add` on each stream, and across streams as :meth:`after` says."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self._nodes: list[_Node] = []
        self._is_destroyed = False

    @takes(InvalidCall, graph=of("Graph"), stream_id=Whole(0))
    def add(self, graph: Graph, key: int, stream_id: int) -> int:
        """Append a replay and return its number; ``KEY_INHERIT`` takes the key of :meth:`execute`.  Errors SPY0931."""
        self._require_alive()
        self.context.require_own(graph)
        graph.require_alive()
        require_key(key)
        self.context.runtime_stream(stream_id)
        with self.context.lock:
            self._nodes.append(_Node(graph, key, stream_id))
            return len(self._nodes) - 1

    @takes(InvalidCall, node=Whole(), dependency=Whole())
    def after(self, node: int, dependency: int) -> None:
        """Let a replay begin when an earlier one is done.

        Errors: SPY0931 a number of none, or not of an earlier one: so there is no way to make a cycle.
        """
        self._require_alive()
        with self.context.lock:
            for number in (node, dependency):
                if not 0 <= number < len(self._nodes):
                    raise InvalidCall(f"node {number} of a plan of {len(self._nodes)}")
            if dependency >= node:
                raise InvalidCall(f"node {node} after node {dependency}, which is not added before it")
            self._nodes[node].after.add(dependency)

    def execute(self, key: int) -> None:
        """Enqueue all replays; nothing where a key, a binding or a stream of any of them is missing.

        Errors: SPY0931, SPY0932, SPY0933, SPY0934, SPY0935.
        """
        self._require_alive()
        require_key(key)
        with self.context.lock, translated():
            self._preflight(key)
            awaited = {
                one for node in self._nodes for one in node.after if self._nodes[one].stream_id != node.stream_id
            }
            events: dict[int, Event] = {}
            for number, node in enumerate(self._nodes):
                stream = self._stream(node)
                for one in sorted(node.after & events.keys()):
                    stream.wait_event(events[one])
                node.graph.replay(self._key(node, key), node.stream_id)
                if number in awaited:
                    events[number] = stream.record_event()

    def sync(self) -> None:
        """Wait until every stream of the plan is done; errors SPY0935 one of them failed, SPY0934 in a capture."""
        self._require_alive()
        with self.context.lock:
            streams = {node.stream_id: self._stream(node) for node in self._nodes}
        errors: list[ExecError] = []
        for stream_id in sorted(streams):
            try:
                streams[stream_id].synchronize()
            except RuntimeFault as error:
                errors.append(exec_error(error))
                errors[-1].__cause__ = error
        if errors:
            raise errors[0]

    def destroy(self) -> None:
        """Forget the plan; what is enqueued goes on.  A second call does nothing."""
        if not self._is_destroyed:
            self._is_destroyed = True
            self._nodes.clear()
            self.context.forget(self)

    def _preflight(self, key: int) -> None:
        for node in self._nodes:
            node.graph.ready(self._key(node, key))
        for flex in {self._stream(node).flex for node in self._nodes}:
            self.context.device.scheduler.refuse_unready(flex.queue)

    def _key(self, node: _Node, key: int) -> int:
        return key if node.key == KEY_INHERIT else node.key

    def _stream(self, node: _Node) -> SpyreStream:
        return self.context.runtime_stream(node.stream_id)

    def _require_alive(self) -> None:
        self.context.require_alive()
        if self._is_destroyed:
            raise InvalidCall("the plan is destroyed")
