"""Coarse tiling: from the loops that a graph asks for to kernels that run tile by tile."""
