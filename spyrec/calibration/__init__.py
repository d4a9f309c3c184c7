"""Measured kernel times against simulated ones: reading them, fitting a profile, judging it."""
