"""Policy features: inputs of gating and model selection, from the units ready at an instant."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mmedge_lab.policies.steering import Facts
from mmedge_ros.core.data_types import (
    CAMERA,
    NS_PER_S,
    RADAR,
    Box,
    Detection,
    FloatArray,
    UnitFeatures,
)
from mmedge_ros.geometry.box_overlap import overlap
from mmedge_ros.windows.feature_extractor import cosine

# Detections from here on begin tracks.
STRONG = 0.4
_BORDERLINE = 0.15
# Pictures of one person overlap at least so much from one to the next.
_SAME = 0.3
_MOST_DETECTIONS = 40
_LARGEST = 10.0
_MOVING = 0.5


class PolicyFeatures(NamedTuple):
    """Durations in s; 0 where a value is unknown.

    A picture's *strong* detections are those that begin tracks.
    """

    # The camera: age of the newest picture, and its level (0, 1, 2, ...).
    picture_age: float
    level: float
    # The newest picture: strong detections, those near the threshold, scores and heights (log px).
    strong: float
    borderline: float
    best_score: float
    lowest_score: float
    tallest: float
    smallest: float
    mean_height: float
    # How many touch the border, and how much two of them overlap.
    at_border: float
    crossing: float
    # Strong detections over the window's pictures: mean and standard deviation.
    usual_strong: float
    flicker: float
    # Newest against the picture before: detections without a partner, the fastest (box widths per
    # second, and that times the age), and the fastest growth (per second).
    unmatched: float
    motion: float
    drift: float
    growth: float
    # The radar: age of the newest scan, change of the number of its returns (log) over the window
    # and since the newest picture, and how many (log) differ from most in velocity. The number
    # itself would identify the flight, and tens of flights are soon learnt by heart.
    scan_age: float
    returns_change: float
    returns_news: float
    moving: float
    # Embeddings: 1 where there are any, 1 - cosine of the first and the newest of each modality,
    # and the cosine of the newest of both.
    has_embeddings: float
    picture_change: float
    scan_change: float
    consistency: float


POLICY_FIELDS: tuple[str, ...] = PolicyFeatures._fields


def policy_features(facts: Facts, levels: Sequence[str] = ()) -> FloatArray:
    """Return the features (F,), in the order of `PolicyFeatures`.

    :param levels: of the camera, from the cheapest on
    """
    pictures = sorted(facts.features.get(CAMERA, ()), key=_stamp)
    scans = sorted(facts.features.get(RADAR, ()), key=_stamp)
    numbers = (
        *_camera(pictures, facts.now_ns, levels),
        *_radar(scans, pictures, facts.now_ns),
        *_embeddings(pictures, scans),
    )
    return np.nan_to_num(np.array(numbers, np.float64), posinf=_LARGEST, neginf=-_LARGEST)


def strong_detections(unit: UnitFeatures, least: float = STRONG) -> list[Detection]:
    """Return the detections of a picture from a score on, the surest first."""
    strong = [d for d in unit.detections if d.score >= least and _is_usable(d.box)]
    return sorted(strong, key=lambda d: -d.score)[:_MOST_DETECTIONS]


def partners(
    boxes: Sequence[Box], others: Sequence[Box], least: float = _SAME
) -> list[int | None]:
    """Return for each box the place of another one, each taken once, the best fits first."""
    fits = sorted(
        (-overlap(box, other), i, j)
        for i, box in enumerate(boxes)
        for j, other in enumerate(others)
    )
    matches: list[int | None] = [None] * len(boxes)
    for fit, i, j in fits:
        if -fit >= least and matches[i] is None and j not in matches:
            matches[i] = j
    return matches


def _is_usable(box: Box) -> bool:
    return all(map(math.isfinite, box)) and box.width > 0.0 and box.height > 0.0


def _stamp(unit: UnitFeatures) -> int:
    return unit.stamp_ns


def _age(units: Sequence[UnitFeatures], now_ns: int) -> float:
    if not units:
        return 1.0
    return min(max(now_ns - units[-1].stamp_ns, 0) / NS_PER_S, _LARGEST)


def _camera(
    pictures: Sequence[UnitFeatures], now_ns: int, levels: Sequence[str]
) -> tuple[float, ...]:
    age = _age(pictures, now_ns)
    if not pictures:
        return (age, *[0.0] * 16)
    newest = pictures[-1]
    strong = strong_detections(newest)
    boxes = [d.box for d in strong]
    scores = [d.score for d in strong] or [0.0]
    heights = [math.log(box.height) for box in boxes] or [0.0]
    width, height = newest.image_size
    border = sum(
        b.x0 < 2.0 or b.y0 < 2.0 or b.x1 > width - 2.0 or b.y1 > height - 2.0 for b in boxes
    )
    crossing = [overlap(a, b) for place, a in enumerate(boxes) for b in boxes[place + 1 :]]
    counts = [len(strong_detections(picture)) for picture in pictures]
    unmatched, motion, growth = _motion(pictures[-2:], boxes)
    return (
        age,
        float(levels.index(newest.level)) if newest.level in levels else 0.0,
        float(len(strong)),
        float(sum(abs(d.score - STRONG) < _BORDERLINE for d in newest.detections)),
        max(scores),
        min(scores),
        max(heights),
        min(heights),
        sum(heights) / len(heights),
        float(border) if width else 0.0,
        max(crossing, default=0.0),
        float(np.mean(counts)),
        float(np.std(counts)),
        unmatched,
        motion,
        motion * age,
        growth,
    )


def _motion(last: Sequence[UnitFeatures], boxes: Sequence[Box]) -> tuple[float, float, float]:
    if len(last) < 2:
        return 0.0, 0.0, 0.0
    dt = max(last[1].stamp_ns - last[0].stamp_ns, 1) / NS_PER_S
    before = [d.box for d in strong_detections(last[0])]
    matches = partners(boxes, before)
    motion = growth = 0.0
    for box, place in zip(boxes, matches, strict=True):
        if place is not None:
            old = before[place]
            right = (box.x0 + box.x1 - old.x0 - old.x1) / 2.0
            down = (box.y0 + box.y1 - old.y0 - old.y1) / 2.0
            motion = max(motion, math.hypot(right, down) / (box.width * dt))
            growth = max(growth, abs(math.log(box.height / old.height)) / dt)
    matched = sum(place is not None for place in matches)
    return float(len(boxes) + len(before) - 2 * matched), min(motion, 50.0), min(growth, 50.0)


def _radar(
    scans: Sequence[UnitFeatures], pictures: Sequence[UnitFeatures], now_ns: int
) -> tuple[float, ...]:
    age = _age(scans, now_ns)
    if not scans:
        return (age, *[0.0] * 3)
    newest = scans[-1].returns
    count = math.log1p(len(newest))
    at_picture = scans[0]
    for scan in scans:
        if pictures and scan.stamp_ns <= pictures[-1].stamp_ns:
            at_picture = scan
    moving = 0.0
    if len(newest):
        speeds = newest[:, 3].astype(np.float64)
        moving = float((np.abs(speeds - np.median(speeds)) > _MOVING).sum())
    return (
        age,
        count - math.log1p(len(scans[0].returns)),
        count - math.log1p(len(at_picture.returns)),
        math.log1p(moving),
    )


def _embeddings(
    pictures: Sequence[UnitFeatures], scans: Sequence[UnitFeatures]
) -> tuple[float, float, float, float]:
    if not pictures or not scans or not pictures[-1].embedding.size:
        return 0.0, 0.0, 0.0, 0.0
    return (
        1.0,
        1.0 - cosine(pictures[0].embedding, pictures[-1].embedding),
        1.0 - cosine(scans[0].embedding, scans[-1].embedding),
        cosine(pictures[-1].embedding, scans[-1].embedding),
    )
