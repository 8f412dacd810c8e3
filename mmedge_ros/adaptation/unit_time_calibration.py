"""Keeps unit times true while the machine gets busy, hot or starved, from every measured unit.

The logarithm of a duration is modelled as profile + machine + modality + level: what slows the
machine slows all, what a level adds is its own. A Kalman filter over these terms estimates a level
that is not running: it follows what the others show, and its variance grows the longer it was not
measured. Steps are detected and taken at once instead of averaged over.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.adaptation import ConfigurationError
from mmedge_ros.adaptation.step_detection import NoiseEstimate, StepDetector
from mmedge_ros.adaptation.unit_time_profile import StageTime
from mmedge_ros.core.clock import SteadyTime

FloatArray = NDArray[np.float64]

_SHORTEST, _LONGEST = 1e-7, 1e3
_SMALLEST_SCATTER = 0.02
# Spreads in log units (0.1 is 10 %) of what slows everything, one modality, and one level alone:
# the first is how far one level speaks for all others.
_MACHINE, _MODALITY, _LEVEL = 0.4, 0.2, 0.1
# What is not measured any more fades to the profile within this, s.
_MEMORY = 20.0
# How far the profile may be off at the start, in log units.
_PROFILE_ERROR = 0.05
# Share of a correction that is made when units are faster than expected; below 1, because
# believing a machine to be slow is the safe error.
_DOWNWARDS = 0.6
# A smaller change is followed, not taken at once.
_SMALLEST_STEP = 0.1


class UnitTimeCalibration:
    """Durations of several kinds of units, one group of kinds per modality.

    :param kinds: (group, name, profiled time) of each kind
    :raises ConfigurationError: if there is none or one is listed twice
    """

    def __init__(self, kinds: Sequence[tuple[str, Hashable, StageTime]]) -> None:
        names = [(group, name) for group, name, _ in kinds]
        if not names or len(set(names)) < len(names):
            raise ConfigurationError(f'nothing to calibrate, or something twice: {names}')
        groups = list(dict.fromkeys(group for group, _, _ in kinds))
        self._kinds = {name: number for number, name in enumerate(names)}
        self._profile = np.log([stage.median for _, _, stage in kinds])
        self._noise = [NoiseEstimate(s.scatter, _SMALLEST_SCATTER, 64) for _, _, s in kinds]
        self._detectors = [StepDetector() for _ in kinds]
        # One row per kind: which terms its duration is the sum of.
        self._places = [
            (0, 1 + groups.index(group), 1 + len(groups) + number)
            for number, (group, _, _) in enumerate(kinds)
        ]
        terms = np.zeros((len(kinds), 1 + len(groups) + len(kinds)))
        for row, places in zip(terms, self._places, strict=True):
            row[list(places)] = 1.0
        self._terms = terms
        spreads = [_MACHINE, *[_MODALITY] * len(groups), *[_LEVEL] * len(kinds)]
        self._stationary = np.square(spreads)
        self._mean = np.zeros(len(spreads))
        # In the beginning the profile is trusted as far as it was well measured.
        share = _PROFILE_ERROR**2 / (terms[0] @ self._stationary)
        self._covariance = np.diag(self._stationary * min(share, 1.0))
        # A view: the matrix is only ever changed in place.
        self._variances = self._covariance.reshape(-1)[:: len(spreads) + 1]
        self._time = SteadyTime()
        self._has_begun = False
        self.rejected = 0

    def observe(self, group: str, name: Hashable, duration: float, now: float) -> float | None:
        """Learn how long a unit took.

        A duration that cannot be one (missing, negative, not a number) and a kind that is not
        known are counted in ``rejected`` and teach nothing. Clocks may jump, see `SteadyTime`.

        :param duration: s
        :param now: monotonic, s
        :return: the step this unit completes, in log units, or None
        """
        kind = self._kinds.get((group, name))
        if kind is None or not _SHORTEST < duration < _LONGEST:
            self.rejected += 1
            return None
        self._age(now)
        self._has_begun = True
        mean, covariance, noise = self._mean, self._covariance, self._noise[kind]
        # Terms are there or not: sums of three places take less than products with a row.
        machine, modality, level = self._places[kind]
        gains = covariance[machine] + covariance[modality]
        gains += covariance[level]
        known = gains.item(machine) + gains.item(modality) + gains.item(level)
        expected = mean.item(machine) + mean.item(modality) + mean.item(level)
        deviation = math.log(duration) - self._profile.item(kind) - expected
        scale = math.sqrt(known + noise.value**2)
        step = self._detectors[kind].update(deviation, max(scale, 0.5 * noise.value))
        if step is not None and abs(step) >= _SMALLEST_STEP:
            self._take_step(self._terms[kind], step)
            return step
        noise.update(deviation)
        edge = 3.0 * scale
        correction = min(max(deviation, -edge), edge) / scale
        if deviation < 0.0:
            correction *= _DOWNWARDS
        gains /= scale
        covariance -= gains[:, np.newaxis] * gains
        gains *= correction
        mean += gains
        return None

    @property
    def slowness(self) -> float:
        """How many times as long as in the profile everything takes."""
        return math.exp(float(self._mean[0]))

    def predict(self, now: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return, per kind: median in seconds, scatter and ignorance in log units."""
        self._age(now)
        mean = self._profile + self._terms @ self._mean
        variance = np.einsum('ij,jk,ik->i', self._terms, self._covariance, self._terms)
        scatter = np.array([noise.value for noise in self._noise])
        return np.exp(mean), scatter, np.sqrt(np.maximum(variance, 0.0))

    def _age(self, now: float) -> None:
        """Let what is not measured fade to the profile and grow uncertain.

        Before the first unit nothing is known better than the profile, however long that lasts.
        """
        elapsed = self._time.advance(now)
        if elapsed > 0.0 and self._has_begun:
            kept = math.exp(-elapsed / _MEMORY)
            self._mean *= kept
            self._covariance *= kept * kept
            self._variances += self._stationary * (1.0 - kept * kept)

    def _take_step(self, row: FloatArray, step: float) -> None:
        """Put a step on the terms it can come from, and be sure of nothing but its height."""
        share = row * self._stationary
        total = float(row @ share)
        self._mean += share * (step / total)
        # What the step does to the others is a guess: as uncertain as if nothing were known.
        extra = share / total * step**2
        self._covariance += np.diag(extra) - np.multiply.outer(extra, extra) / extra.sum()
