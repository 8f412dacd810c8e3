"""Evidence that a track is of something: what pictures and scans say for it and against it.

The log odds of integrated track existence (Musicki, Evans and Stankovic, "Integrated probabilistic
data association", 1994), with two changes. What a detector takes for a person by mistake it takes
for one in picture after picture, so evidence is forgotten as new comes, and never piles up. And it
is counted in sure detections: one counts 1.
"""

from __future__ import annotations

import math

from mmedge_ros.core.data_types import Measurement

# Share of the evidence that is kept from one picture, or scan, to the next.
_KEPT = 0.85
# No track is surer, and none is given up by more, than this.
MOST, LEAST = 2.0, -1.3
# Of detections with this score as many are right as wrong: 0.31 with level `large` and 0.32 with
# `medium`, on flights of the validation set. The log odds rise by 10 for every 1.0 of score; a
# sure detection has 3.
_EVEN_SCORE, _ODDS_PER_SCORE, _SURE_ODDS = 0.32, 10.0, 3.0
_PER_SCORE = _ODDS_PER_SCORE / _SURE_ODDS
# What a picture without it says; somebody in view is seen in two of three.
_MISSED = 0.4
# A cluster of the radar may be a ghost: eight in a row are a sure detection.
_CLUSTER = 0.2


def score_of(chance: float) -> float:
    """Return the score of our own networks at which a detection is right with this chance."""
    return _EVEN_SCORE + math.log(chance / (1.0 - chance)) / _ODDS_PER_SCORE


def gained(measurement: Measurement) -> float:
    """Return what a measurement says: 1 for a sure detection, less than 0 for a poor one."""
    if measurement.box is None:
        return _CLUSTER
    return min(_PER_SCORE * (measurement.score - _EVEN_SCORE), 1.0)


def after_measurement(evidence: float, measurement: Measurement, is_confirmed: bool) -> float:
    """Return the evidence after a measurement.

    A poor detection where something is known to be speaks neither for nor against it.
    """
    gain = gained(measurement)
    after = _KEPT * evidence + (max(gain, 0.0) if is_confirmed else gain)
    return max(min(after, MOST), LEAST)


def after_miss(evidence: float) -> float:
    """Return the evidence after a picture without it."""
    return max(_KEPT * evidence - _MISSED, LEAST)
