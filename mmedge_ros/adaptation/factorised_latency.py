"""Latency of every configuration from unit times, for any load.

18 measured numbers instead of one per configuration: time per unit of each (modality, level),
transport and fusion. The latency of a decision is the slowest modality's last unit, queue
included, plus transport and fusion (MMEdge, 3.3: max(L_E, L_S) x N + L_A, then L_F).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from mmedge_ros.adaptation import ConfigurationError
from mmedge_ros.adaptation.configuration_space import ConfigurationSpace, ModalityOptions
from mmedge_ros.adaptation.predicted_latency import DecisionProof, PredictedLatency
from mmedge_ros.adaptation.queueing import (
    ArrivalTimes,
    LastUnits,
    last_unit_quantiles,
    queue_lengths,
)
from mmedge_ros.adaptation.unit_time_calibration import UnitTimeCalibration
from mmedge_ros.adaptation.unit_time_profile import StageTime, UnitTimeProfile
from mmedge_ros.core.clock import SteadyTime

FloatArray = NDArray[np.float64]
SmallFloats = NDArray[np.float32]

_FUSION = 'fusion'
_TRANSPORT = 'transport'
# Levels are words, so that no level is called this.
_FOLLOWED = ('followed',)
_PROBABILITIES = (0.5, 0.95)
_FEWEST_WAITING = 2.0 * (1.0 - _PROBABILITIES[1])
_Z95 = 1.6449
_SLOPE = math.sqrt(2.0 / math.pi)
# Fusion looks this long after a window's end at the earliest, s.
_SOONEST = 0.002
# Of what is finished so soon in any case, in log units.
_LEAST_SPREAD = 0.01
# Units that can wait for an encoder; more are dropped.
_CAPACITY = 2
# A queue is taken to have been growing for so long under overload, s.
OVERLOAD = 1.0
# Where arrivals are unknown, the last encoded of several units comes earlier than assumed with
# this probability, if all phases are equally likely.
_LIKELY = 0.95
# Arrivals are looked at so often, s, and of so many looks the worst counts: where stamps jitter
# about the end of a slot, now one picture is encoded and now its neighbour. A single window is in
# two looks; one such in five seconds is left out.
_LOOKED_AT, _LOOKS, _RARE = 0.5, 10, 2


class FactorisedLatency:
    """Predicts all configurations of a space from calibrated unit times.

    ``load`` (size,) is the work of each in busy seconds per second, a stand-in for energy too.
    Decisions of the configuration in use correct its prediction: enter them in ``proof``.

    :param stride: between the ends of windows, s
    :raises ConfigurationError: if the profile lacks a level of the space
    """

    def __init__(
        self,
        space: ConfigurationSpace,
        profile: UnitTimeProfile,
        stride: float = 0.1,
    ) -> None:
        self._space = space
        kinds: list[tuple[str, Hashable, StageTime]] = []
        # Of every (rate, level, reuse) of all modalities, one after the other: its rate, its kind,
        # its reuse, and the kind of its followed units.
        rates: list[float] = []
        used: list[int] = []
        reuse: list[int] = []
        follows: list[int] = []
        self._own: list[slice] = []
        for options in space.modalities:
            count, ways = len(options.levels), len(options.reuse)
            size = len(options.rates) * count * ways
            self._own.append(slice(len(rates), len(rates) + size))
            rates += np.repeat(options.rates, count * ways).tolist()
            levels = np.arange(len(kinds), len(kinds) + count)
            used += [*np.repeat(levels, ways).tolist()] * len(options.rates)
            reuse += [*options.reuse] * (size // ways)
            has_followed = options.reuse != (1,)
            follows += [len(kinds) + count if has_followed else -1] * size
            for level in options.levels:
                if (options.modality, level) not in profile.units:
                    raise ConfigurationError(
                        f'the profile has no unit time of {options.modality} {level}'
                    )
                kinds.append((options.modality, level, profile.units[options.modality, level]))
            if has_followed:
                kinds.append((options.modality, _FOLLOWED, profile.follow_time(options)))
        kinds += [('', _TRANSPORT, profile.transport), ('', _FUSION, profile.fusion)]
        self.calibration = UnitTimeCalibration(kinds)
        self.proof = DecisionProof(self.pace)
        self._rates, self._used = np.array(rates), np.array(used)
        self._reuse = np.array(reuse, np.float64)
        # Where nothing is followed any kind serves: it is multiplied by zero.
        self._follows = np.where(np.array(follows) < 0, self._used, follows)
        # Busy seconds per second by the profile: the encoder's, and for each unit what carries it
        # on. In flight only shares of it are known, so it stays what it is.
        median = np.array([stage.median for _, _, stage in kinds])
        around = profile.transport.median + profile.fusion.median
        busy = self._rates * (self._mean_work(median) + around)
        self.load: FloatArray = reduce(np.add, self._on_axes(busy)).ravel()
        growing = np.round(self._rates * OVERLOAD)
        # Of windows that wait for no encoded unit none is late by it: more of the others may be,
        # half of them at most.
        waiting = np.clip(self._rates / self._reuse * stride, _FEWEST_WAITING, 1.0)
        self._scores = np.where(
            self._reuse > 1.0, ndtri(1.0 - (1.0 - _PROBABILITIES[1]) / waiting), _Z95
        )
        self._growing, self._interval = np.maximum(growing, 1.0), 1.0 / self._rates
        counts = queue_lengths(int(self._growing.max()))
        self._arrivals = [
            ArrivalTimes(options.rates, counts, stride) for options in space.modalities
        ]
        self._looks: list[deque[LastUnits]] = [deque(maxlen=_LOOKS) for _ in space.modalities]
        self._places = {options.modality: m for m, options in enumerate(space.modalities)}
        self._unknown = np.concatenate([_unknown_phase(o, stride) for o in space.modalities])
        self._ahead = np.broadcast_to(self._unknown, (len(counts), len(rates))).copy()
        self._after, self._last = np.zeros((2, len(rates)))
        self._busy = self._rates * self._mean_work(median)
        self._looked, self._time = -math.inf, SteadyTime()

    def unit_arrived(self, modality: str, stamp_ns: int, available_ns: int) -> None:
        """Learn when units arrive, those that no rate passes included."""
        if modality in self._places:
            self._arrivals[self._places[modality]].arrived(stamp_ns, available_ns)

    def observe_unit(self, modality: str, level: str, encode: float, now: float) -> None:
        """Learn how long a unit was encoded, s."""
        self.calibration.observe(modality, level, encode, now)

    def observe_followed(self, modality: str, follow: float, now: float) -> None:
        """Learn how long what was seen before was followed in a unit, s."""
        self.calibration.observe(modality, _FOLLOWED, follow, now)

    def observe_transport(self, duration: float, now: float) -> None:
        """Learn how long the features of a unit travelled, s."""
        self.calibration.observe('', _TRANSPORT, duration, now)

    def observe_fusion(self, duration: float, now: float) -> None:
        """Learn how long the work on a decision itself took, s."""
        self.calibration.observe('', _FUSION, duration, now)

    def pace(self, index: int) -> float:
        """Return how many seconds per second the encoders work, by the last prediction."""
        sizes = [own.stop - own.start for own in self._own]
        places = np.unravel_index(index, sizes)
        return sum(
            float(self._busy[own.start + place])
            for own, place in zip(self._own, places, strict=True)
        )

    def _mean_work(self, medians: FloatArray) -> FloatArray:
        """Return the mean time per unit, s, of every (rate, level, reuse).

        :param medians: of each kind
        """
        encode, follow = medians[self._used], medians[self._follows]
        mean: FloatArray = (encode + (self._reuse - 1.0) * follow) / self._reuse
        return mean

    def predict(self, now: float) -> PredictedLatency:
        """Return what is known at ``now`` (s, monotonic) of every configuration.

        Where arrivals are unknown, the last unit is taken to arrive when the window ends, the
        worst of all phases; with reuse all phases are taken to be equally likely.
        """
        self._look_at_arrivals(now)
        times = self.calibration.predict(now)
        self._busy = self._rates * self._mean_work(times[0])
        logs, spreads = self._last_units(times, times[0][self._follows])
        low, high = (_slowest(logs, spreads, p) for p in _PROBABILITIES)
        # Transport and fusion come on top of the slowest modality, independent of it.
        after = slice(len(times[0]) - 2, None)
        median, scatter, ignorance = (values[after] for values in times)
        width = median * np.expm1(_Z95 * np.hypot(scatter, ignorance))
        total = low + median.sum()
        upper = total + np.sqrt(np.square(high - low) + np.square(width).sum())
        log_total = np.log(total)
        spread = (np.log(upper) - log_total) / _Z95
        work = self._on_axes(self._busy / self._rates)
        delay = reduce(np.maximum, work).ravel() + median.sum()
        predicted = PredictedLatency(log_total, spread, self.load, delay)
        return self.proof.corrected(predicted, now)

    def _last_units(
        self, times: Iterable[FloatArray], follow: FloatArray
    ) -> tuple[list[SmallFloats], list[SmallFloats]]:
        """Return log median and spread of each modality's last unit.

        :param times: medians, scatters and ignorances of all kinds
        """
        median, scatter, ignorance = (values[self._used] for values in times)
        scatter, ignorance = median * scatter, median * ignorance
        scores = (0.0, self._scores)
        seconds = last_unit_quantiles(
            *(median, scatter, ignorance, self._interval, scores, self._growing, _CAPACITY),
            self._ahead,
            self._reuse,
            follow / median,
            self._after,
            self._last,
        )
        logs = np.log(np.maximum(seconds, _SOONEST)).astype(np.float32)
        spread = np.maximum(logs[1] - logs[0], _LEAST_SPREAD) / _Z95
        return self._on_axes(logs[0]), self._on_axes(spread)

    def _look_at_arrivals(self, now: float) -> None:
        self._time.advance(now)
        if self._time.now - self._looked < _LOOKED_AT:
            return
        self._looked = self._time.now
        for arrivals, looks, own, options in zip(
            self._arrivals, self._looks, self._own, self._space.modalities, strict=True
        ):
            seen = arrivals.look(options.reuse)
            if not seen.ahead.any():
                looks.clear()  # nothing is known, and what was is old
            elif not (looks and looks[-1].ahead.any()):
                looks.clear()
            looks.append(seen)
            ahead, after, last = zip(*looks, strict=True)
            levels = len(options.levels)
            rare = _RARE * (len(looks) == _LOOKS)
            least = _for_levels(np.sort(ahead, axis=0)[rare], levels)
            self._ahead[:, own] = np.where(least, least, self._unknown[own])
            self._after[own] = _for_levels(np.sort(after, axis=0)[-1 - rare], levels)
            self._last[own] = _for_levels(np.sort(last, axis=0)[rare], levels)

    def _on_axes(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        """Put what belongs to each modality on an axis of its own, of as many as there are.

        Arrays of all modalities then spread over the whole grid by themselves.
        """
        form = [1] * len(self._own)
        return [
            values[own].reshape(*form[:m], -1, *form[m + 1 :]) for m, own in enumerate(self._own)
        ]


def _unknown_phase(options: ModalityOptions, stride: float) -> FloatArray:
    """Return how long before a window's end the last encoded unit likely comes, s.

    (rates x levels x reuse). Without reuse the worst is taken: some window has such a one soon.
    With it pictures are encoded on a grid that keeps its phase to the windows.
    """
    between = [
        0.0 if reuse == 1 else min(reuse / rate, stride)
        for rate in options.rates
        for _ in options.levels
        for reuse in options.reuse
    ]
    return (1.0 - _LIKELY) * np.array(between)


def _for_levels(values: FloatArray, levels: int) -> FloatArray:
    """Repeat values (..., rates, reuses) for the levels between them: (..., all of them)."""
    spread = np.repeat(values[..., np.newaxis, :], levels, axis=-2)
    return spread.reshape(*values.shape[:-2], -1)


def _slowest(
    logs: Sequence[SmallFloats], spreads: Sequence[SmallFloats], probability: float
) -> FloatArray:
    """Return (size,) a quantile of the largest of independent log-normal durations, s.

    It lies between the largest of their quantiles and the largest of those that all would
    keep together; interpolated between these with the true probability of either.

    Single precision and `_kept` leave it true to 0.1 %, at a third of the time.

    :param logs: of each modality, on an axis of its own
    """
    score = float(ndtri(probability))
    low = _largest_quantile(logs, spreads, score)
    if len(logs) == 1:
        alone: FloatArray = np.exp(low).ravel().astype(np.float64)
        return alone
    together = float(ndtri(probability ** (1.0 / len(logs))))
    high = _largest_quantile(logs, spreads, together)
    at_low, at_high = (
        _all_kept(x, logs, spreads, known)
        for x, known in ((low, probability), (high, float(ndtr(together))))
    )
    rise = np.maximum(at_high - at_low, 1e-12)
    share = np.clip((probability - at_low) / rise, 0.0, 1.0)
    slowest: FloatArray = np.exp(low + share * (high - low)).ravel().astype(np.float64)
    return slowest


def _largest_quantile(
    logs: Sequence[SmallFloats], spreads: Sequence[SmallFloats], score: float
) -> SmallFloats:
    return reduce(
        np.maximum, (log + score * spread for log, spread in zip(logs, spreads, strict=True))
    )


def _all_kept(
    limit: SmallFloats, logs: Sequence[SmallFloats], spreads: Sequence[SmallFloats], known: float
) -> SmallFloats:
    """Return the probability that all durations stay below a limit (log s).

    :param known: probability of the one that is most likely to exceed it
    """
    scores = [(limit - log) * (1.0 / spread) for log, spread in zip(logs, spreads, strict=True)]
    if len(scores) == 2:  # the usual case, in half the time
        return known * _kept(np.maximum(*scores))
    return reduce(np.multiply, map(_kept, scores))


def _kept(score: SmallFloats) -> SmallFloats:
    """Return the standard normal distribution function to within 0.0004.

    By the hyperbolic tangent (Page, Applied Statistics 1977), which numpy computes many at once.
    """
    cubic = score * score
    cubic *= 0.044715 * _SLOPE
    cubic += _SLOPE
    cubic *= score
    np.tanh(cubic, out=cubic)
    cubic += 1.0
    cubic *= 0.5
    return cubic
