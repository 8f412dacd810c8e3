"""The result of a calibration as a file in the format that the package reads."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.geometry.transforms import StampedTransform, Transform, quaternion_from_rotation
from mmedge_ros.replay.extrinsics import ExtrinsicsError
from mmedge_ros.replay.extrinsics.calibrate import CalibrationResult
from mmedge_ros.replay.extrinsics.sightings import Sightings


def calibrated_transforms(
    sightings: Sightings, result: CalibrationResult
) -> list[StampedTransform]:
    """Return the edges from both sensors up to their root, with the radar turned.

    Where the radar itself is the root, what hangs below it is turned the other way.

    :raises ExtrinsicsError: if a sensor's messages name no frame
    """
    start = sightings.geometry
    radar, camera = sightings.scans[0].frame_id, sightings.pictures[0].frame_id
    if not radar or not camera or radar == camera:
        raise ExtrinsicsError(
            f'the frames of radar and camera are {radar!r} and {camera!r}; a transform needs two '
            'different names, so give the drivers their frame_id'
        )
    edges = {edge.child: edge for edge in sightings.transforms}
    turn = start.radar_pose.rotation.T @ result.geometry.radar_pose.rotation
    if radar not in edges and not any(edge.parent == radar for edge in edges.values()):
        edges[radar] = _edge(start.frame_id, radar, start.radar_pose)
    if camera not in edges and not any(edge.parent == camera for edge in edges.values()):
        edges[camera] = _edge(start.frame_id, camera, start.camera_pose)
    if radar in edges:
        edge = edges[radar]
        edges[radar] = edge._replace(rotation=edge.rotation @ turn)
    else:
        for child, edge in edges.items():
            if edge.parent == radar:
                edges[child] = edge._replace(
                    translation=turn.T @ edge.translation, rotation=turn.T @ edge.rotation
                )
    wanted: dict[str, StampedTransform] = {}
    for frame in (radar, camera):
        while frame in edges and frame not in wanted:
            wanted[frame] = edges[frame]
            frame = edges[frame].parent
    return list(wanted.values())


def write_extrinsics(
    path: Path,
    transforms: Sequence[StampedTransform],
    comments: Sequence[str],
    camera: CameraModel | None = None,
    day: date | None = None,
) -> None:
    """Write transforms, and the camera and the day if they are given, below comments.

    :raises OSError: if that is not possible
    """
    content: dict[str, Any] = {} if camera is None else _camera(camera)
    content['transforms'] = [
        {
            'parent': edge.parent,
            'child': edge.child,
            'translation': _numbers(edge.translation),
            'rotation': _numbers(quaternion_from_rotation(edge.rotation)),
        }
        for edge in transforms
    ]
    if day is not None:
        content['calibrated'] = day
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [f'# {line}'.rstrip() for line in comments]
    text = yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=100)
    path.write_text('\n'.join([*lines, text]), encoding='utf-8')


def _edge(parent: str, child: str, pose: Transform) -> StampedTransform:
    return StampedTransform(parent, child, pose.translation, pose.rotation)


def _camera(camera: CameraModel) -> dict[str, Any]:
    return {
        'image_width': camera.width,
        'image_height': camera.height,
        'camera_matrix': {'rows': 3, 'cols': 3, 'data': _numbers(camera.k)},
        'distortion_model': camera.model,
        'distortion_coefficients': {'rows': 1, 'cols': len(camera.d), 'data': _numbers(camera.d)},
    }


def _numbers(values: FloatArray | Sequence[float]) -> list[float]:
    return [float(f'{value:.9g}') + 0.0 for value in np.ravel(values).tolist()]
