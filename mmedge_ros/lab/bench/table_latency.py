"""Latencies of whole configurations: a profiled table, calibrated by what the drone ran."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from mmedge_ros.configuration import ConfigurationError
from mmedge_ros.configuration.predicted_latency import PredictedLatency
from mmedge_ros.configuration.steady_time import SteadyTime
from mmedge_ros.configuration.step_detection import StepDetector
from mmedge_ros.lab.bench.mixture_latency import MixtureLatency
from mmedge_ros.lab.bench.scatter_posterior import ScatterPosterior
from mmedge_ros.lab.bench.world_belief import Sighting, WorldBelief
from mmedge_ros.parameter import parameter

FloatArray = NDArray[np.float64]

_SHIFTS = 15
# Samples that a finding is worth at most: things change slowly even without a step.
_MOST_COUNTED = 24
# Fewer than this are none: the variance of their mean would be infinite.
_FEWEST_COUNTED = 1e-9
# A sample this many standard deviations off counts as if it were no further off.
_FARTHEST = 3.0
_FASTEST, _SLOWEST = 1e-6, 1e6


@dataclass(frozen=True)
class TableLatencyParameters:
    """How a table is calibrated. Spreads and steps in log units: 0.1 is 10 %."""

    profile_error: float = parameter(
        0.03,
        'How far the table may be off on the machine and in the state it was made for',
        minimum=0.001,
        maximum=2.0,
    )
    noise: float = parameter(
        0.08,
        'Spread of one decision around the mean, until it has been learned',
        minimum=0.001,
        maximum=1.0,
    )
    world_error: float = parameter(
        0.06,
        'How far a world may be off about what it says is unchanged',
        minimum=0.001,
        maximum=2.0,
    )
    world_error_growth: float = parameter(
        0.3,
        'How much further it may be off about what it says is slow, as a share of that',
        minimum=0.0,
        maximum=2.0,
    )
    world_tolerance: float = parameter(
        0.22,
        'How far what was measured may be from a world that is still thought right',
        minimum=0.01,
        maximum=2.0,
    )
    smallest_step: float = parameter(
        0.12, 'A change smaller than this is followed, not called a step', minimum=0.0, maximum=2.0
    )
    slow: float = parameter(
        0.25,
        'Slower than profiled by this counts as slow: what was slow stays so when things get '
        'worse, what was not stays so when they get better',
        minimum=0.01,
        maximum=3.0,
    )
    keep: float = parameter(
        5.0,
        'Time in which what was seen of a configuration fades towards what the worlds say',
        unit='s',
        minimum=0.01,
        maximum=3600.0,
    )
    recent: float = parameter(
        0.35,
        'A configuration seen within this is watched for steps sample by sample; after a longer '
        'pause the first sample alone may show that things have changed',
        unit='s',
        minimum=0.0,
        maximum=3600.0,
    )
    remembered: int = parameter(
        16, 'Configurations of which findings are kept', minimum=1, maximum=256
    )


@dataclass
class _Finding:
    """What was measured of one configuration: log(latency / profiled latency)."""

    mean: float
    samples: float
    seen: float
    detector: StepDetector = field(default_factory=StepDetector)


class TableLatency:
    """Knows a profiled table and, from what the drone ran, what has become of it.

    Until the first step it trusts the table. From then on, what it has measured itself counts,
    fading with time; for everything else the worlds that agree with it are asked.

    :param table: (size,) profiled latencies, s
    :param worlds: (count, size) from `draw_worlds`
    :raises ConfigurationError: for latencies that are not positive numbers, or arrays that do
        not belong together
    """

    def __init__(
        self,
        table: FloatArray,
        worlds: NDArray[np.float32],
        parameters: TableLatencyParameters | None = None,
    ) -> None:
        table = np.asarray(table, np.float64)
        if table.ndim != 1 or worlds.ndim != 2 or worlds.shape[1:] != table.shape:
            raise ConfigurationError(
                f'worlds of shape {worlds.shape} do not fit a table of shape {table.shape}'
            )
        if not np.all((table > _FASTEST) & (table < _SLOWEST)):
            raise ConfigurationError(
                f'latencies must be between {_FASTEST:g} and {_SLOWEST:g} s in a table'
            )
        self._parameters = parameters or TableLatencyParameters()
        self._log_table = np.log(table)
        rules = self._parameters
        # Half of what a table is off is the same everywhere.
        error = math.sqrt(0.5) * rules.profile_error
        shifts = error * ndtri((np.arange(_SHIFTS) + 0.5) / _SHIFTS)
        shifted = np.repeat(shifts[:, None], table.size, axis=1).astype(np.float32)
        self._profiled = WorldBelief(shifted, error, 0.0, error)
        self._worlds = WorldBelief(
            worlds, rules.world_error, rules.world_error_growth, rules.world_tolerance
        )
        self._noise = ScatterPosterior(self._parameters.noise)
        self._findings: dict[int, _Finding] = {}
        self._time = SteadyTime()
        self._contended = False

    @property
    def noise(self) -> float:
        """Spread of one decision around the mean, in log units."""
        return self._noise.value

    def predict(self, now: float) -> PredictedLatency:
        """Return what is known at ``now`` (s) of every configuration."""
        self._time.advance(now)
        belief = self._belief.mixture(self._sightings())
        return MixtureLatency(self._log_table, *belief, self._noise.value)

    def observe(self, index: int, latency: float, now: float) -> float | None:
        """Learn the latency in seconds of a decision made with configuration ``index``.

        What is no latency (negative, not a number) teaches nothing. Clocks may jump, see
        `SteadyTime`.

        :return: the step this completes, in log units, or None
        """
        self._time.advance(now)
        if not _FASTEST < latency < _SLOWEST or not 0 <= index < self._log_table.size:
            return None
        ratio = math.log(latency) - float(self._log_table[index])
        finding = self._findings.get(index)
        if finding is None:
            finding = _Finding(ratio, 0.0, self._time.now)
            self._findings[index] = finding
            self._forget_oldest()
            if self._contended:
                finding.samples = 1.0
                return None
        if self._time.now - finding.seen > self._parameters.recent:
            return self._look_again(index, ratio, finding)
        return self._follow(index, ratio, finding)

    def _look_again(self, index: int, ratio: float, finding: _Finding) -> float | None:
        """Compare with what was found some time ago: one look is enough to replace it."""
        rules = self._parameters
        step = ratio - finding.mean
        if abs(step) > max(3.0 * math.sqrt(2.0) * self._noise.value, rules.smallest_step):
            if step < 0.0:
                self._take_step(index, ratio, 1.0)
            else:  # Of what was seen in the meantime it tells nothing.
                self._findings[index] = _Finding(ratio, 1.0, self._time.now)
                self._contended = True
            return step
        faded = finding.samples * self._worth(finding)
        finding.samples = faded if faded > _FEWEST_COUNTED else 0.0
        return self._follow(index, ratio, finding)

    def _follow(self, index: int, ratio: float, finding: _Finding) -> float | None:
        """Update what is known, unless this is the end of it."""
        rules = self._parameters
        mean, variance = self._belief.of(index, self._sightings(without=index))
        if finding.samples > 0.0:
            own = self._noise.value**2 / finding.samples
            mean += (finding.mean - mean) * variance / (variance + own)
            variance *= own / (variance + own)
        deviation = ratio - mean
        noise = math.sqrt(self._noise.value**2 + variance)
        visible = max(noise, rules.smallest_step / _FARTHEST)
        step = finding.detector.update(deviation, visible)
        if step is not None and abs(step) >= rules.smallest_step:
            self._take_step(index, mean + step, 2.0)
            return step
        self._noise.update(deviation, math.sqrt(variance))
        edge = _FARTHEST * visible
        finding.seen = self._time.now
        finding.samples = min(finding.samples + 1.0, _MOST_COUNTED)
        clipped = mean + min(max(deviation, -edge), edge)
        finding.mean += (clipped - finding.mean) / finding.samples
        return None

    def _take_step(self, index: int, ratio: float, samples: float) -> None:
        """Drop what a step has made doubtful: the good after a worsening, else the slow."""
        rules = self._parameters
        worse = ratio > self._findings[index].mean
        self._findings = {
            other: finding
            for other, finding in self._findings.items()
            if (finding.mean > rules.slow) == worse and other != index
        }
        self._findings[index] = _Finding(ratio, samples, self._time.now)
        self._contended = True

    def _forget_oldest(self) -> None:
        while len(self._findings) > self._parameters.remembered:
            del self._findings[min(self._findings, key=lambda i: self._findings[i].seen)]

    @property
    def _belief(self) -> WorldBelief:
        return self._worlds if self._contended else self._profiled

    def _sightings(self, without: int | None = None) -> list[Sighting]:
        return [
            Sighting(
                index,
                finding.mean,
                self._noise.value**2 / finding.samples,
                self._worth(finding),
            )
            for index, finding in self._findings.items()
            if index != without and finding.samples > 0.0
        ]

    def _worth(self, finding: _Finding) -> float:
        age = self._time.now - finding.seen - self._parameters.recent
        return math.exp(-max(age, 0.0) / self._parameters.keep)
