"""Windows of units: temporal networks over them, and deciding them early (MMEdge)."""

from mmedge_ros import MmedgeError
from mmedge_ros.encoding import EncodingError


class AggregationError(EncodingError):
    """A network cannot aggregate, or a unit cannot be aggregated; the message says why.

    It is an EncodingError, so that opening a bundle raises one kind of error.
    """


class SkippingError(MmedgeError):
    """A gate cannot be read, trained or certified; the message says why and what to do."""
