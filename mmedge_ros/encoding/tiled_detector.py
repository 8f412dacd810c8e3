"""Looks at a picture in two halves: people are seen at 1.7 times the size, for twice the time.

The halves are those of the longer side and overlap, so that whoever stands in the middle is whole
in one of them. A box that is cut at the inner edge of its half gives way to the whole one.
"""

from __future__ import annotations

import numpy as np

from mmedge_ros.core.data_types import Box, Detection
from mmedge_ros.encoding.detector import Detector, DetectorOutput, Image

# Share of the longer side that each half covers.
_COVERED = 0.6
# A box of which the other half's covers so much is the same person, or a part of them.
_SAME = 0.6


class TiledDetector:
    """A detector that sees halves of pictures; see `Detector`.

    :param detector: sees each half; its grid is left out
    :param most: boxes of a picture
    """

    def __init__(self, detector: Detector, most: int) -> None:
        self._detector = detector
        self._most = most
        self.labels, self.input_size = detector.labels, detector.input_size

    def warm_up(self) -> None:
        self._detector.warm_up()

    def detect(self, image: Image) -> DetectorOutput:
        side, along = max(image.shape[:2]), int(image.shape[1] < image.shape[0])
        covered = min(int(_COVERED * side) + 1, side)
        halves, embeddings = [], []
        for begin in (0, side - covered):
            span = slice(begin, begin + covered)
            output = self._detector.detect(image[span] if along else image[:, span])
            embeddings.append(output.embedding)
            halves.append([_moved(one, along, begin) for one in output.detections])
        found = sorted(_joined(*halves), key=lambda one: -one.score)
        embedding = np.asarray(np.mean(embeddings, axis=0), np.float32)
        return DetectorOutput(tuple(found[: self._most]), embedding)


def _moved(one: Detection, along: int, begin: int) -> Detection:
    x, y = (begin, 0) if along == 0 else (0, begin)
    x0, y0, x1, y1 = one.box
    return Detection(Box(x0 + x, y0 + y, x1 + x, y1 + y), one.score, one.label)


def _joined(first: list[Detection], second: list[Detection]) -> list[Detection]:
    """Put together what both halves saw; of one that both saw the larger box counts."""
    made, others = list(first), []
    for one in second:
        # Two of one half are two, however they overlap.
        place = next((n for n, other in enumerate(made) if _same(one, other)), None)
        if place is None:
            others.append(one)
        else:
            other = made[place]
            box = max(one.box, other.box, key=_area)
            made[place] = Detection(box, max(one.score, other.score), one.label)
    return [*made, *others]


def _same(one: Detection, other: Detection) -> bool:
    if one.label != other.label:
        return False
    a, b = one.box, other.box
    inside = Box(max(a.x0, b.x0), max(a.y0, b.y0), min(a.x1, b.x1), min(a.y1, b.y1))
    return _area(inside) > _SAME * min(_area(a), _area(b))


def _area(box: Box) -> float:
    return max(box.x1 - box.x0, 0.0) * max(box.y1 - box.y0, 0.0)
