"""Networks in fewer bits: by stage, kept where this device is faster for it and sees as well."""

from mmedge_ros import MmedgeError


class QuantisationError(MmedgeError):
    """A bundle cannot be quantised."""
