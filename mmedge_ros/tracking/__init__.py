"""Following people through time: Kalman filter, data association, track life cycle."""

from mmedge_ros import MmedgeError


class FusionError(MmedgeError):
    """A calibration, transform or fusion input that cannot be used."""
