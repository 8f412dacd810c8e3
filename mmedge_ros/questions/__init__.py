"""Questions about a flight, answered from what was perceived."""

from mmedge_ros import MmedgeError


class QuestionError(MmedgeError):
    """A question that cannot be read or answered; the message says why and what to ask instead."""
