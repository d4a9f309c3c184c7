from collections.abc import Mapping, Sequence

class Node:
    name: str
    op: str
    target: object
    args: Sequence[object]
    kwargs: Mapping[str, object]
    meta: Mapping[str, object]

class Graph:
    nodes: Sequence[Node]
