"""The graph, its ops and the kernels it becomes: immutable data, its reading, writing and checking."""
