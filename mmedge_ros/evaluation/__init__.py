"""Metrics over a recorded run, and the report folder."""
