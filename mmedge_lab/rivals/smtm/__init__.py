"""Benches of what is reused: semantic memory and object memory, each beside its rivals."""
