"""Noise and steps of a measured quantity, one sample at a time.

Durations have outliers (a page fault, a garbage collection) and steps (another process starts,
clocks drop). Averaging would smear a step over many samples and be thrown by an outlier, so
steps are detected with a two-sided cumulative sum (Page, Biometrika 1954) of clipped, scaled
deviations, and the noise is learned from clipped deviations too.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median_high, median_low

# Mean absolute deviation of a normal distribution, as a share of its standard deviation.
_MEAN_ABSOLUTE = 0.798
_AGREEMENT = 0.9
# In standard deviations of the noise: the deviation that is not counted, half the smallest step
# worth finding, and the sum at which a step is believed.
_SLACK, _THRESHOLD = 0.75, 4.0
# The largest deviation that one sample may count: upwards below the threshold, so that an outlier
# alone is no step but two in a row are; downwards less, because believing a machine to be slow is
# the safe error.
_MOST_UP, _MOST_DOWN = 3.2, 1.5


class StepDetector:
    """Sums deviations from an expectation until they can only be a step."""

    def __init__(self) -> None:
        self._up = self._down = 0.0
        self._ups: list[float] = []
        self._downs: list[float] = []

    def reset(self) -> None:
        """Forget what has been summed."""
        self._up = self._down = 0.0
        self._ups.clear()
        self._downs.clear()

    def update(self, deviation: float, noise: float) -> float | None:
        """Take in a sample's deviation; return the height of a step, or None.

        :param noise: standard deviation that a sample is expected to have
        """
        scaled = deviation / noise
        self._up = max(0.0, self._up + min(scaled, _MOST_UP) - _SLACK)
        self._down = max(0.0, self._down - max(scaled, -_MOST_DOWN) - _SLACK)
        _extend(self._ups, deviation, self._up)
        _extend(self._downs, deviation, self._down)
        height = None
        # Of an even number of samples the one nearer to zero is the middle.
        if self._up >= _THRESHOLD:
            height = self._agreed(self._ups, median_low, noise)
        if height is None and self._down >= _THRESHOLD:
            height = self._agreed(self._downs, median_high, noise)
        if height is not None:
            self.reset()
        return height

    def _agreed(
        self, samples: list[float], middle: Callable[[list[float]], float], noise: float
    ) -> float | None:
        """Return the height on which the newest samples agree without the largest of them."""
        for count in range(2, len(samples) + 1):
            height = middle(samples[-count:])
            if count * (abs(height) / noise - _SLACK) >= _AGREEMENT * _THRESHOLD:
                return height
        return None


def _extend(samples: list[float], deviation: float, total: float) -> None:
    """Keep the samples since a sum left zero; the newest few give the height of a step."""
    if total == 0.0:
        samples.clear()
        return
    samples.append(deviation)
    del samples[:-12]


class NoiseEstimate:
    """Standard deviation of samples around their expectation, robust and never zero."""

    def __init__(self, initial: float, smallest: float, memory: int = 48) -> None:
        self.value = initial
        self._smallest = smallest
        self._memory = memory
        self._count = memory // 8

    def update(self, deviation: float) -> None:
        """Take in a sample; one far outside counts only a little more than one at the edge."""
        self._count = min(self._count + 1, self._memory)
        size = min(abs(deviation), 3.0 * self.value) / _MEAN_ABSOLUTE
        self.value = max(self.value + (size - self.value) / self._count, self._smallest)
