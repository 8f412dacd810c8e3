"""Metrics over a recorded run, and the report folder."""

from mmedge_ros import MmedgeError


class EvaluationError(MmedgeError):
    """A run cannot be evaluated or its report cannot be written; the message names the remedy."""
