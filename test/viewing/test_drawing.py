"""What is drawn into pictures: it tells the truth about the instant and can be read."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mmedge_ros.core.data_types import NS_PER_S, Box, Decision, Track
from mmedge_ros.viewing import drawing
from mmedge_ros.viewing.drawing import (
    WARNING,
    WHITE,
    annotate,
    colour_of,
    draw_returns,
    status_bar,
)

NOW_NS = 1_700_000_000 * NS_PER_S
GREY = 60


def track(number: int, box: Box | None, drift: tuple[float, float] = (0.0, 0.0)) -> Track:
    place = np.array([3.0, 4.0, 0.0])
    return Track(
        number, 'person', 0.9, box, place, np.zeros(3), np.eye(6), ('camera',), 0.0, drift
    )


def decision(*tracks: Track) -> Decision:
    return Decision(NOW_NS, NOW_NS, 'base_link', tracks, {})


def picture(width: int = 640, height: int = 480) -> Any:
    return np.full((height, width, 3), GREY, np.uint8)


def columns_of(drawn: Any, number: int) -> list[int]:
    """Columns in which the colour of a track fills many rows: the sides of its box."""
    colour = np.array([round(255 * c) for c in colour_of(number)])[::-1]
    counts = (drawn == colour).all(axis=2).sum(axis=0)
    return np.flatnonzero(counts > 0.9 * counts.max()).tolist()


class Labels:
    """Notes the labels that are drawn: their areas, and the text within."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.areas: list[tuple[int, int, int, int]] = []
        self.texts: list[str] = []
        self._rectangle, self._put_text = cv2.rectangle, cv2.putText
        monkeypatch.setattr(drawing.cv2, 'rectangle', self.rectangle)
        monkeypatch.setattr(drawing.cv2, 'putText', self.put_text)

    def rectangle(self, image: Any, low: Any, high: Any, colour: Any, thickness: int) -> None:
        if thickness < 0:
            self.areas.append((*low, *high))
        self._rectangle(image, low, high, colour, thickness)

    def put_text(
        self, image: Any, text: str, at: Any, font: int, scale: float, *more: Any
    ) -> None:
        (width, height), _ = cv2.getTextSize(text, font, scale, 1)
        x0, y0, x1, y1 = self.areas[-1]
        assert x0 <= at[0]
        assert at[0] + width <= x1 + 1
        assert y0 <= at[1] - height
        assert at[1] <= y1
        self.texts.append(text)
        self._put_text(image, text, at, font, scale, *more)


def test_a_box_is_moved_to_the_instant_of_the_picture() -> None:
    moving = decision(track(1, Box(100, 100, 200, 300), drift=(400.0, 0.0)))
    now = columns_of(annotate(picture(), NOW_NS, moving), 1)
    later = columns_of(annotate(picture(), NOW_NS + NS_PER_S // 10, moving), 1)
    assert now[0] in range(98, 102)
    assert [column - 40 for column in later] == now


def test_a_decision_too_old_to_be_true_of_a_picture_is_not_drawn() -> None:
    known = decision(track(1, Box(100, 100, 200, 300)))
    drawn = annotate(picture(), NOW_NS + 2 * NS_PER_S, known)
    assert (drawn == GREY).all()


def test_who_is_seen_by_the_radar_alone_has_a_dashed_box() -> None:
    box = Box(100, 100, 200, 300)
    whole, dashed = (
        (annotate(picture(), NOW_NS, decision(of))[110:300, 99:102] != GREY).any(axis=2).mean()
        for of in (track(1, box), replace(track(1, None), projected=box))
    )
    assert 0.3 * whole < dashed < 0.7 * whole


coordinates = st.floats(-200.0, 900.0)


def test_boxes_follow_the_scale_of_the_picture() -> None:
    known = decision(track(1, Box(10, 10, 20, 40)))
    drawn = annotate(picture(), NOW_NS, known, scale=10.0)
    assert columns_of(drawn, 1)[0] in range(98, 102)
    assert columns_of(drawn, 1)[-1] in range(198, 203)


def test_a_label_names_the_track_its_range_and_its_speed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    labels = Labels(monkeypatch)
    known = decision(track(7, Box(100, 100, 200, 300)), track(8, None))
    annotate(picture(), NOW_NS, known)
    annotate(picture(), NOW_NS, known, origin=np.array([3.0, 4.0, 12.0]))
    assert labels.texts == ['7  5.0 m  0.0 m/s', '7  12.0 m  0.0 m/s']


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    corners=st.lists(st.tuples(*[coordinates] * 4), min_size=1, max_size=12),
    size=st.sampled_from([(640, 480), (1280, 720), (64, 48), (200, 900)]),
)
def test_labels_stay_in_the_picture_and_cover_no_other(
    monkeypatch: pytest.MonkeyPatch,
    corners: list[tuple[float, ...]],
    size: tuple[int, int],
) -> None:
    with monkeypatch.context() as patch:
        labels = Labels(patch)
        tracks = [track(number, Box(*box)) for number, box in enumerate(corners)]
        annotate(picture(*size), NOW_NS, decision(*tracks))
    for x0, y0, x1, y1 in labels.areas:
        assert 0 <= x0 <= x1 < size[0]
        assert 0 <= y0 <= y1 < size[1]
    for first, second in combinations(labels.areas, 2):
        apart = first[2] < second[0] or second[2] < first[0]
        assert apart or first[3] < second[1] or second[3] < first[1]


# How colours look with one kind of cones missing (Machado, Oliveira, Fernandes 2009), linear RGB.
BLINDNESS = (
    ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    ((0.152, 1.053, -0.205), (0.115, 0.786, 0.099), (-0.004, -0.048, 1.052)),
    ((0.367, 0.861, -0.228), (0.280, 0.673, 0.047), (-0.012, 0.043, 0.969)),
    ((1.256, -0.077, -0.179), (-0.078, 0.931, 0.148), (0.005, 0.691, 0.304)),
)


@pytest.mark.parametrize('edge', [float('nan'), float('inf'), 1e300])
def test_a_box_that_cannot_be_drawn_does_no_harm(edge: float) -> None:
    annotate(picture(), NOW_NS, decision(track(1, Box(0.0, 0.0, edge, 50.0))))


@pytest.mark.parametrize('matrix', BLINDNESS)
def test_the_colours_of_tracks_stay_apart_for_colour_blind_people(matrix: Any) -> None:
    linear = np.array([colour_of(number) for number in range(6)]) ** 2.2
    seen = np.clip(linear @ np.array(matrix).T, 0.0, 1.0) ** (1 / 2.2)
    lab = cv2.cvtColor(seen.astype(np.float32)[None], cv2.COLOR_RGB2Lab)[0]
    apart = [float(np.linalg.norm(a - b)) for a, b in combinations(lab, 2)]
    assert min(apart) > 14.0  # 2.3 is the least difference people notice


def test_people_really_there_are_dashed_and_no_label_covers_them() -> None:
    truth = [Box(100, 60, 160, 98)]  # right where the label of the track would be
    known = decision(track(1, Box(100, 100, 200, 300)))
    drawn = annotate(picture(), NOW_NS, known, truth=truth)
    upper = (drawn[60, 100:160] == WHITE).all(axis=1)
    assert 0.3 < upper.mean() < 0.9
    assert (drawn[65:95, 105:155] == GREY).all()


def test_returns_are_dots_and_those_that_move_stand_out() -> None:
    drawn = picture()
    draw_returns(drawn, np.array([[100.0, 100.0], [300.0, 100.0]]), np.array([True, False]))
    moving, still = drawn[100, 100].astype(int), drawn[100, 300].astype(int)
    assert moving.max() - moving.min() > 100
    assert still.max() == still.min() > GREY
    assert (drawn[100, 200] == GREY).all()


def test_a_status_bar_leaves_out_what_does_not_fit() -> None:
    short = status_bar(200, 24, [('12.0 s', WHITE), ('radar missing', WARNING)])
    long = status_bar(200, 24, [('12.0 s', WHITE), ('radar missing', WARNING), ('x' * 40, WHITE)])
    assert (short == long).all()
    assert (short[:, :, 2].astype(int) - short[:, :, 0] > 80).any()  # the warning's orange
