"""Choosing sensing rates and model levels: what is possible, how long it takes, what is best."""

from mmedge_ros import MmedgeError


class ConfigurationError(MmedgeError):
    """A configuration space, a profile or a table is not what it should be."""
