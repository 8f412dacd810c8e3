"""What is reported of a track's errors, from how it has done."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hand_made_readings import BODY, PERIOD, by_height, by_radar, followed
from hand_made_units import at
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from mmedge_ros.data_types import NS_PER_S, RADAR, Measurement
from mmedge_ros.tracking.claims import (
    UNTRIED,
    Circumstances,
    Conduct,
    after_reading,
    company_of,
    weighed_claim,
)
from mmedge_ros.tracking.track import TrackerState
from mmedge_ros.tracking.tracker import Tracker, TrackerParameters

HERE = np.zeros(3)
USUAL = Circumstances(age=10.0, unranged=0.0, company=0.0)
MEAN = np.array([10.0, 0.0, 0.0, 0.0, 0.0, 0.0])
SPREAD = np.diag([0.3, 0.05, 0.05, 0.5, 0.5, 0.2]) ** 2


def claim(where: Circumstances = USUAL, surprise: float = 1.0, trust: float = 1.0) -> np.ndarray:
    """Deviations (6,) claimed of somebody 10 m ahead."""
    conduct = Conduct(surprise, 5.0, 0, HERE)
    return np.sqrt(np.diag(weighed_claim(MEAN, SPREAD, conduct, where, trust)))


def covariance(state: TrackerState, after: float = 0.0, **parameters: float) -> np.ndarray:
    """What is reported of the one track some seconds later."""
    now_ns = state.stamp_ns + round(after * NS_PER_S)
    tracker = Tracker(TrackerParameters(**parameters))
    (track,) = tracker.report(state, now_ns, now_ns - NS_PER_S)
    return track.covariance


def known(count: int = 20, deviation: float = BODY) -> list[Measurement]:
    """Somebody 10 m ahead, ranged by the radar."""
    return [by_radar(n * PERIOD, 10.0, 10.0, height_deviation=deviation) for n in range(count)]


def test_who_is_not_where_foreseen_is_claimed_less_exactly() -> None:
    calm, startled = claim(surprise=0.5), claim(surprise=5.0)
    assert (startled > 1.2 * calm).all()


def test_a_range_the_radar_no_longer_gives_is_claimed_less_exactly_than_the_bearing() -> None:
    ranged, lost = claim(), claim(USUAL._replace(unranged=2.0))
    assert lost[0] > 1.5 * ranged[0]
    assert (lost[1:3] < 1.1 * ranged[1:3]).all()


def test_a_new_track_is_claimed_less_exactly_than_an_old_one() -> None:
    new, old = claim(USUAL._replace(age=0.1)), claim()
    assert new[0] > old[0]
    assert (new[3:] > old[3:]).all()


def test_who_is_in_line_with_somebody_else_is_claimed_less_exactly() -> None:
    alone, together = claim(), claim(USUAL._replace(company=1.0))
    assert (together > 1.2 * alone).all()


def test_without_trust_the_filter_is_believed_and_half_of_it_goes_half_the_way() -> None:
    none, half, whole = (claim(surprise=4.0, trust=trust) for trust in (0.0, 0.5, 1.0))
    np.testing.assert_array_equal(none, np.sqrt(np.diag(SPREAD)))
    np.testing.assert_allclose(half, np.sqrt(none * whole))


def test_ranges_of_networks_are_weighed_by_a_comparison_of_their_own() -> None:
    learned = replace(by_height(0.0, 10.0), range_from='learned')
    conduct = after_reading(UNTRIED, learned, 3.0)
    assert conduct.learned
    after_height = after_reading(conduct, by_height(PERIOD, 10.0), 3.0)
    assert not after_height.learned
    weighed = [
        weighed_claim(MEAN, SPREAD, c._replace(origin=HERE), USUAL, 1.0)
        for c in (conduct, conduct._replace(learned=False))
    ]
    assert weighed[0][0, 0] > 1.5 * weighed[1][0, 0], 'they repeat their errors for longer'


def test_what_neither_heights_nor_networks_have_ranged_is_left_as_it_is() -> None:
    alone = replace(by_height(0.0, 10.0), range_from='radar')
    conduct = after_reading(UNTRIED, alone, 3.0)
    assert conduct.origin is None
    assert weighed_claim(MEAN, SPREAD, conduct, USUAL, 1.0) is SPREAD


@pytest.mark.parametrize(('axis', 'velocity'), [(3, (1.5, 0.0)), (4, (0.0, 1.5))])
def test_who_walks_is_claimed_less_exactly_in_that_direction_than_who_stands(
    axis: int, velocity: tuple[float, float]
) -> None:
    walking = MEAN.copy()
    walking[3:5] = velocity
    conduct = Conduct(1.0, 5.0, 0, HERE)
    still, moving = (weighed_claim(m, SPREAD, conduct, USUAL, 1.0) for m in (MEAN, walking))
    assert moving[axis, axis] > 2.0 * still[axis, axis]
    other = 7 - axis
    assert moving[other, other] < 1.5 * still[other, other]


def test_who_is_much_nearer_or_further_than_most_is_claimed_less_exactly() -> None:
    conduct = Conduct(1.0, 5.0, 0, HERE)
    near, usual, far, beyond = (
        weighed_claim(distance * MEAN / 10.0, SPREAD, conduct, USUAL, 1.0)[0, 0]
        for distance in (5.0, 15.0, 45.0, 1e9)
    )
    assert near == pytest.approx(far)
    assert near > 1.5 * usual
    assert beyond < 2.0 * far


def test_clusters_tell_nothing_of_how_boxes_are_foreseen() -> None:
    cluster = replace(by_height(0.0, 10.0), box=None, range_from='cluster')
    assert after_reading(UNTRIED, cluster, 30.0) is UNTRIED


def test_surprises_are_averaged_and_fade_within_seconds() -> None:
    conduct = after_reading(UNTRIED, by_height(0.0, 10.0), 3.0)
    assert conduct.surprise == pytest.approx(1.0)
    soon = after_reading(conduct, by_height(1.0, 10.0), 9.0)
    late = after_reading(conduct, by_height(5000.0, 10.0), 9.0)
    assert soon.surprise == pytest.approx(2.0, abs=0.01)
    assert late.surprise == pytest.approx(3.0, abs=0.01)
    wild = after_reading(UNTRIED, by_height(0.0, 10.0), 1e9)
    assert wild.surprise == pytest.approx(10.0), 'one reading says no more than that it is wrong'


@settings(max_examples=50, deadline=None)
@given(st.floats(-3.1, 3.1), st.floats(0.0, 10.0), st.floats(0.0, 10.0), st.floats(0.0, 1.0))
def test_claims_turn_with_the_world_and_stay_covariances(
    angle: float, surprise: float, age: float, company: float
) -> None:
    conduct, where = Conduct(surprise, 3.0, 0, HERE), Circumstances(age, np.inf, company)
    turn = np.kron(np.eye(2), Rotation.from_rotvec([0.0, 0.3, angle]).as_matrix())
    plain = weighed_claim(MEAN, SPREAD, conduct, where, 1.0)
    turned = weighed_claim(turn @ MEAN, turn @ SPREAD @ turn.T, conduct, where, 1.0)
    np.testing.assert_allclose(turned, turn @ plain @ turn.T, atol=1e-12)
    assert np.linalg.eigvalsh(turned).min() > 0.0
    np.testing.assert_allclose(turned, turned.T)


def test_a_track_at_the_sensor_itself_has_no_line_of_sight_and_is_left() -> None:
    conduct = Conduct(1.0, 3.0, 0, HERE)
    assert weighed_claim(np.zeros(6), SPREAD, conduct, USUAL, 1.0) is SPREAD


# ------------------------------------------------------------------------------- neighbours


def test_company_is_who_is_in_the_same_line_of_sight_at_whatever_range() -> None:
    behind, beside = np.array([20.0, 0.0, 0.0]), np.array([10.0, 3.0, 0.0])
    opposite, person = np.array([-10.0, 0.0, 0.0]), np.array([10.0, 0.0, 0.0])
    for other, expected in ((behind, 1.0), (beside, np.exp(-2.873)), (opposite, 0.0)):
        near, _ = company_of(np.array([person, other]), [HERE, None])
        assert near == pytest.approx(expected, abs=1e-3)
    assert company_of(np.array([person]), [HERE]) == [0.0]
    assert company_of(np.zeros((0,)), []) == []
    assert company_of(np.array([HERE, person]), [HERE, HERE]) == pytest.approx([0.0, 0.0])


# ------------------------------------------------------------------------------- the tracker


def test_what_is_reported_changes_nothing_that_the_tracker_does() -> None:
    readings = [*known(), by_radar(20 * PERIOD, 13.0, 10.0, height_deviation=BODY)]
    one, other = (followed(*readings, claim_correction=share) for share in (0.0, 1.0))
    np.testing.assert_array_equal(one.tracks[0].mean, other.tracks[0].mean)
    np.testing.assert_array_equal(one.tracks[0].covariance, other.tracks[0].covariance)
    assert not np.allclose(
        covariance(other, claim_correction=1.0), covariance(other, claim_correction=0.0)
    )


def test_a_box_that_jumps_to_and_fro_is_reported_less_exactly() -> None:
    steady = followed(*(by_height(n * PERIOD, 10.0, BODY) for n in range(20)))
    jumping = followed(*(by_height(n * PERIOD, 8.0 if n % 2 else 12.0, BODY) for n in range(20)))
    filter_says = [covariance(s, claim_correction=0.0)[0, 0] for s in (steady, jumping)]
    reported = [covariance(s)[0, 0] for s in (steady, jumping)]
    assert reported[1] / reported[0] > 1.5 * filter_says[1] / filter_says[0]


def test_returns_a_track_was_begun_by_may_be_somebody_elses_like_any_other() -> None:
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
    plain, wide = (
        covariance(state, stranger_share=share, claim_correction=0.0) for share in (0.0, 0.02)
    )
    assert wide[0, 0] - plain[0, 0] == pytest.approx(0.02 * (BODY * 10.0) ** 2, rel=0.1)
