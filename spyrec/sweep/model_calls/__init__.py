"""What real models call of PyTorch, op by op: lists of calls as data, each made to a graph and to numbers for it."""
