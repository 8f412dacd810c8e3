"""The pictures of flights beside what is really in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from mmedge_lab.training import TrainingError
from mmedge_ros.replay import BagError
from mmedge_ros.replay.bag import Bag
from mmedge_ros.replay.bag_topics import choose_topics
from mmedge_ros.replay.ground_truth import TrueFrame
from mmedge_ros.replay.recorded_truth import read_truth
from mmedge_ros.replay.wire_formats import header_stamp_ns
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.camera.image import Picture, decode_image


class LabelledPicture(NamedTuple):
    """A recorded picture, (H, W, 3) uint8 BGR, and all that is true at its stamp."""

    image: Picture
    truth: TrueFrame


def count_pictures(flights: Sequence[Path]) -> int:
    """Return how many pictures flights hold, by their indices.

    :raises BagError: if one cannot be read or has no camera
    """
    total = 0
    for flight in flights:
        with Bag(flight) as bag:
            name = _camera(bag)
            total += sum(topic.count for topic in bag.topics if topic.name == name)
    return total


def labelled_pictures(flight: Path, step: int = 1) -> Iterator[LabelledPicture]:
    """Yield every ``step``-th picture of a flight that has a truth.

    Damaged pictures, and those whose stamp no true scene belongs to, are passed over.

    :raises TrainingError: if the flight has no ground truth
    :raises BagError: if it cannot be read or has no camera
    """
    with Bag(flight) as bag:
        camera, truth = _camera(bag), read_truth(bag)
        if truth is None or not truth.scenes:
            why = 'none that can be used' if truth else 'none'
            raise TrainingError(
                f'{flight}: ground truth is needed, and this recording has {why}; use flights '
                'made by `mmedge simulate`'
            )
        for message in bag.messages([camera]):
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


def _camera(bag: Bag) -> str:
    camera = choose_topics(bag.topics).camera
    if camera is None:
        raise BagError(f'{bag.path} has no camera; a detector needs pictures')
    return camera
