"""What a recording says of its sensors' geometry; what cannot be true is reported, not used."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from mmedge_ros.geometry import GeometryError
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.geometry.transforms import StampedTransform, TransformTree, transform_from_message
from mmedge_ros.replay import BagError
from mmedge_ros.replay.bag import Bag
from mmedge_ros.replay.bag_topics import is_tf_static

# Frames of maps lie millions of metres apart; beyond this sums lose their millimetres.
_FARTHEST = 1e9

Report = Callable[[str], None]


def recorded_transforms(
    bag: Bag, report: Report, given: Sequence[StampedTransform] = ()
) -> list[StampedTransform]:
    """Return the static transforms of a recording that make a tree, and then the ``given`` ones.

    Those that were given decide: a recorded one that contradicts them is left out.

    :raises GeometryError: if the given ones close a cycle
    """
    tree = TransformTree(given)
    replaced = {edge.child for edge in given}
    kept: list[StampedTransform] = []
    for edge in static_transforms(bag, report):
        if edge.child in replaced:
            continue
        if not (np.abs(edge.translation) <= _FARTHEST).all():
            report(
                f'static transform not used: {edge.parent!r} -> {edge.child!r} is '
                f'{edge.translation.tolist()} m away; the limit is {_FARTHEST:.0e} m'
            )
            continue
        try:
            tree.add(edge.parent, edge.child, edge.transform)
        except GeometryError as err:
            report(f'static transform not used: {err}')
        else:
            kept.append(edge)
    return [*kept, *given]


def recorded_camera(bag: Bag, topic: str, report: Report) -> CameraModel | None:
    """Return the camera's model from the first camera_info that holds one."""
    camera, reason, unusable = None, '', 0
    for message in bag.messages([topic]):
        try:
            camera = CameraModel.from_camera_info(bag.deserialize(message))
            break
        except (BagError, GeometryError) as err:
            reason, unusable = reason or str(err), unusable + 1
    if unusable:
        used = '' if camera is None else ', the next one was used'
        report(f'camera_info: messages without a usable calibration: {unusable}{used} ({reason})')
    return camera


def static_transforms(bag: Bag, report: Report) -> Iterator[StampedTransform]:
    """Yield all static transforms in recorded order; a later one replaces an earlier one.

    :param report: called with a sentence for each that cannot be used
    """
    names = [topic.name for topic in bag.topics if is_tf_static(topic)]
    for message in bag.messages(names) if names else ():
        place = f'{bag.path}: message {message.index} of {message.topic}'
        try:
            edges = bag.deserialize(message).transforms
        except BagError as error:
            report(f'static transform not used: {error}')
            continue
        for edge in edges:
            try:
                yield transform_from_message(edge)
            except GeometryError as error:
                report(f'static transform not used: {place}: {error}')
