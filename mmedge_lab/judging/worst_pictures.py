"""Keeps the pictures in which a detector is most wrong, to be looked at in one's own report."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import cv2
import numpy as np

from mmedge_lab.judging.detector_accuracy import SCORE, on_nobody
from mmedge_ros.core.data_types import Detection, FloatArray
from mmedge_ros.encoding.detector import Image
from mmedge_ros.replay.ground_truth import TrueFrame
from mmedge_ros.report.figure_style import FigureFile
from mmedge_ros.report.mot_metrics import MINIMUM_IOU
from mmedge_ros.report.truth_matching import counted_people
from mmedge_ros.tracking.data_association import intersection_over_union

_MOST = 12
_SIDE, _AROUND = 240, 1.5  # px; of the box, on each side of it
_TRUE, _FOUND = (80, 220, 80), (60, 140, 255)
_COLUMNS = 4


class _Kept(NamedTuple):
    badness: float
    number: int  # no two are alike, so that pictures are never compared
    crop: Image


@dataclass
class WorstPictures:
    """The tallest people who were missed, and the surest boxes on nobody, one a picture."""

    name: str
    _missed: list[_Kept] = field(default_factory=list)
    _false: list[_Kept] = field(default_factory=list)
    _seen: int = 0

    def take(self, image: Image, truth: TrueFrame, detections: Sequence[Detection]) -> None:
        """Look at one picture; see `judge_detector`."""
        found = np.array([d.box for d in detections if d.score >= SCORE], np.float64).reshape(
            -1, 4
        )
        scores = [d.score for d in detections if d.score >= SCORE]
        people = truth.boxes[counted_people(truth)]
        overlaps = intersection_over_union(people, found)
        missed = people[~(overlaps >= MINIMUM_IOU).any(axis=1)]
        if len(missed):
            box = max(missed, key=_height)
            self._keep(self._missed, _height(box), image, box, people, found)
        alone = on_nobody(found, truth)
        if alone.any():
            row = max(np.flatnonzero(alone).tolist(), key=scores.__getitem__)
            self._keep(self._false, scores[row], image, found[row], people, found)

    def _keep(
        self,
        kept: list[_Kept],
        badness: float,
        image: Image,
        box: FloatArray,
        people: FloatArray,
        found: FloatArray,
    ) -> None:
        self._seen += 1
        if len(kept) == _MOST and badness <= kept[0].badness:
            return
        entry = _Kept(badness, self._seen, _cut(image, box, people, found))
        (heapq.heappushpop if len(kept) == _MOST else heapq.heappush)(kept, entry)

    def figures(self) -> list[FigureFile]:
        """Return a sheet of each, the worst first."""
        made = []
        for name, kept, words in (
            ('missed', self._missed, 'The tallest people missed'),
            ('false', self._false, 'The surest boxes on nobody'),
        ):
            if kept:
                ordered = [entry.crop for entry in sorted(kept, reverse=True)]
                caption = 'Green: people; orange: what was found with a score of 0.25 and more.'
                title = f'{words} by {self.name}'
                made.append(
                    FigureFile(f'{self.name}_{name}.png', _sheet(ordered), title, caption, title)
                )
        return made


def _height(box: FloatArray) -> float:
    return float(box[3] - box[1])


def _cut(image: Image, box: FloatArray, people: FloatArray, found: FloatArray) -> Image:
    """Return a square around a box with little beside the picture, all boxes drawn."""
    x0, y0, x1, y1 = box.tolist()
    extent = np.array(image.shape[1::-1], np.float64)
    side = min((1.0 + 2.0 * _AROUND) * max(x1 - x0, y1 - y0), float(extent.max()))
    scale = _SIDE / side
    spare = extent - side
    corner = np.array([(x0 + x1 - side) / 2, (y0 + y1 - side) / 2])
    corner = np.where(spare > 0.0, np.clip(corner, 0.0, np.maximum(spare, 0.0)), spare / 2)
    matrix = np.array([[scale, 0.0, -scale * corner[0]], [0.0, scale, -scale * corner[1]]])
    crop = cv2.warpAffine(image, matrix, (_SIDE, _SIDE), flags=cv2.INTER_LINEAR)
    for boxes, colour in ((people, _TRUE), (found, _FOUND)):
        for each in (boxes - np.tile(corner, 2)) * scale:
            a, b, c, d = np.clip(np.round(each), -10_000, 10_000).astype(int).tolist()
            cv2.rectangle(crop, (a, b), (c, d), colour, 1)
    return np.asarray(crop, np.uint8)


def _sheet(crops: Sequence[Image]) -> bytes:
    rows = -(-len(crops) // _COLUMNS)
    columns = min(len(crops), _COLUMNS)
    sheet = np.zeros((rows * _SIDE, columns * _SIDE, 3), np.uint8)
    for place, crop in enumerate(crops):
        y, x = divmod(place, _COLUMNS)
        sheet[y * _SIDE : (y + 1) * _SIDE, x * _SIDE : (x + 1) * _SIDE] = crop
    return bytes(cv2.imencode('.png', sheet)[1].tobytes())
