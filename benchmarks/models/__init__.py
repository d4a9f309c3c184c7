"""Tiny models of many architectures, with random weights, through import, compile, run and check."""
