"""Checks before a flight: pure functions from facts about the machine and graph to findings."""
