"""Pictures and embeddings between processes: a ring in shared memory, without ROS."""

from mmedge_ros import MmedgeError


class TransportError(MmedgeError):
    """Shared memory that cannot be made, entered or believed."""
