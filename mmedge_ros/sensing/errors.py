"""The error of this subpackage."""

from __future__ import annotations


class SensingError(ValueError):
    """A sensor message or stream does not hold what it claims to hold."""
