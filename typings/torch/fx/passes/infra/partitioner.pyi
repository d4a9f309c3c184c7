from torch.fx import GraphModule
from torch.fx.passes.operator_support import OperatorSupportBase

class CapabilityBasedPartitioner:
    def __init__(
        self, graph_module: GraphModule, operator_support: OperatorSupportBase, allows_single_node_partition: bool
    ) -> None: ...
    def partition_and_fuse(self) -> GraphModule: ...
