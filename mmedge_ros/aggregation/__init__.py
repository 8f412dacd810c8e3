"""Temporal aggregation: explicit states of windows, stepped unit by unit as these arrive."""

from mmedge_ros.encoding import EncodingError


class AggregationError(EncodingError):
    """A network cannot aggregate, or a unit cannot be aggregated; the message says why.

    It is an EncodingError, so that opening a bundle raises one kind of error.
    """
