"""Cubes (range, Doppler, antenna) of random echoes, and the returns TI's demo finds in them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy.sparse import coo_array

from mmedge_lab.simulation.radar_detector import Signals
from mmedge_lab.simulation.radar_link import RadarLink, Threshold
from mmedge_ros.core.data_types import FloatArray

# What reaches neighbouring bins of range and Doppler, as shares of amplitude: the windows of
# Blackman and Hann, which the demo uses.
_WINDOWS = (np.array([0.04, 0.25, 0.42, 0.25, 0.04]) / 0.42, np.array([0.5, 1.0, 0.5]))
_NOISE_GAIN = float(np.prod([(window**2).sum() for window in _WINDOWS]))
APART = 0.2  # share of neighbouring bins that fade by themselves, found from cubes drawn here
_SPECTRUM = 64  # directions the demo looks at
_NOISE_LEVEL = 46.0  # dB of the demo's own scale
# How far the mean logarithm of exponential power lies below that of its mean: Euler's constant.
LOG_MEAN = -2.507  # dB


def bins(signals: Signals, link: RadarLink) -> tuple[NDArray[np.int64], FloatArray]:
    """Return the flat bin (N,) of every echo, -1 beyond the last, and the speed m/s of that bin.

    Speeds beyond the unambiguous one wrap around.
    """
    (ranges, dopplers), step = link.shape, link.chirps.velocity_step
    place = np.rint(signals.distance / link.chirps.range_step).astype(np.int64)
    doppler = (np.rint(signals.speed / step).astype(np.int64) + dopplers // 2) % dopplers
    flat = np.where(place < ranges, place * dopplers + doppler, -1)
    return flat, np.asarray((doppler - dopplers // 2) * step, np.float64)


def mean_power(signals: Signals, link: RadarLink) -> FloatArray:
    """Return the mean power (range, Doppler) of echoes over that of the noise, after windows."""
    flat, _ = bins(signals, link)
    size = link.shape[0] * link.shape[1]
    power = np.bincount(flat[flat >= 0], signals.snr[flat >= 0], size).reshape(link.shape)
    return np.asarray(_windowed(power, [window**2 for window in _WINDOWS]) / _NOISE_GAIN)


def reference(level: FloatArray, rule: Threshold) -> FloatArray:
    """Return the level, dB, of a cell's neighbours as this CFAR pass takes it."""
    reach = rule.window + rule.guard
    pad = [(reach, reach) if axis == rule.axis else (0, 0) for axis in (0, 1)]
    padded = np.pad(level, pad, mode='wrap' if rule.cyclic else 'reflect')
    means = sliding_window_view(padded, rule.window, axis=rule.axis).mean(axis=-1)
    cells = np.arange(level.shape[rule.axis])
    sides = [means.take(cells + shift, rule.axis) for shift in (0, reach + rule.guard + 1)]
    return np.asarray((np.mean, np.max, np.min)[rule.mode](sides, axis=0), np.float64)


def sent_cells(link: RadarLink) -> NDArray[np.bool_]:
    """Mark the cells (range, Doppler) whose detections the board sends."""
    distance = np.arange(link.shape[0]) * link.chirps.range_step
    speed = (np.arange(link.shape[1]) - link.shape[1] // 2) * link.chirps.velocity_step
    near = (distance >= link.reach[0]) & (distance <= link.reach[1]) & (distance > 0)
    return near[:, None] & (speed >= link.speeds[0]) & (speed <= link.speeds[1])


def group_peak(level: FloatArray, link: RadarLink) -> FloatArray:
    """Return the highest level of each cell (range, Doppler) and of those it is grouped with.

    Of a group the board sends the peak only.
    """
    around = [level]
    for axis, is_grouped in enumerate(link.grouping):
        around += [np.roll(level, by, axis) for by in (1, -1) if is_grouped]
    return np.asarray(np.max(around, axis=0), np.float64)


def measure(
    signals: Signals, link: RadarLink, channels: NDArray[Any], random: np.random.Generator
) -> NDArray[np.float32]:
    """Return what the board sends, (N, 6) float32: x, y, z (m), velocity (m/s), snr, noise (dB).

    ``channels`` (A,) are the antennas' complex gains.
    """
    cube = _cube(signals, link, channels, random)
    level = 10.0 * np.log10(cube.real**2 + cube.imag**2).mean(axis=2)
    around = [reference(level, rule) for rule in link.thresholds]
    found = sent_cells(link)
    for rule, neighbours in zip(link.thresholds, around, strict=True):
        found &= level > neighbours + rule.decibel
    found &= level >= group_peak(level, link)
    row, column = np.nonzero(found)
    cell, left, up = _directions(cube[row, column], link)
    kept = np.sort(np.argsort(-level[row, column][cell], kind='stable')[: link.most])
    row, column, left, up = row[cell][kept], column[cell][kept], left[kept], up[kept]
    distance, noise = row * link.chirps.range_step, around[0][row, column]
    ahead = np.sqrt(1.0 - left**2 - up**2)
    speed = (column - link.shape[1] // 2) * link.chirps.velocity_step
    places = distance * np.stack([ahead, left, up])
    strengths = level[row, column] - noise, noise + _NOISE_LEVEL
    return np.column_stack([*places, speed, *strengths]).astype(np.float32)


def _windowed(values: NDArray[Any], windows: Any = _WINDOWS) -> NDArray[Any]:
    for axis, window in enumerate(windows):
        shifts = range(-(len(window) // 2), len(window) // 2 + 1)
        values = sum(
            share * np.roll(values, shift, axis)
            for share, shift in zip(window.tolist(), shifts, strict=True)
        )
    return values


def _cube(
    signals: Signals, link: RadarLink, channels: NDArray[Any], random: np.random.Generator
) -> NDArray[Any]:
    """Return the cube; noise alone has mean power 1, echoes fade (Swerling's first case).

    Transmitters take turns, and a target moves on meanwhile. The demo takes out the phase that
    the speed of the cell gives; of a speed that wrapped around a part remains.
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
    noise = np.sqrt(np.float32(0.5)) * random.standard_normal((2, size[0], len(channels)), 'f')
    cube = gather.tocsr() @ (heard * channels.astype(np.complex64)) + noise[0] + 1j * noise[1]
    cube = cube.reshape(*link.shape, -1) / np.sqrt(np.float32(_NOISE_GAIN))
    return _windowed(cube)


def _directions(
    cells: NDArray[Any], link: RadarLink
) -> tuple[NDArray[np.intp], FloatArray, FloatArray]:
    """Return up to two directions for every cell (C, A): its index, cosines to the left and up."""
    low = link.rows == 0
    line = np.zeros((len(cells), _SPECTRUM), np.complex64)
    line[:, link.columns[low]] = cells[:, low]
    spectrum = np.fft.fft(line)
    power = np.abs(spectrum) ** 2
    is_peak = (power > np.roll(power, 1, axis=1)) & (power >= np.roll(power, -1, axis=1))
    order = np.argsort(np.where(is_peak, -power, 0.0), axis=1)[:, :2]
    height = np.take_along_axis(np.where(is_peak, power, 0.0), order, axis=1)
    cell, which = np.nonzero(height > np.array([0.0, link.second_peak]) * height[:, :1])
    place = order[cell, which]
    left = np.fft.fftfreq(_SPECTRUM, 0.5)[place]
    up = np.zeros(len(cell))
    if not low.all():
        upper = cells[cell][:, ~low] * np.exp(-1j * np.pi * np.outer(left, link.columns[~low]))
        up = np.angle(upper.sum(axis=1) * spectrum[cell, place].conj()) / np.pi
    az_low, az_high, el_low, el_high = link.sides
    seen = (left >= az_low) & (left <= az_high) & (up >= el_low) & (up <= el_high)
    seen &= left**2 + up**2 < 1.0
    return cell[seen], left[seen], up[seen]
