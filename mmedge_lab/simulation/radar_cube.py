"""Cubes (range, Doppler, antenna) of random echoes, and the returns TI's demo finds in them."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy.sparse import coo_array

from mmedge_lab.simulation.radar_detector import Signals
from mmedge_lab.simulation.radar_link import RadarLink, Threshold
from mmedge_ros.core.data_types import FloatArray

# Neighbouring bins of a target's own, as shares of its amplitude: Blackman's window over range and
# Hann's over Doppler, which the demo uses.
_BLACKMAN = (0.04 / 0.42, 0.25 / 0.42, 1.0, 0.25 / 0.42, 0.04 / 0.42)
_HANN = (0.5, 1.0, 0.5)
_NOISE_GAIN = sum(a * a for a in _BLACKMAN) * sum(a * a for a in _HANN)
APART = 1.0 / _NOISE_GAIN  # of filled bins: how many fade apart
_SPECTRUM = 64  # directions the demo looks at
_NOISE_LEVEL = 46.0  # dB of the demo's own scale
# The mean logarithm of noise lies so far below the logarithm of its mean: Euler's constant.
LOG_MEAN = -2.507  # dB


def bins(signals: Signals, link: RadarLink) -> tuple[NDArray[np.int64], FloatArray]:
    """Return the flat bin (N,) of every echo, -1 beyond the last, and the speed m/s of that bin.

    Speeds beyond the unambiguous one wrap around.
    """
    ranges, dopplers = link.shape
    place = np.rint(signals.distance / link.chirps.range_step).astype(np.int64)
    half, step = dopplers // 2, link.chirps.velocity_step
    doppler = np.rint(signals.speed / step).astype(np.int64)
    doppler = (doppler + half) % dopplers
    flat = np.where((place >= 0) & (place < ranges), place * dopplers + doppler, -1)
    return flat, np.asarray((doppler - half) * step, np.float64)


def mean_power(signals: Signals, link: RadarLink) -> FloatArray:
    """Return the mean power (range, Doppler) of echoes over that of the noise, after windows."""
    flat, _ = bins(signals, link)
    inside = flat >= 0
    size = link.shape[0] * link.shape[1]
    power = np.bincount(flat[inside], signals.snr[inside], size).reshape(link.shape)
    squares = [tuple(a * a for a in kernel) for kernel in (_BLACKMAN, _HANN)]
    return np.asarray(_spread(_spread(power, 0, squares[0]), 1, squares[1]) / _NOISE_GAIN)


def reference(level: FloatArray, rule: Threshold) -> FloatArray:
    """Return the level, dB, of a cell's neighbours as this CFAR pass takes it."""
    reach = rule.window + rule.guard
    pad = [(0, 0), (0, 0)]
    pad[rule.axis] = (reach, reach)
    padded = np.pad(level, pad, mode='wrap' if rule.cyclic else 'reflect')
    means = sliding_window_view(padded, rule.window, axis=rule.axis).mean(axis=-1)
    count = level.shape[rule.axis]
    below = np.take(means, np.arange(count), axis=rule.axis)
    above = np.take(means, np.arange(count) + reach + rule.guard + 1, axis=rule.axis)
    if rule.mode == 0:
        return np.asarray(0.5 * (below + above))
    return np.asarray(np.maximum(below, above) if rule.mode == 1 else np.minimum(below, above))


def sent_cells(link: RadarLink) -> NDArray[np.bool_]:
    """Mark the cells (range, Doppler) whose detections the board sends."""
    distance = np.arange(link.shape[0]) * link.chirps.range_step
    half = link.shape[1] // 2
    speed = (np.arange(link.shape[1]) - half) * link.chirps.velocity_step
    near = (distance >= link.reach[0]) & (distance <= link.reach[1]) & (distance > 0)
    return near[:, None] & (speed >= link.speeds[0]) & (speed <= link.speeds[1])


def measure(
    signals: Signals,
    link: RadarLink,
    channels: NDArray[np.complex128],
    random: np.random.Generator,
) -> NDArray[np.float32]:
    """Return what the board sends, (N, 6) float32: x, y, z (m), velocity (m/s), snr, noise (dB).

    :param channels: (A,) of the antennas' channels
    """
    cube = _cube(signals, link, channels, random)
    level = 10.0 * np.log10(cube.real**2 + cube.imag**2).mean(axis=2)
    around = [reference(level, rule) for rule in link.thresholds]
    found = sent_cells(link)
    for rule, neighbours in zip(link.thresholds, around, strict=True):
        found &= level > neighbours + rule.decibel
    for axis in (axis for axis in (0, 1) if link.grouping[axis]):
        padded = np.pad(level, [(1, 1) if i == axis else (0, 0) for i in (0, 1)], mode='edge')
        found &= level >= sliding_window_view(padded, 3, axis=axis).max(axis=-1)
    row, column = np.nonzero(found)
    strongest = np.sort(np.argsort(-level[row, column], kind='stable')[: link.most])
    row, column = row[strongest], column[strongest]
    cell, left, up = _directions(cube[row, column], link)
    row, column = row[cell], column[cell]
    distance = row * link.chirps.range_step
    noise = around[0][row, column]
    returns = np.column_stack(
        [
            distance * np.sqrt(np.maximum(1.0 - left**2 - up**2, 0.0)),
            distance * left,
            distance * up,
            (column - link.shape[1] // 2) * link.chirps.velocity_step,
            level[row, column] - noise,
            noise + _NOISE_LEVEL,
        ]
    )
    return np.asarray(returns[: link.most], np.float32)


def _spread(values: NDArray, axis: int, kernel: tuple[float, ...]) -> NDArray:  # type: ignore[type-arg]
    half = len(kernel) // 2
    return sum(share * np.roll(values, k - half, axis) for k, share in enumerate(kernel))  # type: ignore[return-value]


def _cube(
    signals: Signals,
    link: RadarLink,
    channels: NDArray[np.complex128],
    random: np.random.Generator,
) -> NDArray[np.complex64]:
    """Return the cube (range, Doppler, antenna); noise alone has mean power 1.

    Antennas of one transmitter hear later than those of the one before. The demo takes out the
    phase that the cell's own speed gives; of a wrapped speed a part remains.
    """
    flat, speed = bins(signals, link)
    kept = np.flatnonzero(flat >= 0)
    draws = random.standard_normal((2, len(kept)), np.float32)
    amplitude = (draws[0] + 1j * draws[1]) * np.sqrt(0.5 * signals.snr[kept])
    phase = np.pi * np.outer(signals.left[kept], link.columns)
    phase += np.pi * np.outer(signals.up[kept], link.rows)
    phase += np.outer(signals.speed[kept] - speed[kept], link.phase_rate)
    phase = phase.astype(np.float32)
    heard = (np.cos(phase) + 1j * np.sin(phase)) * amplitude[:, None].astype(np.complex64)
    size = (link.shape[0] * link.shape[1], len(kept))
    gather = coo_array((np.ones(len(kept), np.float32), (flat[kept], np.arange(len(kept)))), size)
    noise = random.standard_normal((2, size[0], len(channels)), np.float32) * np.float32(0.5**0.5)
    cube = (
        gather.tocsr() @ (heard * channels.astype(np.complex64)) + (noise[0] + 1j * noise[1])
    ).reshape(*link.shape, len(channels))
    windowed = _spread(_spread(cube, 0, _BLACKMAN), 1, _HANN) / np.sqrt(_NOISE_GAIN)
    return np.asarray(windowed, np.complex64)


def _directions(
    cells: NDArray[np.complex64], link: RadarLink
) -> tuple[NDArray[np.intp], FloatArray, FloatArray]:
    """Return up to two directions for every cell (C, A): its index, cosines to the left and up."""
    low = link.rows == 0
    line = np.zeros((len(cells), _SPECTRUM), np.complex64)
    line[:, link.columns[low]] = cells[:, low]
    spectrum = np.fft.fft(line)
    power = np.abs(spectrum) ** 2
    is_peak = (power > np.roll(power, 1, axis=1)) & (power >= np.roll(power, -1, axis=1))
    peaks = np.where(is_peak, power, 0.0)
    order = np.argsort(-peaks, axis=1)[:, :2]
    height = np.take_along_axis(peaks, order, axis=1)
    wanted = height > np.array([0.0, 1.0]) * link.second_peak * height[:, :1]
    cell, which = np.nonzero(wanted)
    place = order[cell, which]
    left = 2.0 * ((place + _SPECTRUM // 2) % _SPECTRUM - _SPECTRUM // 2) / _SPECTRUM
    upper = cells[cell][:, ~low] * np.exp(-1j * np.pi * np.outer(left, link.columns[~low]))
    up = np.zeros(len(cell))
    if not low.all():
        up = np.angle(upper.sum(axis=1) * spectrum[cell, place].conj()) / np.pi
    az_low, az_high, el_low, el_high = link.sides
    seen = (left >= az_low) & (left <= az_high) & (up >= el_low) & (up <= el_high)
    seen &= left**2 + up**2 < 1.0
    return cell[seen], left[seen], up[seen]
