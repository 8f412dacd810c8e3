"""What is kept while it flies by: views of tracks, key frames, thumbnails, phases and light."""

from __future__ import annotations

import math
from dataclasses import replace

import cv2
import numpy as np
import pytest
from hand_made_moments import view
from hand_made_sights import STREET, decided, kept, sighted, standing
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.core.data_types import NS_PER_S, Box, Detection
from mmedge_ros.encoding.recent_pictures import RecentPictures
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.geometry.sensor_poses import SensorGeometry
from mmedge_ros.geometry.transforms import Transform
from mmedge_ros.memory.flown_views import UNTRACKED, FlownViews, UntrackedObjects
from mmedge_ros.memory.moment import (
    FlightPhase,
    Light,
    Spot,
    ViewKind,
    lights_of,
    phase_of,
)
from mmedge_ros.memory.view_choice import (
    BEST_VIEWS,
    KeptView,
    KeyFrames,
    TrackViews,
    ViewQuality,
    scene_vector,
    visible_share,
)
from mmedge_ros.memory.views import (
    OBJECT_SIDE,
    ChosenView,
    key_frame_thumbnail,
    object_thumbnail,
    picture_of,
    with_place,
)


@pytest.mark.parametrize(
    ('velocity', 'phase'),
    [
        (Spot(0.1, 0.2, 0.1), FlightPhase.HOVERING),
        (Spot(3.0, 0.0, 0.0), FlightPhase.TRAVELLING),
        (Spot(3.0, 0.0, 2.0), FlightPhase.TRAVELLING),
        (Spot(0.5, 0.0, 2.0), FlightPhase.CLIMBING),
        (Spot(0.5, 0.0, -2.0), FlightPhase.DESCENDING),
        (Spot(0.0, 0.0, 0.4), FlightPhase.HOVERING),
        (Spot(), FlightPhase.UNKNOWN),
        (Spot(1.0, math.inf, 0.0), FlightPhase.UNKNOWN),
    ],
)
def test_the_phase_of_a_flight_is_known_by_its_velocity(
    velocity: Spot, phase: FlightPhase
) -> None:
    assert phase_of(velocity) == phase


def test_light_is_known_by_the_brightness_of_pictures() -> None:
    lights = lights_of(np.array([0.1, 0.2, 0.5, np.nan]))
    assert lights.tolist() == [Light.NIGHT, Light.DUSK, Light.DAY, Light.UNKNOWN]


SIZE = (640, 480)


def at(seconds: float) -> int:
    return round(seconds * NS_PER_S)


def height(pixels: float) -> ViewQuality:
    return ViewQuality(pixels)


# ------------------------------------------------------------------------------- tracks


def test_a_better_view_takes_the_place_of_the_worst_and_never_of_the_first() -> None:
    views = TrackViews()
    for step, pixels in enumerate((10.0, 40.0, 30.0, 50.0, 60.0)):
        views.offer(1, at(2.0 * step), height(pixels))
    assert views.offer(1, at(20.0), height(70.0)) == KeptView(at(4.0))
    assert views.offer(1, at(30.0), height(70.0)) == KeptView(at(2.0))
    assert views.offer(1, at(40.0), height(52.0)) is None
    assert views.offer(1, at(50.0), height(90.0)) == KeptView(at(6.0))


def test_of_views_close_in_time_only_the_better_one_is_kept() -> None:
    views = TrackViews()
    views.offer(1, at(0.0), height(20.0))
    assert views.offer(1, at(0.5), height(21.0)) is None
    assert views.offer(1, at(0.6), height(60.0)) == KeptView()
    assert views.offer(1, at(0.9), height(61.0)) is None
    assert views.offer(1, at(1.2), height(90.0)) == KeptView(at(0.6))


@given(
    st.lists(
        st.tuples(st.integers(1, 3), st.floats(0.0, 30.0), st.floats(0.0, 200.0)), max_size=80
    )
)
def test_memory_of_a_track_is_bounded_and_only_what_was_kept_is_displaced(
    offers: list[tuple[int, float, float]],
) -> None:
    views = TrackViews()
    kept: dict[int, list[int]] = {1: [], 2: [], 3: []}
    for track, seconds, pixels in offers:
        answer = views.offer(track, at(seconds), height(pixels))
        if answer is None:
            continue
        if answer.displaced_ns is not None:
            assert answer.displaced_ns in kept[track][1:]
            kept[track].remove(answer.displaced_ns)
        kept[track].append(at(seconds))
        assert len(kept[track]) <= 1 + BEST_VIEWS


@pytest.mark.parametrize(
    ('better', 'worse'),
    [
        (ViewQuality(80.0, 0.3, 1.0), ViewQuality(40.0, 0.3, 1.0)),
        (ViewQuality(80.0, 0.3, 1.0), ViewQuality(80.0, 0.1, 1.0)),
        (ViewQuality(80.0, 0.3, 1.0), ViewQuality(80.0, 0.3, 0.5)),
        (ViewQuality(80.0), ViewQuality(80.0, math.nan, 0.5)),
    ],
)
def test_a_view_is_worth_more_the_more_it_shows(better: ViewQuality, worse: ViewQuality) -> None:
    assert 0.0 <= worse.score < better.score <= 1.0


def test_an_object_is_hidden_by_what_stands_in_front_and_by_the_border() -> None:
    box = Box(100.0, 100.0, 140.0, 200.0)
    front, behind = Box(120.0, 100.0, 200.0, 250.0), Box(100.0, 80.0, 140.0, 190.0)
    assert visible_share(box, (box, behind), SIZE) == 1.0
    assert visible_share(box, (front, behind), SIZE) == pytest.approx(0.5)
    assert visible_share(Box(0.0, 100.0, 40.0, 200.0), (), SIZE) < 1.0
    assert visible_share(Box(600.0, 400.0, 640.0, 480.0), (), SIZE) < 1.0
    assert visible_share(Box(5.0, 5.0, 5.0, 5.0), (front,), SIZE) >= 0.0


# ---------------------------------------------------------------------------- key frames


def scene(angle: float) -> np.ndarray:
    """A scene whose distance from the one at 0 is 1 - cos(angle)."""
    return np.array([math.cos(angle), math.sin(angle)], np.float32)


def key_frames_of(*angles: float, period: float = 0.1) -> list[int]:
    frames = KeyFrames()
    return [n for n, angle in enumerate(angles) if frames.offer(at(period * n), scene(angle))]


def test_the_first_picture_and_each_lasting_change_are_key_frames() -> None:
    assert key_frames_of(*[0.0] * 40, *[1.5] * 40) == [0, 43]


def test_a_flash_is_no_key_frame() -> None:
    assert key_frames_of(*[0.0] * 40, 1.5, 1.5, *[0.0] * 40) == [0]


def test_a_scene_is_known_again_in_other_light_and_not_upside_down() -> None:
    picture = np.random.default_rng(1).integers(0, 256, (6, 8, 3), np.uint8)
    picture = picture.repeat(80, axis=0).repeat(80, axis=1)
    darker = (0.4 * picture + 10.0).astype(np.uint8)
    one = scene_vector(picture)
    assert one.shape == (144,)
    assert one @ scene_vector(darker) > 0.99
    assert one @ scene_vector(picture[::-1]) < 0.6
    np.testing.assert_array_equal(scene_vector(np.full((480, 640, 3), 7, np.uint8)), 0.0)


def picture() -> np.ndarray:
    """Red on the left, blue on the right."""
    made = np.zeros((480, 640, 3), np.uint8)
    made[:, :320, 2] = 220
    made[:, 320:, 0] = 220
    return made


def test_an_object_comes_back_in_its_colours_and_its_shape() -> None:
    back = picture_of(object_thumbnail(picture(), Box(20.0, 20.0, 120.0, 220.0)))
    assert back is not None
    height, width = back.shape[:2]
    assert max(height, width) == OBJECT_SIDE
    assert height / width == pytest.approx(2.0, rel=0.1)
    np.testing.assert_allclose(back.reshape(-1, 3).mean(axis=0), [0.0, 0.0, 220.0], atol=12.0)


def test_a_small_object_is_not_made_larger_and_a_thin_one_keeps_a_pixel() -> None:
    small = picture_of(object_thumbnail(picture(), Box(100.0, 100.0, 110.0, 120.0)))
    assert small is not None
    assert small.shape == (24, 12, 3)
    thin = picture_of(object_thumbnail(picture(), Box(100.0, 10.0, 100.4, 470.0)))
    assert thin is not None
    assert thin.shape[1] == 1


def test_what_is_no_thumbnail_of_ours_is_not_decoded() -> None:
    large = cv2.imencode('.jpg', np.zeros((129, 20, 3), np.uint8))[1].tobytes()
    other = cv2.imencode('.png', np.zeros((20, 20, 3), np.uint8))[1].tobytes()
    whole = key_frame_thumbnail(picture())
    for content in (b'', b'\xff\xd8', large, other, whole[:40]):
        assert picture_of(content) is None


CAR = Box(300.0, 200.0, 400.0, 260.0)


@pytest.fixture
def pictures() -> RecentPictures:
    return RecentPictures()


def objects(views: list[ChosenView]) -> list[tuple[int, str]]:
    return [(v.item.track_id, v.item.label) for v in views if v.item.kind is ViewKind.TRACK]


def test_a_tracked_person_is_remembered_with_picture_place_and_level(
    pictures: RecentPictures,
) -> None:
    box = standing()
    pictures.keep(kept(7, 1.0, box))
    views = list(FlownViews(pictures, 2.0).of_decision(decided(1.0, sighted(3, 7, 0, box))))
    (person,) = (view.item for view in views if view.item.kind is ViewKind.TRACK)
    assert (person.track_id, person.label, person.stamp_ns) == (3, 'person', 1_000_000_000)
    assert person.box == box
    assert person.position == Spot(10.0, 3.0, 0.0)
    assert person.level == 'medium'
    shown = picture_of(person.thumbnail)
    assert shown is not None
    assert max(shown.shape[:2]) <= 64
    assert not len(person.vector), 'embedding it is left to the memory'


def test_an_object_is_looked_at_no_more_often_than_asked_for(pictures: RecentPictures) -> None:
    views = FlownViews(pictures, 1.0)
    looks = []
    for step in range(30):
        # It grows, so that each look is worth keeping.
        box = standing(height=20.0 + 10.0 * step)
        pictures.keep(kept(step, 0.1 * step, box))
        found = objects(list(views.of_decision(decided(0.1 * step, sighted(1, step, 0, box)))))
        looks += [step] * len(found)
    assert looks == [0, 10, 20]


def test_a_crowd_is_spread_over_decisions_so_that_no_picture_waits_long(
    pictures: RecentPictures,
) -> None:
    views = FlownViews(pictures, 0.5)
    boxes = [standing(50.0 * place) for place in range(10)]
    seen: list[int] = []
    scenes = 0
    for step in range(3):
        pictures.keep(kept(step, 0.1 * step, *boxes))
        tracks = [sighted(place + 1, step, place, box) for place, box in enumerate(boxes)]
        all_views = list(views.of_decision(decided(0.1 * step, *tracks)))
        found = objects(all_views)
        assert len(found) <= 4
        scenes += len(all_views) - len(found)
        seen += [number for number, _ in found]
    assert sorted(seen) == list(range(1, 11)), 'each once'
    assert scenes == 1, 'the scene is looked at, too'


def test_what_nobody_tracks_is_remembered_once_it_was_seen_a_few_times(
    pictures: RecentPictures,
) -> None:
    views = FlownViews(pictures, 2.0)
    found = []
    for step in range(12):
        car = Detection(Box(*(side + step for side in CAR)), 0.8, 'car')
        pictures.keep(kept(step, 0.1 * step, others=(car,)))
        found += objects(list(views.of_decision(decided(0.1 * step))))
    assert found
    assert set(found) == {(UNTRACKED, 'car')}


def test_an_object_without_a_track_is_placed_where_a_body_of_its_size_stands() -> None:
    camera = CameraModel(
        *STREET, np.array([[500.0, 0, 320], [0, 500.0, 240], [0, 0, 1]]), np.zeros(0), 'none'
    )
    looking = Transform(np.array([[0.0, 0, 1], [-1, 0, 0], [0, -1, 0]]), np.array([5.0, 0.0, 1.0]))
    geometry = SensorGeometry('odom', camera, looking, looking)
    # 1.68 m at 20 m are 42 px.
    item = replace(view(UNTRACKED), box=Box(310.0, 219.0, 330.0, 261.0), image_size=STREET)
    x, y, _ = with_place(item, geometry).position
    assert (x, y) == pytest.approx((25.0, 0.0), abs=0.6)
    known = replace(item, position=Spot(1.0, 2.0, 3.0))
    assert with_place(known, geometry) is known
    other = replace(item, image_size=(320, 240))
    assert with_place(other, geometry) is other, 'the calibration is of another picture'


def test_numbers_follow_overlap_label_and_time() -> None:
    objects_ = UntrackedObjects()

    def numbers(seconds: float, *detections: Detection) -> list[int]:
        return [n for n, _ in objects_.numbered(round(seconds * 1e9), detections)]

    car, dog = Detection(CAR, 0.8, 'car'), Detection(CAR, 0.8, 'dog')
    for step in range(3):
        last = numbers(0.1 * step, car, dog)
    assert last == [UNTRACKED, UNTRACKED + 1], 'labels are told apart'
    assert numbers(0.3, Detection(Box(0.0, 0.0, 30.0, 30.0), 0.8, 'car')) == []
    assert numbers(1.2, car) == [UNTRACKED], 'hidden for less than a second'
    assert numbers(3.0, car) == [], 'after that it is another one'
