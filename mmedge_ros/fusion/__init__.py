"""Geometry between the sensors, and the fusion of what they see."""

from mmedge_ros import MmedgeError


class FusionError(MmedgeError):
    """A calibration, transform or fusion input that cannot be used."""
