"""The error of this subpackage."""

from __future__ import annotations


class MonitoringError(ValueError):
    """A source cannot be read or a trace cannot be used; the message names the place."""
