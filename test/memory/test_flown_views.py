"""Views are chosen while they fly by, from what the encoder still has at hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hand_made_moments import view
from hand_made_sights import STREET, decided, kept, sighted, standing

from mmedge_ros.data_types import Box, Detection
from mmedge_ros.encoding.recent_pictures import RecentPictures
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.geometry.sensor_poses import SensorGeometry
from mmedge_ros.geometry.transforms import Transform
from mmedge_ros.memory.flown_views import UNTRACKED, FlownViews, UntrackedObjects
from mmedge_ros.memory.moment import Spot, ViewKind
from mmedge_ros.memory.views import ChosenView, picture_of, with_place

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


def test_the_first_picture_is_a_key_frame_and_the_same_scene_is_none(
    pictures: RecentPictures,
) -> None:
    views = FlownViews(pictures, 2.0)
    kinds = []
    for number in range(20):
        pictures.keep(kept(number, 0.5 * number))
        kinds += [v.item.kind for v in views.of_decision(decided(0.5 * number))]
    assert kinds == [ViewKind.KEY_FRAME]


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


def test_looks_thin_out_with_the_power_that_is_left(pictures: RecentPictures) -> None:
    views = FlownViews(pictures, 10.0)
    views.thin(1.0)
    looks = 0
    for step in range(30):
        box = standing(height=20.0 + 10.0 * step)
        pictures.keep(kept(step, 0.1 * step, box))
        decision = decided(0.1 * step, sighted(1, step, 0, box))
        looks += len(objects(list(views.of_decision(decision))))
    assert looks == 3


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


def test_a_track_whose_picture_is_gone_is_left_out(pictures: RecentPictures) -> None:
    box = standing()
    for sequence in range(10):
        pictures.keep(kept(sequence, 0.03 * sequence, box))
    views = FlownViews(pictures, 2.0)
    assert objects(list(views.of_decision(decided(0.3, sighted(1, 0, 0, box))))) == []


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


def test_a_picture_is_numbered_once_however_many_decisions_look_at_it(
    pictures: RecentPictures,
) -> None:
    views = FlownViews(pictures, 2.0)
    pictures.keep(kept(1, 1.0, others=(Detection(CAR, 0.8, 'car'),)))
    found = [objects(list(views.of_decision(decided(1.0)))) for _ in range(5)]
    assert found == [[]] * 5, 'one sight is no object yet'


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


def test_weak_detections_are_no_objects() -> None:
    objects_ = UntrackedObjects()
    weak = Detection(CAR, 0.2, 'car')
    assert all(not objects_.numbered(step, [weak]) for step in range(10))
