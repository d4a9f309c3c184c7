"""Profiling the execution pipeline: what is recorded, how it is drawn as a trace, and what it sums up to."""
