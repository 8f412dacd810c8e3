"""Of each track the first and the best views are kept, of the flight where the scene changed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.data_types import NS_PER_S, Box
from mmedge_ros.memory.view_choice import (
    BEST_VIEWS,
    KeptView,
    KeyFrames,
    TrackViews,
    ViewQuality,
    scene_vector,
    visible_share,
)

SIZE = (640, 480)


def at(seconds: float) -> int:
    return round(seconds * NS_PER_S)


def height(pixels: float) -> ViewQuality:
    return ViewQuality(pixels)


# ------------------------------------------------------------------------------- tracks


def test_the_first_sight_of_a_track_is_kept_however_bad() -> None:
    views = TrackViews()
    assert views.offer(1, at(0.0), ViewQuality(3.0, 0.01, 0.1)) == KeptView()
    assert views.offer(2, at(0.0), ViewQuality(0.0)) == KeptView()


def test_views_apart_are_kept_until_there_are_enough() -> None:
    views = TrackViews()
    kept = [views.offer(1, at(2.0 * step), height(40.0)) for step in range(BEST_VIEWS + 2)]
    assert kept == [KeptView()] * (BEST_VIEWS + 1) + [None]


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


def test_tracks_are_apart_and_begin_anew_after_a_reset() -> None:
    views = TrackViews()
    assert views.offer(1, at(0.0), height(20.0)) == KeptView()
    assert views.offer(2, at(0.1), height(20.0)) == KeptView()
    assert views.offer(1, at(0.2), height(20.0)) is None
    views.reset()
    assert views.offer(1, at(0.3), height(20.0)) == KeptView()


def test_tracks_that_are_long_gone_are_let_go() -> None:
    views = TrackViews()
    views.offer(0, at(0.0), height(20.0))
    views.offer(1, at(0.0), height(20.0))
    for track in range(2, 2000):
        views.offer(track, at(0.001 * track), height(20.0))
        assert views.offer(1, at(0.0), height(20.0)) is None, 'a track that is met stays known'
    assert len(views._tracks) <= 512
    assert views.offer(1999, at(2.0), height(20.0)) is None
    assert views.offer(0, at(2.0), height(20.0)) == KeptView()


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


def test_turning_back_and_forth_makes_one_key_frame_of_each_side() -> None:
    assert key_frames_of(*([*[0.0] * 40, *[1.5] * 40] * 4)) == [0, 43]


def test_a_scene_between_the_limits_goes_on_as_it_was() -> None:
    # 1 - cos(0.8) = 0.30: neither another scene nor the same one again.
    assert key_frames_of(*[0.0] * 40, *[0.8] * 40) == [0]
    assert key_frames_of(*[0.0] * 40, 1.5, *[0.8] * 40) == [0, 43]


def test_key_frames_are_at_least_two_seconds_apart() -> None:
    frames = KeyFrames()
    rng = np.random.default_rng(1)
    taken = []
    for step in range(600):
        noise = rng.normal(size=144)
        if frames.offer(at(step / 30), (noise / np.linalg.norm(noise)).astype(np.float32)):
            taken.append(step / 30)
    assert len(taken) > 5
    assert np.diff(taken).min() >= 2.0


def test_a_picture_that_says_nothing_is_no_key_frame() -> None:
    frames = KeyFrames()
    assert not frames.offer(at(0.0), np.zeros(2, np.float32))
    assert not frames.offer(at(0.1), np.full(2, np.nan, np.float32))
    assert frames.offer(at(0.2), scene(0.0))
    frames.reset()
    assert frames.offer(at(0.3), scene(0.0))


def test_a_scene_is_known_again_in_other_light_and_not_upside_down() -> None:
    picture = np.random.default_rng(1).integers(0, 256, (6, 8, 3), np.uint8)
    picture = picture.repeat(80, axis=0).repeat(80, axis=1)
    darker = (0.4 * picture + 10.0).astype(np.uint8)
    one = scene_vector(picture)
    assert one.shape == (144,)
    assert one @ scene_vector(darker) > 0.99
    assert one @ scene_vector(picture[::-1]) < 0.6
    np.testing.assert_array_equal(scene_vector(np.full((480, 640, 3), 7, np.uint8)), 0.0)
