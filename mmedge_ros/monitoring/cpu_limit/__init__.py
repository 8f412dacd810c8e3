"""Limits the processor of a process tree, to measure under load."""
