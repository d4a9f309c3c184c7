"""What real models call, op by op: lists of calls as data, each compiled, run and held against NumPy in float64.

``python -m benchmarks model_ops FILE...``; the lists are no part of this repository.
"""
