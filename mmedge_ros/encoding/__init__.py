"""Encoders: pictures and radar scans to detections, embeddings and feature grids."""

from mmedge_ros import MmedgeError


class EncodingError(MmedgeError):
    """A network cannot be opened or run, or a picture cannot be encoded."""
