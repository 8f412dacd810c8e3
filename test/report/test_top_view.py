"""What is to be seen from above: the right places at the right moments, and not too much."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hand_made_truth import decided, film, run, track, true_person

from mmedge_ros.core.data_types import UnitFeatures
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.geometry.ego_motion import EgoMotion, EgoState
from mmedge_ros.geometry.transforms import Transform
from mmedge_ros.report.top_view import top_view
from mmedge_ros.report.trajectories import trajectories


def seen(record: RunRecord) -> dict:
    view = top_view(record, trajectories(record))
    assert view is not None
    content = view.content()
    assert json.loads(json.dumps(content, allow_nan=False)) == content
    return content


def test_tracks_and_truth_are_where_they_were_in_centimetres() -> None:
    truth = film(lambda ms: [true_person(4, position=(10.0, ms / 1000, 0.0))])
    decisions = [decided(ms, track(7, position=(10.0, 0.5, 0.9))) for ms in (100, 200, 300)]
    content = seen(run(decisions, truth))
    tracked, true = content['ways']
    assert (tracked['id'], tracked['kind'], tracked['k']) == (7, 'track', 0)
    assert [row[:3] for row in tracked['p']] == [[1000, 50, 1]] * 3
    assert (true['id'], true['kind']) == (4, 'person')
    assert true['p'] == [[1000, 10, 1], [1000, 20, 1], [1000, 30, 1]]
    assert content['truth']


def test_what_is_not_seen_is_marked() -> None:
    truth = film(lambda ms: [true_person(1, visibility=0.2)])
    coasting = replace(track(), age=0.6)
    tracked, true = seen(run([decided(100, track()), decided(200, coasting)], truth))['ways']
    assert [row[2] for row in tracked['p']] == [1, 0]
    assert [row[2] for row in true['p']] == [0, 0]


def test_the_uncertainty_has_its_long_axis_where_the_covariance_has_it() -> None:
    covariance = np.diag([1.0] * 6)
    covariance[:2, :2] = [[2.5, 1.5], [1.5, 2.5]]  # 2 m along the diagonal, 1 m across
    (way,) = seen(run([decided(100, track(covariance=covariance))]))['ways']
    *_, long, short, angle = way['p'][0]
    assert (long, short) == (200, 100)
    assert angle % 180 == 45


@pytest.mark.parametrize('value', [np.nan, np.inf, -1.0, 1e300])
def test_a_covariance_that_is_none_leaves_a_track_without_uncertainty(value: float) -> None:
    (way,) = seen(run([decided(100, track(covariance=np.full((6, 6), value)))]))['ways']
    assert way['p'] == [[1000, 0, 1]]


@pytest.mark.parametrize('place', [np.nan, np.inf, 1e6])
def test_a_track_that_diverged_is_not_there(place: float) -> None:
    lost = track(2, position=(place, 0.0, 0.0))
    (way,) = seen(run([decided(100, track(1), lost)]))['ways']
    assert way['id'] == 1
    assert top_view(run([decided(100, lost)]), []) is None


def test_a_track_that_returns_after_long_is_a_way_of_its_own() -> None:
    decisions = [decided(100 * i, *([track()] if i < 3 or i > 40 else [])) for i in range(50)]
    ways = seen(run(decisions))['ways']
    assert [(way['k'], len(way['p'])) for way in ways] == [(0, 3), (41, 9)]


def test_a_short_gap_in_a_track_is_a_hole() -> None:
    decisions = [decided(100 * i, *([track()] if i != 2 else [])) for i in range(5)]
    (way,) = seen(run(decisions))['ways']
    assert [row is None for row in way['p']] == [False, False, True, False, False]


def test_the_drone_is_where_odometry_says_and_looks_where_it_turns() -> None:
    record = run([decided(100, track())])
    turned = Transform(np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]]), np.array([2.0, 3.0, 5.0]))
    record.ego = EgoMotion('odom', kept=None)
    record.ego.add(EgoState(record.decisions[0].state_ns, turned))
    assert seen(record)['own'] == [[200, 300, 90]]


def test_the_field_of_the_radar_is_where_its_returns_were() -> None:
    record = run([decided(100, track())])
    angles = np.linspace(-0.5, 0.7, 200)
    returns = np.zeros((200, 5), np.float32)
    returns[:, 0], returns[:, 1] = 20.0 * np.cos(angles), 20.0 * np.sin(angles)
    record.features = [UnitFeatures('radar', 0, 0, 0, 'radar', (), returns=returns)]
    right, left, reach = seen(record)['fields']['radar']
    assert right == pytest.approx(np.degrees(-0.5), abs=1.5)
    assert left == pytest.approx(np.degrees(0.7), abs=1.5)
    assert reach == pytest.approx(2000, abs=1)


def test_a_long_crowded_run_is_thinned() -> None:
    crowd = [track(i, position=(10.0 + i, 0.0, 0.0)) for i in range(20)]
    content = seen(run([decided(100 * i, *crowd) for i in range(4000)]))
    assert len(content['t']) <= 1500
    assert sum(len(way['p']) for way in content['ways']) <= 40_000


def test_nothing_at_all_is_no_view(empty_run: RunRecord) -> None:
    assert top_view(empty_run, []) is None
