"""The error of this subpackage."""

from __future__ import annotations


class FusionError(ValueError):
    """A calibration, transform or fusion input that cannot be used."""
