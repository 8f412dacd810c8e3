"""Benches of bricks, power and the picture ring; networks in fewer bits where that pays."""

from mmedge_ros import MmedgeError


class QuantisationError(MmedgeError):
    """A bundle cannot be quantised."""
