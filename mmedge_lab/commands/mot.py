"""What `mmedge lab mot` does: boxes in MOTChallenge text are tracked, or judged by the truth."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import typer

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.mot_evaluation import evaluate_mot
from mmedge_lab.judging.mot_text import MotBoxes, read_mot_text, scores, write_mot_text
from mmedge_lab.rivals.trackers.mot_tracking import MotCamera, track_detections
from mmedge_lab.rivals.trackers.rival_trackers import OURS, RIVALS, track_with_rival
from mmedge_ros.commands.display import say
from mmedge_ros.commands.tables import add_row, new_table, print_parts
from mmedge_ros.core.plain_values import plain_values
from mmedge_ros.report.mot_metrics import MINIMUM_IOU, NO_ID
from mmedge_ros.report.report_files import write_files

_DIGITS = 6
_ROWS = (
    ('mota', 'MOTA', '1 - (false + missed boxes + switches) / true boxes'),
    ('idf1', 'IDF1', 'F1 of boxes with the one id assigned to their person'),
    ('idp', 'IDP', 'precision of the same'),
    ('idr', 'IDR', 'recall of the same'),
    ('recall', 'recall', 'share of true boxes that are matched'),
    ('covered', 'covered', 'share of true boxes that any box overlaps'),
    ('precision', 'precision', 'share of boxes that are matched'),
    ('motp', 'MOTP', 'mean IoU of matched boxes'),
    ('id_switches', 'id switches', 'a person goes on under another id'),
    ('fragmentations', 'fragmentations', 'a person is lost and found again'),
    ('false_positives', 'false positives', 'boxes without a match'),
    ('false_negatives', 'false negatives', 'true boxes without a match'),
    ('mostly_tracked', 'mostly tracked', 'people matched in 80 % of their frames or more'),
    ('partially_tracked', 'partially tracked', 'people in between'),
    ('mostly_lost', 'mostly lost', 'people matched in less than 20 %'),
)
_SHORT_ROWS = ('mota', 'idf1', 'id_switches', 'false_positives', 'false_negatives', 'result_ids')


def run_mot(
    boxes: Path, truth: Path | None, out: Path | None, rivals: bool, camera: MotCamera
) -> None:
    """Track boxes, or judge them by the truth where one is named.

    :param out: file for tracks or figures; needed to track
    :param rivals: the boxes are detections that every tracker is given
    :raises EvaluationError: for a file that cannot be used or written, or without the rivals
    """
    if truth is not None:
        figures = (_compare if rivals else _judge)(truth, boxes, camera)
        if out is not None:
            known = plain_values({'minimum_iou': MINIMUM_IOU, **figures}, _DIGITS)
            write_files(out.parent, {out.name: (json.dumps(known, indent=2) + '\n').encode()})
    elif out is not None:
        _track(boxes, out, camera)


def _judge(truth: Path, result: Path, _: MotCamera) -> dict[str, Any]:
    """Compare a tracker's output with the ground truth and print the figures."""
    true_boxes, boxes = _read(truth), _read(result)
    figures = evaluate_mot(true_boxes, boxes)
    if figures.result_ids is None:
        say(f'note: {result} has boxes without an id: the figures of identity are left out')
    say(
        f'{figures.frames} frames, {figures.true_boxes} true boxes of {figures.true_ids} people, '
        f'{figures.result_boxes} boxes to judge, matched at an IoU of {MINIMUM_IOU:g}'
    )
    table = new_table('', 'figure', 'value', 'meaning', left=('meaning',))
    for name, title, meaning in _ROWS:
        add_row(table, title, _shown(getattr(figures, name)), meaning)
    print_parts(table)
    return dataclasses.asdict(figures)


def _compare(truth: Path, detections: Path, camera: MotCamera) -> dict[str, Any]:
    """Track detections with this tracker and its rivals, and compare their figures."""
    true_boxes, boxes = _read(truth), _read(detections)
    if (boxes.ids != NO_ID).any():
        raise EvaluationError(
            f'{detections} has ids: it is the result of a tracker. With --rivals, give the '
            'detections that each is to track, with the id -1'
        )
    results = {name: track_with_rival(name, boxes, camera.fps) for name in RIVALS}
    results[OURS] = track_detections(boxes, camera)
    figures = {name: evaluate_mot(true_boxes, result) for name, result in results.items()}
    some = figures[OURS]
    say(
        f'{some.frames} frames, {some.true_boxes} true boxes of {some.true_ids} people, '
        f'{len(boxes)} detections, matched at an IoU of {MINIMUM_IOU:g}'
    )
    table = new_table('', 'tracker', 'MOTA', 'IDF1', 'id switches', 'false', 'missed', 'ids')
    for name, values in figures.items():
        add_row(table, name, *(_shown(getattr(values, row)) for row in _SHORT_ROWS))
    print_parts(table)
    return {'trackers': {name: dataclasses.asdict(values) for name, values in figures.items()}}


def _track(detections: Path, out: Path, camera: MotCamera) -> None:
    """Track the boxes of a file of detections and write the tracks."""
    boxes = _read(detections)
    if not len(boxes):
        say(f'note: {detections} holds no box; neither will the result')
    tracks = track_detections(boxes, camera)
    write_mot_text(out, tracks)
    used = camera.fitted(boxes)
    say(
        f'{len(boxes)} boxes, picture {used.width} x {used.height} px at {used.fps:g} per second; '
        f'confidences: {scores(boxes.confidences)[1]}'
    )
    say(f'{len(tracks)} boxes of {len(set(tracks.ids.tolist()))} tracks')
    typer.echo(out)


def _read(path: Path) -> MotBoxes:
    boxes = read_mot_text(path)
    for note in boxes.notes:
        say(f'note: {note}')
    return boxes


def _shown(value: float | None) -> str:
    if value is None or math.isnan(value):
        return '-'
    return str(value) if isinstance(value, int) else f'{value:.3f}'
