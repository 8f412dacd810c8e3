"""The tracker on detections alone: people are followed, and nothing of the future is used."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from mmedge_lab.judging.mot_evaluation import evaluate_mot
from mmedge_lab.judging.mot_text import NO_CLASS, MotBoxes, read_mot_text
from mmedge_lab.rivals.trackers.mot_tracking import MotCamera, track_detections

CAMERA = MotCamera(640, 480)


def walkers(frames: Sequence[int], fps: float = 25.0, scale: float = 1.0) -> MotBoxes:
    """Two people who cross the picture, one nearer than the other; they meet at 3 s."""
    rows: list[list[float]] = []
    for frame in frames:
        time = frame / fps
        for number, (x, y, height) in enumerate(
            [(70 + 80 * time, 250, 200), (490 - 60 * time, 240, 140)], 1
        ):
            half = 0.2 * height
            box = [x - half, y - height / 2, x + half, y + height / 2]
            rows.append([frame, number, *(scale * v for v in box), 1.0, NO_CLASS])
    return MotBoxes.from_rows(rows)


def without_ids(boxes: MotBoxes, noise: float = 0.0, seed: int = 0) -> MotBoxes:
    random = np.random.default_rng(seed)
    heights = boxes.boxes[:, 3:] - boxes.boxes[:, 1:2]
    shaken = boxes.boxes + noise * heights * random.standard_normal(boxes.boxes.shape)
    return MotBoxes(
        boxes.frames, np.full(len(boxes), -1), shaken, boxes.confidences, boxes.classes
    )


@pytest.mark.parametrize(('fps', 'scale'), [(10.0, 1.0), (25.0, 1.0), (60.0, 3.0)])
def test_people_are_followed_at_any_rate_and_size(fps: float, scale: float) -> None:
    truth = walkers(range(1, int(5 * fps)), fps, scale)
    camera = MotCamera(round(640 * scale), round(480 * scale), fps)
    figures = evaluate_mot(truth, track_detections(without_ids(truth, 0.02), camera))
    assert figures.id_switches == 0
    assert figures.idf1 > 0.95
    assert figures.result_ids == 2


def test_a_frame_is_reported_without_knowing_what_follows() -> None:
    whole = without_ids(walkers(range(1, 80)), 0.03)
    start = whole.select(whole.frames <= 40)
    tracks, begun = track_detections(whole, CAMERA), track_detections(start, CAMERA)
    known = tracks.select(tracks.frames <= 40)
    np.testing.assert_array_equal(known.frames, begun.frames)
    np.testing.assert_array_equal(known.ids, begun.ids)
    np.testing.assert_array_equal(known.boxes, begun.boxes)


def test_somebody_who_left_long_ago_is_somebody_else_when_a_billion_frames_later() -> None:
    first, later = walkers(range(1, 20)), walkers(range(1, 20))
    far = 999_999_000
    both = MotBoxes(
        np.concatenate([first.frames, later.frames + far]),
        *(
            np.concatenate([getattr(first, name), getattr(later, name)])
            for name in ('ids', 'boxes', 'confidences', 'classes')
        ),
    )
    tracks = track_detections(both, CAMERA)
    early, late = tracks.frames < far, tracks.frames > far
    assert set(tracks.ids[early]).isdisjoint(tracks.ids[late])
    assert late.any()
    assert len(np.unique(tracks.frames)) < 100


def test_the_picture_reaches_as_far_as_the_boxes_if_nobody_says_otherwise() -> None:
    boxes = MotBoxes.from_rows([[1, -1, 0, 0, 100.2, 50, 1, -1], [1, -1, 0, 0, 9, 80, 1, -1]])
    assert MotCamera().fitted(boxes) == MotCamera(101, 80)
    assert MotCamera(640, 480, 30.0).fitted(boxes) == MotCamera(640, 480, 30.0)
    assert MotCamera().fitted(MotBoxes.from_rows([])) == MotCamera(1, 1)


def test_the_default_tracker_beats_the_example_on_recorded_detections(data_folder: Path) -> None:
    folder = data_folder / 'mot_text' / 'TUD-Campus'
    truth = read_mot_text(folder / 'gt.txt')
    example = evaluate_mot(truth, read_mot_text(folder / 'tracker_example.txt'))
    ours = evaluate_mot(truth, track_detections(read_mot_text(folder / 'det.txt'), MotCamera()))
    assert ours.mota > example.mota
    assert ours.idf1 > example.idf1 + 0.05
