"""What gating and selection go by: numbers about what is ready, whatever that is."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hand_made_schedules import end_of
from hand_made_units import features, person, returns, unit

from mmedge_lab.policies.policy_features import (
    PolicyFeatures,
    policy_features,
)
from mmedge_lab.policies.steering import Facts
from mmedge_ros.core.data_types import CAMERA, RADAR, Box, Detection, UnitFeatures

LEVELS = ('small', 'large')


def picture(ms: float, *people: Detection, level: str = 'large') -> UnitFeatures:
    return features(unit(ms), detections=people, image_size=(640, 480), level=level)


def scan(ms: float, *rows: tuple[float, ...]) -> UnitFeatures:
    return features(unit(ms, RADAR), returns=returns(*rows))


def asked(*units: UnitFeatures) -> PolicyFeatures:
    known = {m: [u for u in units if u.modality == m] for m in (CAMERA, RADAR)}
    numbers = policy_features(Facts(end_of(5), known), LEVELS)
    assert np.isfinite(numbers).all()
    return PolicyFeatures(*numbers)


def test_pictures_are_put_into_numbers() -> None:
    result = asked(
        picture(300.0, person(100.0, 240.0)),
        picture(400.0, person(130.0, 240.0), person(400.0, 240.0, height=60.0, score=0.45)),
    )
    # Measured 5 ms before it was available.
    assert result.picture_age == pytest.approx(0.105)
    assert result.level == 1.0
    assert (result.strong, result.borderline) == (2.0, 1.0)
    assert result.tallest == pytest.approx(math.log(150.0))
    assert result.smallest == pytest.approx(math.log(60.0))
    assert (result.usual_strong, result.flicker) == (1.5, 0.5)
    # Half a width in a tenth of a second; somebody new has no partner.
    assert result.motion == pytest.approx(5.0)
    assert result.drift == pytest.approx(5.0 * 0.105)
    assert result.unmatched == 1.0


def test_scans_are_put_into_numbers() -> None:
    result = asked(
        scan(300.0, (5.0, 0.0, 0.0, 0.0)),
        picture(350.0),
        scan(400.0, (5.0, 0.0, 0.0, 0.0), (3.0, 0.0, 0.0, 0.1), (8.0, 0.0, 0.0, -2.0)),
    )
    assert result.returns_change == result.returns_news == pytest.approx(math.log(2.0))
    assert result.moving == pytest.approx(math.log(2.0))


def test_what_cannot_be_meant_stays_finite() -> None:
    nan = float('nan')
    broken = Detection(Box(nan, 0.0, 10.0, 10.0), 0.9, 'person')
    flat = Detection(Box(5.0, 5.0, 5.0, 9.0), 0.9, 'person')
    result = asked(picture(400.0, broken, flat), scan(400.0, (nan, nan, nan, nan)))
    assert result.strong == 0.0
