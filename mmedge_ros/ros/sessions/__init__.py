"""Whole runs of the graph: live replay, profiling, and flight."""
