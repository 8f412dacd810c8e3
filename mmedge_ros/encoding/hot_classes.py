"""Which classes are met at present: the fast memory of a semantic memory.

Frequencies, times since the last sight, and from both a score that halves twice with each window
of looks without the class; the fast memory holds as few classes as make up nearly all of the
scores (SMTM, "Boosting Mobile CNN Inference through Semantic Memory", arXiv 2112.02644).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import FloatArray

_KEPT_PER_WINDOW = 0.25


class HotClasses:
    """Counts looks by class and says which classes are hot; belongs to one thread.

    :param window: a class that was not met in so many looks counts a quarter
    :param coverage: share of the scores that the fast memory holds
    """

    def __init__(self, classes: int, window: int = 64, coverage: float = 0.95) -> None:
        self._classes, self._window, self._coverage = classes, window, coverage
        self.reset()

    def reset(self) -> None:
        """Forget what was met."""
        self._frequency = np.zeros(self._classes)
        self._since = np.zeros(self._classes, np.int64)
        self._summarise()

    def met(self, label: int) -> None:
        """Enter a look that showed a class.

        :param label: 0 to classes - 1
        """
        self._since += 1
        self._since[label] = 0
        self._frequency[label] += 1.0
        self._summarise()

    @property
    def scores(self) -> FloatArray:
        """Return the score of each class (J,), 0 for those that were never met."""
        return self._scores

    @property
    def hot(self) -> NDArray[np.bool_]:
        """Mark (J,) the fewest classes that hold the wanted share of the scores."""
        return self._hot

    def _summarise(self) -> None:
        # Made once for each look, because a look asks at every tap.
        windows = self._since // self._window
        scores: FloatArray = self._frequency * _KEPT_PER_WINDOW ** np.minimum(windows, 50)
        order = np.argsort(-scores, kind='stable')
        held = np.cumsum(scores[order])
        hot = np.zeros(self._classes, np.bool_)
        if held.size and held[-1] > 0.0:
            enough = np.searchsorted(held, self._coverage * held[-1] - 1e-9)
            hot[order[: int(enough) + 1]] = True
        self._scores, self._hot = scores, hot & (scores > 0.0)
