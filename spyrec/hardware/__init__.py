"""The only home of hardware numbers: target and profiles, cost model, formats, DLFloat16."""
