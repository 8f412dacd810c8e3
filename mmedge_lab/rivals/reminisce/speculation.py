"""Questions asked at every depth of the encoder at once, as Reminisce does, beside the end only.

Views are stored at different exits. An example is embedded at every exit and compared with the
views that were stored there; the best objects of each exit are candidates, and these are refined
to the end. The plain way asks at the end only, and refines as many candidates.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.rivals.reminisce.crop_encoder import Embedded, Exits
from mmedge_lab.rivals.reminisce.galleries import Gallery, Places, best_first, mean_cosines
from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.memory.moment import Vectors

# So many of each exit are candidates.
OF_EACH = 10
# Cosines are no further apart.
_ABOVE = 2.5


class AtExits(NamedTuple):
    """Crops with the exits (N,) that they are stored at; they are refined to the end."""

    crops: Embedded
    exits: Exits

    @property
    def stored(self) -> Vectors:
        return self.crops.at(self.exits)

    @property
    def end(self) -> Vectors:
        return self.crops.vectors[-1]

    def plain(self, gallery: Gallery) -> Places:
        """Rank by the example at the end, without refinement."""
        return best_first(gallery.rated(self.end, self.stored))

    def matched(self, gallery: Gallery) -> Places:
        """Rank by the example at the exit of each view, without refinement."""
        cosines, numbers = zip(*self._by_exit(gallery), strict=True)
        return best_first(mean_cosines(np.sum(cosines, axis=0), np.sum(numbers, axis=0)))

    def plain_refined(self, gallery: Gallery) -> Places:
        """Refine the best of the example at the end, as many as `speculative` does."""
        counts = self._candidates(gallery).sum(axis=1)
        rated = gallery.rated(self.end, self.stored)
        return self._refining(gallery, _places(rated) < counts[:, None])

    def speculative(self, gallery: Gallery) -> Places:
        """Refine the best of each exit."""
        return self._refining(gallery, self._candidates(gallery))

    def _by_exit(self, gallery: Gallery) -> Iterator[tuple[FloatArray, FloatArray]]:
        for exit_, vectors in enumerate(self.crops.vectors, start=1):
            yield gallery.summed(vectors, self.stored, self.exits == exit_)

    def _candidates(self, gallery: Gallery) -> NDArray[np.bool_]:
        """Say which objects (A, G) are among the best of an exit."""
        found = np.zeros((len(gallery.asks), len(gallery.objects)), bool)
        for cosines, numbers in self._by_exit(gallery):
            found |= (_places(mean_cosines(cosines, numbers)) < OF_EACH) & (numbers > 0.0)
        return found

    def _refining(self, gallery: Gallery, candidates: NDArray[np.bool_]) -> Places:
        """Rank candidates (A, G) before all others, by what they are at the end."""
        again = gallery.rated(self.end, self.end) + _ABOVE
        return best_first(np.where(candidates, again, gallery.rated(self.end, self.stored)))


def _places(rated: FloatArray) -> Places:
    """Return the place (A, G) of each, 0 of the best."""
    return np.argsort(best_first(rated), axis=1)
