"""Jobs: programs with the steps that launch them, and the plans that hold several."""
