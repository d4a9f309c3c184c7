"""Streams of control blocks, the scheduler that executes them, and what watches the order between them."""
