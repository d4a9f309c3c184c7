"""Simulated times and counted traffic."""
