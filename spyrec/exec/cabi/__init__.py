"""The execution contract as a shared library (extra ``cabi``): ``python -m spyrec.exec.cabi build``."""
