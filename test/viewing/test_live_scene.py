"""What the live page is sent."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hand_made_decisions import NOW_NS, a_decision, a_track, a_unit
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mmedge_ros.core.data_types import Box, Configuration, ModalityConfiguration, ResultKind
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.geometry.transforms import parse_static_transform
from mmedge_ros.monitoring.system_state import SystemState
from mmedge_ros.viewing.live_scene import LiveScene

RADAR_ABOVE_BASE = 'base_link radar_link 0 0 2 0 0 0 1'
ANY_FLOAT = st.floats(width=32)


@pytest.fixture
def scene() -> LiveScene:
    return LiveScene(0.05, lambda: 7.0)


def scan(*rows: tuple[float, ...], stamp_ns: int = NOW_NS):
    return replace(a_unit(), stamp_ns=stamp_ns, returns=np.array(rows, np.float32).reshape(-1, 5))


def test_a_track_has_its_id_place_velocity_and_ellipse(scene: LiveScene) -> None:
    covariance = np.zeros((6, 6))
    covariance[:2, :2] = [[1.0, 0.9], [0.9, 1.0]]
    scene.add_decision(a_decision(a_track(covariance=covariance)))
    (track,) = scene.snapshot()['tracks']
    assert (track['id'], track['position'], track['in_picture']) == (3, [4.0, -1.0, 0.5], True)
    assert track['velocity'] == [0.5, -0.25, 0.0]
    assert track['deviation'] == pytest.approx([1.9**0.5, 0.1**0.5], abs=1e-4)
    assert math.tan(track['direction']) == pytest.approx(1.0, abs=1e-3)


def test_an_update_shows_newer_tracks_and_nothing_else_is_another(scene: LiveScene) -> None:
    scene.add_decision(replace(a_decision(a_track()), lost=('radar',)))
    before = scene.snapshot()
    moved = replace(a_track(), position=np.array([4.5, -1.0, 0.5]))
    update = replace(a_decision(moved), kind=ResultKind.UPDATE, published_ns=NOW_NS + 10**12)
    scene.add_decision(update)
    after = scene.snapshot()
    assert after['tracks'][0]['position'] == [4.5, -1.0, 0.5]
    same = ('latency', 'lost', 'silence')
    assert {key: after[key] for key in same} == {key: before[key] for key in same}


def test_returns_stand_in_the_frame_of_the_tracks_and_say_what_moves(scene: LiveScene) -> None:
    scene.rig.add_transforms([parse_static_transform(RADAR_ABOVE_BASE)])
    scene.add_unit(scan((5.0, 1.0, 0.0, 0.0, 9.0), (6.0, 0.0, 0.0, -1.5, 9.0)))
    scene.add_decision(a_decision())
    assert scene.snapshot()['returns'] == [[5.0, 1.0, 2.0, 0.0], [6.0, 0.0, 2.0, 1.0]]


def test_returns_are_shown_for_a_moment_only(scene: LiveScene) -> None:
    scene.add_unit(scan((5.0, 1.0, 0.0, 0.0, 9.0), stamp_ns=NOW_NS - 300_000_000))
    scene.add_unit(scan((6.0, 1.0, 0.0, 0.0, 9.0), stamp_ns=NOW_NS - 100_000_000))
    scene.add_unit(scan((7.0, 1.0, 0.0, 0.0, 9.0), stamp_ns=NOW_NS + 10**12))
    scene.add_decision(a_decision())
    assert [row[0] for row in scene.snapshot()['returns']] == [6.0]


def test_a_dense_cloud_is_thinned(scene: LiveScene) -> None:
    scene.add_unit(replace(a_unit(), returns=np.ones((100_000, 5), np.float32)))
    scene.add_decision(a_decision())
    assert 0 < len(scene.snapshot()['returns']) <= 400


def test_late_decisions_are_those_beyond_the_limit_in_force(scene: LiveScene) -> None:
    late = replace(a_decision(), published_ns=NOW_NS + 30_000_000)
    scene.add_decision(late)
    assert scene.snapshot()['latency']['late'] == 0
    scene.set_configuration(
        Configuration(4, 0, (ModalityConfiguration('camera', 10.0, 'small'),), 0.02, reason='load')
    )
    scene.add_decision(late)
    snapshot = scene.snapshot()
    assert snapshot['latency']['late'] == 1
    assert snapshot['configuration'] == {'id': 4, 'reason': 'load', 'latency_limit': 0.02}
    assert snapshot['modalities'] == {'camera': {'limit': 10.0, 'level': 'small'}}


def test_the_field_of_view_is_drawn_where_the_camera_is_calibrated(scene: LiveScene) -> None:
    scene.add_decision(replace(a_decision(), frame_id='base_link'))
    assert scene.snapshot()['rig']['corners'] == []
    k = np.array([[320.0, 0.0, 320.0], [0.0, 320.0, 240.0], [0.0, 0.0, 1.0]])
    scene.rig.set_camera(CameraModel(640, 480, k, np.zeros(5)))
    rig = scene.snapshot()['rig']
    assert rig['forward'] == [1.0, 0.0, 0.0]
    # The upper left corner of the picture: 45 degrees to the left of straight ahead.
    assert rig['corners'][0] == pytest.approx([4.0, 4.0, 3.0])
    scene.add_decision(a_decision())
    assert scene.snapshot()['rig'] is None


def test_what_is_not_known_of_the_computer_is_none(scene: LiveScene) -> None:
    scene.set_system(SystemState(voltage=15.2, cpu=(10.0, math.nan, 30.0)))
    system = scene.snapshot()['system']
    assert (system['voltage'], system['cpu'], system['cores']) == (15.2, 20.0, 3)
    assert (system['charge'], system['gpu'], system['throttled']) == (None, None, None)


def test_a_cleared_scene_keeps_only_where_the_sensors_sit(scene: LiveScene) -> None:
    scene.rig.add_transforms([parse_static_transform(RADAR_ABOVE_BASE)])
    scene.add_unit(scan((5.0, 1.0, 0.0, 0.0, 9.0)))
    scene.add_decision(a_decision(a_track()))
    scene.clear()
    assert scene.snapshot()['silence'] is None
    scene.add_unit(scan((5.0, 1.0, 0.0, 0.0, 9.0)))
    scene.add_decision(a_decision())
    assert scene.snapshot()['returns'] == [[5.0, 1.0, 2.0, 0.0]]


@pytest.mark.parametrize('size', [(48, 64), (480, 640), (1080, 1920), (3, 5000), (5000, 1)])
def test_pictures_of_any_size_are_annotated_at_most_640_px_wide(
    scene: LiveScene, size: tuple[int, int]
) -> None:
    picture = np.full((*size, 3), 90, np.uint8)
    assert scene.annotated(picture, NOW_NS).shape[1] <= 640
    scene.add_decision(a_decision(a_track(box=Box(10.0, 20.0, 40.0, 50.0))))
    drawn = scene.annotated(picture, NOW_NS)
    assert max(drawn.shape) <= 640
    assert max(drawn.shape) == min(640, max(size))


@given(
    state=arrays(np.float64, 6, elements=ANY_FLOAT),
    covariance=arrays(np.float64, (6, 6), elements=ANY_FLOAT),
    returns=arrays(np.float32, (3, 5), elements=ANY_FLOAT),
    figures=st.lists(ANY_FLOAT, min_size=6, max_size=6),
)
def test_whatever_the_numbers_are_the_snapshot_is_json(
    state: Any, covariance: Any, returns: Any, figures: list[float]
) -> None:
    scene = LiveScene(0.05, lambda: 7.0)
    with np.errstate(all='ignore'):
        scene.add_unit(replace(a_unit(), returns=returns))
        scene.add_decision(
            a_decision(
                a_track(position=state[:3], velocity=state[3:], covariance=covariance), a_track()
            )
        )
        scene.set_system(SystemState(*figures[:4], cpu=tuple(figures[4:])))
        snapshot = scene.snapshot()
    json.dumps(snapshot, allow_nan=False)
    assert 3 in {track['id'] for track in snapshot['tracks']}
    assert all(np.isfinite(row).all() for row in snapshot['returns'])
