"""From sensor messages and raw bytes to arrays."""

from mmedge_ros import MmedgeError


class SensingError(MmedgeError):
    """A sensor message or stream does not hold what it claims to hold."""
