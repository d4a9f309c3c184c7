"""The parts of ``benchmarks/emulator.py``, one file for each kind of measurement."""
