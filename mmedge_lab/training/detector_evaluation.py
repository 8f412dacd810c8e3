"""Evaluates detectors, whatever made them, on flights with ground truth; needs no torch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mmedge_lab.judging.detector_accuracy import DetectorAccuracy, judge_detector
from mmedge_lab.training import Report
from mmedge_lab.training.flight_pictures import count_pictures, labelled_pictures
from mmedge_lab.worker_processes import OnShare
from mmedge_ros.encoding.bundle.model_bundle import open_detector
from mmedge_ros.encoding.detector import DetectorParameters
from mmedge_ros.replay.ground_truth import PERSON, TrueFrame
from mmedge_ros.sensing.camera.image import Picture

# Average precision needs the weak detections too; weaker ones only cost time.
_LOWEST_SCORE = 0.01
# Neighbouring pictures hardly differ: more of them cost time and add nothing.
PICTURES = 1500
_DIGITS = 4


def evaluate_detector(
    detector: Path,
    flights: Sequence[Path],
    pictures: int = PICTURES,
    level: str = '',
    on_progress: OnShare | None = None,
) -> DetectorAccuracy:
    """Run a detector on pictures spread evenly over flights and compare with their truth.

    :param detector: bundle folder or weight file
    :param pictures: at least so many are looked at, where there are as many
    :raises EncodingError: if the detector cannot be used
    :raises TrainingError: if a flight has no ground truth
    :raises BagError: if a flight cannot be read
    """
    parameters = DetectorParameters(score_threshold=_LOWEST_SCORE, labels=(PERSON,))
    opened, total = open_detector(detector, parameters, level), count_pictures(flights)
    step = max(1, total // max(pictures, 1))

    def chosen() -> Iterator[tuple[Picture, TrueFrame]]:
        count = 0
        for flight in flights:
            for image, truth in labelled_pictures(flight, step):
                yield image, truth
                count += 1
                if on_progress:
                    on_progress(min(count * step / max(total, 1), 1.0))

    opened.warm_up()
    return judge_detector(opened, chosen())


def accuracy_by_set(
    detector: Path, sets: Mapping[str, Sequence[Path]], report: Report, words: str = 'judging'
) -> dict[str, dict[str, Any]]:
    """Evaluate a detector on sets of flights; returns the figures for a manifest, by set."""
    figures = {}
    for place, (name, flights) in enumerate(sets.items()):

        def on_progress(share: float, begun: int = place, what: str = name) -> None:
            report((begun + share) / len(sets), f'{words} on {what}')

        figures[name] = accuracy_facts(
            evaluate_detector(detector, flights, on_progress=on_progress)
        )
    return figures


def accuracy_facts(accuracy: DetectorAccuracy) -> dict[str, Any]:
    """Return the figures of one set that a manifest holds."""
    chosen = [s for s in accuracy.strata if s.group in ('size', 'light', 'distance', 'visibility')]
    strata: dict[str, dict[str, Any]] = {}
    for stratum in chosen:
        strata.setdefault(stratum.group, {})[stratum.name] = {
            'people': stratum.people,
            **_known({'ap50': stratum.ap50, 'recall': stratum.recall}),
        }
    return {
        'pictures': accuracy.pictures,
        'people': accuracy.people,
        **_known(
            {
                'map50': accuracy.map50,
                'map50_20px': accuracy.map50_20px,
                'recall_20px': accuracy.recall_20px,
                'precision_20px': accuracy.precision_20px,
            }
        ),
        **strata,
    }


def _known(figures: Mapping[str, float]) -> dict[str, float]:
    return {k: round(v, _DIGITS) for k, v in figures.items() if math.isfinite(v)}
