"""Deciding early: the gate, leases, audits."""

from mmedge_ros import MmedgeError


class SkippingError(MmedgeError):
    """A gate cannot be read, trained or certified; the message says why and what to do."""
