"""Sanitizers: shadow state beside the emulated memories, and what reading and writing it shows."""
