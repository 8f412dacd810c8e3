"""Thin nodes: each declares, converts, calls and publishes."""
