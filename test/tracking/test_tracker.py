"""Life cycle, identity and consistency of tracks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hand_made_units import at
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from mmedge_ros.core.data_types import CAMERA, NS_PER_S, RADAR, Box, Cue, Measurement, Track
from mmedge_ros.geometry.camera_turn import CameraTurn, CameraView
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.geometry.rotations import rotation_by
from mmedge_ros.geometry.sensor_poses import OPTICAL_TO_BODY
from mmedge_ros.geometry.transforms import Transform
from mmedge_ros.tracking.track import TrackerState
from mmedge_ros.tracking.tracker import Tracker, TrackerParameters

FOCAL, WIDTH, HEIGHT = 450.0, 640, 480
SIZE = (WIDTH, HEIGHT)
PERSON = 1.7
PERIOD = 50.0
NAN = float('nan')


def box_of(x: float, y: float) -> Box:
    """Box of a person before a level camera at the origin: ``x`` m ahead, ``y`` m to the left."""
    u, half = WIDTH / 2 - FOCAL * y / x, 0.22 * FOCAL / x
    v, half_height = HEIGHT / 2, FOCAL * PERSON / x / 2
    return Box(u - half, v - half_height, u + half, v + half_height)


def spread(x: float, y: float, along: float, across: float) -> np.ndarray:
    """Covariance with one deviation along the line of sight and one across it."""
    ray = np.array([x, y, 0.0]) / np.hypot(x, y)
    return across**2 * np.eye(3) + (along**2 - across**2) * np.outer(ray, ray)


def seen(
    ms: float, x: float, y: float, score: float = 0.9, along: float = 0.3, velocity: float = NAN
) -> Measurement:
    """A person in the picture; with a radial velocity the radar saw it too."""
    by = (CAMERA,) if np.isnan(velocity) else (CAMERA, RADAR)
    place, covariance = np.array([x, y, 0.0]), spread(x, y, along, 0.05)
    box, zero = box_of(x, y), np.zeros(3)
    return Measurement(
        at(ms), 'person', score, box, place, covariance, velocity, 0.1, zero, by, 'radar'
    )


def cluster(ms: float, x: float, y: float, velocity: float = 0.5) -> Measurement:
    """Returns of something that moves, with no box around them."""
    place, covariance = np.array([x, y, 0.0]), spread(x, y, 0.25, 0.08 * np.hypot(x, y))
    return Measurement(
        at(ms),
        'moving',
        0.3,
        None,
        place,
        covariance,
        velocity,
        0.1,
        np.zeros(3),
        (RADAR,),
        'cluster',
    )


class Watch:
    """A tracker and its state; steps at 20 Hz by default."""

    def __init__(self, **parameters: float) -> None:
        self.tracker = Tracker(TrackerParameters(**parameters))
        self.state = TrackerState()
        self.ms = 0.0

    def step(self, *measurements: Measurement, ms: float | None = None) -> tuple[Track, ...]:
        self.ms = self.ms if ms is None else ms
        self.state = self.tracker.step(self.state, at(self.ms), measurements)
        return self.report()

    def report(self, ms: float | None = None) -> tuple[Track, ...]:
        now = self.ms if ms is None else ms
        return self.tracker.report(self.state, at(now), at(now - 500), SIZE)

    def picture(self, *measurements: Measurement) -> Track | None:
        """Take a picture with these detections; return the one track there is, if any."""
        self.state = self.tracker.step(self.state, at(self.ms), measurements, True)
        result = self.report()
        self.ms += PERIOD
        return result[0] if result else None

    def follow(
        self, steps: int, people: Callable[[float], Sequence[Measurement]]
    ) -> list[tuple[Track, ...]]:
        """Take ``steps`` steps; ``people(ms)`` is what is measured then."""
        result = []
        for _ in range(steps):
            result.append(self.step(*people(self.ms)))
            self.ms += PERIOD
        return result


def ids(tracks: Sequence[Track]) -> list[int]:
    return [track.id for track in tracks]


# ------------------------------------------------------------------------------ life cycle


def test_a_person_is_shown_from_the_second_sure_detection_on() -> None:
    watch = Watch()
    result = watch.follow(4, lambda ms: [seen(ms, 5.0, 0.0)])
    assert [len(tracks) for tracks in result] == [0, 1, 1, 1]


def test_poor_detections_have_to_come_more_often_and_poorer_ones_are_never_believed() -> None:
    first = []
    for score in (0.9, 0.58, 0.49):
        watch = Watch(high_score=0.2)
        result = watch.follow(40, lambda ms, score=score: [seen(ms, 5.0, 0.0, score)])
        first.append([bool(tracks) for tracks in result].index(True))
    assert first == sorted(set(first))
    poor = Watch(high_score=0.2).follow(40, lambda ms: [seen(ms, 5.0, 0.0, 0.4)])
    assert not any(poor)


def test_who_is_in_view_and_not_seen_is_reported_no_more_but_found_again() -> None:
    watch = Watch()
    (known,) = watch.follow(10, lambda ms: [seen(ms, 5.0, 0.0)])[-1]
    result = [watch.picture() for _ in range(20)]
    assert result[2] is not None
    assert result[-1] is None
    (again,) = watch.step(seen(watch.ms, 5.0, 0.0))
    assert again.id == known.id


def test_who_went_behind_something_and_comes_out_looking_taller_keeps_the_id() -> None:
    def upper(ms: float) -> Measurement:
        whole = box_of(5.0, 0.0)
        part = whole._replace(y1=whole.y0 + 0.55 * whole.height)
        return replace(seen(ms, 5.0, 0.0), box=part)

    watch = Watch()
    (known,) = watch.follow(10, lambda ms: [upper(ms)])[-1]
    for _ in range(8):
        watch.picture()
    tracks = [watch.picture(seen(watch.ms, 5.0, 0.0)) for _ in range(4)]
    assert tracks[-1] is not None
    assert tracks[-1].id == known.id
    assert len(watch.state.tracks) == 1


def test_a_camera_that_turns_fast_loses_nobody() -> None:
    def turned(degrees: float) -> Transform:
        return Transform(
            rotation_by(np.radians([0.0, 0.0, degrees])) @ OPTICAL_TO_BODY, np.zeros(3)
        )

    camera = CameraModel(
        WIDTH,
        HEIGHT,
        np.array([[FOCAL, 0.0, WIDTH / 2], [0.0, FOCAL, HEIGHT / 2], [0.0, 0.0, 1.0]]),
        np.zeros(0),
        'none',
    )
    people = np.array([[6.0, 0.0, 0.0], [6.3, 1.2, 0.0]])
    tracker, state, shown = Tracker(), TrackerState(), []
    # It looks to and fro; within a quarter of a second one person is where the other was.
    for n in range(40):
        pose = turned(10.0 * np.sin(2.0 * np.pi * n / 10))
        measurements = []
        for place in people:
            x, y, _ = pose.rotation.T @ place @ OPTICAL_TO_BODY.T
            level = seen(PERIOD * n, *place[:2], along=1.0)
            measurements.append(replace(level, box=box_of(x, y)))
        view, now = CameraView(camera, pose.rotation), at(PERIOD * n)
        state = tracker.step(state, now, measurements, True, view)
        boxes = {t.id: t.box for t in tracker.report(state, now, now - 1)}
        shown.append([i for i, box in boxes.items() if box is not None])
    assert shown[5:] == [[1, 2]] * 35


def test_a_box_is_reported_where_a_turning_camera_sees_it_and_moves_on_with_it() -> None:
    k = np.array([[FOCAL, 0, WIDTH / 2], [0, FOCAL, HEIGHT / 2], [0, 0, 1]])
    camera = CameraModel(WIDTH, HEIGHT, k, np.zeros(0), 'plumb_bob')

    def view(left: float) -> CameraView:
        return CameraView(camera, rotation_by(np.array([0.0, 0.0, left])) @ OPTICAL_TO_BODY)

    tracker, state = Tracker(), TrackerState()
    for n in range(10):
        state = tracker.step(state, at(PERIOD * n), [seen(PERIOD * n, 5.0, 0.0)], True, view(0.0))
    now = state.stamp_ns
    still = tracker.report(state, now, now - 1)[0]
    turn = CameraTurn(view(-0.04), view(0.02), 0.3)
    turning = tracker.report(state, now, now - 1, SIZE, turn)[0]
    assert still.box is not None
    assert turning.box is not None
    assert turning.box.x0 - still.box.x0 == pytest.approx(0.02 * FOCAL, rel=0.02)
    assert still.box_velocity == pytest.approx((0.0, 0.0), abs=1.0)
    assert turning.box_velocity == pytest.approx((0.06 * FOCAL / 0.3, 0.0), abs=2.0)


def test_a_person_can_be_shown_at_once() -> None:
    assert len(Watch(confirm_hits=1).step(seen(0, 5.0, 0.0))) == 1


def test_a_box_goes_on_through_two_pictures_that_do_not_show_it() -> None:
    watch = Watch()
    watch.follow(10, lambda ms: [seen(ms, 5.0, 0.0)])
    boxes = [watch.picture().box is not None for _ in range(4)]
    assert boxes == [True, True, False, False]


@pytest.mark.parametrize(('score', 'people'), [(0.9, 1), (0.54, 2)])
def test_who_moves_far_in_the_picture_keeps_the_track_where_the_box_is_sure(
    score: float, people: int
) -> None:
    watch = Watch()
    watch.follow(10, lambda ms: [seen(ms, 1.5, 0.0)])
    for _ in range(4):
        here = seen(watch.ms, 1.5, 0.1, score)
        watch.picture(replace(here, box=box_of(1.5, 1.2)))
    assert len(ids(watch.report())) == people


def test_someone_found_again_is_shown_from_the_second_picture_on() -> None:
    watch = Watch()
    watch.follow(10, lambda ms: [seen(ms, 5.0, 0.0)])
    for _ in range(10):
        watch.picture()
    boxes = [watch.picture(seen(watch.ms, 5.0, 0.0)).box is not None for _ in range(3)]
    assert boxes == [False, True, True]


def test_a_second_box_of_a_person_does_not_take_over_the_track() -> None:
    watch = Watch()
    watch.follow(10, lambda ms: [seen(ms, 5.0, 0.0)])
    watch.picture(seen(watch.ms, 5.0, 0.0), seen(watch.ms, 5.0, 0.2))
    # Only one is left, nearer to the second box.
    for _ in range(4):
        watch.picture(seen(watch.ms, 5.0, 0.12))
    assert ids(watch.report()) == [1]
    assert watch.report()[0].box is not None


def test_scans_between_pictures_do_not_hide_a_box() -> None:
    watch = Watch()
    watch.follow(3, lambda ms: [seen(ms, 5.0, 0.0)])
    for _ in range(5):
        watch.ms += 10.0
        watch.step(cluster(watch.ms, 5.0, 0.0))
    assert watch.report()[0].box is not None


def test_what_shows_in_every_other_picture_is_not_believed() -> None:
    watch = Watch()
    for n in range(40):
        watch.picture(*([seen(watch.ms, 5.0, 0.0)] if n % 2 else []))
    assert watch.report() == ()


def test_what_only_the_radar_sees_is_shown_once_it_has_gone_some_way() -> None:
    watch = Watch()
    result = watch.follow(30, lambda ms: [cluster(ms, 5 + 1.2e-3 * ms, 0.0, 1.2)])
    first = [len(tracks) for tracks in result].index(1)
    assert 0.8 / 1.2 <= first * PERIOD / 1000.0 < 1.3
    assert result[-1][0].label == 'person'
    assert result[-1][0].box is None
    assert result[-1][0].seen_by == (RADAR,)


def test_what_stays_in_its_place_is_a_plant_in_the_wind() -> None:
    watch = Watch()
    sway = np.random.default_rng(1).normal(0.0, 0.2, 200)
    result = watch.follow(200, lambda ms: [cluster(ms, 8.0, sway[int(ms / PERIOD)], 0.3)])
    assert not any(result)


@pytest.mark.parametrize('trust', [0.0, 1.0])
def test_a_clear_picture_without_a_body_speaks_against_what_the_radar_alone_follows(
    trust: float,
) -> None:
    pose = Transform(OPTICAL_TO_BODY, np.zeros(3))
    camera = CameraModel.nominal(WIDTH, HEIGHT, FOCAL)
    view = CameraView(camera, pose.rotation, pose.translation)
    tracker, state, shown = Tracker(), TrackerState(), []
    for number in range(60):
        ms = 50.0 * number
        state = tracker.step(
            state, at(ms), [cluster(ms, 5 + 1.2e-3 * ms, 0.0, 1.2)], True, view, True, trust
        )
        shown += tracker.report(state, at(ms), at(ms - 500), SIZE)
    assert bool(shown) == (trust == 0.0)
    if shown:
        here, projected = shown[-1].position, shown[-1].projected
        assert (shown[-1].box, shown[-1].cues) == (None, Cue.RADAR)
        assert projected is not None
        assert projected.height == pytest.approx(1.7 * FOCAL / here[0], rel=0.01)
        assert projected.x0 + projected.width / 2 == pytest.approx(WIDTH / 2, abs=1.0)
        # Where nothing sees it any more, nothing is drawn.
        assert tracker.report(state, at(ms + 300), at(ms + 200), SIZE)[0].projected is None


def test_who_was_just_missed_by_the_camera_is_not_called_seen_by_the_radar() -> None:
    camera = CameraModel.nominal(WIDTH, HEIGHT, FOCAL)
    view = CameraView(camera, OPTICAL_TO_BODY, np.zeros(3))
    tracker, state = Tracker(), TrackerState()
    for n in range(10):
        state = tracker.step(state, at(PERIOD * n), [seen(PERIOD * n, 5.0, 0.0)], True, view)
    for n in range(10, 14):
        state = tracker.step(state, at(PERIOD * n), [], True, view, trust=0.0)
    (track,) = tracker.report(state, state.stamp_ns, state.stamp_ns - NS_PER_S, SIZE)
    assert (track.box, track.projected) == (None, None)
    assert track.seen_by == (CAMERA,)


def test_one_return_is_a_person_only_where_the_camera_sees_nothing() -> None:
    shown = []
    for trust in (0.0, 1.0):
        tracker, state = Tracker(), TrackerState()
        for number in range(60):
            ms = 50.0 * number
            single = replace(cluster(ms, 5 + 1.2e-3 * ms, 0.0, 1.2), score=0.1)
            state = tracker.step(state, at(ms), [single], True, None, True, trust)
        shown.append(len(tracker.report(state, at(ms), at(ms - 500), SIZE)))
    assert shown == [1, 0]


def test_an_unconfirmed_track_does_not_outlive_a_short_silence() -> None:
    watch = Watch()
    watch.step(seen(0, 5.0, 0.0))
    watch.step(ms=340)
    assert len(watch.state.tracks) == 1
    watch.step(ms=360)
    assert watch.state.tracks == ()


def test_a_confirmed_track_lives_on_unseen_for_two_seconds() -> None:
    watch = Watch()
    watch.follow(5, lambda ms: [seen(ms, 5.0, 0.0)])
    assert len(watch.step(ms=200 + 1990)) == 1
    assert watch.step(ms=200 + 2010) == ()
    assert watch.state.tracks == ()


def test_where_no_unit_comes_at_all_tracks_end_nevertheless() -> None:
    watch = Watch()
    watch.follow(5, lambda ms: [seen(ms, 5.0, 0.0)])
    assert len(watch.report(200 + 1990)) == 1
    assert watch.report(200 + 2010) == ()


def test_a_track_is_not_raised_from_the_dead() -> None:
    watch = Watch()
    (first,) = watch.follow(5, lambda ms: [seen(ms, 5.0, 0.0)])[-1]
    watch.ms = 30_000.0
    (second,) = watch.follow(3, lambda ms: [seen(ms, 5.0, 0.0)])[-1]
    assert second.id > first.id
    assert len(watch.state.tracks) == 1


def test_a_gap_of_fifty_years_does_no_harm() -> None:
    watch = Watch()
    watch.follow(5, lambda ms: [seen(ms, 5.0, 0.0), cluster(ms, 9.0, 4.0)])
    watch.ms = 50 * 365 * 86_400e3
    (track,) = watch.follow(3, lambda ms: [seen(ms, 5.0, 0.0)])[-1]
    assert np.isfinite(track.covariance).all()


def test_steps_without_measurements_are_taken() -> None:
    watch = Watch()
    assert watch.follow(3, lambda _: []) == [(), (), ()]
    assert watch.state.stamp_ns == at(100)


def test_a_step_leaves_the_state_it_was_given_as_it_was() -> None:
    watch = Watch()
    watch.follow(5, lambda ms: [seen(ms, 5.0, 0.0)])
    before = watch.state
    kept = [(t.mean.copy(), t.covariance.copy(), dict(t.updated_ns)) for t in before.tracks]
    once = watch.tracker.step(before, at(300), [seen(300, 5.2, 0.1)])
    again = watch.tracker.step(before, at(300), [seen(300, 5.2, 0.1)])
    for track, (mean, covariance, updated) in zip(before.tracks, kept, strict=True):
        np.testing.assert_array_equal(track.mean, mean)
        np.testing.assert_array_equal(track.covariance, covariance)
        assert track.updated_ns == updated
    np.testing.assert_array_equal(once.tracks[0].mean, again.tracks[0].mean)


# ------------------------------------------------------------------------------ identity


def noisy(random: np.random.Generator, ms: float, x: float, y: float) -> Measurement:
    """A measurement with the errors its covariance says, and a box that jitters."""
    exact = seen(ms, x, y)
    place = random.multivariate_normal(exact.position, exact.covariance)
    jitter = random.normal(0.0, 0.01 * exact.box.height, 4)  # type: ignore[union-attr]
    box = Box(*(np.array(exact.box) + jitter))
    return replace(exact, position=place, box=box)


def test_people_who_cross_keep_their_ids() -> None:
    random, watch = np.random.default_rng(1), Watch()

    def two(ms: float) -> list[Measurement]:
        swing = -1.5 + 1e-3 * ms
        return [noisy(random, ms, 4.0, swing), noisy(random, ms, 6.0, -swing)]

    result = watch.follow(60, two)
    assert len({i for tracks in result for i in ids(tracks)}) == 2
    near, far = sorted(result[-1], key=lambda t: t.position[0])
    first_near, first_far = sorted(result[5], key=lambda t: t.position[0])
    assert (near.id, far.id) == (first_near.id, first_far.id)


def test_people_who_meet_and_pass_at_arms_length_keep_their_ids() -> None:
    random, watch = np.random.default_rng(2), Watch()

    def two(ms: float) -> list[Measurement]:
        swing = -1.5 + 1e-3 * ms
        return [noisy(random, ms, 5.0, swing), noisy(random, ms, 5.8, -swing)]

    result = watch.follow(60, two)
    left = [max(tracks, key=lambda t: t.position[1]).id for tracks in (result[5], result[-1])]
    assert left[0] != left[1]
    assert len({i for tracks in result for i in ids(tracks)}) == 2


def test_an_occlusion_of_a_second_keeps_the_id() -> None:
    random, watch = np.random.default_rng(3), Watch()

    def walker(ms: float) -> list[Measurement]:
        hidden = 1000 <= ms < 2000
        return [] if hidden else [noisy(random, ms, 5.0, -1.5 + 1e-3 * ms)]

    result = watch.follow(60, walker)
    assert {i for tracks in result for i in ids(tracks)} == {1}
    assert [len(tracks) for tracks in result[2:]] == [1] * 58
    assert result[38][0].box is None
    assert result[42][0].box is not None
    np.testing.assert_allclose(result[38][0].position[:2], [5.0, 0.4], atol=1.0)


def test_people_side_by_side_are_two() -> None:
    random, watch = np.random.default_rng(4), Watch()
    result = watch.follow(
        60, lambda ms: [noisy(random, ms, 5.0, 0.2), noisy(random, ms, 5.0, -0.2)]
    )
    assert [ids(tracks) for tracks in result[2:]] == [[1, 2]] * 58
    left, right = result[-1]
    assert sorted([left.position[1], right.position[1]]) == pytest.approx([-0.2, 0.2], abs=0.1)


def test_ids_are_never_used_again() -> None:
    random, watch = np.random.default_rng(5), Watch()
    born: list[int] = []

    def crowd(ms: float) -> list[Measurement]:
        places = random.uniform([2.0, -3.0], [12.0, 3.0], (int(random.integers(0, 4)), 2))
        return [seen(ms, x, y) for x, y in places]

    for _ in range(300):
        known = set(ids_of(watch.state))
        watch.follow(1, crowd)
        born += sorted(set(ids_of(watch.state)) - known)
    assert len(born) > 50
    assert all(a < b for a, b in pairwise(born))
    assert watch.state.next_id == born[-1] + 1


def ids_of(state: TrackerState) -> list[int]:
    return [track.id for track in state.tracks]


# ------------------------------------------------------------------------------ what counts


def test_a_weak_detection_keeps_a_track_alive_but_begins_none() -> None:
    watch = Watch()
    assert watch.follow(10, lambda ms: [seen(ms, 5.0, 0.0, score=0.3)])[-1] == ()
    assert watch.state.tracks == ()
    watch.follow(5, lambda ms: [seen(ms, 5.0, 0.0)])
    result = watch.follow(60, lambda ms: [seen(ms, 5.0, 0.0, score=0.3)])
    assert {i for tracks in result for i in ids(tracks)} == {1}
    assert result[-1][0].age == 0.0


def test_weak_detections_alone_show_a_box_for_a_short_while_only() -> None:
    watch = Watch()
    watch.follow(5, lambda ms: [seen(ms, 5.0, 0.0)])
    result = watch.follow(20, lambda ms: [seen(ms, 5.0, 0.0, score=0.3)])
    assert [tracks[0].box is not None for tracks in result] == [True] * 6 + [False] * 14


def test_a_strong_detection_goes_before_a_weak_one() -> None:
    watch = Watch()
    watch.follow(5, lambda ms: [seen(ms, 5.0, 0.0)])
    weak = replace(seen(watch.ms, 5.0, 0.0, score=0.3), label='dog')
    (track,) = watch.step(weak, seen(watch.ms, 5.0, 0.05))
    assert track.label == 'person'
    assert len(watch.state.tracks) == 1


def test_a_cluster_beside_a_known_track_begins_none() -> None:
    watch = Watch()
    watch.follow(20, lambda ms: [seen(ms, 5.0, 0.0, velocity=0.0), cluster(ms, 5.5, 0.2)])
    assert ids_of(watch.state) == [1]


def test_a_cluster_beside_a_person_who_appears_with_it_begins_none() -> None:
    watch = Watch()
    watch.step(seen(0, 5.0, 0.0), cluster(0, 5.3, 0.1))
    assert ids_of(watch.state) == [1]


def test_a_cluster_elsewhere_begins_a_track_of_its_own() -> None:
    watch = Watch()
    watch.follow(40, lambda ms: [seen(ms, 5.0, -2.0), cluster(ms, 9.0 + 1.2e-3 * ms, 4.0, 1.1)])
    assert [t.label for t in watch.report()] == ['person', 'person']


def test_what_is_faster_than_people_run_is_not_called_a_person() -> None:
    watch = Watch()
    watch.follow(40, lambda ms: [cluster(ms, 9.0 + 8e-3 * ms, 0.0, 8.0)])
    assert [t.label for t in watch.report()] == ['moving']


def test_the_radar_alone_keeps_a_person_alive_in_the_dark() -> None:
    watch = Watch()
    watch.follow(5, lambda ms: [seen(ms, 5 + 0.5e-3 * ms, 0.0, velocity=0.5)])
    result = watch.follow(80, lambda ms: [cluster(ms, 5 + 0.5e-3 * ms, 0.0)])
    assert {i for tracks in result for i in ids(tracks)} == {1}
    assert result[-1][0].label == 'person'
    assert result[-1][0].box is None
    assert result[-1][0].seen_by == (RADAR,)
    np.testing.assert_allclose(result[-1][0].velocity, [0.5, 0, 0], atol=0.15)


def test_a_radar_track_that_the_camera_finds_keeps_its_id_and_gets_its_label() -> None:
    watch = Watch()
    watch.follow(10, lambda ms: [cluster(ms, 5 + 0.5e-3 * ms, 0.0)])
    (track,) = watch.step(seen(watch.ms, 5 + 0.5e-3 * watch.ms, 0.0))
    assert (track.id, track.label) == (1, 'person')
    assert track.box is not None


def test_a_box_in_its_place_at_an_odd_range_is_believed_in_part() -> None:
    watch = Watch()
    watch.follow(20, lambda ms: [seen(ms, 5.0, 0.0)])
    odd = replace(seen(watch.ms, 5.0, 0.0, along=0.1), position=np.array([9.0, 0.0, 0.0]))
    (track,) = watch.step(odd)
    assert 5.1 < track.position[0] < 6.5


def test_the_score_follows_the_detections_slowly() -> None:
    watch = Watch()
    watch.follow(20, lambda ms: [seen(ms, 5.0, 0.0, score=0.8)])
    scores = [t[0].score for t in watch.follow(20, lambda ms: [seen(ms, 5.0, 0.0, score=0.5)])]
    assert scores[0] == pytest.approx(0.71)
    assert scores[-1] == pytest.approx(0.5, abs=0.01)


def test_after_a_while_unseen_a_box_begins_anew() -> None:
    watch = Watch()
    watch.follow(20, lambda ms: [seen(ms, 5.0, -1.0 + 1e-3 * ms, velocity=0.0)])
    watch.follow(25, lambda ms: [cluster(ms, 5.0, 0.0, 0.0)])
    (track,) = watch.step(seen(watch.ms, 5.0, 0.2, velocity=0.0))
    assert track.box == pytest.approx(box_of(5.0, 0.2))


def test_a_doppler_reading_far_off_does_not_turn_a_track() -> None:
    watch = Watch()
    watch.follow(20, lambda ms: [seen(ms, 5 + 1e-3 * ms, 0.0, velocity=1.0)])
    ms = watch.ms
    (track,) = watch.step(seen(ms, 5 + 1e-3 * ms, 0.0, velocity=-9.0))
    assert track.velocity[0] == pytest.approx(1.0, abs=0.2)


def test_doppler_gives_the_speed_at_once() -> None:
    with_doppler, without = Watch(confirm_hits=1), Watch(confirm_hits=1)
    for watch, velocity in ((with_doppler, 1.2), (without, NAN)):
        watch.follow(2, lambda ms, v=velocity: [seen(ms, 5 + 1.2e-3 * ms, 0.0, velocity=v)])
    errors = [abs(w.report()[0].velocity[0] - 1.2) for w in (with_doppler, without)]
    assert errors[0] < 0.2 < errors[1]


def test_a_lost_track_does_not_take_the_returns_of_a_known_one() -> None:
    random, watch = np.random.default_rng(7), Watch()
    watch.follow(
        10, lambda ms: [seen(ms, 5.0, -1.0, velocity=0.0), seen(ms, 6.0, 1.0, velocity=0.0)]
    )
    # In the dark the radar follows one of them; the other becomes more uncertain step by step.
    watch.follow(25, lambda ms: [cluster(ms, *random.normal([5.0, -1.0], [0.3, 0.5]), 0.0)])
    follows, lost = watch.report()
    assert follows.age < 0.1
    assert lost.age > 1.2


def test_returns_beside_a_person_in_view_are_not_given_to_a_lost_track() -> None:
    watch = Watch()
    watch.follow(10, lambda ms: [seen(ms, 5.0, 0.0, velocity=0.0), seen(ms, 6.5, 0.9)])
    watch.follow(
        25, lambda ms: [seen(ms, 5.0, 0.0, velocity=0.0), cluster(ms, 5.4, 0.5, velocity=0.1)]
    )
    in_view, lost = watch.state.tracks
    assert in_view.last_update_ns > at(watch.ms - 100)
    assert lost.last_update_ns < at(watch.ms - 900)


def test_people_in_one_line_of_sight_are_kept_apart_by_their_range() -> None:
    random, watch = np.random.default_rng(6), Watch()

    def two(ms: float) -> list[Measurement]:
        result = []
        for x in (4.0, 5.5):
            exact = seen(ms, x, 0.0, along=0.1, velocity=0.0)
            jitter = random.normal(0.0, 3.0, 4)
            # A detector that cannot decide whose legs these are.
            result.append(replace(exact, box=Box(*(np.array(box_of(4.7, 0.0)) + jitter))))
        return result

    result = watch.follow(100, two)
    assert {i for tracks in result for i in ids(tracks)} == {1, 2}
    near, far = (np.array([t[n].position[0] for t in result[3:]]) for n in (0, 1))
    assert near.max() < 4.5 < far.min()


# ------------------------------------------------------------------------------ reports


def test_a_report_is_predicted_to_the_time_given() -> None:
    watch = Watch()
    watch.follow(40, lambda ms: [seen(ms, 5.0, -1.5 + 1e-3 * ms)])
    now, later = watch.report(1950)[0], watch.report(2050)[0]
    np.testing.assert_allclose(later.position, now.position + 0.1 * now.velocity)
    assert (now.age, later.age) == (0.0, 0.1)
    assert now.box is not None
    assert later.box is not None
    assert later.box.x0 - now.box.x0 == pytest.approx(0.1 * now.box_velocity[0], rel=0.01)
    assert now.box_velocity[0] == pytest.approx(-FOCAL / 5.0, rel=0.05)


def test_tracks_are_reported_by_id() -> None:
    watch = Watch()
    result = watch.follow(10, lambda ms: [seen(ms, 6.0, y) for y in (2.0, -2.0, 0.0)])
    assert ids(result[-1]) == [1, 2, 3]


def test_a_box_is_shown_while_the_camera_sees_the_person() -> None:
    watch = Watch()
    watch.follow(5, lambda ms: [seen(ms, 5.0, 0.0)])
    assert watch.report(200 + 190)[0].box is not None
    assert watch.report(200 + 210)[0].box is None


def test_a_box_is_cut_to_the_picture() -> None:
    watch = Watch()
    (track,) = watch.follow(5, lambda ms: [seen(ms, 1.5, 0.9)])[-1]
    assert track.box is not None
    assert track.box.x0 == 0.0
    assert (track.box.y0, track.box.y1) == (0.0, 480.0)


def test_a_person_who_left_the_picture_has_no_box() -> None:
    watch = Watch()
    result = watch.follow(40, lambda ms: [seen(ms, 4.0, 2.0 + 1.5e-3 * ms)])
    assert result[5][0].box is not None
    assert result[-1][0].box is None


def test_seen_by_names_the_modalities_that_saw_it_lately() -> None:
    watch = Watch()
    watch.follow(5, lambda ms: [seen(ms, 5.0, 0.0, velocity=0.0)])
    assert watch.report()[0].seen_by == (CAMERA, RADAR)
    watch.follow(20, lambda ms: [seen(ms, 5.0, 0.0)])
    assert watch.report()[0].seen_by == (CAMERA,)


# ------------------------------------------------------------------------------ mathematics

place = st.floats(-30.0, 30.0)


@st.composite
def measurements(draw: st.DrawFn) -> list[Measurement]:
    result = []
    for _ in range(draw(st.integers(0, 4))):
        x, y = draw(st.floats(0.3, 60.0)), draw(place)
        velocity = draw(st.floats(-40.0, 40.0) | st.just(NAN))
        score, along = draw(st.floats(0.0, 1.0)), draw(st.floats(0.02, 50.0))
        each = seen(0, x, y, score, along, velocity)
        result.append(each if draw(st.booleans()) else replace(each, box=None))
    return result


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from([0, 1, 50, 300, 5000]), measurements()), max_size=12))
def test_whatever_is_measured_states_stay_finite_and_covariances_positive(
    steps: list[tuple[int, list[Measurement]]],
) -> None:
    watch = Watch(confirm_hits=1)
    for ms, result in steps:
        watch.ms += ms
        stamped = [replace(m, stamp_ns=at(watch.ms)) for m in result]
        watch.step(*stamped)
        for track in watch.state.tracks:
            assert np.isfinite(track.mean).all()
            assert np.linalg.eigvalsh(track.covariance).min() > 0
        for each in (*watch.report(), *watch.report(watch.ms + 900), *watch.report(watch.ms - 9)):
            assert np.isfinite(each.covariance).all()
            assert np.isfinite(each.position).all()
            assert each.box is None or np.isfinite(each.box).all()


def simulated_walk(random: np.random.Generator, steps: int) -> np.ndarray:
    """True states (steps, 6) of a person who moves as the filter's model has it."""
    dt = PERIOD / 1e3
    move = np.kron([[1.0, dt], [0.0, 1.0]], np.eye(3))
    brisk = TrackerParameters().acceleration
    density = np.diag(np.square([brisk, brisk, 0.3]))
    noise = np.kron([[dt**3 / 3, dt**2 / 2], [dt**2 / 2, dt]], density)
    velocity = random.normal(0.0, [1.5, 1.5, 0.3])
    states = [np.concatenate([[12.0, random.uniform(-3, 3), 0.0], velocity])]
    for _ in range(steps - 1):
        states.append(move @ states[-1] + random.multivariate_normal(np.zeros(6), noise))
    return np.array(states)


def consistent_measurement(
    random: np.random.Generator, ms: float, truth: np.ndarray, with_radar: bool
) -> Measurement:
    """A measurement whose errors are drawn from that covariance of decision fusion.

    That lies along the sight to what was measured, as the one to the truth is not known.
    """
    x, y = float(truth[0]), float(truth[1])
    along = 0.25 if with_radar else 0.2 * float(np.hypot(x, y))
    height = np.diag([0.0, 0.0, 0.02])
    exact = seen(ms, x, y, along=along)
    position = random.multivariate_normal(truth[:3], exact.covariance + height)
    measured_x, measured_y = float(position[0]), float(position[1])
    covariance = seen(ms, measured_x, measured_y, along=along).covariance + height
    velocity, variance = NAN, 0.35**2
    if with_radar:
        ray = truth[:3] / np.linalg.norm(truth[:3])
        velocity = float(ray @ truth[3:] + random.normal(0.0, 0.35))
    return replace(
        exact,
        position=position,
        covariance=covariance,
        radial_velocity=velocity,
        radial_variance=variance,
        seen_by=(CAMERA, RADAR) if with_radar else (CAMERA,),
    )


@pytest.mark.parametrize('radar', ['always', 'every other time', 'never'])
def test_the_covariances_of_tracks_are_those_of_their_errors(radar: str) -> None:
    """Normalised estimation error squared within its 95 % bounds (Bar-Shalom, section 5.4)."""
    runs, steps = 40, 60
    random = np.random.default_rng(11)
    errors = np.zeros((runs, steps))
    for run in range(runs):
        watch = Watch()
        truth = simulated_walk(random, steps)
        for n in range(steps):
            with_radar = radar == 'always' or (radar == 'every other time' and n % 2 == 0)
            watch.step(consistent_measurement(random, watch.ms, truth[n], with_radar))
            (track,) = watch.state.tracks
            error = track.mean - truth[n]
            errors[run, n] = error @ np.linalg.solve(track.covariance, error)
            watch.ms += PERIOD
    low, high = chi2.ppf([0.025, 0.975], 6 * runs) / runs
    means = errors.mean(axis=0)
    inside = np.mean((means >= low) & (means <= high))
    # A range by boxes alone errs by so much that what is straight for it is curved for rays.
    least = 0.6 if radar == 'never' else 0.85
    assert inside >= least, f'{inside:.0%} of the steps inside {low:.2f}..{high:.2f}'
    assert np.mean((means[:10] >= low) & (means[:10] <= high)) >= 0.6
    assert low <= errors.mean() <= high


# ------------------------------------------------------------------------- ghosts of the radar


def test_a_hidden_person_is_not_carried_away_by_a_ghost_of_the_radar() -> None:
    watch = Watch()
    watch.follow(20, lambda ms: [seen(ms, 7.0, -1.0)])
    watch.follow(22, lambda _: [])  # hidden for more than a second
    (before,) = watch.report()
    (after,) = watch.step(cluster(watch.ms, 4.0, -3.0, velocity=-0.2))
    assert np.linalg.norm(after.position - before.position) < 0.3


def test_a_hidden_person_is_still_followed_by_the_radar_where_it_should_be() -> None:
    watch = Watch()
    watch.follow(20, lambda ms: [seen(ms, 7.0, -1.0)])
    watch.follow(8, lambda _: [])
    (track,) = watch.step(cluster(watch.ms, 7.1, -1.1, velocity=0.0))
    assert track.seen_by == (CAMERA, RADAR)
    assert track.age == 0.0


# ------------------------------------------------------------------------------ followed pictures


def copied(ms: float, x: float, y: float) -> Measurement:
    """A detection of an earlier picture, moved with the image."""
    return replace(seen(ms, x, y), repeated=True)


def test_copies_begin_no_track_and_confirm_none() -> None:
    watch = Watch()
    assert watch.follow(5, lambda ms: [copied(ms, 5.0, 0.0)])[-1] == ()
    watch.step(seen(watch.ms, 5.0, 0.0))
    (before,) = watch.state.tracks
    for _ in range(4):
        watch.ms += PERIOD
        assert watch.step(copied(watch.ms, 5.0, 0.0)) == ()
    (after,) = watch.state.tracks
    assert (after.hits, after.support) == (before.hits, before.support)


def test_a_detection_stands_for_the_pictures_in_which_it_is_followed() -> None:
    """Or somebody would be shown later, and given up earlier, the fewer pictures are encoded."""

    def evidence(copies: int) -> float:
        watch = Watch()
        watch.follow(4, lambda ms: [seen(ms, 5.0, 0.0, 0.5)])
        for _ in range(copies):
            watch.step(copied(watch.ms, 5.0, 0.0))
            watch.ms += PERIOD
        return watch.state.tracks[0].evidence

    assert evidence(3) > evidence(0)


def test_a_box_goes_where_its_copies_go() -> None:
    def step(ms: float, by_px: float) -> Measurement:
        measurement = copied(ms, 5.0, 0.0)
        box = measurement.box
        assert box is not None
        return replace(measurement, box=Box(box.x0 + by_px, box.y0, box.x1 + by_px, box.y1))

    watch = Watch()
    (before,) = watch.follow(6, lambda ms: [seen(ms, 5.0, 0.0)])[-1]
    for n in range(1, 4):
        (track,) = watch.step(step(watch.ms, 3.0 * n))
        watch.ms += PERIOD
    assert before.box is not None
    assert track.box is not None
    assert track.box.x0 - before.box.x0 == pytest.approx(9.0, abs=4.0)


def test_copies_of_one_detection_tell_no_more_than_it_did() -> None:
    watch = Watch()
    watch.follow(6, lambda ms: [seen(ms, 5.0, 0.0)])
    (once,) = watch.state.tracks
    for _ in range(5):
        watch.step(copied(watch.ms, 5.0, 0.0))
        watch.ms += PERIOD
    (copies,) = watch.state.tracks
    assert np.trace(copies.covariance[:3, :3]) >= 0.95 * np.trace(once.covariance[:3, :3])
    assert copies.noise_scale == once.noise_scale
    assert copies.height_bias == once.height_bias
