"""Pure algorithms on integers and tuples; no IR."""
