"""Tiled launch, the part that only computes: which tiles, at which addresses, through which copies.

:func:`spyrec.runtime.launch.explain.explain_launch` is the entrance; what it returns is data that a stream executes.
"""
