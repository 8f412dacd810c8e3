"""What is sensed and encoded: configurations, latency, power (MMEdge, Nanomind)."""

from mmedge_ros import MmedgeError


class ConfigurationError(MmedgeError):
    """A configuration space, a profile or a table is not what it should be."""
