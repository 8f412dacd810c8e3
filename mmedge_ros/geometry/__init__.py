"""Frames, rotations, projection, calibration and ego motion: where things are."""

from mmedge_ros import MmedgeError


class GeometryError(MmedgeError):
    """A calibration, transform, pose or projection that cannot be used."""
