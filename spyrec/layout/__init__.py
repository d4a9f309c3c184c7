"""Where elements lie in device memory: layouts, coordinates, conversion tables."""
