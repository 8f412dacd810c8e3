"""What a policy costs, by a stated model where nothing was measured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class EnergyModel:
    """Power in W: ``idle`` all the time, ``busy`` more for each processor second of work.

    The constants are an assumption, no measurement: NVIDIA sells the Jetson Orin Nano with power
    modes of 7 and 15 W. We take the lower for a graph that waits, and let two encoders at work
    all the time make up the difference. So joules compare policies; they are nobody's battery.
    """

    idle: float = 7.0
    busy: float = 4.0

    def joules(self, processor_seconds: float, duration: float) -> float:
        """Return the energy of a flight.

        :param processor_seconds: of encoders and decisions
        :param duration: of the flight, s
        """
        return self.idle * duration + self.busy * processor_seconds
