"""Gate features: numbers about an open window, its tracks, and what changed lately.

One typed record for training and flight, so that order and scale cannot differ between them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mmedge_ros.core.data_types import FloatArray


class OpenWindow(NamedTuple):
    """A window that could be decided now, and what of its slow modality has arrived."""

    end_ns: int
    now_ns: int
    slow: str
    sensed: int
    expected: int
    level: str = ''


class GateFeatures(NamedTuple):
    """What is known of a decision that could be made now, for a window that ends later.

    Durations in s. What there is nothing to say of is 0, and of extremes over no tracks as if
    all were well. The *slow* modality is the one that would rest.
    """

    # The window: how long until its end, how long since the newest unit of each modality.
    lead: float
    slow_age: float
    fast_age: float
    # Of the units expected in the window, the share that arrived, and how many would be left out.
    slow_fraction: float
    fast_fraction: float
    left_out: float
    # The configuration: rate in Hz; level 0 small, 1 medium, 2 large; 1 if the camera would rest.
    slow_rate: float
    slow_level: float
    slow_is_camera: float
    # Tracks: shown with a box, of the camera but not yet shown or confirmed, shown but lately
    # missed, without a box, and new without a box.
    people: float
    unsettled: float
    doubted: float
    unseen: float
    emerging: float
    # Of those shown: age of the track, scores (the best is all that the max-score rule knows).
    youngest: float
    lowest_score: float
    mean_score: float
    highest_score: float
    smallest_height: float
    # Boxes until the window's end, relative to their width: standard deviation of the drift
    # (largest, sum), distance to go, and change of the rates within the last tenth of a second.
    worst_drift: float
    sum_drift: float
    worst_motion: float
    worst_swerve: float
    worst_growth: float
    # Largest standard deviation of a position, m; longest time a shown track was not seen by
    # the camera.
    position_deviation: float
    camera_unseen: float
    # How many boxes touch the border at the window's end; how much two of them overlap then.
    at_border: float
    crossing: float
    # The newest picture against the tracks: detections without a track, tracks without a
    # detection, the worst fit of a pair (1 - IoU), detections near the threshold.
    unexplained: float
    missing: float
    worst_fit: float
    borderline: float
    # Had one decided as long before now as the window still lasts: the worst fit (1 - IoU) of
    # what was expected then with what is tracked now, 1 if a track came or went. And the worst
    # fit of the last pictures on average.
    hindsight: float
    lasting_fit: float
    # The same had one always decided about as long before, over the last third of a second or so:
    # the worst fit on average, and the share of times at which it would have differed.
    usual_hindsight: float
    usual_error: float
    # How much the number of detections varied over the last pictures (standard deviation), and
    # how often a track came or went in the last 0.3 s.
    flicker: float
    changes: float
    # Embeddings: 1 where there are any, cosine of the newest of both modalities, 1 - cosine of
    # the newest with the first in the window.
    has_embeddings: float
    consistency: float
    slow_change: float
    fast_change: float
    # Radar returns: logarithm of their number, and of its change since the newest slow unit.
    returns: float
    returns_change: float

    def vector(self) -> FloatArray:
        """Return the fields (F,) in the order of `FIELDS`."""
        return np.fromiter(self, np.float64, len(self))


FIELDS: tuple[str, ...] = GateFeatures._fields
