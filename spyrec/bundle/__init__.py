"""The border between compiler and device: bundles as data, their files, and the rules that need nothing else."""
