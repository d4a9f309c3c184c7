"""The emulated device: executes device programs from their files and an argument table alone."""
