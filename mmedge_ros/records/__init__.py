"""What a run leaves behind: its record, ground truth, service times and failure counts."""

from mmedge_ros import MmedgeError


class RecordError(MmedgeError):
    """A device profile or another record that cannot be used."""
