"""Pictures that are unlike the calibration flights' are noticed; others are not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hand_made_pictures import (
    USUAL,
    WITH_THIRDS,
    fly,
    second,
    usual_pictures,
    usual_seconds,
    watched_for_veils,
)

from mmedge_ros.data_types import NS_PER_S, Appearance
from mmedge_ros.encoding.picture_drift import PictureDrift, second_of
from mmedge_ros.encoding.usual_pictures import DISTANCE, VEIL


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


def test_a_veil_is_noticed_in_pictures_that_are_usual_as_a_whole() -> None:
    drift = PictureDrift(watched_for_veils())
    for _ in range(10):
        drift.take_second(second(WITH_THIRDS))
    assert drift.words == ()
    for _ in range(4):
        drift.take_second(second(WITH_THIRDS._replace(lower_darkest=0.35)))
    assert drift.words == (
        "pictures are unlike the calibration flights': they look as behind fog, haze or a dirty "
        'lens, so that people may be missed',
    )
    assert not drift.sums[DISTANCE].is_on


def test_pictures_whose_thirds_are_not_known_are_watched_as_a_whole() -> None:
    drift = PictureDrift(watched_for_veils())
    assert fly(drift, 20.0) is None
    assert fly(drift, 20.0, begin=30.0, contrast=0.3) is not None
    assert drift.sums[VEIL].sum == 0.0


def test_one_odd_second_is_no_alarm_and_several_are(drift: PictureDrift) -> None:
    odd = second(np.array(USUAL[:3]) * (1.0, 0.1, 1.0))
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
        drift.take_second(second(np.array(USUAL[:3]) * (1.0, share, 1.0), flicker=0.3))
    assert drift.words == told
    for _ in range(20):
        drift.take_second(second())
    assert drift.words == ()
    assert drift.alarms >= 1


def test_pictures_nothing_is_known_of_are_left_out(drift: PictureDrift) -> None:
    for number in range(600):
        drift.take(number * NS_PER_S // 30, Appearance())
    assert fly(drift, 20.0) is None


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
