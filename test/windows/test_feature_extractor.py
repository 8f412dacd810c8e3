"""What gate features say of a moment."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hand_made_states import boxed, state, track
from hand_made_units import at, features, person, returns, unit
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.core.data_types import CAMERA, RADAR, Measurement
from mmedge_ros.geometry.box_overlap import overlap
from mmedge_ros.tracking.track import TrackerState
from mmedge_ros.tracking.tracker import Tracker
from mmedge_ros.windows.feature_extractor import GateFeatureExtractor
from mmedge_ros.windows.gate_features import FIELDS, GateFeatures, OpenWindow

TRACKER = Tracker()


def measured(stamp_ns: int, *people: Any) -> list[Measurement]:
    """Measurements of people (x, y px), each at a place of its own."""
    return [
        Measurement(
            stamp_ns,
            'person',
            score,
            person(x, y).box,
            np.array([8.0, (320.0 - x) / 60.0, 0.0]),
            0.04 * np.eye(3),
            math.nan,
            0.1,
            np.zeros(3),
            (CAMERA,),
            'height',
        )
        for x, y, score in people
    ]


class Flight:
    """People seen by a camera at 30 Hz and a radar at 20 Hz."""

    def __init__(self) -> None:
        self.extractor = GateFeatureExtractor()
        self.state = TrackerState()
        self.sequence = 0

    def picture(self, now: float, *people: Any, **content: Any) -> None:
        self.sequence += 1
        stamp_ns = unit(now).stamp_ns
        self.state = TRACKER.step(self.state, stamp_ns, measured(stamp_ns, *people), True)
        result = tuple(person(x, y, score=score) for x, y, score in people)
        of = unit(now, sequence=self.sequence)
        made = features(of, detections=result, image_size=(640, 480), **content)
        self.extractor.add(made, self.state)

    def scan(self, now: float, count: int = 3, **content: Any) -> None:
        self.sequence += 1
        of = unit(now, RADAR, self.sequence, delay=2.0)
        result = returns(*[(5.0, 0.0, 0.0, 1.0)] * count)
        self.extractor.add(features(of, returns=result, **content), self.state)

    def seen(self, now: float, end: float = 500.0, **window: Any) -> GateFeatures:
        default = OpenWindow(at(end), at(now), CAMERA, 8, 15, 'medium')
        return self.extractor.features(default._replace(**window), self.state)


def watched(*people: Any, until: float = 300.0, speed: float = 0.0) -> Flight:
    """People seen from the beginning on, moving to the right (px/s)."""
    flight = Flight()
    for number in range(int(until / 33.4)):
        now = 10.0 + 33.4 * number
        moved = [(x + speed * now / 1000.0, y, score) for x, y, score in people]
        flight.picture(now, *moved)
        flight.scan(now + 5.0)
    return flight


TWO = ((150.0, 240.0, 0.9), (450.0, 240.0, 0.7))


def test_the_window_and_the_configuration_are_among_the_features() -> None:
    values = watched(*TWO).seen(290.0, sensed=9, level='large')
    assert values.lead == pytest.approx(0.21)
    assert values.slow_fraction == pytest.approx(9 / 15)
    assert values.left_out == pytest.approx(0.21 * 30)
    assert (values.slow_rate, values.slow_level, values.slow_is_camera) == (30.0, 2.0, 1.0)
    assert 0.0 < values.slow_age < 0.06
    other = watched(*TWO).seen(290.0, slow=RADAR)
    assert other.slow_is_camera == 0.0
    assert other.slow_age == pytest.approx(values.fast_age)


def test_people_and_their_scores_are_among_the_features() -> None:
    values = watched(*TWO, until=600.0).seen(600.0, end=700.0)
    assert (values.people, values.unsettled, values.missing) == (2.0, 0.0, 0.0)
    assert values.lowest_score < values.mean_score < values.highest_score
    assert values.hindsight < 0.05


def test_a_new_person_unsettles_the_scene() -> None:
    flight = watched(*TWO)
    flight.picture(320.0, *TWO, (300.0, 240.0, 0.8))
    values = flight.seen(325.0)
    assert values.unsettled == 1.0
    assert values.unexplained == 0.0  # a track has begun
    for now in (353.0, 387.0):
        flight.picture(now, *TWO, (300.0, 240.0, 0.8))
    shown = flight.seen(390.0)
    assert (shown.people, shown.unsettled) == (3.0, 0.0)
    assert shown.changes == 1.0
    # Before the third picture one would have decided for two.
    assert shown.hindsight == 1.0


def test_a_track_without_a_detection_is_missing_and_then_doubted() -> None:
    flight = watched(*TWO)
    flight.picture(320.0, TWO[0])
    values = flight.seen(325.0)
    assert (values.missing, values.doubted) == (1.0, 1.0)
    assert values.camera_unseen > 0.03
    assert values.flicker > 0.0


@given(
    st.lists(
        st.tuples(
            st.one_of(st.floats(120, 180), st.floats(420, 480), st.floats(100, 500)),
            st.floats(200, 280),
            st.sampled_from([0.2, 0.3, 0.5, 0.9]),
        ),
        max_size=6,
    )
)
def test_a_picture_is_compared_with_every_track_it_could_be_of(result: list) -> None:
    flight = watched(*TWO)
    seen = tuple(person(x, y, score=score) for x, y, score in result)
    flight.extractor.add(features(unit(320.0, sequence=999), detections=seen), flight.state)
    values = flight.seen(325.0)
    boxes = [track.box.box() for track in flight.state.tracks if track.box is not None]
    fits = np.array([[overlap(d.box, box) for box in boxes] for d in seen]).reshape(-1, 2)
    strong = np.array([d.score >= 0.4 for d in seen], bool)
    best = fits.max(axis=1)[strong]
    assert values.unexplained == (best < 0.5).sum()
    assert values.worst_fit == max([1.0 - fit for fit in best if fit >= 0.5], default=0.0)
    assert values.missing == (fits.max(axis=0, initial=0.0) < 0.5).sum()
    assert values.borderline == sum(abs(d.score - 0.4) < 0.15 for d in seen)


@pytest.mark.parametrize('order', [1, -1])
def test_the_extremes_of_shown_tracks_do_not_depend_on_their_order(order: int) -> None:
    calm = track(
        1,
        boxed(100.0, height=200.0),
        born_ns=at(-900.0),
        updated_ns={CAMERA: at(180.0)},
        score=0.8,
        covariance=0.04 * np.eye(6),
    )
    restless = track(
        2,
        boxed(500.0, rates=(60.0, 80.0, 0.0, 110.0)),
        born_ns=at(-500.0),
        updated_ns={CAMERA: at(100.0)},
        score=0.5,
        covariance=np.diag([0.09, 0.25, 9.0, 9.0, 9.0, 9.0]),
    )
    flight = Flight()
    for now, second in ((100.0, track(2, boxed(500.0))), (200.0, restless)):
        flight.state = state(at(now), *(calm, second)[::order])
        flight.scan(now)
    values = flight.seen(200.0, end=300.0)
    assert values.youngest == pytest.approx(0.7)
    assert (values.lowest_score, values.highest_score) == (0.5, 0.8)
    assert values.mean_score == pytest.approx(0.65)
    assert values.smallest_height == pytest.approx(math.log(110.0))
    # In a tenth of a second, of boxes that are 40 px wide and 110 px high.
    assert values.worst_motion == values.worst_swerve == pytest.approx(100.0 * 0.1 / 40.0)
    assert values.worst_growth == pytest.approx(0.1)
    assert values.worst_drift < values.sum_drift < 3.0 * values.worst_drift
    assert values.position_deviation == 0.5
    assert values.camera_unseen == pytest.approx(0.1)


def test_motion_and_drift_grow_with_the_time_that_is_left() -> None:
    walking = watched(*TWO, speed=200.0)
    near, far = walking.seen(300.0, end=350.0), walking.seen(300.0, end=500.0)
    assert far.worst_motion > near.worst_motion > 0.0
    assert far.worst_drift > near.worst_drift > 0.0
    assert far.worst_motion > watched(*TWO).seen(300.0).worst_motion


def test_boxes_that_will_cross_or_leave_are_counted() -> None:
    assert watched(*TWO).seen(300.0).crossing == 0.0
    beside = watched((200.0, 240.0, 0.9), (230.0, 240.0, 0.9))
    assert beside.seen(300.0).crossing > 0.1
    leaving = watched((590.0, 240.0, 0.9), speed=80.0)
    assert leaving.seen(300.0).at_border == 1.0
    assert watched(*TWO).seen(300.0).at_border == 0.0


def test_embeddings_are_compared_where_there_are_any() -> None:
    one, other = np.zeros(32, np.float32), np.zeros(32, np.float32)
    one[0] = other[1] = 1.0
    flight = Flight()
    flight.picture(20.0, *TWO, embedding=one)
    flight.scan(25.0, embedding=one)
    flight.picture(53.0, *TWO, embedding=other)
    values = flight.seen(60.0)
    assert (values.has_embeddings, values.consistency) == (1.0, 0.0)
    assert (values.slow_change, values.fast_change) == (1.0, 0.0)
    assert watched(*TWO).seen(300.0).has_embeddings == 0.0


def test_units_of_another_window_say_nothing() -> None:
    flight = watched(*TWO)
    before = flight.seen(300.0, end=300.0)
    # Received after the end of the window, and not taken in by the tracker yet.
    late = features(unit(320.0, sequence=999), embedding=np.ones(32, np.float32))
    flight.extractor.add(late, flight.state)
    after = flight.seen(300.0, end=300.0)
    changed = {n for n in FIELDS if getattr(before, n) != getattr(after, n)}
    # What the newest pictures showed is the only thing that is not of a window.
    pictures = {'unexplained', 'missing', 'worst_fit', 'borderline', 'lasting_fit'}
    assert changed <= pictures | {'usual_hindsight', 'usual_error'}


@given(
    st.lists(
        st.tuples(
            st.booleans(),
            st.integers(0, 2000),
            st.lists(
                st.tuples(st.floats(-50, 700), st.floats(-50, 500), st.floats(0, 1)), max_size=4
            ),
        ),
        max_size=20,
    ),
    st.integers(0, 2500),
)
def test_no_stream_makes_features_that_are_not_finite(rows: list, now: int) -> None:
    flight = Flight()
    for is_scan, when, people in rows:
        if is_scan:
            flight.scan(float(when), len(people))
        else:
            flight.sequence += 1
            result = tuple(person(x, y, score=score) for x, y, score in people)
            made = features(unit(float(when), sequence=flight.sequence), detections=result)
            flight.extractor.add(made, flight.state)
    values = flight.seen(float(now), end=now + 100.0)
    assert np.isfinite(values.vector()).all()
