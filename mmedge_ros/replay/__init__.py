"""Recordings: bags and their truth, offline replay, playback, how sensors were mounted."""

from mmedge_ros import MmedgeError


class ReplayError(MmedgeError):
    """A recording, a profile or a run cannot be used; the message names the remedy."""


class BagError(ReplayError):
    """A recording, or something in it, cannot be read."""
