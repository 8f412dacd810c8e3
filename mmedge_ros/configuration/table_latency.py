"""Latencies of whole configurations: a profiled table, calibrated by what the drone ran."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.configuration.errors import ConfigurationError
from mmedge_ros.configuration.predicted_latency import PredictedLatency
from mmedge_ros.configuration.steady_time import SteadyTime
from mmedge_ros.configuration.step_detection import NoiseEstimate, StepDetector
from mmedge_ros.parameter import parameter

FloatArray = NDArray[np.float64]

_SMALLEST_NOISE = 0.01
_MOST_COUNTED = 12
# No single finding decides against a world: the worlds are rough.
_WORST_MISFIT = 8.0
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
        0.22,
        'How far a world may be off and still be right about what is slow',
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
    weight: float
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
        self._worlds = worlds
        self._squares = worlds * worlds
        self._noise = NoiseEstimate(self._parameters.noise, _SMALLEST_NOISE)
        self._findings: dict[int, _Finding] = {}
        self._time = SteadyTime()
        self._contended = False

    @property
    def contended(self) -> bool:
        """Whether latencies have ever departed from the table."""
        return self._contended

    @property
    def noise(self) -> float:
        """Spread of one decision around the mean, in log units."""
        return self._noise.value

    def predict(self, now: float) -> PredictedLatency:
        """Return what is known at ``now`` (s) of every configuration."""
        mean, variance = self._belief(now)
        return PredictedLatency(self._log_table + mean, np.sqrt(variance + self._noise.value**2))

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
        if finding is None and not self._contended:
            error = self._parameters.profile_error
            weight = max((self._noise.value / error) ** 2, 1.0)
            finding = _Finding(0.0, weight, self._time.now)
            self._findings[index] = finding
        if finding is None:
            self._findings[index] = _Finding(ratio, 1.0, self._time.now)
            self._forget_oldest()
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
            return step
        return self._follow(index, ratio, finding)

    def _follow(self, index: int, ratio: float, finding: _Finding) -> float | None:
        """Update what is known, unless this is the end of it."""
        rules = self._parameters
        deviation = ratio - finding.mean
        noise = self._noise.value * math.sqrt(1.0 + 1.0 / finding.weight)
        step = finding.detector.update(deviation, max(noise, rules.smallest_step / 3.0))
        if step is not None and abs(step) >= rules.smallest_step:
            self._take_step(index, finding.mean + step, 2.0)
            return step
        self._noise.update(deviation / math.sqrt(1.0 + 1.0 / finding.weight))
        finding.seen = self._time.now
        finding.weight = min(finding.weight + 1.0, _MOST_COUNTED)
        edge = 3.0 * noise
        finding.mean += min(max(deviation, -edge), edge) / finding.weight
        return None

    def _take_step(self, index: int, ratio: float, weight: float) -> None:
        """Drop what a step has made doubtful: the good after a worsening, else the slow."""
        rules = self._parameters
        worse = ratio > self._findings[index].mean
        self._findings = {
            other: finding
            for other, finding in self._findings.items()
            if (finding.mean > rules.slow) == worse and other != index
        }
        self._findings[index] = _Finding(ratio, weight, self._time.now)
        self._contended = True

    def _forget_oldest(self) -> None:
        while len(self._findings) > self._parameters.remembered:
            del self._findings[min(self._findings, key=lambda i: self._findings[i].seen)]

    def _belief(self, now: float) -> tuple[FloatArray, FloatArray]:
        """Return (size,) mean and variance of log(latency / profiled latency)."""
        self._time.advance(now)
        rules = self._parameters
        size = self._log_table.size
        if self._contended:
            weights = self._world_weights()
            mean = (weights @ self._worlds).astype(np.float64)
            variance = np.maximum(weights @ self._squares - mean * mean, 0.0)
            variance += 0.5 * rules.world_error**2
        else:
            mean = np.zeros(size)
            variance = np.full(size, rules.profile_error**2)
        for index, finding in self._findings.items():
            worth = self._worth(finding)
            difference = finding.mean - mean[index]
            own = self._noise.value**2 / finding.weight
            variance[index] = (
                worth * own
                + (1.0 - worth) * variance[index]
                + worth * (1.0 - worth) * difference**2
            )
            mean[index] += worth * difference
        return mean, variance

    def _world_weights(self) -> NDArray[np.float32]:
        """Return (count,) how well each world agrees with the findings; sums to 1."""
        misfit = np.zeros(len(self._worlds))
        for index, finding in self._findings.items():
            variance = self._parameters.world_error**2 + self._noise.value**2 / finding.weight
            apart = finding.mean - self._worlds[:, index].astype(np.float64)
            misfit += self._worth(finding) * np.minimum(0.5 * apart**2 / variance, _WORST_MISFIT)
        weights = np.exp(misfit.min() - misfit)
        shares: NDArray[np.float32] = (weights / weights.sum()).astype(np.float32)
        return shares

    def _worth(self, finding: _Finding) -> float:
        return math.exp(-max(self._time.now - finding.seen, 0.0) / self._parameters.keep)
