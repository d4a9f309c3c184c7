"""Passes: from the graph that a user wrote to kernels with layouts, work division and addresses."""
