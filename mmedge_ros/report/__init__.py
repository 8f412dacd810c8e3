"""Report folders: files, pages and the style of figures."""

from mmedge_ros import MmedgeError


class ReportError(MmedgeError):
    """A report cannot be written or read; the message names the remedy."""
