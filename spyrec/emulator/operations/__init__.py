"""The plan of every operation: how it becomes steps of kernels."""
