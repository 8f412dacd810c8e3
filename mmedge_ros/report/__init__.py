"""A run as one page with figures: accuracy, latency, tracks, energy; and its files."""

from mmedge_ros import MmedgeError


class ReportError(MmedgeError):
    """A report cannot be written or read; the message names the remedy."""
