"""Evidence that a track is of something: what pictures and scans say for it and against it.

The log odds of integrated track existence (Musicki, Evans and Stankovic, "Integrated probabilistic
data association", 1994), with two changes. What a detector takes for a person by mistake it takes
for one in picture after picture, so evidence is forgotten as new comes, and never piles up. And it
is counted in sure detections: one counts 1.
"""

from __future__ import annotations

import math

from mmedge_ros.core.data_types import Appearance, Measurement

# Share of the evidence that is kept from one picture, or scan, to the next.
_KEPT = 0.85
# No track is surer, and none is given up by more, than this.
MOST, LEAST = 2.0, -1.3
# Of detections with this score as many are right as wrong: with `medium` at 0.41 on 300 pictures
# of the simulated validation set, at 0.44 on real ones kept back. The log odds rise by 10 for
# every 1.0 of score; a sure detection has 3.
_EVEN_SCORE, _ODDS_PER_SCORE, _SURE_ODDS = 0.42, 10.0, 3.0
_PER_SCORE = _ODDS_PER_SCORE / _SURE_ODDS
# What a picture without it says; somebody in view is seen in two of three.
_MISSED = 0.4
# Contrasts of pictures in which nobody can be seen, and everybody: 0.01 without light, 0.05 in fog
# of 10 to 18 m, 0.08 and more by day, in hard_calibration.
_NOTHING_SHOWN, _ALL_SHOWN = 0.02, 0.08
# A cluster of the radar may be a ghost; in reach every second scan returns somebody, or more.
_CLUSTER, _MISSED_BY_SCAN = 0.3, 0.1


def camera_trust(appearance: Appearance) -> float:
    """Return how much a picture shows, 0 to 1: nothing in the dark, or through a covered lens."""
    shown = (appearance.contrast - _NOTHING_SHOWN) / (_ALL_SHOWN - _NOTHING_SHOWN)
    return 1.0 if math.isnan(shown) else min(max(shown, 0.0), 1.0)


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


def after_miss(evidence: float, trust: float) -> float:
    """Return the evidence after a picture without it.

    :param trust: how much the picture shows, 0 to 1
    """
    return max(evidence - trust * ((1.0 - _KEPT) * evidence + _MISSED), LEAST)


def after_scan(evidence: float) -> float:
    """Return the evidence for what the radar alone follows after a scan without it."""
    return max(_KEPT * evidence - _MISSED_BY_SCAN, LEAST)
