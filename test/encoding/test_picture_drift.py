"""Pictures that are unlike the calibration flights' are noticed; others are not."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hand_made_pictures import USUAL, fly, second, usual_pictures, usual_seconds

from mmedge_ros.core.data_types import NS_PER_S, Appearance
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.picture_drift import (
    PICTURES_FILE,
    PictureDrift,
    read_usual_pictures,
    second_of,
    usual_pictures_text,
)

MODELS = Path(__file__).parents[2] / 'models'
GOOD = 'distance: {limit: 0.5, alarm: 3}\nflicker: {limit: 0.03, alarm: 3}\npictures: |\n'
ROWS = '  0.5 0.15 0.2\n' * 20


@pytest.fixture
def drift() -> PictureDrift:
    return PictureDrift(usual_pictures())


def test_an_hour_of_usual_seconds_raises_no_alarm(drift: PictureDrift) -> None:
    for look in usual_seconds(3600, seed=1):
        drift.take_second(second(look))
        assert drift.words == ()
    assert drift.alarms == 0


@pytest.mark.parametrize('rate', [30.0, 10.0, 7.5])
def test_a_third_of_the_contrast_is_noticed_soon_at_any_rate(
    drift: PictureDrift, rate: float
) -> None:
    noticed = fly(drift, 20.0, rate=rate, contrast=0.3)
    assert noticed is not None
    assert noticed < 5.0
    (words,) = drift.words
    assert words.startswith("pictures are unlike the calibration flights': contrast is 0.3")
    # Texts of one status are joined by it.
    assert '; ' not in words


@pytest.mark.parametrize('rate', [30.0, 10.0, 7.5])
def test_flicker_is_noticed_soon_at_any_rate(drift: PictureDrift, rate: float) -> None:
    noticed = fly(drift, 20.0, rate=rate, flicker=0.2)
    assert noticed is not None
    assert noticed < 10.0
    assert 'brightness flickers by 1' in drift.words[0]


def test_a_cloud_and_a_turn_are_no_flicker() -> None:
    stamps = [round(number * NS_PER_S / 30) for number in range(30)]
    slow = [Appearance(0.5 + 0.1 * (s / NS_PER_S) ** 2, 0.15, 0.2) for s in stamps]
    fast = [Appearance(0.5 + 0.1 * (n % 2), 0.15, 0.2) for n in range(30)]
    assert second_of(stamps, slow).flicker < 0.005
    assert second_of(stamps, fast).flicker > 0.08
    assert math.isnan(second_of(stamps[:4], fast[:4]).flicker)


def test_one_odd_second_is_no_alarm_and_several_are(drift: PictureDrift) -> None:
    odd = second(np.array(USUAL) * (1.0, 0.1, 1.0))
    for _ in range(10):
        drift.take_second(odd)
        for _ in range(4):
            drift.take_second(second())
    assert drift.alarms == 0
    drift.take_second(odd)
    drift.take_second(odd)
    assert drift.alarms == 1


def test_words_stay_until_pictures_are_usual_again(drift: PictureDrift) -> None:
    fly(drift, 20.0, contrast=0.3)
    told = drift.words
    for share in (0.2, 0.4):
        drift.take_second(second(np.array(USUAL) * (1.0, share, 1.0), flicker=0.3))
    assert drift.words == told
    for _ in range(20):
        drift.take_second(second())
    assert drift.words == ()
    assert drift.alarms >= 1


def test_a_clock_that_steps_back_begins_anew_and_late_pictures_do_not(
    drift: PictureDrift,
) -> None:
    noticed = fly(drift, 20.0, begin=100.0, contrast=0.3)
    assert noticed is not None
    drift.take(round((99.0 + noticed) * NS_PER_S), USUAL)
    assert drift.words
    drift.take(round(50.0 * NS_PER_S), USUAL)
    assert drift.words == ()
    assert fly(drift, 20.0, begin=50.0, contrast=0.3) == pytest.approx(noticed)


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    usual = usual_pictures()
    (tmp_path / PICTURES_FILE).write_text(usual_pictures_text(usual, ['made by hand']))
    found = read_usual_pictures(tmp_path)
    assert found is not None
    assert found.seconds == pytest.approx(usual.seconds, abs=1e-4)
    assert found.bounds == usual.bounds


@pytest.mark.parametrize(
    ('text', 'words'),
    [
        ('- 1', 'not keys and values'),
        (GOOD, 'lines of 3 numbers'),
        (GOOD + ROWS + '  0.5 0.15\n', 'lines of 3 numbers'),
        (GOOD + ROWS + '  0.5 0.15 dark\n', 'lines of 3 numbers'),
        (GOOD + ROWS + '  0.5 0.15 nan\n', 'lines of 3 numbers'),
        (GOOD + ROWS + '  0.5 -0.15 0.2\n', 'lines of 3 numbers'),
        (GOOD.replace('0.5', '0') + ROWS, 'has distance'),
        (GOOD.replace('0.03', '.nan') + ROWS, 'has flicker'),
        (GOOD.replace('{limit: 0.5, alarm: 3}', '3') + ROWS, 'has distance'),
        ('pictures: ' + '[' * 100 + ']' * 100, 'nested deeper'),
    ],
)
def test_a_wrong_file_is_named_with_its_entry(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / PICTURES_FILE).write_text(text)
    with pytest.raises(EncodingError, match=words) as refused:
        read_usual_pictures(tmp_path)
    assert str(tmp_path / PICTURES_FILE) in str(refused.value)


@pytest.mark.parametrize(
    ('factors', 'begin', 'end'),
    [
        ((1.0, 0.3, 1.0), 'contrast is 0.3', 'of the usual in such light'),
        ((1.0, 1.0, 0.4), 'sharpness is 0.4', 'of the usual in such light'),
        ((1.9, 1.0, 1.0), 'brightness is 1.', 'of the usual'),
    ],
)
def test_what_is_most_unlike_is_named(factors: tuple[float, ...], begin: str, end: str) -> None:
    words = usual_pictures().difference(np.array(USUAL) * factors)
    assert words.startswith(begin)
    assert words.endswith(end)


def test_pictures_nothing_is_known_of_are_left_out(drift: PictureDrift) -> None:
    for number in range(600):
        drift.take(number * NS_PER_S // 30, Appearance())
    assert fly(drift, 20.0) is None
