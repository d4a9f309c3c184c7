"""Copies between host arrays and device memory: the plan of a copy, its kernels, and what elements become."""
