"""Benchmarks of the optimiser, the radar parser and reconfiguration under load."""
