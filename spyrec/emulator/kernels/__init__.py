"""Compiled code: what reads and writes device memory, and the steps that the driver calls."""
