"""Rivals on the same detections: figures of a public sequence, and what a gap costs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.mot_evaluation import evaluate_mot
from mmedge_lab.judging.mot_text import NO_CLASS, MotBoxes, read_mot_text
from mmedge_lab.rivals.trackers.mot_tracking import MotCamera, track_detections
from mmedge_lab.rivals.trackers.rival_trackers import RIVALS, track_with_rival
from mmedge_ros.report.mot_metrics import NO_ID


@pytest.fixture(params=sorted(RIVALS))
def rival(request: pytest.FixtureRequest) -> str:
    pytest.importorskip('trackers', reason='run ./mmedge install rivals for this test')
    return str(request.param)


def detections(*frames: int) -> MotBoxes:
    rows = [[n, NO_ID, 10.0 + n % 100, 20, 50.0 + n % 100, 120, 0.9, NO_CLASS] for n in frames]
    return MotBoxes.from_rows(rows)


def test_a_gap_ends_tracks_and_costs_little(rival: str) -> None:
    begin = time.process_time()
    tracks = track_with_rival(rival, detections(*range(1, 40), *range(10**9 - 40, 10**9)), 25.0)
    assert time.process_time() - begin < 30.0
    assert len(set(tracks.ids.tolist())) == 2


@pytest.mark.parametrize(
    ('name', 'mota', 'idf1', 'switches'),
    [('SORT', 0.563, 0.553, 8), ('ByteTrack', 0.579, 0.603, 5), ('OC-SORT', 0.571, 0.680, 3)],
)
def test_figures_of_a_public_sequence(
    data_folder: Path, name: str, mota: float, idf1: float, switches: int
) -> None:
    pytest.importorskip('trackers', reason='run ./mmedge install rivals for this test')
    folder = data_folder / 'mot_text/TUD-Campus'
    tracks = track_with_rival(name, read_mot_text(folder / 'det.txt'), 25.0)
    figures = evaluate_mot(read_mot_text(folder / 'gt.txt'), tracks)
    assert figures.mota == pytest.approx(mota, abs=0.001)
    assert figures.idf1 == pytest.approx(idf1, abs=0.001)
    assert figures.id_switches == switches


def squeezed(boxes: MotBoxes) -> MotBoxes:
    """The same with scores between 0.5 and 0.9."""
    scores, lowest = boxes.confidences, boxes.confidences.min()
    share = (scores - lowest) / (scores.max() - lowest)
    return replace(boxes, confidences=0.5 + 0.4 * share)


def with_false_boxes(boxes: MotBoxes, seed: int) -> MotBoxes:
    """The same with so many boxes on nobody, as large and as sure, that they are 30 % of all."""
    random = np.random.default_rng(seed)
    count = round(0.3 / 0.7 * len(boxes))
    like = random.integers(len(boxes), size=count)
    sizes = boxes.boxes[like, 2:] - boxes.boxes[like, :2]
    corners = random.uniform(0.0, (640.0, 480.0) - 0.8 * sizes)
    frames = np.concatenate([boxes.frames, random.choice(boxes.frames, count)])
    order = np.argsort(frames, kind='stable')
    return MotBoxes(
        frames[order],
        np.full(len(order), NO_ID),
        np.concatenate([boxes.boxes, np.hstack([corners, corners + sizes])])[order],
        np.concatenate([boxes.confidences, random.permutation(boxes.confidences[like])])[order],
        np.full(len(order), NO_CLASS),
    )


@pytest.mark.parametrize('spoilt', [squeezed, partial(with_false_boxes, seed=1)])
def test_poor_scores_and_false_boxes_leave_us_no_worse_than_sort(
    data_folder: Path, spoilt: Callable[[MotBoxes], MotBoxes]
) -> None:
    pytest.importorskip('trackers', reason='run ./mmedge install rivals for this test')
    folder = data_folder / 'mot_text/TUD-Campus'
    truth, found = read_mot_text(folder / 'gt.txt'), spoilt(read_mot_text(folder / 'det.txt'))
    ours = evaluate_mot(truth, track_detections(found, MotCamera(640, 480)))
    sort = evaluate_mot(truth, track_with_rival('SORT', found, 25.0))
    assert ours.mota >= sort.mota
    assert ours.idf1 >= sort.idf1


def test_a_missing_library_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, 'trackers', None)
    with pytest.raises(
        EvaluationError, match=r'package (trackers|supervision).*mmedge install rivals'
    ):
        track_with_rival('SORT', detections(1), 25.0)
