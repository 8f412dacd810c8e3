"""Service times as quantiles."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mmedge_ros.core import RecordError
from mmedge_ros.core.data_types import CAMERA, RADAR, Decision, StageTiming, UnitFeatures
from mmedge_ros.core.device_profile import (
    PROBABILITIES,
    DeviceProfile,
    measured_profile,
    read_profile,
    stage_durations,
    write_profile,
)
from mmedge_ros.core.run_record import RunRecord

ENCODE = (0.010, 0.012, 0.015, 0.020, 0.040, 0.060)
PROFILE = DeviceProfile('a small board', {'camera.encode': ENCODE, 'fusion': (0.001,) * 6})

SOUND = """
description: a small board
probabilities: [0.05, 0.25, 0.5, 0.75, 0.95, 0.99]
stages_ms:
  camera.encode: [1, 2, 3, 4, 5, 6.5]
"""


def write(path: Path, text: str) -> Path:
    file = path / 'profile.yaml'
    file.write_text(text)
    return file


# ------------------------------------------------------------------------------ sampling


def test_the_same_unit_always_takes_the_same_time() -> None:
    again = DeviceProfile('another run', PROFILE.stages)
    for sequence in range(100):
        first = PROFILE.sample('camera.encode', 'camera', sequence)
        assert first == again.sample('camera.encode', 'camera', sequence)


def test_times_are_the_same_on_every_machine() -> None:
    times = [PROFILE.sample('camera.encode', 'camera', n) for n in range(3)]
    np.testing.assert_allclose(times, [0.0397724, 0.0146114, 0.01], atol=1e-6)


def test_stage_key_and_sequence_each_change_the_time() -> None:
    stages = {'one': ENCODE, 'two': ENCODE}
    profile = DeviceProfile('', stages)
    rows = [[profile.sample(stage, key, n) for n in range(50)] for stage in stages for key in 'ab']
    assert len({tuple(row) for row in rows}) == 4
    assert all(len(set(row)) > 40 for row in rows)


def test_samples_have_the_quantiles_of_the_profile() -> None:
    times = [PROFILE.sample('camera.encode', 'camera', n) for n in range(20_000)]
    np.testing.assert_allclose(np.quantile(times, PROBABILITIES), ENCODE, rtol=0.04)
    assert min(times) == ENCODE[0]
    assert max(times) == ENCODE[-1]


def test_an_unknown_stage_is_an_error_that_names_the_known_ones() -> None:
    with pytest.raises(RecordError, match=r"'radar.encode'.*camera.encode, fusion"):
        PROFILE.sample('radar.encode', 'radar', 0)


# ------------------------------------------------------------------------------ files


def test_a_measured_profile_has_the_quantiles_of_the_durations() -> None:
    profile = measured_profile('here', {'fusion': np.linspace(0.0, 0.1, 101)})
    assert profile.stages['fusion'] == pytest.approx([0.005, 0.025, 0.05, 0.075, 0.095, 0.099])


def test_a_profile_can_be_written_and_read(tmp_path: Path) -> None:
    write_profile(PROFILE, tmp_path / 'profile.yaml')
    found = read_profile(tmp_path / 'profile.yaml')
    assert found.description == 'a small board'
    assert found.stages.keys() == PROFILE.stages.keys()
    for name, quantiles in PROFILE.stages.items():
        assert found.stages[name] == pytest.approx(quantiles)


def test_a_profile_read_and_written_is_the_same_file(tmp_path: Path) -> None:
    first, second = tmp_path / 'first.yaml', tmp_path / 'second.yaml'
    write_profile(measured_profile('', {'a': np.random.default_rng(1).gamma(2, 0.01, 99)}), first)
    write_profile(read_profile(first), second)
    assert first.read_bytes() == second.read_bytes()
    assert read_profile(first) == read_profile(second)


def test_the_file_is_in_milliseconds(tmp_path: Path) -> None:
    found = read_profile(write(tmp_path, SOUND))
    assert found.stages['camera.encode'] == pytest.approx(
        [0.001, 0.002, 0.003, 0.004, 0.005, 0.0065]
    )


@pytest.mark.parametrize(
    ('text', 'said'),
    [
        ('', 'profile'),
        ('stages_ms: 5\n', 'stages_ms'),
        (SOUND.replace('0.95', '0.9'), 'probabilities'),
        (SOUND.replace('[1, 2, 3, 4, 5, 6.5]', '[1, 2, 3]'), 'camera.encode'),
        (SOUND.replace('[1, 2, 3, 4, 5, 6.5]', '[1, 2, 3, 2, 5, 6]'), 'ascending'),
        (SOUND.replace('6.5', '.nan'), 'camera.encode'),
        (SOUND.replace('6.5', '.inf'), 'camera.encode'),
        (SOUND.replace('[1,', '[-1,'), 'camera.encode'),
        (SOUND.replace('6.5', '1' + '0' * 400), 'camera.encode'),
        (SOUND.replace('6.5', 'six'), 'camera.encode'),
        (SOUND.replace('6.5', '{a: 1}'), 'camera.encode'),
    ],
)
def test_what_is_no_profile_is_refused_in_one_sentence(
    tmp_path: Path, text: str, said: str
) -> None:
    file = write(tmp_path, text)
    with pytest.raises(RecordError, match=said) as caught:
        read_profile(file)
    assert str(file) in str(caught.value)
    assert len(str(caught.value)) < 500


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / 'missing.yaml', tmp_path):
        with pytest.raises(RecordError, match='cannot read the device profile'):
            read_profile(path)


MS = 1_000_000


def trail(**durations: int) -> tuple[StageTiming, ...]:
    """Stages of so many milliseconds, one after the other."""
    found, now = [], 0
    for stage, ms in durations.items():
        found.append(StageTiming(stage, now, now + ms * MS))
        now += ms * MS
    return tuple(found)


def encoded(modality: str, **durations: int) -> UnitFeatures:
    return UnitFeatures(modality, 0, 0, 0, '', trail(**durations))


def decided(**durations: int) -> Decision:
    return Decision(0, 0, '', (), {}, trail=trail(**durations))


def record(**parts: object) -> RunRecord:
    return RunRecord('bag', 'live', 0.05, 0.5, 0.1, **parts)  # type: ignore[arg-type]


def test_the_stages_an_offline_replay_asks_for_are_collected() -> None:
    found = stage_durations(
        record(
            features=[
                encoded(CAMERA, acquisition=3, transport=2, queue=9, encode=20),
                encoded(RADAR, acquisition=3, transport=1, encode=4),
                encoded(CAMERA, encode=30),
            ],
            decisions=[decided(encode=20, transport_features=5, window=40, fusion=7)],
        )
    )
    assert found == {
        'camera.encode': pytest.approx([0.02, 0.03]),
        'radar.encode': pytest.approx([0.004]),
        'receipt.transport': pytest.approx([0.002, 0.001]),
        'features.transport': pytest.approx([0.005]),
        'fusion': pytest.approx([0.007]),
    }


def test_decisions_of_the_warm_up_are_left_out() -> None:
    decisions = [decided(fusion=100), decided(fusion=90), decided(fusion=3)]
    found = stage_durations(record(decisions=decisions, warmup=2))
    assert found == {'fusion': pytest.approx([0.003])}


def test_a_run_without_anything_has_no_stages() -> None:
    assert stage_durations(record(decisions=[decided()])) == {}


def test_following_takes_its_own_stage_or_else_a_share_of_encoding() -> None:
    flat = DeviceProfile('', {'camera.encode': (0.02,) * 6})
    assert flat.sample_work('camera', '', 1, followed=False) == pytest.approx(0.02)
    assert flat.sample_work('camera', '', 1, followed=True) == pytest.approx(0.003)
    own = DeviceProfile('', {'camera.encode': (0.02,) * 6, 'camera.follow': (0.002,) * 6})
    assert own.sample_work('camera', '', 1, followed=True) == pytest.approx(0.002)
