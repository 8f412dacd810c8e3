"""The error of this subpackage."""

from __future__ import annotations


class ConfigurationError(ValueError):
    """A configuration space, a profile or a table is not what it should be."""
