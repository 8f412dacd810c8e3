"""Agreement of radar and camera: boxes that hold moving returns, and returns that lie in one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.geometry.sensor_poses import SensorGeometry
from mmedge_ros.replay.extrinsics.box_tracks import people
from mmedge_ros.replay.extrinsics.pairs import MovingReturns
from mmedge_ros.replay.extrinsics.sightings import Sightings

# A picture is compared with so many scans before it, none older than this (s).
_SCANS = 2
_OLDEST = 0.15


class ExtrinsicsAgreement(NamedTuple):
    """Share of ``boxes`` with a moving return inside, and of ``returns`` in view inside a box.

    NaN where there are none.
    """

    filled: float
    inside: float
    boxes: int
    returns: int


def agreement(
    sightings: Sightings, returns: MovingReturns, geometry: SensorGeometry, time_offset: float
) -> ExtrinsicsAgreement:
    """Compare each picture with the moving returns of the two scans before it.

    :param geometry: the sensors' poses on the rig
    :param time_offset: by how much radar stamps are later than camera stamps, s
    """
    offset_ns = round(time_offset * NS_PER_S)
    stamps_ns = np.array([scan.stamp_ns for scan in sightings.scans])
    boxes = filled = shown = inside = 0
    for picture in sightings.pictures:
        detections = people(picture.detections)
        corrected = stamps_ns - offset_ns
        last = int(np.searchsorted(corrected, picture.stamp_ns, side='right'))
        recent = [
            n
            for n in range(max(last - _SCANS, 0), last)
            if picture.stamp_ns - corrected[n] <= _OLDEST * NS_PER_S
        ]
        if not detections or not recent:
            continue
        to_optical = sightings.geometry_at(picture.stamp_ns, geometry).camera_pose.inverse()
        points = np.concatenate(
            [
                sightings.geometry_at(int(corrected[n]), geometry).radar_pose.apply(
                    returns.of_scan(sightings.seconds(int(stamps_ns[n])))
                )
                for n in recent
            ]
        )
        pixels, in_view = sightings.camera.project(to_optical.apply(points))
        corners = np.array([d.box for d in detections])
        with np.errstate(invalid='ignore'):  # points behind the camera have no pixel
            hits = (pixels[None] > corners[:, None, :2]) & (pixels[None] < corners[:, None, 2:])
        held = np.asarray(hits.all(axis=2), bool)
        boxes += len(detections)
        filled += int(np.any(held, axis=1).sum())
        shown += int(in_view.sum())
        inside += int((np.any(held, axis=0) & in_view).sum())
    return ExtrinsicsAgreement(
        filled / boxes if boxes else np.nan, inside / shown if shown else np.nan, boxes, shown
    )
