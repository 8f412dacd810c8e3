"""What a gate is worth: what was saved and how often it was wrong, beside what is possible."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from mmedge_ros.data_types import CAMERA, NS_PER_S, Decision, FloatArray
from mmedge_ros.lab.evaluation.accuracy_samples import picture_size, stream_samples
from mmedge_ros.lab.evaluation.mot_metrics import share
from mmedge_ros.lab.evaluation.truth_matching import best_overlaps, counted_people, person_boxes
from mmedge_ros.lab.gates.certificate import FlightOutcome
from mmedge_ros.lab.gates.closed_loop import GatedRun
from mmedge_ros.records.ground_truth import GroundTruth
from mmedge_ros.records.run_record import RunRecord
from mmedge_ros.skipping import SkippingError

_BINS = 10
_QUANTILES = (0.05, 0.5, 0.95)
_ENCODE = 'encode'


class WindowWork(NamedTuple):
    """One stride of a flight: ``quality`` is the reference's mean IoU at its end.

    ``full`` and ``encoded`` count the slow units received in it: in the reference, and with
    the gate.
    """

    quality: float
    full: int
    encoded: int
    is_early: bool
    differs: bool


@dataclass(frozen=True, eq=False)
class FlightFigures:
    """One flight with one gate. ``early_by`` is window end minus publication, s.

    ``stream`` and ``reference_stream`` are the sum and the number of samples of streaming IoU.
    """

    outcome: FlightOutcome
    windows: tuple[WindowWork, ...]
    units: dict[str, dict[str, int]]
    encoder_seconds: float
    reference_seconds: float
    early_by: FloatArray
    confidences: FloatArray
    agrees: FloatArray
    stream: tuple[float, int] = (0.0, 0)
    reference_stream: tuple[float, int] = (0.0, 0)
    audits: tuple[bool, ...] = ()


def flight_figures(
    run: GatedRun, reference: RunRecord, slow: str = CAMERA, can_pause: bool = True
) -> FlightFigures:
    """Put a gated flight beside its reference.

    :param can_pause: whether the source is able not to capture what need not be encoded
    """
    truth = reference.truth
    size = picture_size(reference)
    early = {decision.end_ns: decision for decision in run.early}
    stride_ns = round(reference.stride * NS_PER_S)
    full, encoded = (_by_window(r, slow, stride_ns) for r in (reference, run.record))
    windows = tuple(
        WindowWork(
            _quality(decision, truth, size),
            full.get(end_ns, 0),
            encoded.get(end_ns, 0),
            end_ns in early,
            end_ns in early and not early[end_ns].agrees,
        )
        for decision in reference.decisions
        if (end_ns := decision.window_end_ns)
    )
    return FlightFigures(
        run.outcome,
        windows,
        _units(run.record, can_pause),
        _encoder_seconds(run.record),
        _encoder_seconds(reference),
        np.array([-d.latency for d in run.record.decisions]),
        np.array([d.confidence for d in run.early]),
        np.array([d.agrees for d in run.early], np.float64),
        _stream(run.record, truth),
        _stream(reference, truth),
        run.audits,
    )


@dataclass(frozen=True)
class GateFigures:
    """All flights together; `report` gives plain values with stable keys."""

    flights: Sequence[FlightFigures]
    ceiling: float
    name: str = ''
    alpha: float = math.nan
    threshold: float = math.nan
    facts: dict[str, Any] = field(default_factory=dict)

    def report(self) -> dict[str, Any]:
        """Return what stands in a report; NaN where there is nothing to divide by."""
        early = sum(f.outcome.early for f in self.flights)
        differing = sum(f.outcome.differing for f in self.flights)
        windows = [w for f in self.flights for w in f.windows]
        easy, hard = halves(windows)
        early_by = np.concatenate([f.early_by for f in self.flights])
        reference_seconds = sum(f.reference_seconds for f in self.flights)
        seconds = sum(f.encoder_seconds for f in self.flights)
        return {
            'name': self.name,
            'alpha': self.alpha,
            'threshold': self.threshold,
            'flights': len(self.flights),
            'windows': len(windows),
            'early': early,
            'disagreement': share(differing, early),
            'units': _added([f.units for f in self.flights]),
            'saved': saved(windows),
            'ceiling': self.ceiling,
            'encoder_s': {'reference': reference_seconds, 'gated': seconds},
            'decided_before_end_ms': {
                f'p{round(100 * q)}': 1e3 * float(np.quantile(early_by, q)) for q in _QUANTILES
            }
            if len(early_by)
            else {},
            'easy_half': _half(easy),
            'hard_half': _half(hard),
            'reliability': reliability(
                np.concatenate([f.confidences for f in self.flights]),
                np.concatenate([f.agrees for f in self.flights]),
            ),
            'streaming_mean_iou': _mean([f.stream for f in self.flights]),
            'reference_streaming_mean_iou': _mean([f.reference_stream for f in self.flights]),
            'audits': sum(len(f.audits) for f in self.flights),
            'audits_agree': share(
                sum(sum(f.audits) for f in self.flights), sum(len(f.audits) for f in self.flights)
            ),
            **self.facts,
        }


def plain_figures(figures: FlightFigures) -> dict[str, Any]:
    """Return the figures as values for JSON."""
    return {
        'outcome': list(figures.outcome),
        'windows': [list(window) for window in figures.windows],
        'units': figures.units,
        'encoder_seconds': figures.encoder_seconds,
        'reference_seconds': figures.reference_seconds,
        'early_by': figures.early_by.tolist(),
        'confidences': figures.confidences.tolist(),
        'agrees': figures.agrees.tolist(),
        'stream': list(figures.stream),
        'reference_stream': list(figures.reference_stream),
        'audits': list(figures.audits),
    }


def read_plain_figures(plain: Mapping[str, Any]) -> FlightFigures:
    """Return the figures that `plain_figures` made values of.

    :raises SkippingError: if they are not that
    """
    try:
        return FlightFigures(
            FlightOutcome(*(int(count) for count in plain['outcome'])),
            tuple(
                WindowWork(float(quality), int(full), int(encoded), bool(early), bool(differs))
                for quality, full, encoded, early, differs in plain['windows']
            ),
            {
                str(modality): {str(name): int(count) for name, count in counts.items()}
                for modality, counts in plain['units'].items()
            },
            float(plain['encoder_seconds']),
            float(plain['reference_seconds']),
            np.array(plain['early_by'], np.float64),
            np.array(plain['confidences'], np.float64),
            np.array(plain['agrees'], np.float64),
            _total_and_count(plain['stream']),
            _total_and_count(plain['reference_stream']),
            tuple(bool(agreed) for agreed in plain['audits']),
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as err:
        raise SkippingError(
            f'no figures of a flight with a gate ({err}); replay it again'
        ) from err


def _total_and_count(values: Any) -> tuple[float, int]:
    total, count = values
    return float(total), int(count)


def saving_ceiling(units: int, sensed_share: float) -> float:
    """Return the largest share of slow units that the rule lets rest: 7 of 15 at 30 Hz."""
    return (units - max(math.ceil(sensed_share * units), 1)) / units if units else 0.0


def halves(windows: Sequence[WindowWork]) -> tuple[list[WindowWork], list[WindowWork]]:
    """Return the easy and the hard half, by what the reference made of them."""
    order = sorted(windows, key=lambda w: -w.quality)
    middle = (len(order) + 1) // 2
    return order[:middle], order[middle:]


def saved(windows: Sequence[WindowWork]) -> float:
    """Return the share of the reference's slow encodes that were left out."""
    full = sum(w.full for w in windows)
    return 1.0 - share(sum(w.encoded for w in windows), full) if full else math.nan


def reliability(confidences: FloatArray, agrees: FloatArray) -> list[dict[str, float]]:
    """Return, by confidence, how often early decisions were right."""
    places = np.minimum((confidences * _BINS).astype(int), _BINS - 1)
    return [
        {
            'confidence': float(confidences[places == place].mean()),
            'agreement': float(agrees[places == place].mean()),
            'early': int((places == place).sum()),
        }
        for place in range(_BINS)
        if (places == place).any()
    ]


def _by_window(record: RunRecord, slow: str, stride_ns: int) -> dict[int, int]:
    """Count the encoded slow units by the end of the stride they were received in."""
    counts: dict[int, int] = {}
    for unit in record.features:
        if unit.modality == slow:
            end_ns = -(-unit.available_ns // stride_ns) * stride_ns
            counts[end_ns] = counts.get(end_ns, 0) + 1
    return counts


def _quality(decision: Decision, truth: GroundTruth | None, size: tuple[int, int]) -> float:
    """Mean IoU of a decision at its window's end; 1 where there is no person and no box."""
    frame = truth.frame_at(decision.window_end_ns) if truth is not None else None
    if frame is None:
        return 0.0
    elapsed = (decision.window_end_ns - decision.state_ns) / NS_PER_S
    boxes = person_boxes(decision.tracks, elapsed, size)[1]
    people = frame.boxes[counted_people(frame)]
    if not len(people):
        return float(not len(boxes))
    return float(best_overlaps(people, boxes).mean())


def _units(record: RunRecord, can_pause: bool) -> dict[str, dict[str, int]]:
    units = {}
    for modality, counts in sorted(record.units.items()):
        rested = counts.skipped
        taken = counts.received - rested
        units[modality] = {
            'captured': taken if can_pause else counts.received,
            'transferred': taken if can_pause else counts.received,
            'encoded': counts.encoded,
            'rested': rested,
        }
    return units


def _added(parts: Sequence[dict[str, dict[str, int]]]) -> dict[str, dict[str, int]]:
    total: dict[str, dict[str, int]] = {}
    for part in parts:
        for modality, counts in part.items():
            sums = total.setdefault(modality, dict.fromkeys(counts, 0))
            for name, count in counts.items():
                sums[name] += count
    return total


def _encoder_seconds(record: RunRecord) -> float:
    spans = [s for unit in record.features for s in unit.trail if s.stage == _ENCODE]
    return sum(span.end_ns - span.begin_ns for span in spans) / NS_PER_S


def _stream(record: RunRecord, truth: GroundTruth | None) -> tuple[float, int]:
    if truth is None or not truth.scenes:
        return 0.0, 0
    overlaps = stream_samples(record, truth).overlaps
    return float(overlaps.sum()), len(overlaps)


def _half(windows: Sequence[WindowWork]) -> dict[str, float]:
    early = sum(w.is_early for w in windows)
    return {
        'saved': saved(windows),
        'early': float(early),
        'disagreement': share(sum(w.differs for w in windows), early),
    }


def _mean(parts: Sequence[tuple[float, int]]) -> float:
    return share(sum(total for total, _ in parts), sum(count for _, count in parts))
