"""Moments of a flight: which views are kept, their store, and how they are searched."""

from mmedge_ros import MmedgeError


class FlightMemoryError(MmedgeError):
    """A memory that cannot be kept, read or searched; the message says why and what to do."""
