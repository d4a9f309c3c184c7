"""Device memory of the program execution pipeline: regions, allocations, and the bytes behind them."""
