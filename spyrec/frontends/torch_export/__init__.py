"""Programs of ``torch.export`` as graphs: the archive, the program that stands in it, its operations by name."""
