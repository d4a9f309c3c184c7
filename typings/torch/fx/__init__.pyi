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

class GraphModule:
    graph: Graph
    def __call__(self, *arguments: object) -> object: ...
    def get_submodule(self, target: str) -> object: ...

class Interpreter:
    def __init__(self, module: GraphModule) -> None: ...
    def run(self, *args: object) -> object: ...
    def run_node(self, n: Node) -> object: ...
    def call_function(self, target: object, args: tuple[object, ...], kwargs: Mapping[str, object]) -> object: ...
    def call_module(self, target: object, args: tuple[object, ...], kwargs: Mapping[str, object]) -> object: ...
