"""What can go wrong with a replay."""


class ReplayError(ValueError):
    """A recording, a profile or a run cannot be used; the message names the remedy."""
