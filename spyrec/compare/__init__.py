"""Holding a run against the float64 reference, a bundle against another, a file against its rules."""
