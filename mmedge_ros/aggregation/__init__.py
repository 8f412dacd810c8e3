"""Temporal aggregation: explicit states of windows, stepped unit by unit as these arrive."""
