"""Planning: how kernels divide among the cores, what lies in the scratchpads, what it all costs."""
