"""Drawing what was perceived, and the live page."""

from mmedge_ros import MmedgeError


class ViewingError(MmedgeError):
    """What was perceived cannot be shown."""
