"""The pictures of a recording, decoded again for those who want to look at them."""

from __future__ import annotations

from collections.abc import Iterator

from mmedge_ros.data_types import CAMERA
from mmedge_ros.lab.evaluation.video import TimedPicture
from mmedge_ros.pipeline.unit_intake import plausible_stamp
from mmedge_ros.replay.recording import Recording
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.camera.image import decode_image


def recorded_pictures(recording: Recording) -> Iterator[TimedPicture]:
    """Return the pictures by the time they were available; damaged ones are left out."""
    for unit in recording.units():
        if unit.modality != CAMERA:
            continue
        try:
            picture = decode_image(unit.payload)
        except SensingError:
            continue
        is_true = plausible_stamp(unit.stamp_ns, unit.available_ns)
        stamp_ns = unit.stamp_ns if is_true else unit.available_ns
        yield TimedPicture(stamp_ns, unit.available_ns, picture)
