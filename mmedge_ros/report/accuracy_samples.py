"""Samples of accuracy: one for each person and instant, and for each located person; their NEES.

NEES is the normalised estimation error squared. Where errors are as large as the covariances say,
that of a state of k dimensions follows the chi-squared distribution with k degrees of freedom, and
the average over n independent samples lies within the quantiles of chi-squared(n k) / n
(Bar-Shalom, Li, Kirubarajan, "Estimation with Applications to Tracking and Navigation",
section 5.4). Above the bounds the tracker is overconfident, below them underconfident.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from mmedge_ros.core.data_types import NS_PER_S, Decision, FloatArray, Track
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.replay.ground_truth import GroundTruth, TrueFrame
from mmedge_ros.report.mot_metrics import MINIMUM_IOU
from mmedge_ros.report.truth_matching import (
    Aligned,
    Mask,
    Places,
    best_overlaps,
    counted_people,
    person_boxes,
)

# Of streaming accuracy (Li, Wang, Ramanan, ECCV 2020).
STREAM_STEP_NS = NS_PER_S // 100
_HORIZONTAL_STATE = [0, 1, 3, 4]
Texts = NDArray[np.str_]
Instants = NDArray[np.int64]
_NO_IDS, _NO_NUMBERS, _NO_TEXTS = np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.str_)
_CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Consistency:
    """Average NEES of ``samples`` independent samples, NaN without any.

    ``low`` and ``high`` are where that of a consistent tracker lies, 19 times of 20; ``in_bounds``
    is None without a sample. ``outside_95`` is the share of single samples beyond the bound that
    95 % of them should keep.
    """

    mean: float
    dof: int
    low: float
    high: float
    samples: int
    in_bounds: bool | None
    outside_95: float


def average_bounds(dof: int, samples: int) -> tuple[float, float]:
    """Return the 95 % bounds of the average of that many independent NEES samples."""
    if not samples:
        return math.nan, math.nan
    tail = (1.0 - _CONFIDENCE) / 2.0
    low, high = (float(chdtri(samples * dof, p)) / samples for p in (1.0 - tail, tail))
    return low, high


def consistency_of(values: FloatArray, dof: int) -> Consistency:
    """Average independent NEES samples (N,); values that are not finite are left out."""
    finite = values[np.isfinite(values)]
    low, high = average_bounds(dof, len(finite))
    if not len(finite):
        return Consistency(math.nan, dof, low, high, 0, None, math.nan)
    mean, bound = float(finite.mean()), chdtri(dof, 1.0 - _CONFIDENCE)
    outside = float((finite > bound).mean())
    return Consistency(mean, dof, low, high, len(finite), low <= mean <= high, outside)


def nees(errors: FloatArray, covariances: FloatArray) -> FloatArray:
    """Return the NEES (N,) of errors (N, k) under covariances (N, k, k).

    NaN where the covariance is none: not finite, or not positive definite.
    """
    values = np.full(len(errors), np.nan)
    for place, (error, covariance) in enumerate(zip(errors, covariances, strict=True)):
        if not (np.isfinite(error).all() and np.isfinite(covariance).all()):
            continue
        try:
            lower = np.linalg.cholesky(covariance)
        except np.linalg.LinAlgError:
            continue
        whitened = np.linalg.solve(lower, error)
        values[place] = float(whitened @ whitened)
    return values


def thinned(stamps_ns: Sequence[int], numbers: Sequence[int], spacing: float) -> NDArray[np.intp]:
    """Choose samples of each number (a track's id) at least ``spacing`` seconds apart.

    The errors of one track follow from one another; only after a while are they new ones.
    """
    spacing_ns = round(spacing * NS_PER_S)
    last: dict[int, int] = {}
    chosen = []
    for place in np.argsort(np.asarray(stamps_ns, np.int64), kind='stable').tolist():
        stamp_ns, number = stamps_ns[place], numbers[place]
        if number not in last or stamp_ns - last[number] >= spacing_ns:
            last[number] = stamp_ns
            chosen.append(place)
    return np.array(chosen, np.intp)


class PersonSamples(NamedTuple):
    """One row for each visible person at each instant; columns (S,).

    ``heights`` px, ``ranges`` m (NaN unknown), ``overlaps`` the IoU of the box assigned (0
    missed), ``met`` whether some box meets the person with an IoU of at least 0.5.
    """

    stamps_ns: Instants
    ids: NDArray[np.int64]
    heights: FloatArray
    visibility: FloatArray
    ranges: FloatArray
    overlaps: FloatArray
    met: Mask
    surroundings: Texts
    light: Texts
    distance: Texts

    def select(self, chosen: Mask) -> PersonSamples:
        """Return the rows a mask (S,) chooses."""
        return PersonSamples._make(column[chosen] for column in self)

    @property
    def mean_iou(self) -> float:
        """Mean of the overlaps, NaN without a sample."""
        return float(self.overlaps.mean()) if len(self.overlaps) else np.nan

    @property
    def recall(self) -> float:
        """Share of people met by a box, NaN without a sample."""
        return float(self.met.mean()) if len(self.met) else np.nan


class ErrorSamples(NamedTuple):
    """One row for each person met by a track's box at a state time; columns (S,).

    ``ranges`` are the true ones from the sensor in m, ``range_errors`` estimated minus true;
    ``position_errors`` m are horizontal distances. ``nees`` is of the horizontal position and
    velocity (4 degrees of freedom).
    """

    stamps_ns: Instants
    tracks: NDArray[np.int64]
    ranges: FloatArray
    range_errors: FloatArray
    position_errors: FloatArray
    nees: FloatArray

    def select(self, chosen: Mask | Places) -> ErrorSamples:
        """Return the rows a mask (S,) or places choose."""
        return ErrorSamples._make(column[chosen] for column in self)


_NO_PEOPLE = PersonSamples(
    *(_NO_IDS,) * 2, *(_NO_NUMBERS,) * 4, np.zeros(0, np.bool_), *(_NO_TEXTS,) * 3
)
_NO_ERRORS = ErrorSamples(*(_NO_IDS,) * 2, *(_NO_NUMBERS,) * 4)


def joined_people(parts: Sequence[PersonSamples]) -> PersonSamples:
    """Put samples after one another."""
    return PersonSamples._make(
        np.concatenate(column) for column in zip(_NO_PEOPLE, *parts, strict=True)
    )


def joined_errors(parts: Sequence[ErrorSamples]) -> ErrorSamples:
    """Put samples after one another."""
    return ErrorSamples._make(
        np.concatenate(column) for column in zip(_NO_ERRORS, *parts, strict=True)
    )


def person_samples(
    stamp_ns: int, people: TrueFrame, overlaps: FloatArray, met: Mask
) -> PersonSamples:
    """Make the rows of one instant; ``people`` holds only visible people."""
    surroundings, light, distance = (
        np.full(len(people.ids), text, f'<U{max(len(text), 1)}') for text in people.conditions
    )
    return PersonSamples(
        np.full(len(people.ids), stamp_ns, np.int64),
        people.ids,
        people.heights,
        people.visibility,
        people.ranges,
        overlaps,
        met,
        surroundings,
        light,
        distance,
    )


def error_samples(stamp_ns: int, tracks: Sequence[Track], truth: Aligned) -> ErrorSamples:
    """Make the rows of one state time: each track beside the person it met.

    :param truth: of the people met, in the order of the tracks
    """
    if not tracks:
        return _NO_ERRORS
    estimated = np.array([t.position for t in tracks], np.float64).reshape(-1, 3)
    moving = np.array([t.velocity for t in tracks], np.float64).reshape(-1, 3)
    spreads = np.array([t.covariance for t in tracks], np.float64).reshape(-1, 6, 6)
    with np.errstate(over='ignore', invalid='ignore'):  # of a track that diverged
        offsets, faster = estimated - truth.positions, moving - truth.velocities
        state = np.concatenate([offsets, faster], axis=1)[:, _HORIZONTAL_STATE]
        return ErrorSamples(
            np.full(len(tracks), stamp_ns, np.int64),
            np.array([t.id for t in tracks], np.int64),
            truth.ranges,
            np.linalg.norm(estimated - truth.sensor, axis=1) - truth.ranges,
            np.linalg.norm(offsets[:, :2], axis=1),
            nees(state, spreads[:, _HORIZONTAL_STATE][:, :, _HORIZONTAL_STATE]),
        )


def published_results(
    record: RunRecord, truth: GroundTruth, at_once: bool = False, updates: bool = True
) -> Iterator[tuple[int, TrueFrame, Decision | None]]:
    """Yield every 10 ms the instant, what is true then, and what was published last.

    The options are those of `stream_samples`; before the first publication the result is None.
    """

    def known_ns(decision: Decision) -> int:
        return decision.state_ns if at_once else decision.published_ns

    results = [*record.decisions, *(record.updates if updates else ())]
    results.sort(key=lambda d: (known_ns(d), d.window_end_ns))
    latest, published = None, 0
    for now_ns in truth.instants(STREAM_STEP_NS):
        while published < len(results) and known_ns(results[published]) <= now_ns:
            latest, published = results[published], published + 1
        frame = truth.frame_at(now_ns)
        if frame is not None:
            yield now_ns, frame, latest


def stream_samples(
    record: RunRecord,
    truth: GroundTruth,
    *,
    at_once: bool = False,
    updates: bool = True,
) -> PersonSamples:
    """Compare every 10 ms the latest published result with where people are then.

    Its boxes are moved to that moment by their own velocities. Before the first publication all
    people are missed.

    :param at_once: as if each result had been published at its state time, without latency
    :param updates: whether what was published between decisions counts as well
    """
    size, parts = picture_size(record), []
    for now_ns, frame, latest in published_results(record, truth, at_once, updates):
        people = frame.select(counted_people(frame))
        if not len(people.ids):
            continue
        overlaps = np.zeros(len(people.ids))
        if latest is not None:
            elapsed = (now_ns - latest.state_ns) / NS_PER_S
            overlaps = best_overlaps(people.boxes, person_boxes(latest.tracks, elapsed, size)[1])
        parts.append(person_samples(now_ns, people, overlaps, overlaps >= MINIMUM_IOU))
    return joined_people(parts)


def picture_size(record: RunRecord) -> tuple[int, int]:
    """Width and height of the pictures of a run, (0, 0) where it is unknown."""
    if record.camera is not None:
        return record.camera.width, record.camera.height
    sizes = (unit.image_size for unit in record.features)
    return next((size for size in sizes if all(size)), (0, 0))


def windows_without_decision(record: RunRecord, truth: GroundTruth) -> Iterator[int]:
    """Yield the window ends between the first and the last decision that brought none."""
    ends = {decision.window_end_ns for decision in record.decisions}
    if ends:
        first_ns, last_ns = min(ends), max(ends)
        for end_ns in truth.instants(round(record.stride * NS_PER_S)):
            if first_ns < end_ns < last_ns and end_ns not in ends:
                yield end_ns
