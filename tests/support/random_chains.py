"""Random chains of two or three operations on small tensors, to be run on larger ones."""

from __future__ import annotations

from random import Random

from tests.support.graph_files import JsonObject, graph_data, node, tensor


def random_small_graph(random: Random) -> JsonObject:
    """A graph of two or three operations in a chain, on tensors of rank 2 or 3."""
    rows, columns = random.choice([2, 6, 8, 16]), random.choice([64, 128, 100])
    shape = [random.choice([2, 3]), rows, columns] if random.random() < 0.4 else [rows, columns]
    inputs = [tensor("x", *shape)]
    nodes: list[JsonObject] = []
    last, at = "x", list(shape)
    for number in range(random.randint(1, 3)):
        name = f"n{number}"
        match random.choice(["unary", "add", "row", "matmul", "softmax", "norm", "sum"]):
            case "unary":
                nodes.append(node(name, random.choice(["relu", "sigmoid", "neg", "tanh"]), last))
            case "add":
                inputs.append(tensor(f"y{number}", *at))
                nodes.append(node(name, random.choice(["add", "mul"]), last, f"y{number}"))
            case "row":
                inputs.append(tensor(f"r{number}", at[-1]))
                nodes.append(node(name, "add", last, f"r{number}"))
            case "matmul":
                width = random.choice([64, 128])
                inputs.append(tensor(f"w{number}", at[-1], width))
                nodes.append(node(name, "matmul", last, f"w{number}"))
                at[-1] = width
            case "softmax":
                nodes.append(node(name, "softmax", last, dim=len(at) - 1))
            case "norm":
                inputs.append(tensor(f"g{number}", at[-1]))
                nodes.append(node(name, "rms_norm", last, f"g{number}", normalized_shape=[at[-1]]))
            case _:
                nodes.append(node(name, "sum", last, dim=[len(at) - 1], keepdim=True))
                at[-1] = 1
        last = name
        if at[-1] == 1:
            break
    return graph_data(inputs, nodes, [last])
