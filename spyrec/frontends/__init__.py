"""Other ways than a JSON file to say what a graph is; all of them end in :class:`spyrec.ir.graph.Graph`."""
