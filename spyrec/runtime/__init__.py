"""Running bundles on a device: arguments, host copies, launches, what a run reports."""
