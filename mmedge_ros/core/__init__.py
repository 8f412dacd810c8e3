"""What everything rests on: records, declared parameters, clocks, files, run records."""

from mmedge_ros import MmedgeError


class RecordError(MmedgeError):
    """A device profile or another record that cannot be used."""
