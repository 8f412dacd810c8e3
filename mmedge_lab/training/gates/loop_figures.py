"""What a flight lost with a gate, and what it saved, beside its reference."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from mmedge_lab.training.gates.certificate import FlightLoss
from mmedge_lab.training.gates.closed_loop import GatedRun
from mmedge_ros.data_types import CAMERA, NS_PER_S, Decision
from mmedge_ros.records.run_record import RunRecord
from mmedge_ros.report.accuracy_samples import (
    STREAM_STEP_NS,
    PersonSamples,
    picture_size,
    stream_samples,
)
from mmedge_ros.report.truth_matching import MINIMUM_IOU, Mask
from mmedge_ros.skipping import SkippingError
from mmedge_ros.skipping.box_loss import box_loss, boxes_at

# Who has been in view this long without a break is held. Published boxes are late: half of the
# IoU that counts at their own time is enough.
_HELD_NS = NS_PER_S
_IN_VIEW_IOU = 0.5 * MINIMUM_IOU
# Published boxes are compared with those of the reference so often.
_SHOWN_STEP_NS = NS_PER_S // 20


class _Stream(NamedTuple):
    """Samples of a reference every 10 ms, and which are of people whom it had in view."""

    samples: PersonSamples
    held: Mask


@dataclass(frozen=True)
class FlightFigures:
    """One flight with one rule: its loss, and encoder calls of the slow modality.

    ``iou`` is the sum of the streaming IoU of the reference over ``loss.people`` samples.
    ``shown`` instants of published boxes have a loss against those of the reference of
    ``shown_lost`` in all. ``early_by`` is the median of window end minus publication of early
    decisions, s.
    """

    loss: FlightLoss
    encoded: int
    reference_encoded: int
    iou: float
    shown: int
    shown_lost: float
    early_by: float = math.nan
    audits: tuple[float, ...] = ()


class ReferenceFlight:
    """A run in which nothing is skipped, and what others lose against it."""

    def __init__(self, record: RunRecord) -> None:
        self.record = record
        self._size = picture_size(record)
        self._end_ns = max((d.window_end_ns for d in record.decisions), default=0)
        self._stream: _Stream | None = None

    def figures(self, run: GatedRun) -> FlightFigures:
        """Put a run beside the reference.

        :raises SkippingError: if the flight has no ground truth
        """
        ours, (samples, held) = self._stream_of(run.record), self._of_reference()
        shown = [
            box_loss(boxes_at(theirs, now_ns, self._size), boxes_at(mine, now_ns, self._size))
            for now_ns, theirs, mine in _published(self.record, run.record)
        ]
        loss = FlightLoss(
            len(samples.overlaps),
            float(samples.overlaps.sum() - ours.overlaps.sum()),
            int(held.sum()),
            int(_in_view(samples)[held].sum()) - int(_in_view(ours)[held].sum()),
            len(run.early),
            sum(decision.loss for decision in run.early),
        )
        return FlightFigures(
            loss,
            encodes(run.record),
            encodes(self.record),
            float(samples.overlaps.sum()),
            len(shown),
            sum(shown),
            float(np.median([d.early_by for d in run.early])) if run.early else math.nan,
            run.audits,
        )

    def _of_reference(self) -> _Stream:
        if self._stream is None:
            samples = self._stream_of(self.record)
            self._stream = _Stream(samples, held_people(samples))
        return self._stream

    def _stream_of(self, record: RunRecord) -> PersonSamples:
        truth = self.record.truth
        if truth is None or not truth.scenes:
            raise SkippingError(
                'a flight has no ground truth, against which losses are measured; use simulated '
                'flights'
            )
        samples = stream_samples(record, truth)
        # The flight may be known for longer than it was replayed.
        return samples.select(samples.stamps_ns <= self._end_ns)


def encodes(record: RunRecord, modality: str = CAMERA) -> int:
    """Return how often the network of a modality ran; units that were followed had none."""
    return sum(unit.modality == modality and not unit.followed for unit in record.features)


def saved(flights: Sequence[FlightFigures]) -> float:
    """Return the share of the references' encodes that were left out."""
    full = sum(flight.reference_encoded for flight in flights)
    return 1.0 - sum(flight.encoded for flight in flights) / full if full else math.nan


def _in_view(samples: PersonSamples) -> Mask:
    mask: Mask = samples.overlaps >= _IN_VIEW_IOU
    return mask


def held_people(samples: PersonSamples) -> Mask:
    """Mark the samples of people who were in view without a break in the second before."""
    held, in_view = np.zeros(len(samples.ids), np.bool_), _in_view(samples)
    for person in np.unique(samples.ids):
        rows = np.flatnonzero(samples.ids == person)
        since_ns: int | None = None
        before_ns = 0
        for row in rows:
            now_ns = int(samples.stamps_ns[row])
            if since_ns is not None and now_ns - before_ns > STREAM_STEP_NS:
                since_ns = None
            held[row] = since_ns is not None and now_ns - since_ns >= _HELD_NS
            if not in_view[row]:
                since_ns = None
            elif since_ns is None:
                since_ns = now_ns
            before_ns = now_ns
    return held


def _published(one: RunRecord, other: RunRecord) -> Iterator[tuple[int, Decision, Decision]]:
    """Yield, step by step, the newest results of two runs that were published by then."""
    runs = [
        sorted([*record.decisions, *record.updates], key=lambda d: d.published_ns)
        for record in (one, other)
    ]
    if not all(runs):
        return
    begin_ns = max(run[0].published_ns for run in runs)
    end_ns = max(run[-1].published_ns for run in runs)
    places = [0, 0]
    for now_ns in range(begin_ns, end_ns + 1, _SHOWN_STEP_NS):
        for number, run in enumerate(runs):
            while places[number] + 1 < len(run) and run[places[number] + 1].published_ns <= now_ns:
                places[number] += 1
        yield now_ns, runs[0][places[0]], runs[1][places[1]]


def plain_figures(figures: FlightFigures) -> dict[str, Any]:
    """Return the figures as values for JSON."""
    plain: dict[str, Any] = json.loads(json.dumps(asdict(figures)))
    return plain | {'early_by': figures.early_by if math.isfinite(figures.early_by) else None}


def read_plain_figures(plain: Mapping[str, Any]) -> FlightFigures:
    """Return the figures that `plain_figures` made values of.

    :raises SkippingError: if they are not that
    """
    try:
        people, iou, held, missed, early, early_lost = plain['loss']
        early_by = plain['early_by']
        return FlightFigures(
            FlightLoss(
                int(people), float(iou), int(held), int(missed), int(early), float(early_lost)
            ),
            int(plain['encoded']),
            int(plain['reference_encoded']),
            float(plain['iou']),
            int(plain['shown']),
            float(plain['shown_lost']),
            math.nan if early_by is None else float(early_by),
            tuple(float(loss) for loss in plain['audits']),
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as err:
        raise SkippingError(
            f'no figures of a flight with a gate ({err}); replay it again'
        ) from err
