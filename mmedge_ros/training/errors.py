"""What can go wrong while a network is trained or judged."""


class TrainingError(ValueError):
    """A set cannot be used, or a training cannot go on; the message names the remedy."""
