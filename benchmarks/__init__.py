"""Speed claims, each measured as a ratio within one run: ``python -m benchmarks NAME|all``."""
