"""Calibrated covariances: by how a track has predicted its boxes, and by its situation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from hand_made_readings import BODY, PERIOD, by_height, by_radar, followed
from hand_made_units import at
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from mmedge_ros.data_types import NS_PER_S, RADAR, Measurement
from mmedge_ros.encoding import EncodingError
from mmedge_ros.tracking.covariance_calibration import (
    CALIBRATION_FILE,
    NO_INNOVATIONS,
    CovarianceCalibration,
    InnovationHistory,
    Situation,
    crowding_along_sight,
    read_calibration,
    updated_history,
)
from mmedge_ros.tracking.track import TrackerState
from mmedge_ros.tracking.tracker import Tracker, TrackerParameters

HERE = np.zeros(3)
USUAL = Situation(age=10.0, unranged=0.0, crowding=0.0)
MEAN = np.array([10.0, 0.0, 0.0, 0.0, 0.0, 0.0])
SPREAD = np.diag([0.3, 0.05, 0.05, 0.5, 0.5, 0.2]) ** 2
MODELS = Path(__file__).parents[2] / 'models'


def shipped(bundle: str = 'fused_people') -> CovarianceCalibration:
    calibration = read_calibration(MODELS / bundle)
    assert calibration is not None
    return calibration


CALIBRATION = shipped()


def history(mean_squared: float = 1.0, range_from: str = 'height') -> InnovationHistory:
    return InnovationHistory(mean_squared, 5.0, 0, HERE, range_from)


def reported(where: Situation = USUAL, mean_squared: float = 1.0) -> np.ndarray:
    """Deviations (6,) reported of a person 10 m ahead."""
    return np.sqrt(np.diag(CALIBRATION.reported(MEAN, SPREAD, history(mean_squared), where)))


def covariance(
    state: TrackerState,
    calibration: CovarianceCalibration | None = CALIBRATION,
    **parameters: float,
) -> np.ndarray:
    """What is reported of the one track."""
    tracker = Tracker(TrackerParameters(**parameters), calibration)
    (track,) = tracker.report(state, state.stamp_ns, state.stamp_ns - NS_PER_S)
    return track.covariance


def known(count: int = 20, deviation: float = BODY) -> list[Measurement]:
    """A person 10 m ahead, ranged by the radar."""
    return [by_radar(n * PERIOD, 10.0, 10.0, height_deviation=deviation) for n in range(count)]


def test_a_track_that_is_not_where_predicted_is_reported_less_exactly() -> None:
    calm, startled = reported(mean_squared=0.5), reported(mean_squared=5.0)
    assert (startled > 1.2 * calm).all()


def test_a_range_the_radar_no_longer_gives_is_reported_less_exactly_than_the_bearing() -> None:
    ranged, lost = reported(), reported(USUAL._replace(unranged=2.0))
    assert lost[0] > 1.5 * ranged[0]
    assert (lost[1:3] < 1.1 * ranged[1:3]).all()


def test_a_new_track_is_reported_less_exactly_than_an_old_one() -> None:
    new, old = reported(USUAL._replace(age=0.1)), reported()
    assert new[0] > old[0]
    assert (new[3:] > old[3:]).all()


def test_a_track_in_line_with_another_is_reported_less_exactly() -> None:
    alone, together = reported(), reported(USUAL._replace(crowding=1.0))
    assert (together > 1.2 * alone).all()


def test_ranges_of_networks_have_factors_of_their_own() -> None:
    learned = replace(by_height(0.0, 10.0), range_from='learned')
    by_network = updated_history(NO_INNOVATIONS, learned, 3.0)
    then_by_height = updated_history(by_network, by_height(PERIOD, 10.0), 3.0)
    assert (by_network.range_from, then_by_height.range_from) == ('learned', 'height')
    of_network, of_height = (
        CALIBRATION.reported(MEAN, SPREAD, history(range_from=name), USUAL)[0, 0]
        for name in ('learned', 'height')
    )
    assert of_network > 1.5 * of_height, 'they repeat their errors for longer'
    # A bundle without fusion networks has no factors for them.
    without = shipped('flight_people')
    assert without.reported(MEAN, SPREAD, history(range_from='learned'), USUAL) is SPREAD


def test_what_neither_heights_nor_networks_have_ranged_is_left_as_it_is() -> None:
    alone = replace(by_height(0.0, 10.0), range_from='radar')
    ranged = updated_history(NO_INNOVATIONS, alone, 3.0)
    assert ranged.origin is None
    assert CALIBRATION.reported(MEAN, SPREAD, ranged, USUAL) is SPREAD


@pytest.mark.parametrize(('axis', 'velocity'), [(3, (1.5, 0.0)), (4, (0.0, 1.5))])
def test_people_who_walk_are_reported_less_exactly_in_that_direction_than_people_who_stand(
    axis: int, velocity: tuple[float, float]
) -> None:
    walking = MEAN.copy()
    walking[3:5] = velocity
    still, moving = (CALIBRATION.reported(m, SPREAD, history(), USUAL) for m in (MEAN, walking))
    assert moving[axis, axis] > 2.0 * still[axis, axis]
    other = 7 - axis
    assert moving[other, other] < 1.5 * still[other, other]


def test_a_track_much_nearer_or_farther_than_most_is_reported_less_exactly() -> None:
    near, usual, far, beyond = (
        CALIBRATION.reported(distance * MEAN / 10.0, SPREAD, history(), USUAL)[0, 0]
        for distance in (5.0, 15.0, 45.0, 1e9)
    )
    assert near == pytest.approx(far)
    assert near > 1.5 * usual
    assert beyond < 2.0 * far


def test_clusters_say_nothing_of_how_boxes_are_predicted() -> None:
    cluster = replace(by_height(0.0, 10.0), box=None, range_from='cluster')
    assert updated_history(NO_INNOVATIONS, cluster, 30.0) is NO_INNOVATIONS


def test_innovations_are_averaged_and_fade_within_seconds() -> None:
    first = updated_history(NO_INNOVATIONS, by_height(0.0, 10.0), 3.0)
    assert first.mean_squared == pytest.approx(1.0)
    soon = updated_history(first, by_height(1.0, 10.0), 9.0)
    late = updated_history(first, by_height(5000.0, 10.0), 9.0)
    assert soon.mean_squared == pytest.approx(2.0, abs=0.01)
    assert late.mean_squared == pytest.approx(3.0, abs=0.01)
    wild = updated_history(NO_INNOVATIONS, by_height(0.0, 10.0), 1e9)
    assert wild.mean_squared == pytest.approx(10.0), (
        'one reading says no more than that it is wrong'
    )


@settings(max_examples=50, deadline=None)
@given(st.floats(-3.1, 3.1), st.floats(0.0, 10.0), st.floats(0.0, 10.0), st.floats(0.0, 1.0))
def test_reported_covariances_turn_with_the_world_and_stay_covariances(
    angle: float, mean_squared: float, age: float, crowding: float
) -> None:
    of_track, where = history(mean_squared), Situation(age, np.inf, crowding)
    turn = np.kron(np.eye(2), Rotation.from_rotvec([0.0, 0.3, angle]).as_matrix())
    plain = CALIBRATION.reported(MEAN, SPREAD, of_track, where)
    turned = CALIBRATION.reported(turn @ MEAN, turn @ SPREAD @ turn.T, of_track, where)
    np.testing.assert_allclose(turned, turn @ plain @ turn.T, atol=1e-12)
    assert np.linalg.eigvalsh(turned).min() > 0.0
    np.testing.assert_allclose(turned, turned.T)


def test_a_track_at_the_sensor_itself_has_no_line_of_sight_and_is_left() -> None:
    assert CALIBRATION.reported(np.zeros(6), SPREAD, history(), USUAL) is SPREAD


# ------------------------------------------------------------------------------- neighbours


def test_crowding_is_of_tracks_in_the_same_line_of_sight_at_whatever_range() -> None:
    behind, beside = np.array([20.0, 0.0, 0.0]), np.array([10.0, 3.0, 0.0])
    opposite, person = np.array([-10.0, 0.0, 0.0]), np.array([10.0, 0.0, 0.0])
    for other, expected in ((behind, 1.0), (beside, np.exp(-2.873)), (opposite, 0.0)):
        near, _ = crowding_along_sight(np.array([person, other]), [HERE, None])
        assert near == pytest.approx(expected, abs=1e-3)
    assert crowding_along_sight(np.array([person]), [HERE]) == [0.0]
    assert crowding_along_sight(np.zeros((0,)), []) == []
    assert crowding_along_sight(np.array([HERE, person]), [HERE, HERE]) == pytest.approx(
        [0.0, 0.0]
    )


# ------------------------------------------------------------------------------- the tracker


def test_what_is_reported_changes_nothing_that_the_tracker_does() -> None:
    readings = [*known(), by_radar(20 * PERIOD, 13.0, 10.0, height_deviation=BODY)]
    state = followed(*readings)
    tracker, calibrated = Tracker(), Tracker(None, CALIBRATION)
    last = readings[-1]
    one, other = (
        t.step(state, last.stamp_ns + NS_PER_S // 20, [last]) for t in (tracker, calibrated)
    )
    np.testing.assert_array_equal(one.tracks[0].mean, other.tracks[0].mean)
    np.testing.assert_array_equal(one.tracks[0].covariance, other.tracks[0].covariance)
    assert not np.allclose(covariance(state), covariance(state, None))


def test_without_a_calibration_or_where_it_is_not_wanted_the_filter_s_is_reported() -> None:
    state = followed(*(by_height(n * PERIOD, 10.0, BODY) for n in range(20)))
    np.testing.assert_array_equal(covariance(state, None), state.tracks[0].covariance)
    np.testing.assert_array_equal(
        covariance(state, calibrated_covariance=False), state.tracks[0].covariance
    )
    assert not np.allclose(covariance(state), state.tracks[0].covariance)


def test_a_box_that_jumps_to_and_fro_is_reported_less_exactly() -> None:
    steady = followed(*(by_height(n * PERIOD, 10.0, BODY) for n in range(20)))
    jumping = followed(*(by_height(n * PERIOD, 8.0 if n % 2 else 12.0, BODY) for n in range(20)))
    filter_says = [covariance(s, None)[0, 0] for s in (steady, jumping)]
    deviations = [covariance(s)[0, 0] for s in (steady, jumping)]
    assert deviations[1] / deviations[0] > 1.5 * filter_says[1] / filter_says[0]


def test_returns_a_track_was_begun_by_may_be_another_objects_like_any_other() -> None:
    """Returns alone began it; a box came to it later, which the radar did not range again."""
    returns = [
        replace(
            by_radar(n * PERIOD, 10.0, 10.0),
            box=None,
            otherwise=None,
            range_from='cluster',
            seen_by=(RADAR,),
        )
        for n in range(10)
    ]
    state = followed(*returns, *(by_height(n * PERIOD, 10.0, BODY) for n in range(10, 14)))
    assert state.tracks[0].updated_ns[RADAR] == at(9 * PERIOD)
    plain, wide = (covariance(state, None, misassociation_share=share) for share in (0.0, 0.02))
    assert wide[0, 0] - plain[0, 0] == pytest.approx(0.02 * (BODY * 10.0) ** 2, rel=0.1)


# ---------------------------------------------------------------------------------- the file


def edited(tmp_path: Path, **tables: object) -> Path:
    content = yaml.safe_load((MODELS / 'fused_people' / CALIBRATION_FILE).read_text())
    (tmp_path / CALIBRATION_FILE).write_text(yaml.safe_dump({**content, **tables}))
    return tmp_path


def test_a_bundle_without_the_file_has_no_calibration(tmp_path: Path) -> None:
    assert read_calibration(tmp_path) is None


@pytest.mark.parametrize(
    ('tables', 'words'),
    [
        ({'sonar': {}}, "'sonar'"),
        ({'height': None}, r'height\.position_along\.usual None'),
        ({'height': {'position_along': {'usual': True}}}, 'usual True'),
        ({'height': {'position_along': {'usual': float('nan')}}}, 'usual nan'),
        ({'height': {'position_along': {'usual': 1e3}}}, 'from -10 to 10'),
    ],
)
def test_a_wrong_file_is_refused_with_the_entry(tmp_path: Path, tables: dict, words: str) -> None:
    with pytest.raises(EncodingError, match=words):
        read_calibration(edited(tmp_path, **tables))


def test_a_file_that_is_no_plain_yaml_is_refused(tmp_path: Path) -> None:
    (tmp_path / CALIBRATION_FILE).write_text('[1, 2')
    with pytest.raises(EncodingError, match='not plain YAML'):
        read_calibration(tmp_path)
