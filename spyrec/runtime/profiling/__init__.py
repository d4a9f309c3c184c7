"""Runs and what devices do over time: what is recorded, how it is drawn as a trace, and what it sums up to."""
