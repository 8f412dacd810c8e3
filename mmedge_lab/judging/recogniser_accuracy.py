"""What a recogniser says of the objects of flights, in the boxes that the detector gives them.

An object is met by the detection that covers it best (IoU of at least 0.5, whatever its label).
All looks at an object in a flight count together, as the looks at a track do. How it looks follows
from the flight's scenario and seed. Rivals are the detector's own label and a histogram: the
pixels of the torso, each named by its colour.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mmedge_lab.judging import EvaluationError
from mmedge_lab.simulation.appearance import COLOURS, MoverLook, colour_name, looks_of
from mmedge_lab.simulation.build import build_world
from mmedge_lab.simulation.flight_folder import read_description
from mmedge_ros.data_types import Box, Detection, FloatArray, LabelSource
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.classifier_description import ClassifierDescription
from mmedge_ros.encoding.crops import crop_input, cut
from mmedge_ros.encoding.detector import Detector, Image
from mmedge_ros.encoding.tapped_classifier import MemorisedClassifier
from mmedge_ros.records.ground_truth import PERSON, TrueFrame
from mmedge_ros.replay.recorded_truth import read_truth
from mmedge_ros.replay.recording import Recording
from mmedge_ros.report.truth_matching import MINIMUM_HEIGHT, MINIMUM_VISIBILITY, met_pairs
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.camera.image import decode_image

# Colours are judged of boxes that are so high (px) at least.
CLEAR_HEIGHT = 40.0
# Where in a box the torso is, as shares of its width and height.
_TORSO = (0.3, 0.2, 0.7, 0.45)
_MOST_PIXELS = 200
_DAY = 'day'


@dataclass
class ObjectLooks:
    """All looks at one object of a flight.

    ``votes`` (J,) are summed probabilities of the classes, ``clear`` those of looks at boxes of at
    least 40 px; ``histogram`` (8,) counts torso pixels by colour in these.
    """

    flight: str
    seed: str
    light: str
    truth: MoverLook
    votes: FloatArray
    clear: FloatArray
    histogram: FloatArray = field(default_factory=lambda: np.zeros(len(COLOURS)))
    detected: dict[str, float] = field(default_factory=dict)
    attributes: dict[str, dict[str, float]] = field(default_factory=dict)
    looks: int = 0


class RecogniserUnderTest(NamedTuple):
    """A recogniser and a detector of all labels."""

    classifier: MemorisedClassifier
    description: ClassifierDescription
    detector: Detector


def looks_at_flight(
    flight: Path,
    subject: RecogniserUnderTest,
    step: int = 3,
    on_progress: Callable[[float], None] | None = None,
) -> list[ObjectLooks]:
    """Look at every object that is detected in every ``step``-th picture of a flight.

    :raises EvaluationError: if it is no whole simulated flight
    """
    made = read_description(flight)
    if made is None:
        raise EvaluationError(f'{flight} is no flight of `mmedge simulate`; name a set of those')
    world = build_world(made.scenario, made.seed, made.seconds, made.patrol)
    known = looks_of(world.movers)
    classes = len(subject.description.classes)
    found: dict[int, ObjectLooks] = {}
    with Recording(flight) as recording:
        truth = read_truth(recording.bag)
        stamps = max(len(recording.camera_stamps_ns()), 1)
        for number, unit in enumerate(u for u in recording.units() if u.modality == 'camera'):
            if number % step or truth is None:
                continue
            frame = truth.frame_at(unit.stamp_ns)
            if on_progress:
                on_progress(min((number + 1) / stamps, 1.0))
            if frame is None:
                continue
            try:
                picture = decode_image(unit.payload)
            except SensingError:
                continue
            for object_id, detection in _met(frame, subject.detector.detect(picture).detections):
                looks = found.setdefault(
                    object_id,
                    ObjectLooks(
                        flight.name,
                        str(made.seed),
                        made.scenario.split('_')[1],
                        known[object_id],
                        np.zeros(classes),
                        np.zeros(classes),
                    ),
                )
                _look(looks, picture, detection, subject)
    return list(found.values())


def _met(frame: TrueFrame, detections: Sequence[Detection]) -> Iterator[tuple[int, Detection]]:
    """Yield the visible objects and the detection that meets each."""
    visible = (frame.visibility >= MINIMUM_VISIBILITY) & (frame.heights >= MINIMUM_HEIGHT)
    places = np.flatnonzero(visible)
    if not len(places) or not detections:
        return
    boxes = np.array([detection.box for detection in detections])
    for row, column in zip(*met_pairs(frame.boxes[places], boxes), strict=True):
        yield int(frame.ids[places[row]]), detections[column]


def _look(
    looks: ObjectLooks, picture: Image, detection: Detection, subject: RecogniserUnderTest
) -> None:
    try:
        look = subject.classifier.look(
            crop_input(picture, detection.box, subject.description.form)
        )
    except EncodingError:
        return
    if look.source is LabelSource.MEMORY:
        shares = np.zeros(len(looks.votes))
        shares[look.label] = 1.0
    else:
        shares = look.shares
    looks.looks += 1
    looks.votes += shares
    looks.detected[detection.label] = looks.detected.get(detection.label, 0.0) + detection.score
    if detection.box.height < CLEAR_HEIGHT:
        return
    looks.clear += shares
    looks.histogram += torso_histogram(picture, detection.box)
    values = subject.description.attribute_values(look.attributes)
    for name, (value, share) in values.items():
        of = looks.attributes.setdefault(name, {})
        of[value] = of.get(value, 0.0) + share


def torso_histogram(picture: Image, box: Box) -> FloatArray:
    """Return how many pixels (8,) of the torso in a box have each colour, in shares."""
    left, top, right, bottom = _TORSO
    torso = Box(
        box.x0 + left * box.width,
        box.y0 + top * box.height,
        box.x0 + right * box.width,
        box.y0 + bottom * box.height,
    )
    try:
        pixels = cut(picture, torso).reshape(-1, 3)
    except EncodingError:
        return np.zeros(len(COLOURS))
    some = pixels[:: max(len(pixels) // _MOST_PIXELS, 1)]
    counts = np.zeros(len(COLOURS))
    for pixel in some.tolist():
        counts[COLOURS.index(colour_name(pixel))] += 1.0
    return counts / max(len(some), 1)


def recogniser_accuracy(
    objects: Sequence[ObjectLooks], classes: Sequence[str], labels: Sequence[str]
) -> dict[str, Any]:
    """Return the accuracy of labels and colours, of the recogniser and of its rivals.

    Labels of all objects that were ever met; colours of the tops of people by day with looks at
    boxes of at least 40 px. ``balanced``: the mean of the shares of each label.
    """
    of = [next((label for label in labels if name.startswith(label)), name) for name in classes]
    known = np.array(of)
    said, detected, truth = [], [], []
    for one in objects:
        votes = {label: float(one.votes[known == label].sum()) for label in dict.fromkeys(of)}
        said.append(_likeliest(votes))
        detected.append(_likeliest(one.detected))
        truth.append(one.truth.label)
    people = [
        one
        for one in objects
        if one.light == _DAY and one.truth.label == PERSON and one.clear.sum() > 0.0
    ]
    tops = [one.truth.colour for one in people]
    own = [_colour(one.clear, classes, known == PERSON) for one in people]
    by_histogram = [COLOURS[int(one.histogram.argmax())] for one in people]
    return {
        'objects': len(objects),
        'looks': sum(one.looks for one in objects),
        'label': _shares(said, truth),
        'label_of_detector': _shares(detected, truth),
        'people_by_day_40px': len(people),
        'top_colour': _shares(own, tops),
        'top_colour_of_histogram': _shares(by_histogram, tops),
        'attributes': _attributes(people),
    }


def _likeliest(values: Mapping[str, float]) -> str:
    return max(values, key=lambda value: values[value])


def _colour(votes: FloatArray, classes: Sequence[str], people: np.ndarray) -> str:
    best = int(np.where(people, votes, -1.0).argmax())
    return classes[best].partition(' ')[2]


def _shares(said: Sequence[str], truth: Sequence[str]) -> dict[str, Any]:
    """Return the share that is right, over all and as the mean over what is true."""
    right = np.array([one == other for one, other in zip(said, truth, strict=True)], float)
    names = sorted(set(truth))
    of_each = {name: float(right[[other == name for other in truth]].mean()) for name in names}
    return {
        'right': float(right.mean()) if len(right) else None,
        'balanced': float(np.mean(list(of_each.values()))) if of_each else None,
        'of_each': of_each,
    }


def _attributes(people: Sequence[ObjectLooks]) -> dict[str, Any]:
    def true(one: ObjectLooks, name: str) -> str:
        value = getattr(one.truth, name)
        return value if isinstance(value, str) else ('yes' if value else 'no')

    names = sorted({name for one in people for name in one.attributes})
    found = {}
    for name in names:
        known = [one for one in people if name in one.attributes]
        said = [_likeliest(one.attributes[name]) for one in known]
        found[name] = _shares(said, [true(one, name) for one in known])
    return found
