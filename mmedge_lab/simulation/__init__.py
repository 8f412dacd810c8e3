"""Simulated flights with ground truth: scenes, camera and radar models, system dynamics."""

from mmedge_ros import MmedgeError


class SimulationError(MmedgeError):
    """A flight cannot be simulated or written; the message says why and what to do."""
