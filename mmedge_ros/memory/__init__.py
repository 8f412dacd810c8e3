"""Moments of a flight: what is kept of it, where, and how it is searched."""

from mmedge_ros import MmedgeError


class FlightMemoryError(MmedgeError):
    """A memory that cannot be kept, read or searched; the message says why and what to do."""
