"""From echoes at the antenna to returns: cells, noise, threshold, directions and faults.

The defaults are those of a 77 GHz FMCW chip with 3 transmitters and 4 receivers and a chirp frame
for long range. Relations between chirp and limits: S. Rao, "Introduction to mmwave Sensing: FMCW
Radars".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import FloatArray


@dataclass(frozen=True)
class SimulatedRadarParameters:
    """Resolution, reach and faults of the simulated radar, in m, m/s, rad and dB."""

    range_resolution: float = 0.22  # a sweep of 680 MHz
    range_bins: int = 256
    nearest_bin: int = 2  # bins below hold the antennas' own coupling
    doppler_resolution: float = 0.1  # a frame of 20 ms
    doppler_bins: int = 196  # even; speeds beyond half of them wrap around
    azimuth_elements: int = 8  # in a row, half a wavelength apart
    azimuth_limit: float = 1.05  # field of view to either side
    elevation_limit: float = 0.52
    azimuth_half_gain: float = 0.87  # where the two-way gain is 6 dB down
    elevation_half_gain: float = 0.38
    # Of 1 m^2 at 1 m on the axis after both transforms; with it a person is seen every other
    # scan at 50 m.
    snr_at_1m: float = 83.0
    threshold: float = 11.0  # weaker cells are not returned
    dynamic_range: float = 18.0  # weaker directions of one range-Doppler cell are hidden
    window_leak: float = 6.0  # a bin so much weaker than its neighbour drowns in it
    azimuth_floor: float = 0.008  # error of the direction cosine that calibration leaves
    elevation_floor: float = 0.05  # the same where two rows of elements must do
    most_returns: int = 120  # the strongest are kept
    false_alarms: float = 0.5  # returns of noise per scan, on average
    sidelobe_share: float = 0.04  # of very strong returns: seen again in another direction
    dropout_share: float = 0.02  # of returns: lost on the way
    noise_level: float = 46.0

    @property
    def farthest(self) -> float:
        """Middle of the last range bin, m."""
        return self.range_resolution * (self.range_bins - 1)

    @property
    def azimuth_cell(self) -> float:
        """Width of the array's beam as direction cosine: 2 / N for half a wavelength."""
        return 2.0 / self.azimuth_elements


# What an excited sidelobe looks like.
_SIDELOBE_SNR = 30.0
_NO_RETURNS = (0, 6)
_AROUND = tuple((i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)


@dataclass(frozen=True, eq=False)
class Signals:
    """Echoes as the antenna has them, each (N,).

    ``distance`` m, ``speed`` m/s (positive = receding), direction cosines to the ``left`` and
    ``up``, mean power over noise ``snr`` (linear), and ``steadiness``.
    """

    distance: FloatArray
    speed: FloatArray
    left: FloatArray
    up: FloatArray
    snr: FloatArray
    steadiness: FloatArray


class _Cells(NamedTuple):
    """Resolution cells, each (C,): bins of range and Doppler, directions, power over noise."""

    range_bin: NDArray[np.int64]
    doppler_bin: NDArray[np.int64]
    left: FloatArray
    up: FloatArray
    power: FloatArray

    def select(self, chosen: NDArray[np.intp] | NDArray[np.bool_]) -> _Cells:
        return _Cells._make(values[chosen] for values in self)


def detect(
    signals: Signals, parameters: SimulatedRadarParameters, random: np.random.Generator
) -> NDArray[np.float32]:
    """Return what the radar makes of them, (N, 6) float32 in radar axes.

    Columns are x, y, z (m), velocity (m/s), snr and noise (dB). Rows are sorted by range.
    """
    cells = _resolve(signals, parameters, random)
    cells = cells.select(cells.power > 10.0 ** (0.1 * parameters.threshold))
    cells = cells.select(_stands_out(cells, parameters))
    cells = _with_sidelobes(cells, parameters, random)
    cells = cells.select(random.random(len(cells.power)) >= parameters.dropout_share)
    cells = _with_false_alarms(cells, parameters, random)
    strongest = np.argsort(-cells.power, kind='stable')[: parameters.most_returns]
    cells = cells.select(strongest)
    cells = cells.select(np.lexsort((cells.left, cells.doppler_bin, cells.range_bin)))
    return _measured(cells, parameters, random)


def _resolve(
    signals: Signals, parameters: SimulatedRadarParameters, random: np.random.Generator
) -> _Cells:
    """Add echoes up in their cells, amplitude by amplitude, and the noise to each."""
    range_bin = np.rint(signals.distance / parameters.range_resolution).astype(np.int64)
    inside = (range_bin >= parameters.nearest_bin) & (range_bin < parameters.range_bins)
    kept = np.flatnonzero(inside)
    range_bin = range_bin[kept]
    half = parameters.doppler_bins // 2
    doppler = np.rint(signals.speed[kept] / parameters.doppler_resolution).astype(np.int64)
    doppler = (doppler + half) % parameters.doppler_bins - half
    side = np.floor(signals.left[kept] / parameters.azimuth_cell).astype(np.int64)
    sides = parameters.azimuth_elements + 2
    key = (range_bin * parameters.doppler_bins + doppler + half) * sides + side + sides // 2
    _, first, cell = np.unique(key, return_index=True, return_inverse=True)
    amplitude = _fluctuating(signals.snr[kept], signals.steadiness[kept], random)
    weight = np.abs(amplitude) ** 2 + 1e-12
    count = len(first)
    total = np.bincount(cell, weight, count)
    noise = random.normal(0.0, np.sqrt(0.5), (2, count))
    power = (np.bincount(cell, amplitude.real, count) + noise[0]) ** 2
    power += (np.bincount(cell, amplitude.imag, count) + noise[1]) ** 2
    return _Cells(
        range_bin[first],
        doppler[first],
        np.bincount(cell, weight * signals.left[kept], count) / total,
        np.bincount(cell, weight * signals.up[kept], count) / total,
        power,
    )


def _fluctuating(
    snr: FloatArray, steadiness: FloatArray, random: np.random.Generator
) -> NDArray[np.complex128]:
    """Draw amplitudes: a steady part of unknown phase and a complex Gaussian one.

    Steadiness 0 makes the power exponential, which is Swerling's first case.
    """
    phase = np.exp(2j * np.pi * random.random(len(snr)))
    gaussian = random.normal(0.0, np.sqrt(0.5), (2, len(snr)))
    fading = gaussian[0] + 1j * gaussian[1]
    mixed = (np.sqrt(steadiness) * phase + fading) / np.sqrt(1.0 + steadiness)
    return np.asarray(np.sqrt(snr) * mixed, np.complex128)


def _stands_out(cells: _Cells, parameters: SimulatedRadarParameters) -> NDArray[np.bool_]:
    """Mark the cells that nothing stronger covers.

    In its own range-Doppler bin that is another direction, whose sidelobes reach everywhere;
    in the eight bins around it the main lobe of the window function.
    """
    half = parameters.doppler_bins // 2
    strongest = np.zeros((parameters.range_bins + 2, parameters.doppler_bins + 2))
    row, column = cells.range_bin + 1, cells.doppler_bin + half + 1
    np.maximum.at(strongest, (row, column), cells.power)
    around = np.zeros(len(cells.power))
    for down, right in _AROUND:
        np.maximum(around, strongest[row + down, column + right], out=around)
    share = 10.0 ** (-0.1 * parameters.dynamic_range)
    leak = 10.0 ** (-0.1 * parameters.window_leak)
    own = strongest[row, column]
    return np.asarray((cells.power >= share * own) & (cells.power >= leak * around), bool)


def _with_sidelobes(
    cells: _Cells, parameters: SimulatedRadarParameters, random: np.random.Generator
) -> _Cells:
    strong = cells.power > 10.0 ** (0.1 * _SIDELOBE_SNR)
    copied = cells.select(strong & (random.random(len(strong)) < parameters.sidelobe_share))
    count = len(copied.power)
    step = random.choice((-1.0, 1.0), count) * random.uniform(1.3, 2.7, count)
    moved = copied.left + step * parameters.azimuth_cell
    weaker = copied.power * 10.0 ** (-0.1 * random.uniform(13.0, 20.0, count))
    return _joined(
        cells,
        _Cells(copied.range_bin, copied.doppler_bin, moved, copied.up, weaker).select(
            np.abs(moved) < np.sin(parameters.azimuth_limit)
        ),
    )


def _with_false_alarms(
    cells: _Cells, parameters: SimulatedRadarParameters, random: np.random.Generator
) -> _Cells:
    """Add cells in which noise alone went beyond the threshold."""
    count = int(random.poisson(parameters.false_alarms))
    half = parameters.doppler_bins // 2
    across, upward = np.sin([parameters.azimuth_limit, parameters.elevation_limit])
    level = 10.0 ** (0.1 * parameters.threshold)
    return _joined(
        cells,
        _Cells(
            random.integers(parameters.nearest_bin, parameters.range_bins, count),
            random.integers(-half, half, count),
            random.uniform(-across, across, count),
            random.uniform(-upward, upward, count),
            level + random.exponential(1.0, count),
        ),
    )


def _joined(one: _Cells, other: _Cells) -> _Cells:
    return _Cells._make(map(np.concatenate, zip(one, other, strict=True)))


def _measured(
    cells: _Cells, parameters: SimulatedRadarParameters, random: np.random.Generator
) -> NDArray[np.float32]:
    """Measure directions as well as the signal allows and turn cells into points.

    Errors of direction cosines: M. Skolnik, "Radar Handbook": beamwidth / (1.6 sqrt(2 SNR))
    along the row; phase error / pi between two rows half a wavelength apart.
    """
    count = len(cells.power)
    if not count:
        return np.zeros(_NO_RETURNS, np.float32)
    error = random.normal(size=(2, count))
    along = parameters.azimuth_cell / (1.6 * np.sqrt(2.0 * cells.power))
    between = 1.0 / (np.pi * np.sqrt(cells.power))
    left = cells.left + error[0] * np.hypot(along, parameters.azimuth_floor)
    up = cells.up + error[1] * np.hypot(between, parameters.elevation_floor)
    squared = 1.0 - left**2 - up**2
    distance = cells.range_bin * parameters.range_resolution
    returns = np.column_stack(
        [
            distance * np.sqrt(np.maximum(squared, 0.0)),
            distance * left,
            distance * up,
            cells.doppler_bin * parameters.doppler_resolution,
            10.0 * np.log10(cells.power),
            parameters.noise_level + random.normal(0.0, 1.2, count),
        ]
    )
    # Cosines beyond the unit sphere are no direction; the chip drops them too.
    return np.asarray(returns[squared > 0.0], np.float32)
