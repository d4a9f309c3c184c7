"""How nodes of each kind become kernels."""
