"""Looks for a better plan than the planner's: ``space`` says what may be pinned, ``search`` tries it, ``tune`` tells.

A trial is a graph with pins, compiled on a worker (``trial``); the figure that decides is the simulated time, or what a
command measures.  ``sampler`` proposes the trials of a space that is too large to be tried whole.
"""
