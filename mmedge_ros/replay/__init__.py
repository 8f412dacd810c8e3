"""Recordings: reading bags, offline replay and the live player."""

from mmedge_ros import MmedgeError


class ReplayError(MmedgeError):
    """A recording, a profile or a run cannot be used; the message names the remedy."""


class BagError(ReplayError):
    """A recording, or something in it, cannot be read."""
