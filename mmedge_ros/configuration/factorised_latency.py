"""Latency of every configuration from unit times, for any load.

18 measured numbers instead of one per configuration: time per unit of each (modality, level),
transport and fusion. The latency of a decision is the slowest modality's last unit, queue
included, plus transport and fusion (MMEdge, 3.3: max(L_E, L_S) x N + L_A, then L_F).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from mmedge_ros.configuration.configuration_space import ConfigurationSpace
from mmedge_ros.configuration.errors import ConfigurationError
from mmedge_ros.configuration.predicted_latency import PredictedLatency
from mmedge_ros.configuration.queueing import last_unit_quantile
from mmedge_ros.configuration.unit_time_calibration import (
    CalibrationParameters,
    UnitTimeCalibration,
)
from mmedge_ros.configuration.unit_time_profile import StageTime, UnitTimeProfile
from mmedge_ros.parameter import parameter

FloatArray = NDArray[np.float64]

_FUSION = 'fusion'
_TRANSPORT = 'transport'
_PROBABILITIES = (0.5, 0.95)
_Z95 = 1.6449


@dataclass(frozen=True)
class FactorisedLatencyParameters:
    """What the pipeline around the encoders looks like."""

    capacity: int = parameter(
        2, 'Units that can wait for an encoder; more are dropped', minimum=0, maximum=1000
    )
    overload: float = parameter(
        2.0,
        'Time for which a queue is assumed to have been growing under overload',
        unit='s',
        minimum=0.01,
        maximum=3600.0,
    )


class FactorisedLatency:
    """Predicts all configurations of a space from calibrated unit times.

    :raises ConfigurationError: if the profile lacks a level of the space
    """

    def __init__(
        self,
        space: ConfigurationSpace,
        profile: UnitTimeProfile,
        parameters: FactorisedLatencyParameters | None = None,
        calibration: CalibrationParameters | None = None,
    ) -> None:
        self._parameters = parameters or FactorisedLatencyParameters()
        kinds: list[tuple[str, Hashable, StageTime]] = []
        self._rows: list[slice] = []
        for options in space.modalities:
            self._rows.append(slice(len(kinds), len(kinds) + len(options.levels)))
            for level in options.levels:
                if (options.modality, level) not in profile.units:
                    raise ConfigurationError(
                        f'the profile has no unit time of {options.modality} {level}'
                    )
                kinds.append((options.modality, level, profile.units[options.modality, level]))
        kinds += [('', _TRANSPORT, profile.transport), ('', _FUSION, profile.fusion)]
        self.calibration = UnitTimeCalibration(kinds, calibration)
        self._rates = [np.asarray(options.rates)[:, None] for options in space.modalities]
        self._count = len(space)

    def observe_unit(
        self, modality: str, level: str, encode: float, transport: float, now: float
    ) -> None:
        """Learn from a unit: how long it was encoded and how long its features travelled, s.

        What was not measured is given as NaN.
        """
        self.calibration.observe(modality, level, encode, now)
        if transport == transport:
            self.observe_transport(transport, now)

    def observe_transport(self, duration: float, now: float) -> None:
        """Learn how long the features of a unit travelled, s."""
        self.calibration.observe('', _TRANSPORT, duration, now)

    def observe_fusion(self, duration: float, now: float) -> None:
        """Learn how long the work on a decision itself took, s."""
        self.calibration.observe('', _FUSION, duration, now)

    def predict(self, now: float) -> PredictedLatency:
        """Return what is known at ``now`` (s, monotonic) of every configuration.

        The last unit is taken to arrive when the window ends, the worst of all phases.
        """
        times = self.calibration.predict(now)
        options = [
            self._options(rates, *(values[rows] for values in times))
            for rates, rows in zip(self._rates, self._rows, strict=True)
        ]
        logs = _spread_over_grid([log_median for log_median, _ in options])
        spreads = _spread_over_grid([spread for _, spread in options])
        low, high = (_slowest(logs, spreads, p) for p in _PROBABILITIES)
        # Transport and fusion come on top of the slowest modality, independent of it.
        after = slice(len(times[0]) - 2, None)
        median, scatter, ignorance = (values[after] for values in times)
        width = median * np.expm1(_Z95 * np.hypot(scatter, ignorance))
        total = low + median.sum()
        upper = total + np.sqrt((high - low) ** 2 + np.square(width).sum())
        return PredictedLatency(np.log(total), np.log(upper / total) / _Z95)

    def load(self, now: float) -> FloatArray:
        """Return (size,) encoder-seconds per second; a stand-in for energy that breaks ties."""
        median, _, _ = self.calibration.predict(now)
        parts = [rates * median[rows] for rates, rows in zip(self._rates, self._rows, strict=True)]
        total: FloatArray = _spread_over_grid(parts).sum(axis=0)
        return total

    def _options(
        self, rates: FloatArray, median: FloatArray, scatter: FloatArray, ignorance: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return (rates, levels) log median and spread of a modality's last unit."""
        rules = self._parameters
        units = np.maximum(np.round(rates * rules.overload), 1.0)
        middle, upper = (
            last_unit_quantile(
                median,
                median * scatter,
                median * ignorance,
                1.0 / rates,
                score,
                units,
                rules.capacity,
            )
            for score in (0.0, _Z95)
        )
        return np.log(middle), np.log(upper / middle) / _Z95


def _spread_over_grid(parts: list[FloatArray]) -> FloatArray:
    """Return (modalities, size): what each configuration takes of each modality's options."""
    shape = [part.size for part in parts]
    rows = []
    for number, part in enumerate(parts):
        form = [1] * len(parts)
        form[number] = part.size
        rows.append(np.broadcast_to(part.reshape(form), shape).ravel())
    return np.stack(rows)


def _slowest(logs: FloatArray, spreads: FloatArray, probability: float) -> FloatArray:
    """Return (size,) a quantile of the largest of independent log-normal durations, s.

    It lies between the largest of their quantiles and the largest of those that all would
    keep together; interpolated between these with the true probability of either.

    :param logs: (modalities, size)
    """
    low = (logs + float(ndtri(probability)) * spreads).max(axis=0)
    if len(logs) == 1:
        return _exp(low)
    together = float(ndtri(probability ** (1.0 / len(logs))))
    high = (logs + together * spreads).max(axis=0)
    at_low, at_high = (ndtr((x - logs) / spreads).prod(axis=0) for x in (low, high))
    rise = np.maximum(at_high - at_low, 1e-12)
    share = np.clip((probability - at_low) / rise, 0.0, 1.0)
    return _exp(low + share * (high - low))


def _exp(logs: FloatArray) -> FloatArray:
    values: FloatArray = np.exp(logs)
    return values
