"""Temporal aggregation: explicit states of windows, stepped unit by unit as these arrive."""

from mmedge_ros.encoding import EncodingError


class AggregationError(EncodingError):
    """A network cannot aggregate, or a unit cannot be aggregated; the message says why.

    It is an EncodingError so that whoever opens a bundle has one kind of error to deal with.
    """
