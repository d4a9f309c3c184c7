"""The only home of hardware numbers: target and profiles, cost model, formats, DLFloat16; what a plan costs by them."""
