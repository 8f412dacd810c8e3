"""The detectors a fusion is built on, from the work folders of their trainings."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from mmedge_ros.encoding.bundle.weights import sha256_of
from mmedge_ros.encoding.ultralytics_network import new_network
from mmedge_ros.lab.training import TrainingError
from mmedge_ros.lab.training.checkpoint import load_checkpoint, work_beside
from mmedge_ros.lab.training.detector_settings import SCALES
from mmedge_ros.lab.training.detector_training import CHECKPOINT
from mmedge_ros.lab.training.picture_set import CLASSES


class TrainedDetector(NamedTuple):
    """A trained network in evaluation mode; ``digest`` is that of its checkpoint."""

    network: Any
    digest: str
    settings: dict[str, Any]
    epoch: int


def checkpoint_of(place: Path) -> Path:
    """Return the checkpoint of a detector.

    :param place: a checkpoint, the work folder of a training, or the bundle beside which it is
    :raises TrainingError: if there is none
    """
    places = (place / CHECKPOINT, work_beside(place.absolute()) / CHECKPOINT)
    found = [place] if place.is_file() else [path for path in places if path.is_file()]
    if not found:
        raise TrainingError(
            f'{place} holds no {CHECKPOINT}; name the work folder that `mmedge train detector '
            '--keep-work` leaves beside its bundle'
        )
    return found[0]


def load_detector(place: Path, width: str) -> TrainedDetector:
    """Open the averaged network of a detector's training; torch must be prepared.

    :param place: see `checkpoint_of`
    :param width: narrow or wide: what it must be
    :raises TrainingError: if it is none, damaged, or of another width
    """
    path = checkpoint_of(place)
    content = load_checkpoint(path)
    settings = content.get('settings')
    if not isinstance(settings, dict) or 'average' not in content:
        raise TrainingError(
            f'{path} is no checkpoint of a detector; name one of `mmedge train detector`'
        )
    found = str(settings.get('width'))[:20]
    if found != width:
        raise TrainingError(
            f'{path} is a {found!r} detector and was given as --{width}; train one with '
            f'`mmedge train detector --width {width} --keep-work`'
        )
    network = new_network(CLASSES, SCALES[width])
    try:
        network.load_state_dict(content['average'])
        epoch = int(content['epoch'])
    except (KeyError, RuntimeError, TypeError, ValueError) as err:
        raise TrainingError(
            f'{path} is damaged or of another version ({str(err)[:200]}); train it anew'
        ) from err
    return TrainedDetector(network.float().eval(), sha256_of(path), settings, epoch)
