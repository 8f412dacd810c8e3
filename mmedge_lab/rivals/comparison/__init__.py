"""Rivals beside ours: every policy on the same flights, with the same models, in one report."""
