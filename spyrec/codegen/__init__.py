"""From scheduled kernels or OpSpecs to SuperDSC and ``bundle.mlir``."""
