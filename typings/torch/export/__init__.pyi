from collections.abc import Mapping, MutableMapping, Sequence

from torch import Tensor
from torch.fx import Graph, GraphModule

class Module:
    def __call__(self, *arguments: object, **keywords: object) -> object: ...

class Argument:
    name: str
    value: object

class Kind:
    name: str

class InputSpec:
    kind: Kind
    arg: Argument
    target: str | None

class OutputSpec:
    kind: Kind
    arg: Argument
    target: str | None

class ExportGraphSignature:
    input_specs: list[InputSpec]
    output_specs: list[OutputSpec]
    user_inputs: Sequence[object]

class ValueRange:
    lower: object
    upper: object

class ExportedProgram:
    def __init__(
        self,
        root: GraphModule,
        graph: Graph,
        graph_signature: ExportGraphSignature,
        state_dict: MutableMapping[str, Tensor],
        range_constraints: Mapping[object, ValueRange],
        module_call_graph: object,
        example_inputs: object,
        constants: MutableMapping[str, Tensor],
        *,
        verifiers: object,
    ) -> None: ...
    module_call_graph: object
    example_inputs: object
    verifiers: object
    graph: Graph
    graph_module: GraphModule
    graph_signature: ExportGraphSignature
    range_constraints: Mapping[object, ValueRange]
    state_dict: MutableMapping[str, Tensor]
    constants: MutableMapping[str, Tensor]
    def run_decompositions(self, table: MutableMapping[object, object]) -> ExportedProgram: ...
    def module(self) -> Module: ...

def default_decompositions() -> MutableMapping[object, object]: ...
def export(
    module: object,
    arguments: tuple[object, ...],
    kwargs: Mapping[str, object] | None = None,
    *,
    strict: bool = ...,
) -> ExportedProgram: ...
def load(path: str) -> ExportedProgram: ...
