"""What the importers share: a program as a graph in its own dtypes, settled into one that the device computes."""
