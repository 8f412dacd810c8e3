"""What recurs: object memory of the picture stream, semantic memory of tracks."""

from mmedge_ros import MmedgeError


class RecurrenceError(MmedgeError):
    """A semantic memory and what is looked up in it do not fit; the message says why."""
