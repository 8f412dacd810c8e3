"""Runs built by hand, for the tests of this room."""

from hand_made_run import build_run, empty_run  # noqa: F401
