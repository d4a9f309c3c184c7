from torch.fx import Node

class OperatorSupportBase:
    def is_node_supported(self, submodules: object, node: Node) -> bool: ...
