"""Chirp configurations are read, checked, and turned into what a radar measures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.radar.chirp_commands import MAX_LINES, Dialect, argument_counts
from mmedge_ros.sensing.radar.chirp_configuration import (
    SPEED_OF_LIGHT,
    ChirpConfiguration,
    configurations_folder,
    parse_configuration,
    read_configuration,
)

SHIPPED = sorted(configurations_folder().glob('*.cfg'))
SDK_2 = (configurations_folder() / 'iwr1443_sdk2_20hz.cfg').read_text()
SDK_3 = (configurations_folder() / 'iwr6843_sdk3_20hz.cfg').read_text()


def changed(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new)


def refusal(text: str) -> str:
    with pytest.raises(SensingError) as caught:
        parse_configuration(text, 'my.cfg')
    return str(caught.value)


def line_of(text: str, command: str) -> int:
    return next(n for n, line in enumerate(text.splitlines(), 1) if line.startswith(command))


# ------------------------------------------------------------------------------ what ships


def test_there_are_configurations_for_all_boards_and_three_rates() -> None:
    assert [path.name for path in SHIPPED] == [
        'iwr1443_sdk2_10hz.cfg',
        'iwr1443_sdk2_20hz.cfg',
        'iwr1443_sdk2_5hz.cfg',
        'iwr1642_sdk2_20hz.cfg',
        'iwr1642_sdk3_20hz.cfg',
        'iwr1843_sdk3_20hz.cfg',
        'iwr6843_sdk3_20hz.cfg',
    ]


@pytest.mark.parametrize('path', SHIPPED, ids=lambda path: path.stem)
def test_what_ships_suits_people_around_a_drone(path: Path) -> None:
    chirps = read_configuration(path)
    rate = int(re.findall(r'_(\d+)hz', path.stem)[0])
    assert chirps.period == pytest.approx(1 / rate)
    assert chirps.warnings == ()
    assert chirps.max_range > 30.0
    assert chirps.range_resolution < 0.3
    assert chirps.max_speed > 4.0
    assert chirps.velocity_resolution < 0.5
    assert chirps.active_time + chirps.uart_time(100) < chirps.period
    assert chirps.monitor.statistics
    board, sdk = path.stem.split('_')[:2]
    transmitters = 2 if board == 'iwr1642' else 3
    assert (chirps.receivers, chirps.frame.transmitters) == (4, transmitters)
    old = Dialect.PLAIN if board == 'iwr1443' else Dialect.INDEXED
    assert chirps.dialect is (old if sdk == 'sdk2' else Dialect.SDK_3)
    # A radar cube of 4 bytes per sample fits the memory of the part.
    cube = 4 * chirps.range_bins * 4 * transmitters * chirps.velocity_bins
    assert cube <= (384_000 if board == 'iwr1443' else 768_000)
    # Beat frequencies of 30 m pass the filters of the part (MHz).
    widest = {'iwr1443': 15, 'iwr1642': 5, 'iwr1843': 10, 'iwr6843': 10}[board]
    assert chirps.profile.slope * 2 * 30.0 / SPEED_OF_LIGHT <= widest * 1e6
    # Whoever rewrote a number in the comments would have to change the command as well.
    assert f'{chirps.max_range:.0f} m in steps' in path.read_text()


def test_configurations_of_other_people_are_understood(data_folder: Path) -> None:
    paths = sorted((data_folder / 'ti_tlv/cfg').glob('*.cfg'))
    found = {path.name: read_configuration(path) for path in paths}
    assert {name: chirps.dialect for name, chirps in found.items()} == {
        'AWR1642-SDK_2_1_0.cfg': Dialect.INDEXED,
        'AWR1642-SDK_3_2_0.cfg': Dialect.SDK_3,
        'AWR1642-SDK_3_6_0.cfg': Dialect.SDK_3,
    }
    for chirps in found.values():
        # What TI's visualizer wrote into the files' comments, with its rounding.
        assert chirps.range_resolution == pytest.approx(0.044, abs=5e-4)
        assert 0.8 * chirps.max_range == pytest.approx(9.02, rel=0.02)
        assert chirps.max_speed == pytest.approx(1.0, rel=0.03)
        assert chirps.velocity_resolution == pytest.approx(0.13, rel=0.08)
        assert chirps.period == pytest.approx(0.1)
        assert chirps.platform == 'xWR16xx'


# ------------------------------------------------------------------------------- what it means


def test_ranges_and_velocities_follow_from_ramp_and_repetition() -> None:
    chirps = parse_configuration(SDK_2)
    # 18 MHz/us sampled at 4 Msps: c / 2 x 4e6 / 18e12.
    assert chirps.max_range == pytest.approx(33.310, abs=1e-3)
    assert chirps.range_bins == chirps.profile.samples == 128
    assert chirps.range_step == pytest.approx(chirps.max_range / 128)
    # Three chirps of 60 us, and the middle of the samples at 77.414 GHz.
    assert chirps.profile.centre_frequency == pytest.approx(77.414e9, rel=1e-6)
    assert chirps.max_speed == pytest.approx(299_792_458 / 77.414e9 / (4 * 180e-6), rel=1e-5)
    assert chirps.velocity_step == pytest.approx(chirps.max_speed / 16)
    assert chirps.active_time == pytest.approx(96 * 60e-6)


def test_spectra_are_longer_than_samples_that_are_no_power_of_two() -> None:
    chirps = parse_configuration(SDK_3)
    assert (chirps.profile.samples, chirps.range_bins) == (240, 256)
    assert chirps.range_resolution / chirps.range_step == pytest.approx(256 / 240)


def test_real_samples_give_half_the_range() -> None:
    real = parse_configuration(changed(SDK_2, 'adcCfg 2 1', 'adcCfg 2 0'))
    assert real.range_bins == 64
    assert real.max_range == pytest.approx(0.5 * parse_configuration(SDK_2).max_range)


def test_limits_let_through_what_the_radar_measures_and_no_more() -> None:
    chirps = parse_configuration(SDK_3)
    assert chirps.limits.max_range == chirps.max_range
    assert chirps.max_speed < chirps.limits.max_speed < 1.05 * chirps.max_speed
    extended = parse_configuration(
        changed(SDK_3, 'extendedMaxVelocity -1 0', 'extendedMaxVelocity -1 1')
    )
    assert extended.limits.max_speed == pytest.approx(2 * chirps.limits.max_speed)


def test_the_length_of_a_packet_is_that_of_what_is_sent() -> None:
    chirps = parse_configuration(SDK_3)
    # 40 header, 8 + 10 x 16 points, 8 + 10 x 4 side information, 8 + 24 statistics: 288.
    assert chirps.packet_bytes(10) == 288
    assert chirps.packet_bytes(0) == 96
    maps = parse_configuration(
        changed(SDK_3, 'guiMonitor -1 1 0 0 0 0 1', 'guiMonitor -1 1 1 1 1 1 1')
    )
    assert maps.packet_bytes(0) > 4 * 256 * 12
    assert 'take' in maps.warnings[0]
    assert maps.uart_time(0) == pytest.approx(maps.packet_bytes(0) / 92160)


def test_chirps_that_all_use_the_same_antennas_take_no_turns() -> None:
    together = re.sub(r'(chirpCfg . . 0 0 0 0 0) \d', r'\1 5', SDK_2)
    chirps = parse_configuration(together)
    assert chirps.frame.transmitters == 1
    assert chirps.chirps_per_transmitter == 96


def test_another_frame_period_changes_one_command() -> None:
    chirps = parse_configuration(SDK_2)
    slower = chirps.with_period(1 / 7.5)
    assert slower.period == pytest.approx(0.133333)
    different = [(a.text, b.text) for a, b in zip(chirps.sent, slower.sent, strict=True) if a != b]
    assert different == [('frameCfg 0 2 32 0 50 1 0', 'frameCfg 0 2 32 0 133.333 1 0')]
    assert parse_configuration('\n'.join(c.text for c in slower.commands)).period == slower.period
    with pytest.raises(SensingError, match=r'take 5\.76 ms, its period is 5 ms'):
        chirps.with_period(0.005)


def test_starting_and_stopping_are_left_to_the_handshake() -> None:
    sent = [command.name for command in parse_configuration(SDK_2).sent]
    assert sent[0] == 'dfeDataOutputMode'
    assert not {'sensorStart', 'sensorStop', 'flushCfg'} & set(sent)


# ------------------------------------------------------------------------------ what is wrong


@pytest.mark.parametrize(
    ('old', 'new', 'words'),
    [
        ('clutterRemoval 0', 'cluterRemoval 0', "unknown command 'cluterRemoval'; the nearest"),
        (
            'clutterRemoval 0',
            'doaCfg 600 1875 30 1',
            "doaCfg is a command of TI's people tracking",
        ),
        ('adcCfg 2 1', 'adcCfg 2 one', "adcCfg: 'one' is not a number"),
        ('adcCfg 2 1', 'adcCfg 2 nan', "'nan' is not a number"),
        ('adcCfg 2 1', 'adcCfg 2 1e30', "'1e30' is not a number"),
        ('adcCfg 2 1', 'adcCfg 2 ٣', 'is not a number'),
        ('adcCfg 2 1', 'adcCfg 2', 'has 1 numbers; SDK 1, or SDK 2 on xWR14xx'),
        ('dfeDataOutputMode 1', 'dfeDataOutputMode 3', 'only dfeDataOutputMode 1'),
        ('channelCfg 15 7 0', 'channelCfg 15 1 0', 'channelCfg switches on 0b001'),
        ('profileCfg 0 77 ', 'profileCfg 0 90 ', 'leaves the bands'),
        ('profileCfg 0 77 ', 'profileCfg 0 80.5 ', 'ramp from 80.5 to 81.22 GHz'),
        (' 18 1 128', ' 0 1 128', 'slope 0 MHz/us'),
        ('128 4000', '128 600', '600 ksps'),
        ('128 4000', '160 4000', 'sampling ends 47.00 us'),
        ('128 4000', '128.5 4000', '128.5 ADC samples'),
        ('0 2 32 0 50', '0 2 32 0 5', 'take 5.76 ms, its period is 5 ms'),
        ('0 2 32 0 50', '0 2 32 0 5000', 'period of 5000 ms'),
        ('0 2 32 0 50', '0 2 0 0 50', 'frameCfg has 0 loops'),
        ('0 2 32 0 50', '0 3 32 0 50', 'no chirpCfg describes chirp 3'),
        ('0 2 32 0 50', '2 1 32 0 50', 'from 2 to 511'),
        ('0 2 32 0 50', '0 1e9 32 0 50', 'last chirp'),
        ('chirpCfg 2 2 0 ', 'chirpCfg 2 2 1 ', 'mixes chirps of profiles 0, 1'),
        ('chirpCfg 2 2', 'chirpCfg 2 700', 'last chirp'),
    ],
)
def test_errors_name_line_and_reason(old: str, new: str, words: str) -> None:
    text = changed(SDK_2, old, new)
    message = refusal(text)
    assert words in message
    (line,) = re.findall(r'^my.cfg line (\d+)', message)
    pairs = zip(SDK_2.splitlines(), text.splitlines(), strict=True)
    wrong = next(n for n, (before, after) in enumerate(pairs, 1) if before != after)
    # Or the command that does not go with the changed one any more.
    others = [line_of(text, name) for name in ('frameCfg', 'chirpCfg 1')]
    assert int(line) in (wrong, *others)


@pytest.mark.parametrize(
    'name', ['profileCfg', 'frameCfg', 'channelCfg', 'adcCfg', 'guiMonitor', 'dfeDataOutputMode']
)
def test_what_is_missing_is_named(name: str) -> None:
    text = '\n'.join(line for line in SDK_2.splitlines() if not line.startswith(name))
    assert name in refusal(text)


def test_one_command_of_another_dialect_is_found() -> None:
    message = refusal(changed(SDK_3, 'cfarCfg -1 0 2 8 4 3 0 15 1', 'cfarCfg -1 0 2 8 4 3 0 1280'))
    assert f'line {line_of(SDK_3, "cfarCfg -1 0")}: cfarCfg has 8 numbers' in message
    assert 'takes 9' in message
    message = refusal(SDK_3 + 'peakGrouping -1 1 1 1 1 255\n')
    assert 'peakGrouping does not exist in SDK 3' in message


def test_dialects_are_those_of_boards() -> None:
    assert Dialect.PLAIN.fits((1, 2, 0, 5), 'xWR16xx')
    assert Dialect.PLAIN.fits((2, 1, 0, 4), 'xWR14xx')
    assert not Dialect.PLAIN.fits((2, 1, 0, 4), 'xWR16xx')
    assert Dialect.PLAIN.fits((2, 1, 0, 4), '')
    assert Dialect.INDEXED.fits((2, 1), 'xWR68xx')
    assert not Dialect.INDEXED.fits((2, 1), 'xWR14xx')
    assert Dialect.SDK_3.fits((3, 6), 'xWR68xx')
    assert not Dialect.SDK_3.fits((2, 1), 'xWR16xx')
    assert argument_counts('nonsense', Dialect.SDK_3) == ()


@pytest.mark.parametrize(
    ('text', 'words'),
    [
        ('', 'holds no command'),
        ('% nothing but a comment\n# and another', 'holds no command'),
        ('sensorStop\n' * (MAX_LINES + 1), f'{MAX_LINES + 1} lines'),
        ('adcCfg ' + 1000 * '1 ', 'longer than 500 characters'),
        ('adcCfg ' + 400 * '9', 'is not a number'),
    ],
)
def test_texts_that_are_no_configuration_are_refused(text: str, words: str) -> None:
    assert words in refusal(text)


@given(st.text(max_size=400) | st.sampled_from(SDK_3.splitlines()))
def test_hostile_texts_are_refused_with_one_sentence(text: str) -> None:
    assert '\n' not in refusal(text)


@given(st.data())
def test_a_configuration_with_one_damaged_line_is_valid_or_refused(data: st.DataObject) -> None:
    lines = SDK_2.splitlines()
    place = data.draw(st.integers(0, len(lines) - 1))
    words = lines[place].split()
    if words:
        word = data.draw(st.integers(0, len(words) - 1))
        number = st.floats(width=32).map(str) | st.integers(-(2**70), 2**70).map(str)
        words[word] = data.draw(number | st.text(max_size=5))
    lines[place] = ' '.join(words)
    try:
        found = parse_configuration('\n'.join(lines))
    except SensingError:
        return
    assert isinstance(found, ChirpConfiguration)
    assert found.max_range > 0
    assert found.max_speed > 0
    assert found.limits.max_range > 0
    assert found.packet_bytes() > 0
    assert isinstance(found.warnings, tuple)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    huge = tmp_path / 'huge.cfg'
    huge.write_bytes(bytes(70_000))
    for path, words in (
        (tmp_path / 'none.cfg', 'No such file'),
        (tmp_path, 'Is a directory'),
        (huge, 'larger than'),
        (Path('a\0b'), 'null'),
    ):
        with pytest.raises(SensingError, match=words):
            read_configuration(path)
    binary = tmp_path / 'binary.cfg'
    binary.write_bytes(bytes(range(256)))
    with pytest.raises(SensingError, match=r'binary\.cfg line'):
        read_configuration(binary)


def test_files_of_editors_on_windows_are_read(tmp_path: Path) -> None:
    path = tmp_path / 'windows.cfg'
    text = (configurations_folder() / 'iwr6843_sdk3_20hz.cfg').read_text()
    path.write_bytes(b'\xef\xbb\xbf' + text.replace('\n', '\r\n').encode())
    assert read_configuration(path).sdk == '03.06'
    path.write_bytes(b'\xef\xbb\xbfsensorStop\r\n' + text.encode())
    assert read_configuration(path).commands[0].name == 'sensorStop'
