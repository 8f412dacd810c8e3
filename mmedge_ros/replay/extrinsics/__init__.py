"""How radar and camera sit to each other, and how far apart their clocks are, from recordings."""

from mmedge_ros import MmedgeError


class ExtrinsicsError(MmedgeError):
    """A recording does not show enough to calibrate by; the message says what is missing."""
