"""What a board and its chirps make of an echo: link budget, antenna elements, thresholds.

Radar equation: C. Iovescu and S. Rao, "The fundamentals of millimeter wave radar sensors", TI.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.sensing.radar.chirp_commands import Dialect
from mmedge_ros.sensing.radar.chirp_configuration import SPEED_OF_LIGHT, ChirpConfiguration

_TRANSMITTED = 12.0 - 30.0  # dBW of one transmitter: data sheets of all four chips
_THERMAL = 10.0 * math.log10(1.380649e-23 * 300.0)  # dB of W/Hz
# On average 1 dB between bins of both spectra; assumed: radome 1.5 dB, fixed point and ageing 2.5.
_LOSS = 5.0
_SIDELOBES = 20.0  # dB that one antenna loses at most: patches shine a little to all sides
# By chip: dBi of one antenna, degrees to the side and up where it is 6 dB down (user's guides of
# the BOOST and ISK boards), noise figure in dB (data sheets).
_BOARDS = {
    'xWR14': (10.5, 50.0, 20.0, 15.0),
    'xWR16': (9.0, 50.0, 20.0, 15.0),
    'xWR18': (10.5, 50.0, 20.0, 15.0),
    'xWR68': (7.0, 60.0, 20.0, 12.0),
}
# Points the demo keeps: MMW_MAX_OBJ_OUT up to SDK 2; DPC_OBJDET_MAX_NUM_OBJECTS of SDK 3, which is
# the same with and without the accelerator.
_POINTS, _POINTS_SDK_3 = 100, 500
# Where the elements of a transmitter (its bit) begin, in half wavelengths to the left and up: a
# row of eight, and with three transmitters four more above its middle.
_PLACES = {2: {1: (0, 0), 2: (4, 0)}, 3: {1: (0, 0), 4: (4, 0), 2: (2, 1)}}


class Threshold(NamedTuple):
    """A CFAR pass along range (``axis`` 0) or Doppler (1): cells to either side, and decibels.

    ``mode`` 0 averages both sides, 1 takes the greater, 2 the smaller.
    """

    axis: int
    mode: int
    window: int
    guard: int
    cyclic: bool
    decibel: float


class RadarLink:
    """A board that runs these chirps; ``shape`` is range by Doppler bins.

    Elements (A,) lie in ``columns`` and ``rows``; a speed turns their phases by ``phase_rate``
    rad per m/s. ``reach`` m, ``speeds`` m/s and direction cosines ``sides`` (left from and to, up
    from and to) are what is sent, at ``most`` so many returns.
    """

    def __init__(self, chirps: ChirpConfiguration) -> None:
        self.chirps = chirps
        self.shape = (chirps.range_bins, chirps.velocity_bins)
        chip = chirps.platform[:5] if chirps.platform[:5] in _BOARDS else 'xWR18'
        gain, azimuth, elevation, noise = _BOARDS[chip]
        self._widths = np.radians([azimuth, elevation])
        wavelength = SPEED_OF_LIGHT / chirps.profile.centre_frequency
        sampled = chirps.chirps_per_transmitter * chirps.profile.sampling_time
        # Power over noise of 1 m^2 at 1 m in one bin of one pair of antennas, dB.
        received = 10.0 * math.log10(wavelength**2 * sampled / (4.0 * math.pi) ** 3)
        self.snr_at_1m = _TRANSMITTED + 2.0 * gain + received - (_THERMAL + noise + _LOSS)
        turns = chirps.frame.transmitters
        masks = [int(numbers[7]) for numbers in self._all('chirpCfg')][:turns]
        places = [_PLACES.get(turns, {}).get(mask, (0, 0)) for mask in masks]
        count = chirps.receivers
        self.columns = np.concatenate([column + np.arange(count) for column, _ in places])
        self.rows = np.repeat([row for _, row in places], count)
        turn = 4.0 * math.pi / wavelength * chirps.chirp_time
        self.phase_rate = turn * np.repeat(np.arange(turns), count)
        most = _POINTS_SDK_3 if chirps.dialect is Dialect.SDK_3 else _POINTS
        fits = (n for n in range(most) if chirps.active_time + chirps.uart_time(n) < chirps.period)
        self.most = max(fits, default=0)
        self.thresholds = tuple(self._threshold(numbers, chip) for numbers in self._all('cfarCfg'))
        self._limits()

    def power(self, reflectivity: FloatArray, distance: FloatArray, ray: FloatArray) -> FloatArray:
        """Return mean power over noise (N,) of m^2 at m; ``ray`` (N, 3) in radar axes."""
        angles = np.arctan2(ray[:, 1], ray[:, 0]), np.arcsin(np.clip(ray[:, 2], -1.0, 1.0))
        loss = 6.0 * ((angles[0] / self._widths[0]) ** 2 + (angles[1] / self._widths[1]) ** 2)
        gain = self.snr_at_1m - 2.0 * np.minimum(loss, _SIDELOBES)
        return np.asarray(reflectivity * 10.0 ** (0.1 * gain) / distance**4, np.float64)

    def _threshold(self, numbers: tuple[float, ...], chip: str) -> Threshold:
        """Read cfarCfg: decibels from SDK 3.2 on, before that a logarithm in fixed point."""
        plain = self.chirps.dialect is Dialect.PLAIN
        axis, mode, window, guard, _, cyclic, level = numbers[0 if plain else 1 :][:7]
        is_new = self.chirps.dialect is Dialect.SDK_3
        if not is_new or level > 100.0:
            # xWR16 with SDK 1 and 2 sums 256 to 6 dB over its antennas (user's guide of SDK 1.2).
            # The accelerator's sum (config_hwa_util.c of the demo for xWR14), as SDK 3, counts
            # 512 and divides by the next power of two: TI's mmWave demo visualizer 3.
            antennas = len(self.rows)
            share = antennas / 2.0 ** math.ceil(math.log2(antennas))
            is_sum = chip == 'xWR16' and not is_new
            level *= 6.0 / (256.0 * antennas if is_sum else 512.0 * share)
        return Threshold(int(axis), int(mode), int(window), int(guard), cyclic != 0, level)

    def _limits(self) -> None:
        chirps = self.chirps
        self.reach, self.speeds = (0.0, (self.shape[0] - 1) * chirps.range_step), (-1e9, 1e9)
        for numbers in self._all('cfarFovCfg'):
            if numbers[-3]:
                self.speeds = numbers[-2], numbers[-1]
            else:
                self.reach = numbers[-2], min(numbers[-1], self.reach[1])
        # Peaks alone are sent, along range and Doppler; once with the last bin.
        self.grouping = tuple(numbers[-1] for numbers in self._all('cfarCfg'))
        for numbers in self._all('peakGrouping'):
            self.grouping = numbers[-4:-2]
            self.reach = self.reach[0], min(numbers[-1] * chirps.range_step, self.reach[1])
        for sides in [(-90.0, 90.0, -90.0, 90.0), *self._all('aoaFovCfg')]:
            self.sides = np.sin(np.radians(sides[-4:]))
        self.second_peak = math.inf
        for is_on, share in (numbers[-2:] for numbers in self._all('multiObjBeamForming')):
            self.second_peak = share if is_on else math.inf

    def _all(self, name: str) -> list[tuple[float, ...]]:
        return [command.numbers for command in self.chirps.commands if command.name == name]
