"""The sums of a judged run that figures are quotients of, and these figures."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mmedge_lab.judging.bench import Figure, Sums
from mmedge_ros.core.data_types import CAMERA
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.report.accuracy import Accuracy
from mmedge_ros.report.accuracy_samples import PersonSamples
from mmedge_ros.report.mot_metrics import MotFigures

FIGURES: Mapping[str, Figure] = {
    'streaming_mean_iou': Figure('streaming IoU', 'stream_overlap', 'streamed'),
    'mean_iou': Figure('mean IoU', 'overlap', 'people'),
    'precision': Figure('precision', 'hits', 'boxes'),
    'recall': Figure('recall', 'found', 'people'),
    'idf1': Figure('IDF1', 'same', 'tracked'),
    'mota': Figure('MOTA', 'errors', 'true_boxes', offset=1.0, scale=-1.0),
    'nees': Figure('NEES (of 4)', 'nees', 'nees_samples', 2),
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
