"""Chirp configurations (.cfg files) of TI's mmWave demo, and what the radar measures with them.

Formulas: C. Iovescu and S. Rao, "The fundamentals of millimeter wave radar sensors", TI 2020.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from mmedge_ros.core.untrusted_files import read_bounded
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.radar.chirp_commands import (
    BoardVersion,
    Command,
    Dialect,
    dialect_of,
    read_commands,
)
from mmedge_ros.sensing.radar.chirp_rules import (
    ChirpFrame,
    ChirpProfile,
    Monitor,
    check_frame,
    check_profile,
    frame_of,
    last_of,
    monitor_of,
    profile_of,
)
from mmedge_ros.sensing.radar.tlv_points import PointLimits

SPEED_OF_LIGHT = 299_792_458.0
# Ten bits on the wire per byte: start, eight of data, stop.
UART_BYTES_PER_S = 92_160.0
TYPICAL_POINTS = 50
_MAX_FILE_BYTES = 1 << 16
_SDK_COMMENT = re.compile(r'%\s*Created for SDK ver:\s*(\d{1,3}\.\d{1,3})')
_PLATFORM_COMMENT = re.compile(r'%\s*Platform:\s*(xWR\w{1,10})')
# Frames are started by the handshake, whatever the file says.
_STEERING = ('sensorStop', 'flushCfg', 'sensorStart', 'version')
_FOLDER = Path('config') / 'radar'
_SOURCE = Path(__file__).resolve().parents[3]
# The fastest of each board: slower rates follow by leaving out frames.
_BY_BOARD = (
    ('xWR14', 2, 'iwr1443_sdk2_20hz.cfg'),
    ('xWR16', 2, 'iwr1642_sdk2_20hz.cfg'),
    ('xWR16', 3, 'iwr1642_sdk3_20hz.cfg'),
    ('xWR18', 3, 'iwr1843_sdk3_20hz.cfg'),
    ('xWR68', 3, 'iwr6843_sdk3_20hz.cfg'),
)


@dataclass(frozen=True)
class ChirpConfiguration:
    """A valid configuration: lengths in m, times in s, frequencies in Hz.

    ``sdk`` (02.01) and ``platform`` (xWR14xx) are what the file's comments say, '' if nothing.
    """

    source: str
    commands: tuple[Command, ...]
    dialect: Dialect
    sdk: str
    platform: str
    profile: ChirpProfile
    frame: ChirpFrame
    monitor: Monitor
    receivers: int
    extended_velocity: bool

    @property
    def sent(self) -> tuple[Command, ...]:
        """The commands to send between stopping and starting the sensor."""
        return tuple(c for c in self.commands if c.name not in _STEERING)

    @property
    def period(self) -> float:
        return self.frame.period

    @property
    def chirp_time(self) -> float:
        return self.profile.idle_time + self.profile.ramp_end

    @property
    def active_time(self) -> float:
        """Time in which chirps of one frame are sent."""
        return self.frame.chirps * self.chirp_time

    @property
    def range_bins(self) -> int:
        """Bins of the range spectrum; half of it where samples are real."""
        bins = _power_of_two(self.profile.samples)
        return bins if self.profile.is_complex else bins // 2

    @property
    def range_step(self) -> float:
        """Distance between neighbouring bins of the range spectrum."""
        profile = self.profile
        spectrum = _power_of_two(profile.samples)
        return SPEED_OF_LIGHT * profile.sample_rate / (2.0 * profile.slope * spectrum)

    @property
    def range_resolution(self) -> float:
        """Smallest distance between two targets that are told apart."""
        profile = self.profile
        return SPEED_OF_LIGHT * profile.sample_rate / (2.0 * profile.slope * profile.samples)

    @property
    def max_range(self) -> float:
        """Distance from which on beat frequencies exceed the sampled band."""
        return self.range_bins * self.range_step

    @property
    def chirps_per_transmitter(self) -> int:
        return self.frame.chirps // self.frame.transmitters

    @property
    def velocity_bins(self) -> int:
        return _power_of_two(self.chirps_per_transmitter)

    @property
    def velocity_step(self) -> float:
        """Velocity between neighbouring bins of the Doppler spectrum."""
        return 2.0 * self.max_speed / self.velocity_bins

    @property
    def velocity_resolution(self) -> float:
        """Smallest difference between two velocities that are told apart."""
        return 2.0 * self.max_speed / self.chirps_per_transmitter

    @property
    def max_speed(self) -> float:
        """Largest unambiguous radial speed, without the extension some SDKs offer."""
        return self._speed_limit(self.profile.centre_frequency)

    @property
    def limits(self) -> PointLimits:
        """What points measured with this configuration cannot exceed.

        Some SDKs take the ramp's first frequency for that of the band's centre, which gives
        larger speeds; these are let through.
        """
        speed = 1.001 * self._speed_limit(self.profile.start_frequency)
        return PointLimits(
            self.max_range,
            2.0 * speed if self.extended_velocity else speed,
            self.range_bins,
            self.velocity_step,
            0 if self.extended_velocity else self.velocity_bins,
        )

    def packet_bytes(self, points: int = TYPICAL_POINTS) -> int:
        """Length of a packet with so many points on the data port."""
        virtual_antennas = self.receivers * self.frame.transmitters
        return self.monitor.packet_bytes(
            points,
            self.range_bins,
            self.velocity_bins,
            virtual_antennas,
            self.dialect is Dialect.SDK_3,
        )

    def uart_time(self, points: int = TYPICAL_POINTS) -> float:
        """Time the data port needs for a packet with so many points."""
        return self.packet_bytes(points) / UART_BYTES_PER_S

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is valid but will disappoint, as sentences."""
        sentences = []
        if not self.monitor.points:
            sentences.append(f'{self.source}: guiMonitor sends no points')
        needed = self.active_time + self.uart_time()
        if needed > self.period:
            sentences.append(
                f'{self.source}: chirps and {TYPICAL_POINTS} points on the data port take '
                f'{1e3 * needed:.1f} ms of a frame of {1e3 * self.period:.1f} ms; choose a longer '
                'frame or send less with guiMonitor'
            )
        return tuple(sentences)

    def described(self) -> dict[str, object]:
        """Return what a radar measures with this, by names with units."""
        return {
            'dialect': self.dialect.value,
            'sdk': self.sdk,
            'platform': self.platform,
            'frame_period_ms': 1e3 * self.period,
            'active_time_ms': 1e3 * self.active_time,
            'range_resolution_m': self.range_resolution,
            'range_step_m': self.range_step,
            'max_range_m': self.max_range,
            'velocity_resolution_mps': self.velocity_resolution,
            'velocity_step_mps': self.velocity_step,
            'max_speed_mps': self.max_speed,
            'transmitters': self.frame.transmitters,
            'receivers': self.receivers,
            'packet_bytes': self.packet_bytes(),
            'uart_time_ms': 1e3 * self.uart_time(),
        }

    def with_period(self, period: float) -> ChirpConfiguration:
        """Return the configuration with another frame period.

        :raises SensingError: if chirps and packet do not fit into it
        """
        old = last_of(self.commands, 'frameCfg', self.source)
        period_ms = round(1e3 * period, 3)
        numbers = (*old.numbers[:4], period_ms, *old.numbers[5:])
        new = old._replace(
            numbers=numbers, text=' '.join(['frameCfg', *(f'{number:g}' for number in numbers)])
        )
        commands = tuple(new if command is old else command for command in self.commands)
        changed = replace(
            self, commands=commands, frame=replace(self.frame, period=1e-3 * period_ms)
        )
        check_frame(changed.frame, changed.active_time, f'{self.source} line {old.line}')
        return changed

    def _speed_limit(self, frequency: float) -> float:
        repetition = self.active_time / self.chirps_per_transmitter
        return SPEED_OF_LIGHT / frequency / (4.0 * repetition)


def parse_configuration(text: str, source: str = 'configuration') -> ChirpConfiguration:
    """Read a configuration and check that a radar can follow it.

    :param source: names it in errors
    :raises SensingError: with the line and the reason
    """
    commands = tuple(read_commands(text, source))
    sdk, platform = (_comment(pattern, text) for pattern in (_SDK_COMMENT, _PLATFORM_COMMENT))
    dialect = dialect_of(commands, source, sdk)
    mode = last_of(commands, 'dfeDataOutputMode', source)
    if mode.numbers != (1.0,):
        raise SensingError(
            f'{source} line {mode.line}: only dfeDataOutputMode 1 (frames of chirps) is '
            'supported; describe the frame with frameCfg'
        )
    profile = profile_of(commands, source)
    frame = frame_of(commands, source)
    channels = last_of(commands, 'channelCfg', source)
    extension = [c for c in commands if c.name == 'extendedMaxVelocity']
    configuration = ChirpConfiguration(
        source,
        commands,
        dialect,
        sdk,
        platform,
        profile=profile,
        frame=frame,
        monitor=monitor_of(commands, source),
        receivers=int(channels.numbers[0]).bit_count(),
        extended_velocity=bool(extension and extension[-1].numbers[-1]),
    )
    check_profile(profile, f'{source} line {last_of(commands, "profileCfg", source).line}')
    place = f'{source} line {last_of(commands, "frameCfg", source).line}'
    check_frame(frame, configuration.active_time, place)
    return configuration


def read_configuration(path: str | Path) -> ChirpConfiguration:
    """Read a .cfg file.

    :raises SensingError: if it cannot be read or a radar could not follow it
    """
    raw = read_bounded(path, _MAX_FILE_BYTES, SensingError, 'give a .cfg file')
    # Editors on Windows begin files with a byte order mark.
    return parse_configuration(raw.decode('utf-8-sig', 'replace'), str(path))


def configurations_folder() -> Path:
    """Return the folder with the shipped configurations.

    :raises SensingError: if the package is installed without it
    """
    prefixes = [*os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep), sys.prefix]
    shares = [Path(prefix) / 'share' / 'mmedge_ros' for prefix in prefixes if prefix]
    for share in (_SOURCE, *shares):
        if (share / _FOLDER).is_dir():
            return share / _FOLDER
    raise SensingError(
        f'the package is installed without {_FOLDER}; name a .cfg file with the parameter '
        'configuration'
    )


def configuration_for(version: BoardVersion) -> ChirpConfiguration:
    """Return the shipped configuration for a board. Raises SensingError if there is none."""
    for platform, major, name in _BY_BOARD:
        if version.platform.startswith(platform) and version.sdk[:1] == (major,):
            return read_configuration(configurations_folder() / name)
    raise SensingError(
        f'no configuration ships for {version}; name a .cfg file with the parameter configuration'
    )


def _comment(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return match.group(1) if match else ''


def _power_of_two(number: int) -> int:
    """Return the length of the spectrum of so many samples."""
    return 1 << max(number - 1, 0).bit_length()
