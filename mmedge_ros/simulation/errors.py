"""What can go wrong while a flight is simulated."""


class SimulationError(ValueError):
    """A flight cannot be simulated or written; the message says why and what to do."""
