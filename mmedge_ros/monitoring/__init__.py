"""The state of the computer and its supply, and limits imposed on it."""

from mmedge_ros import MmedgeError


class MonitoringError(MmedgeError):
    """A source cannot be read or a trace cannot be used; the message names the place."""
