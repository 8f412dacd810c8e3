"""Rivals that run live: nodes of a graph that waits for the end of each window."""
