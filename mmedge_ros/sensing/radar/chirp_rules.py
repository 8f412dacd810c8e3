"""What single commands of a chirp configuration mean, and what the hardware can do.

Limits are those of the data sheets of IWR1443, IWR1642, IWR1843 and IWR6843.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.radar.chirp_commands import Command
from mmedge_ros.sensing.radar.tlv_packet import (
    FLOAT_POINT_BYTES,
    INTEGER_POINT_BYTES,
    LONG_HEADER_BYTES,
    PADDING_BYTES,
    POINTS_DESCRIPTOR,
    TLV_HEADER,
)

# Bands of the parts, Hz.
_BANDS = ((57e9, 64e9), (76e9, 81e9))
_SAMPLE_RATES = (1e6, 37.5e6)
_MAX_SAMPLES = 4096
_MAX_SLOPE = 250e12
_MAX_LOOPS = 1024
_MAX_CHIRPS = 512
# The sequencer's own limits, s.
_PERIODS = (0.3e-3, 1.4)
# Rounding in a file must not make an exact fit an error.
_SLACK = 1e-9
_SIDE_BYTES = 4


@dataclass(frozen=True)
class ChirpProfile:
    """The ramp of a chirp: times in s, frequencies in Hz, slope in Hz/s."""

    start_frequency: float
    idle_time: float
    adc_start: float
    ramp_end: float
    slope: float
    samples: int
    sample_rate: float
    is_complex: bool

    @property
    def sampling_time(self) -> float:
        return self.samples / self.sample_rate

    @property
    def centre_frequency(self) -> float:
        """Frequency in the middle of the samples."""
        return self.start_frequency + self.slope * (self.adc_start + 0.5 * self.sampling_time)


@dataclass(frozen=True)
class ChirpFrame:
    """``chirps`` of one frame by ``transmitters`` taking turns; ``period`` in s."""

    chirps: int
    transmitters: int
    period: float


@dataclass(frozen=True)
class Monitor:
    """What guiMonitor lets the board send."""

    points: bool
    range_profile: bool
    noise_profile: bool
    azimuth_heat_map: bool
    doppler_heat_map: bool
    statistics: bool

    def packet_bytes(
        self, points: int, range_bins: int, velocity_bins: int, antennas: int, floats: bool
    ) -> int:
        """Length of a packet, padding included."""
        point = FLOAT_POINT_BYTES + _SIDE_BYTES if floats else INTEGER_POINT_BYTES
        descriptor = TLV_HEADER.size if floats else POINTS_DESCRIPTOR.size
        values = (
            (self.points and points > 0, descriptor + points * point),
            (self.range_profile, 2 * range_bins),
            (self.noise_profile, 2 * range_bins),
            (self.azimuth_heat_map, 4 * range_bins * antennas),
            (self.doppler_heat_map, 2 * range_bins * velocity_bins),
            (self.statistics, 24),
        )
        body = sum(TLV_HEADER.size + length for sent, length in values if sent)
        return -(-(LONG_HEADER_BYTES + body) // PADDING_BYTES) * PADDING_BYTES


def last_of(commands: Iterable[Command], name: str, source: str) -> Command:
    """Return the last command of a name, which is the one the board keeps.

    :raises SensingError: if there is none
    """
    matches = [command for command in commands if command.name == name]
    if not matches:
        raise SensingError(f'{source}: {name} is missing; the sensor cannot start without it')
    return matches[-1]


def profile_of(commands: tuple[Command, ...], source: str) -> ChirpProfile:
    """Read the profile that the frame's chirps use.

    :raises SensingError: if there is none, or the frame uses several
    """
    used = {int(chirp.numbers[2]) for chirp in _frame_chirps(commands, source)}
    if len(used) != 1:
        frame = last_of(commands, 'frameCfg', source)
        raise SensingError(
            f'{source} line {frame.line}: the frame mixes chirps of profiles '
            f'{", ".join(str(number) for number in sorted(used))}; use one profile'
        )
    (number,) = used
    profiles = [c for c in commands if c.name == 'profileCfg' and c.numbers[0] == number]
    if not profiles:
        raise SensingError(f'{source}: no profileCfg describes profile {number}')
    command = profiles[-1]
    values = command.numbers
    samples = _whole(command, source, 9, 2, _MAX_SAMPLES, 'ADC samples')
    adc = last_of(commands, 'adcCfg', source)
    return ChirpProfile(
        1e9 * values[1],
        1e-6 * values[2],
        1e-6 * values[3],
        1e-6 * values[4],
        1e12 * values[7],
        samples,
        1e3 * values[10],
        adc.numbers[1] != 0,
    )


def frame_of(commands: tuple[Command, ...], source: str) -> ChirpFrame:
    """Read what a frame consists of.

    :raises SensingError: if its chirps are not described or use antennas that are switched off
    """
    frame = last_of(commands, 'frameCfg', source)
    chirps = _frame_chirps(commands, source)
    loops = _whole(frame, source, 2, 1, _MAX_LOOPS, 'loops')
    channels = last_of(commands, 'channelCfg', source)
    _whole(channels, source, 0, 1, 15, 'receivers (bits)')
    enabled = _whole(channels, source, 1, 1, 15, 'transmitters (bits)')
    used = 0
    for chirp in chirps:
        mask = _whole(chirp, source, 7, 1, 15, 'transmitters (bits)')
        if mask & ~enabled:
            raise SensingError(
                f'{source} line {chirp.line}: the chirp uses transmitters {mask:#05b}, '
                f'channelCfg switches on {enabled:#05b}'
            )
        used |= mask
    # Antennas that send together count as one: they take no turns.
    turns = 1 if len({int(c.numbers[7]) for c in chirps}) == 1 else used.bit_count()
    if len(chirps) % turns:
        raise SensingError(
            f'{source} line {frame.line}: {len(chirps)} chirps cannot be shared evenly by '
            f'{turns} transmitters'
        )
    return ChirpFrame(loops * len(chirps), turns, 1e-3 * frame.numbers[4])


def monitor_of(commands: tuple[Command, ...], source: str) -> Monitor:
    """Read what the board sends; a subframe number may come first."""
    numbers = last_of(commands, 'guiMonitor', source).numbers[-6:]
    return Monitor(*(number != 0 for number in numbers))


def check_profile(profile: ChirpProfile, place: str) -> None:
    """:raises SensingError: for a ramp that the hardware cannot make."""
    last = profile.start_frequency + profile.slope * profile.ramp_end
    if not any(low <= profile.start_frequency and last <= high for low, high in _BANDS):
        raise SensingError(
            f'{place}: the ramp from {profile.start_frequency / 1e9:g} to {last / 1e9:.2f} GHz '
            'leaves the bands 57-64 and 76-81 GHz; check start, slope and ramp end'
        )
    if not 0.0 < profile.slope <= _MAX_SLOPE:
        raise SensingError(
            f'{place}: slope {profile.slope / 1e12:g} MHz/us is not within 0 to 250'
        )
    low, high = _SAMPLE_RATES
    if not low <= profile.sample_rate <= high:
        raise SensingError(
            f'{place}: {profile.sample_rate / 1e3:g} ksps is not within {low / 1e3:g} to '
            f'{high / 1e3:g}'
        )
    if profile.idle_time < 0.0 or profile.adc_start < 0.0 or profile.idle_time > 0.01:
        raise SensingError(
            f'{place}: idle time must be 0 to 10 ms, the start of sampling 0 or more'
        )
    needed = profile.adc_start + profile.sampling_time
    if needed > profile.ramp_end + _SLACK:
        raise SensingError(
            f'{place}: sampling ends {1e6 * needed:.2f} us after the ramp began, the ramp already '
            f'after {1e6 * profile.ramp_end:g} us; take fewer samples or a longer ramp'
        )


def check_frame(frame: ChirpFrame, active_time: float, place: str) -> None:
    """:raises SensingError: for a frame period that the chirps do not fit."""
    low, high = _PERIODS
    if not low <= frame.period <= high:
        raise SensingError(
            f'{place}: a frame period of {1e3 * frame.period:g} ms is not within {1e3 * low:g} to '
            f'{1e3 * high:g}'
        )
    if active_time > frame.period + _SLACK:
        raise SensingError(
            f'{place}: the chirps of a frame take {1e3 * active_time:.2f} ms, its period is '
            f'{1e3 * frame.period:g} ms; choose a longer period or fewer loops'
        )


def _frame_chirps(commands: tuple[Command, ...], source: str) -> list[Command]:
    """Return the description of every chirp in a loop of the frame, in order."""
    frame = last_of(commands, 'frameCfg', source)
    first = _whole(frame, source, 0, 0, _MAX_CHIRPS - 1, 'first chirp')
    last = _whole(frame, source, 1, first, _MAX_CHIRPS - 1, 'last chirp')
    described: dict[int, Command] = {}
    for command in commands:
        if command.name == 'chirpCfg':
            begin = _whole(command, source, 0, 0, _MAX_CHIRPS - 1, 'first chirp')
            end = _whole(command, source, 1, begin, _MAX_CHIRPS - 1, 'last chirp')
            described.update(dict.fromkeys(range(begin, end + 1), command))
    missing = [number for number in range(first, last + 1) if number not in described]
    if missing:
        raise SensingError(
            f'{source} line {frame.line}: no chirpCfg describes chirp {missing[0]} of the frame'
        )
    return [described[number] for number in range(first, last + 1)]


def _whole(command: Command, source: str, place: int, low: int, high: int, what: str) -> int:
    """Return an argument that must be a whole number within bounds."""
    value = command.numbers[place]
    if value != int(value) or not low <= value <= high:
        raise SensingError(
            f'{source} line {command.line}: {command.name} has {value:g} {what}; '
            f'it must be a whole number from {low} to {high}'
        )
    return int(value)
