"""How well a detector finds people in single pictures, without tracking.

Average precision is that of COCO (Lin et al. 2014) at an IoU of 0.5: detections are taken by
descending score, each meets the free person it overlaps best, and the whole area under the
precision envelope over recall counts. Boxes that `truth_matching` ignores are not judged, and in
a stratum neither are the people it leaves out nor unmatched boxes of other heights.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import Detection, FloatArray
from mmedge_ros.core.plain_values import plain_values
from mmedge_ros.encoding.detector import Detector, Image
from mmedge_ros.replay.ground_truth import PERSON, Conditions, TrueFrame
from mmedge_ros.report.mot_metrics import MINIMUM_IOU
from mmedge_ros.report.truth_matching import (
    MINIMUM_HEIGHT,
    Mask,
    counted_people,
    covered_boxes,
    uncounted_people,
)
from mmedge_ros.tracking.data_association import intersection_over_union

# Recall and precision are those of detections from this score on.
SCORE = 0.25
TALL_ENOUGH = 20.0
_SIZES = (MINIMUM_HEIGHT, TALL_ENOUGH, 40.0, 60.0, math.inf)
_RANGES = (0.0, 10.0, 20.0, 30.0, math.inf)
# A hand behind a leaf does not make a person hidden.
_UNHIDDEN = 0.95
_DIGITS = 4
_UNKNOWN = '?'


Watch = Callable[[Image, TrueFrame, Sequence[Detection]], None]


@dataclass(frozen=True)
class StratumAccuracy:
    """Figures of the people of one stratum; NaN where nothing can be said.

    ``ap50``: average precision at an IoU of 0.5. ``recall``: share of the people detected with
    a score of at least 0.25. ``precision``: share of right ones among those detections.
    """

    group: str
    name: str
    people: int
    ap50: float
    recall: float
    precision: float


@dataclass(frozen=True)
class DetectorAccuracy:
    """Figures over all pictures, then by strata.

    ``map50`` is the average precision for people of at least 8 px, ``map50_20px``,
    ``recall_20px`` and ``precision_20px`` are for those of at least 20 px, as are the strata
    that are none of size. ``boxes`` counts detections with a score of at least 0.25, and
    ``on_nobody`` those that touch no person at all. ``detect_ms`` is the median time of a
    picture, decoding not included.
    """

    pictures: int
    people: int
    map50: float
    map50_20px: float
    recall_20px: float
    precision_20px: float
    boxes: int
    on_nobody: int
    detect_ms: float
    strata: tuple[StratumAccuracy, ...]

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain values, null for what is not known."""
        plain: dict[str, Any] = plain_values(asdict(self), _DIGITS)
        return plain


class _People(NamedTuple):
    """The visible people, one row each, over all pictures."""

    heights: FloatArray
    visibility: FloatArray
    ranges: FloatArray
    surroundings: NDArray[np.str_]
    light: NDArray[np.str_]
    distance: NDArray[np.str_]


_NOBODY = _People(
    *(np.zeros(0, np.float64),) * 3,
    *(np.zeros(0, np.str_),) * 3,
)


class _Candidate(NamedTuple):
    """A detection; ``people`` are the places of those it may stand for, best overlap first.

    ``ignored``: not judged when it stands for none.
    """

    score: float
    height: float
    people: tuple[int, ...]
    ignored: bool
    on_nobody: bool
    conditions: Conditions


class _Stratum(NamedTuple):
    """Which people belong to it (``mask``, (P,)), and which unmatched detections count against it.

    Where false detections cannot be assigned to strata (a wrong box has no range) ``judged`` is
    False and only recall is computed.
    """

    group: str
    name: str
    mask: Mask
    heights: tuple[float, float] = (TALL_ENOUGH, math.inf)
    field: str = ''
    value: str = ''
    judged: bool = True


def judge_detector(
    detector: Detector,
    pictures: Iterable[tuple[Image, TrueFrame]],
    clock: Callable[[], float] = time.perf_counter,
    watch: Watch = lambda *_: None,
) -> DetectorAccuracy:
    """Run a detector on pictures and compare what it finds with the truth.

    :param detector: opened with a score threshold near 0, or average precision is cut short
    :param watch: gets every picture with what is true and what was found of people
    :raises EncodingError: if it fails on a picture
    """
    rows: list[_People] = []
    candidates: list[_Candidate] = []
    durations: list[float] = []
    known = 0
    for image, truth in pictures:
        begun = clock()
        detections = detector.detect(image).detections
        durations.append(clock() - begun)
        people_found = [d for d in detections if d.label == PERSON]
        candidates += _candidates(truth, people_found, known)
        watch(image, truth, people_found)
        rows.append(_rows(truth.select(counted_people(truth))))
        known += len(rows[-1].heights)
    candidates.sort(key=lambda c: -c.score)
    people = _People(*(np.concatenate(c) for c in zip(_NOBODY, *rows, strict=True)))
    strata = tuple(_judged(stratum, candidates) for stratum in _strata(people))
    whole, tall = strata[0], strata[1]
    shown = [c for c in candidates if c.score >= SCORE]
    return DetectorAccuracy(
        len(durations),
        whole.people,
        whole.ap50,
        tall.ap50,
        tall.recall,
        tall.precision,
        len(shown),
        sum(c.on_nobody for c in shown),
        1e3 * float(np.median(durations)) if durations else math.nan,
        strata,
    )


def average_precision(right: Sequence[bool], people: int) -> float:
    """Return the area under the envelope of precision over recall.

    :param right: for each judged detection, by descending score, whether it met a person
    :param people: how many people there were; NaN is returned for none
    """
    if not people:
        return math.nan
    hits = np.cumsum(np.array(right, np.float64))
    precision = hits / np.arange(1, len(hits) + 1)
    envelope = np.maximum.accumulate(precision[::-1])[::-1]
    return float(np.sum(envelope * np.diff(hits, prepend=0.0)) / people)


def _rows(people: TrueFrame) -> _People:
    conditions = (np.full(len(people.ids), text or _UNKNOWN) for text in people.conditions)
    return _People(people.heights, people.visibility, people.ranges, *conditions)


def _candidates(
    truth: TrueFrame, detections: Sequence[Detection], known: int
) -> Iterator[_Candidate]:
    """Yield the detections of one picture; its people have the places from ``known`` on."""
    boxes = np.array([d.box for d in detections], np.float64).reshape(-1, 4)
    overlaps = intersection_over_union(boxes, truth.boxes[counted_people(truth)])
    ignored = covered_boxes(boxes, truth.boxes[uncounted_people(truth)])
    alone = on_nobody(boxes, truth)
    for row, detection in enumerate(detections):
        order = np.argsort(-overlaps[row], kind='stable')
        met = (int(place) for place in order if overlaps[row, place] >= MINIMUM_IOU)
        yield _Candidate(
            detection.score,
            detection.box.height,
            tuple(known + place for place in met),
            bool(ignored[row]),
            bool(alone[row]),
            truth.conditions,
        )


def on_nobody(boxes: FloatArray, truth: TrueFrame) -> Mask:
    """Mark boxes (N, 4) that touch no person, counted or not."""
    people = truth.boxes[counted_people(truth) | uncounted_people(truth)]
    people = people[np.isfinite(people).all(axis=1)]
    return np.asarray(~(intersection_over_union(boxes, people) > 0.0).any(axis=1))


def _strata(people: _People) -> Iterator[_Stratum]:
    tall = people.heights >= TALL_ENOUGH
    yield _Stratum('all', _span(MINIMUM_HEIGHT), people.heights > 0.0, (MINIMUM_HEIGHT, math.inf))
    yield _Stratum('all', _span(TALL_ENOUGH), tall)
    for low, high in pairwise(_SIZES):
        mask = (people.heights >= low) & (people.heights < high)
        yield _Stratum('size', _span(low, high), mask, (low, high))
    for field in Conditions._fields:
        column = getattr(people, field)
        for name in sorted(set(column.tolist()) - {_UNKNOWN}):
            yield _Stratum(field, name, tall & (column == name), field=field, value=name)
            if field == 'surroundings':
                every, label = (MINIMUM_HEIGHT, math.inf), f'{name}, {_span(MINIMUM_HEIGHT)}'
                yield _Stratum('surroundings', label, column == name, every, field, name)
    if not np.isfinite(people.ranges).any():
        return  # of single pictures nothing else is known
    for low, high in pairwise(_RANGES):
        mask = tall & (people.ranges >= low) & (people.ranges < high)
        yield _Stratum('range', _span(low, high, 'm'), mask, judged=False)
    unhidden = people.visibility >= _UNHIDDEN
    yield _Stratum('visibility', 'not hidden', tall & unhidden, judged=False)
    yield _Stratum('visibility', 'partly hidden', tall & ~unhidden, judged=False)
    for name in sorted(set(people.light.tolist())):
        for low, high in pairwise(_SIZES):
            mask = (people.heights >= low) & (people.heights < high) & (people.light == name)
            label = f'{name}, {_span(low, high)}'
            yield _Stratum('light and size', label, mask & unhidden, judged=False)


def _span(low: float, high: float = math.inf, unit: str = 'px') -> str:
    return f'{low:g} {unit} and more' if math.isinf(high) else f'{low:g} to {high:g} {unit}'


def _judged(stratum: _Stratum, candidates: Iterable[_Candidate]) -> StratumAccuracy:
    """Match by descending score; ``candidates`` are sorted."""
    free = stratum.mask.copy()
    right: list[bool] = []
    shown = shown_right = 0
    for candidate in candidates:
        if stratum.field and getattr(candidate.conditions, stratum.field) != stratum.value:
            continue
        met = next((place for place in candidate.people if free[place]), None)
        if met is not None:
            free[met] = False
        elif _is_ignored(candidate, stratum):
            continue
        right.append(met is not None)
        if candidate.score >= SCORE:
            shown += 1
            shown_right += met is not None
    people = int(np.count_nonzero(stratum.mask))
    return StratumAccuracy(
        stratum.group,
        stratum.name,
        people,
        average_precision(right, people) if stratum.judged else math.nan,
        shown_right / people if people else math.nan,
        shown_right / shown if shown and stratum.judged else math.nan,
    )


def _is_ignored(candidate: _Candidate, stratum: _Stratum) -> bool:
    """Return whether an unmatched detection is neither right nor wrong in the stratum."""
    low, high = stratum.heights
    stands_for_others = any(not stratum.mask[place] for place in candidate.people)
    return candidate.ignored or stands_for_others or not low <= candidate.height < high
