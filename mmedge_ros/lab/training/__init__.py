"""Training: data sets from flights, the networks' training, and their export to bundles."""

from mmedge_ros import MmedgeError


class TrainingError(MmedgeError):
    """A set cannot be used, or a training cannot go on; the message names the remedy."""
