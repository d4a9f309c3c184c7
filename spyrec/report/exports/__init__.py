"""A report in the forms of other tools: one module per format, each with ``render(report)``, which returns the file."""
