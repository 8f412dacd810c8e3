"""The noise scale of a track: learned from innovations, on top of that of the bundle."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hand_made_readings import BODY, PERIOD, by_height, by_radar, followed
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.encoding import EncodingError
from mmedge_ros.tracking.noise_scale import (
    NOISE_FILE,
    UNLEARNED,
    USUAL_SCALE,
    NoiseScale,
    read_noise_scale,
    updated_scale,
)
from mmedge_ros.tracking.track import TrackerState
from mmedge_ros.tracking.tracker import Tracker

MODELS = Path(__file__).parents[2] / 'models'


def covariance(state: TrackerState, scale: float = 2.0) -> np.ndarray:
    """What is reported of the one track."""
    (track,) = Tracker(noise_scale=scale).report(state, state.stamp_ns, state.stamp_ns - NS_PER_S)
    return track.covariance


def ranged(*places: float) -> TrackerState:
    """A person ahead, ranged by the radar at these distances (m) one after another."""
    return followed(
        *(by_radar(n * PERIOD, x, x, height_deviation=BODY) for n, x in enumerate(places))
    )


def test_a_track_that_is_not_where_predicted_is_reported_less_exactly() -> None:
    calm, startled = ranged(*[10.0] * 20), ranged(*[10.0] * 16, *[9.3, 10.7] * 2)
    assert (np.diag(covariance(startled)) > 2.0 * np.diag(covariance(calm))).all()


def test_before_anything_is_learned_the_scale_is_that_of_the_bundle() -> None:
    assert UNLEARNED.factor(3.0) == 3.0
    assert NoiseScale(1.0, 100.0).factor(3.0) == pytest.approx(3.0)


def test_the_more_innovations_there_were_the_less_the_bundle_counts() -> None:
    few, many = (NoiseScale(4.0, weight).factor(1.0) for weight in (1.0, 50.0))
    assert 1.0 < few < 2.0
    assert 3.5 < many < 4.0


def test_clusters_say_nothing_of_how_boxes_are_predicted() -> None:
    cluster = replace(by_height(0.0, 10.0), box=None, range_from='cluster')
    assert updated_scale(UNLEARNED, cluster, 30.0) is UNLEARNED


def test_innovations_fade_within_seconds() -> None:
    first = updated_scale(UNLEARNED, by_height(0.0, 10.0), 3.0)
    assert first.mean_squared == pytest.approx(1.0)
    soon = updated_scale(first, by_height(1.0, 10.0), 9.0)
    late = updated_scale(first, by_height(5000.0, 10.0), 9.0)
    assert soon.mean_squared == pytest.approx(2.0, abs=0.01)
    assert late.mean_squared == pytest.approx(3.0, abs=0.01)


@given(st.lists(st.floats(0.0, 1e12), max_size=20), st.floats(0.01, 100.0))
def test_whatever_the_innovations_variances_stay_above_zero_and_bounded(
    distances: list[float], usual: float
) -> None:
    scale = UNLEARNED
    for n, distance in enumerate(distances):
        scale = updated_scale(scale, by_height(n * PERIOD, 10.0), distance)
    assert 0.0 < scale.factor(usual) <= 10.0 * usual


def test_the_shipped_bundles_have_a_scale_and_others_the_usual_one(tmp_path: Path) -> None:
    for name in ('flight_people', 'fused_people'):
        assert (MODELS / name / NOISE_FILE).is_file()
        assert 1.0 < read_noise_scale(MODELS / name) < 5.0
    assert read_noise_scale(tmp_path) == USUAL_SCALE


@pytest.mark.parametrize(
    'text', ['', 'scale:', 'scale: .nan', 'scale: 0', 'scale: true', 'other: 2', '[1]', ':']
)
def test_a_scale_that_is_none_is_an_error_that_names_the_file(tmp_path: Path, text: str) -> None:
    (tmp_path / NOISE_FILE).write_text(text)
    with pytest.raises(EncodingError, match=NOISE_FILE):
        read_noise_scale(tmp_path)
