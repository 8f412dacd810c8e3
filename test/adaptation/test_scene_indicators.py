"""What is cheaply known of a scene, collected as it arrives."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from mmedge_ros.adaptation.accuracy_predictor import Indicators
from mmedge_ros.adaptation.scene_indicators import SceneIndicators
from mmedge_ros.core.data_types import CAMERA, RADAR, Appearance, Box, Track, UnitFeatures


def unit(modality: str, **known: object) -> UnitFeatures:
    return replace(UnitFeatures(modality, 0, 0, 0, 'sensor', ()), **known)  # type: ignore[arg-type]


def track(height: float, speed: float = 0.0, score: float = 0.5) -> Track:
    box = Box(10.0, 10.0, 20.0, 10.0 + height)
    zeros = np.zeros(3)
    return Track(1, 'person', score, box, zeros, zeros, np.eye(6), (CAMERA,), 0.0, (speed, 0.0))


def test_nothing_is_known_at_first() -> None:
    assert all(math.isnan(value) for value in SceneIndicators().now)
    assert math.isnan(SceneIndicators().now.complementarity)


def test_a_picture_tells_how_it_looks_and_the_newest_counts() -> None:
    scene = SceneIndicators()
    scene.encoded(unit(CAMERA, appearance=Appearance(0.1, 0.2, 0.3)))
    scene.encoded(unit(CAMERA, appearance=Appearance(0.4, 0.5, 0.6)))
    assert scene.now[1:4] == (0.4, 0.5, 0.6)
    assert math.isnan(scene.now.returns)


def test_a_scan_tells_how_much_comes_back_and_what_moves() -> None:
    returns = np.zeros((5, 5), np.float32)
    returns[:, 3] = [-2.0, -2.0, -2.1, 1.0, np.nan]
    returns[:, 4] = [10.0, 12.0, 14.0, 16.0, np.nan]
    scene = SceneIndicators()
    scene.encoded(unit(RADAR, returns=returns))
    assert (scene.now.returns, scene.now.moving) == (5.0, 1.0)
    assert scene.now.snr == pytest.approx(13.0)


def test_tracks_tell_their_sizes_and_how_fast_they_cross_the_picture() -> None:
    scene = SceneIndicators()
    scene.decided([track(20.0, 40.0, 0.4), track(60.0, 0.0, 0.8)])
    now = scene.now
    assert (now.tracks, now.track_height, now.smallest) == (2.0, 40.0, 20.0)
    assert (now.score, now.motion) == (pytest.approx(0.6), pytest.approx(1.0))


def test_embeddings_of_both_sensors_are_compared() -> None:
    scene = SceneIndicators()
    scene.encoded(unit(CAMERA, embedding=np.array([1.0, 0.0], np.float32)))
    assert math.isnan(scene.now.consistency)
    scene.encoded(unit(RADAR, embedding=np.array([2.0, 2.0], np.float32)))
    assert scene.now.consistency == pytest.approx(math.sqrt(0.5))
    assert scene.now.complementarity == pytest.approx(1.0 - math.sqrt(0.5))
    scene.encoded(unit(RADAR, embedding=np.ones(3, np.float32)))
    assert math.isnan(scene.now.consistency)


@given(
    arrays.arrays(np.float32, st.tuples(st.integers(0, 6), st.just(5))),
    arrays.arrays(np.float32, st.integers(0, 4)),
)
def test_whatever_a_unit_holds_indicators_are_numbers_or_unknown(
    returns: np.ndarray, embedding: np.ndarray
) -> None:
    scene = SceneIndicators()
    with np.errstate(all='ignore'):
        scene.encoded(unit(CAMERA, embedding=embedding))
        scene.encoded(unit(RADAR, returns=returns, embedding=embedding))
    assert isinstance(scene.now, Indicators)
    assert not math.isinf(scene.now.consistency)
    assert 0.0 <= scene.now.moving <= scene.now.returns == len(returns)
