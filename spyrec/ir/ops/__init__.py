"""The op catalogue: one module per family, one declaration per op."""
