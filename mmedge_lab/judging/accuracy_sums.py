"""The sums of a judged run that figures are quotients of, and these figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

import numpy as np

from mmedge_lab.judging.bench import Figure, Sums
from mmedge_ros.core.data_types import CAMERA
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.replay.ground_truth import GroundTruth
from mmedge_ros.report.accuracy import Accuracy
from mmedge_ros.report.accuracy_samples import PersonSamples
from mmedge_ros.report.mot_metrics import MotFigures
from mmedge_ros.report.placement import MISS, placement_of

FIGURES: Mapping[str, Figure] = {
    'streaming_mean_iou': Figure('streaming IoU', 'stream_overlap', 'streamed'),
    'mean_iou': Figure('mean IoU', 'overlap', 'people'),
    'precision': Figure('precision', 'hits', 'boxes'),
    'recall': Figure('recall', 'found', 'people'),
    'idf1': Figure('IDF1', 'same', 'tracked'),
    'mota': Figure('MOTA', 'errors', 'true_boxes', offset=1.0, scale=-1.0),
    'nees': Figure('NEES (of 4)', 'nees', 'nees_samples', 2),
}
PLACEMENT: Mapping[str, Figure] = {
    'reach': Figure('people in reach', 'reach_people', 'reach_instants', 2, compared=False),
    'placed': Figure('placed', 'reach_placed', 'reach_people'),
    'placed_by_range': Figure('placed, 1 m or 10 %', 'reach_placed_by_range', 'reach_people'),
    'false_per_minute': Figure(
        'false per minute', 'reach_false_tracks', 'reach_instants', 1, scale=6000.0
    ),
    'kept': Figure('kept', 'reach_kept', 'reach_gap'),
    'gospa': Figure('GOSPA per person, m', 'reach_gospa', 'reach_people', 2),
    'worth': Figure('worth', 'reach_cost', 'reach_people', offset=1.0, scale=-1.0 / MISS),
    'coverage': Figure('in the ellipse of 90 %', 'reach_covered', 'reach_placed'),
    'wait': Figure('until placed, p95, s', 'reach_waits', digits=2, quantile=0.95),
    'never': Figure('never placed, per flight', 'reach_never', digits=1),
}


def accuracy_sums(accuracy: Accuracy, record: RunRecord) -> Sums:
    """Sum up a run: each of `FIGURES` is a quotient of two of these sums.

    ``nees`` is that of position and velocity (4 degrees of freedom), of each track once a second.
    """
    nees = accuracy.independent_errors.nees
    nees = nees[np.isfinite(nees)]
    return {
        **stream_sums(accuracy.stream),
        **state_sums(accuracy.states),
        **box_sums(accuracy),
        **tracking_sums(accuracy.tracking),
        'nees': float(nees.sum()),
        'nees_samples': float(len(nees)),
        'encoded': float(sum(u.modality == CAMERA and not u.followed for u in record.features)),
        'followed': float(sum(u.modality == CAMERA and u.followed for u in record.features)),
        'seconds': record.duration,
    }


def placement_sums(record: RunRecord, truth: GroundTruth) -> dict[str, float | list[float]]:
    """Return the sums of `PLACEMENT`."""
    placement = placement_of(record, truth)
    counts = {f'reach_{name}': value for name, value in asdict(placement).items()}
    return {**counts, 'reach_gospa': placement.gospa, 'reach_cost': placement.cost}


def stream_sums(stream: PersonSamples) -> dict[str, float]:
    """Return the sums of streaming IoU."""
    return {'streamed': float(len(stream.ids)), 'stream_overlap': float(stream.overlaps.sum())}


def state_sums(states: PersonSamples) -> dict[str, float]:
    """Return the sums of recall and of mean IoU, the latter also of people of 20 and 40 px up."""
    sums = {'found': float(np.count_nonzero(states.met))}
    for suffix, least in (('', 0.0), ('_20px', 20.0), ('_40px', 40.0)):
        tall = states.heights >= least
        sums[f'people{suffix}'] = float(np.count_nonzero(tall))
        sums[f'overlap{suffix}'] = float(states.overlaps[tall].sum())
    return sums


def box_sums(accuracy: Accuracy) -> dict[str, float]:
    """Return the sums of precision."""
    counts = accuracy.counts
    return {
        'hits': float(counts.true_positives),
        'boxes': float(counts.true_positives + counts.false_positives),
    }


def tracking_sums(tracking: MotFigures) -> dict[str, float]:
    """Return the sums of MOTA and IDF1."""
    wrong = tracking.false_positives + tracking.false_negatives + (tracking.id_switches or 0)
    return {
        'errors': float(wrong),
        'true_boxes': float(tracking.true_boxes),
        'same': 2.0 * tracking.idtp,
        'tracked': float(tracking.true_boxes + tracking.result_boxes),
    }
