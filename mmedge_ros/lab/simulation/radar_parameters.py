"""What the simulated radar is like: a 77 GHz FMCW chip with a small virtual array.

The defaults are those of a 3-transmitter, 4-receiver chip with a chirp frame for long range.
Relations between chirp and limits: S. Rao, "Introduction to mmwave Sensing: FMCW Radars".
"""

from __future__ import annotations

from dataclasses import dataclass

from mmedge_ros.parameter import parameter


@dataclass(frozen=True)
class RadarParameters:
    """Resolution, reach and faults of the simulated radar."""

    range_resolution: float = parameter(
        0.22, 'width of a range bin; 0.22 m is a sweep of 680 MHz', 'm', 0.02, 2.0
    )
    range_bins: int = parameter(256, 'how many of them: the farthest range', '', 16, 4096)
    nearest_bin: int = parameter(2, 'bins below hold the antennas own coupling', '', 0, 100)
    doppler_resolution: float = parameter(
        0.1, 'width of a Doppler bin; 0.1 m/s is a frame of 20 ms', 'm/s', 0.01, 2.0
    )
    doppler_bins: int = parameter(
        196, 'how many of them, even; speeds beyond half of them wrap around', '', 8, 4096
    )
    azimuth_elements: int = parameter(8, 'half-wavelength elements in a row', '', 2, 64)
    azimuth_limit: float = parameter(1.05, 'field of view to either side', 'rad', 0.1, 1.5)
    elevation_limit: float = parameter(0.52, 'field of view up and down', 'rad', 0.05, 1.5)
    azimuth_half_gain: float = parameter(
        0.87, 'azimuth at which the two-way gain is 6 dB down', 'rad', 0.1, 3.0
    )
    elevation_half_gain: float = parameter(
        0.38, 'elevation at which the two-way gain is 6 dB down', 'rad', 0.1, 3.0
    )
    snr_at_1m: float = parameter(
        83.0,
        'SNR of 1 m^2 at 1 m on the axis after both transforms; with it a person is seen every '
        'other scan at 50 m',
        'dB',
        20.0,
        150.0,
    )
    threshold: float = parameter(11.0, 'weaker cells are not returned', 'dB', 3.0, 40.0)
    dynamic_range: float = parameter(
        18.0, 'in one range-Doppler cell weaker directions than this are hidden', 'dB', 3.0, 60.0
    )
    window_leak: float = parameter(
        6.0, 'what a bin must be weaker than its neighbour by to drown in it', 'dB', 0.0, 60.0
    )
    azimuth_floor: float = parameter(
        0.008, 'error of the direction cosine that calibration leaves', '', 0.0, 0.2
    )
    elevation_floor: float = parameter(
        0.05, 'the same up and down, where two rows of elements must do', '', 0.0, 0.5
    )
    most_returns: int = parameter(120, 'stronger ones are kept', '', 1, 10_000)
    false_alarms: float = parameter(0.5, 'returns of noise per scan, on average', '', 0.0, 50.0)
    sidelobe_share: float = parameter(
        0.04, 'share of very strong returns that show again in another direction', '', 0.0, 1.0
    )
    dropout_share: float = parameter(0.02, 'share of returns lost on the way', '', 0.0, 1.0)
    noise_level: float = parameter(46.0, 'what the radar gives as noise', 'dB', 0.0, 100.0)

    @property
    def farthest(self) -> float:
        """Middle of the last range bin, m."""
        return self.range_resolution * (self.range_bins - 1)

    @property
    def fastest(self) -> float:
        """Speed at which Doppler wraps around, m/s."""
        return 0.5 * self.doppler_resolution * self.doppler_bins

    @property
    def azimuth_cell(self) -> float:
        """Width of the array's beam as direction cosine: 2 / N for half a wavelength."""
        return 2.0 / self.azimuth_elements
