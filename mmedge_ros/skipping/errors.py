"""What can go wrong with speculative skipping."""


class SkippingError(ValueError):
    """A gate cannot be read, trained or certified; the message says why and what to do."""
