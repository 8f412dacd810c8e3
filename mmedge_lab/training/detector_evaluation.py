"""Evaluates detectors, whatever made them, on what is known of pictures; needs no torch.

Pictures come from flights with ground truth, or from a set with labels (`picture_sources`), where
a source stands for the surroundings, and the light is told from the picture itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mmedge_lab.judging.detector_accuracy import DetectorAccuracy, Watch, judge_detector
from mmedge_lab.simulation import SimulationError
from mmedge_lab.simulation.flight_folder import flights_in
from mmedge_lab.training import Report, TrainingError
from mmedge_lab.training.picture_set import PictureSet, open_pictures
from mmedge_lab.training.picture_sources import CLASSES, JUDGED, is_source
from mmedge_lab.worker_processes import OnShare
from mmedge_ros.encoding.bundle.model_bundle import open_detector
from mmedge_ros.encoding.detector import DetectorParameters
from mmedge_ros.replay import BagError
from mmedge_ros.replay.bag import Bag
from mmedge_ros.replay.bag_storage import TopicInfo
from mmedge_ros.replay.bag_topics import choose_topics
from mmedge_ros.replay.ground_truth import PERSON, Conditions, TrueFrame
from mmedge_ros.replay.recorded_truth import read_truth
from mmedge_ros.replay.wire_formats import header_stamp_ns
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.camera.image import Picture, decode_image

# Average precision needs the weak detections too; weaker ones only cost time.
_LOWEST_SCORE = 0.01
# Neighbouring pictures hardly differ: more of them cost time and add nothing.
PICTURES = 1500
_DARK = 60.0  # mean of a picture, of 255
_DIGITS = 4


class LabelledPicture(NamedTuple):
    """A recorded picture, (H, W, 3) uint8 BGR, and all that is true at its stamp."""

    image: Picture
    truth: TrueFrame


def labelled_pictures(
    places: Sequence[Path], pictures: int, on_share: OnShare = lambda _: None
) -> Iterator[LabelledPicture]:
    """Yield pictures spread evenly over flights, or over sets of pictures with labels.

    At least so many, where there are as many. Damaged pictures of flights, and those whose stamp
    no true scene belongs to, are passed over.

    :raises TrainingError: if a flight has no ground truth, or a set cannot be used, or a folder
        holds neither
    :raises BagError: if a flight cannot be read or has no camera
    """
    sets = [place for place in places if is_source(place)]
    if sets:
        known = open_pictures(*sets, part=JUDGED)
        step = max(len(known) // max(pictures, 1), 1)
        for number in range(0, len(known), step):
            yield _labelled(known, number)
            on_share((number + 1) / len(known))
    flights = [flight for place in places if place not in sets for flight in _flights(place)]
    if flights:
        yield from _of_flights(flights, pictures, on_share)


def _flights(place: Path) -> list[Path]:
    try:
        return list(flights_in(place))
    except SimulationError as err:
        raise TrainingError(
            f'{err}; or name pictures with labels: a folder with images/NAME.jpg beside '
            'labels/NAME.txt, a data.yaml, or a COCO .json file'
        ) from err


def _labelled(pictures: PictureSet, number: int) -> LabelledPicture:
    image, objects, ignored, _ = pictures.load(number)
    rows = np.concatenate((objects, ignored))
    nowhere = np.full((len(rows), 3), np.nan)
    return LabelledPicture(
        image,
        TrueFrame(
            np.arange(len(rows)),
            np.array([CLASSES[int(label)] for label in rows[:, 0]], np.str_),
            rows[:, 1:].astype(np.float64),
            np.repeat((1.0, 0.0), (len(objects), len(ignored))),
            nowhere,
            nowhere,
            nowhere[:, 0],
            np.ones(len(rows), np.bool_),
            np.zeros(len(rows)),
            Conditions(pictures.pictures[number].source.partition(' ')[2], _light(image)),
        ),
    )


def _light(image: Picture) -> str:
    """Name what is told from a picture: without colour, or dark."""
    if not np.ptp(image[::4, ::4].astype(np.int16), axis=2).any():
        return 'without colour'
    return 'low light' if image[::4, ::4].mean() < _DARK else 'bright'


def _of_flights(
    flights: Sequence[Path], pictures: int, on_share: OnShare
) -> Iterator[LabelledPicture]:
    with ExitStack() as opened:
        bags = [opened.enter_context(Bag(flight)) for flight in flights]
        cameras = [_camera(bag) for bag in bags]
    step = max(sum(camera.count for camera in cameras) // max(pictures, 1), 1)
    for number, (flight, camera) in enumerate(zip(flights, cameras, strict=True)):
        with Bag(flight) as bag:
            truth = read_truth(bag)
            if truth is None or not truth.scenes:
                why = 'none that can be used' if truth else 'none'
                raise TrainingError(
                    f'{flight}: ground truth is needed, and this recording has {why}; use flights '
                    'made by `mmedge simulate`'
                )
            for message in bag.messages([camera.name]):
                if message.index % step:
                    continue
                scene = truth.frame_at(header_stamp_ns(message.raw))
                if scene is None:
                    continue
                try:
                    image = decode_image(bag.deserialize(message))
                except SensingError:
                    continue
                yield LabelledPicture(image, scene)
                on_share((number + message.index / camera.count) / len(flights))
        on_share((number + 1) / len(flights))


def _camera(bag: Bag) -> TopicInfo:
    name = choose_topics(bag.topics).camera
    if name is None:
        raise BagError(f'{bag.path} has no camera; a detector needs pictures')
    return next(topic for topic in bag.topics if topic.name == name)


def evaluate_detector(
    detector: Path,
    places: Sequence[Path],
    pictures: int = PICTURES,
    level: str = '',
    on_progress: OnShare = lambda _: None,
    watch: Watch = lambda *_: None,
) -> DetectorAccuracy:
    """Run a detector on pictures and compare with what is true of them, see `judge_detector`.

    :param detector: bundle folder or weight file
    :param places: flights, or sets of pictures with labels
    :param pictures: at least so many are looked at, where there are as many
    :raises EncodingError: if the detector cannot be used
    :raises TrainingError: if it is not known what is in the pictures
    :raises BagError: if a flight cannot be read
    """
    parameters = DetectorParameters(score_threshold=_LOWEST_SCORE, labels=(PERSON,))
    opened = open_detector(detector, parameters, level)
    opened.warm_up()
    return judge_detector(opened, labelled_pictures(places, pictures, on_progress), watch=watch)


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
