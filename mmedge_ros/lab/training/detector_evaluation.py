"""Judges a detector, whatever made it, on flights with ground truth; needs no torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from mmedge_ros.encoding.bundle.model_bundle import open_detector
from mmedge_ros.encoding.detector import DetectorParameters
from mmedge_ros.lab.evaluation.detector_accuracy import DetectorAccuracy, judge_detector
from mmedge_ros.lab.training.flight_pictures import count_pictures, labelled_pictures, readable
from mmedge_ros.records.ground_truth import PERSON, TrueFrame
from mmedge_ros.sensing.camera.image import Picture

# Average precision needs the weak detections too; weaker ones only cost time.
_LOWEST_SCORE = 0.01
# Neighbouring pictures hardly differ: more of them cost time and say nothing new.
PICTURES = 1500


def evaluate_detector(
    detector: Path,
    flights: Sequence[Path],
    pictures: int = PICTURES,
    level: str = '',
    on_progress: Callable[[float], None] | None = None,
) -> DetectorAccuracy:
    """Run a detector on pictures spread evenly over flights and compare with their truth.

    :param detector: bundle folder or weight file
    :param pictures: at least so many are looked at, where there are as many
    :raises EncodingError: if the detector cannot be used
    :raises TrainingError: if a flight has no ground truth
    :raises BagError: if a flight cannot be read
    """
    parameters = DetectorParameters(score_threshold=_LOWEST_SCORE, labels=(PERSON,))
    opened = open_detector(detector, parameters, level)
    total = count_pictures(flights)
    step = max(1, total // max(pictures, 1))

    def chosen() -> Iterator[tuple[Picture, TrueFrame]]:
        seen = 0
        for flight in flights:
            for picture in readable(labelled_pictures(flight, step)):
                yield picture
                seen += 1
                if on_progress:
                    on_progress(min(seen * step / max(total, 1), 1.0))

    opened.warm_up()
    return judge_detector(opened, chosen())
