"""What a launch may do with a compiled program: repeat it over tiles of its arguments, join the parts of its result.

``tile_contracts`` writes it into a bundle whose code is generated; ``program_loops`` finds the loops, in kernels and
not in files.  It runs passes and code generation, so it stands above both.
"""
