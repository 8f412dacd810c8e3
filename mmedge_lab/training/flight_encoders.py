"""The encoders of a flight, at work on recordings: what they make of them is what is learned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from mmedge_lab.training import OnShare
from mmedge_lab.training.feature_cache import (
    FindTruth,
    Grid,
    RecordingEncoder,
    cache_key,
    write_flight,
)
from mmedge_lab.training.picture_set import describe_flight
from mmedge_ros.core.data_types import CAMERA, RADAR, ModalityConfiguration, Unit
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.detector import DetectorParameters
from mmedge_ros.encoding.unit_encoder import CameraEncoder, RadarEncoder, UnitEncoder
from mmedge_ros.geometry import GeometryError
from mmedge_ros.geometry.ego_motion import EgoMotion, carried
from mmedge_ros.geometry.sensor_poses import BASE_FRAME, SensorGeometry, resolve_geometry
from mmedge_ros.geometry.transforms import TransformTree
from mmedge_ros.replay.recording import Recording
from mmedge_ros.sensing.radar.filter import RadarLimits
from mmedge_ros.tracking.radar_grid import radar_fusion_input

# Boxes are not needed here: a high threshold leaves hardly one to sort out.
_NO_BOXES = DetectorParameters(score_threshold=1.0)
_LARGEST_FLOAT16 = 65504.0


class RecordingGeometry:
    """Sensor poses of a recording at any instant, with odometry where there is any."""

    def __init__(self, recording: Recording, frames: Mapping[str, str]) -> None:
        tree = TransformTree()
        for transform in recording.transforms:
            tree.add(transform.parent, transform.child, transform.transform)
        self._ego = recording.ego_motion() or EgoMotion()
        self._still = resolve_geometry(
            tree,
            recording.camera,
            frames.get(CAMERA, ''),
            frames.get(RADAR, ''),
            self._ego.base_frame or BASE_FRAME,
        )

    def at(self, stamp_ns: int) -> SensorGeometry:
        """Return the poses at an instant."""
        state = self._ego.nearest(stamp_ns)
        return self._still if state is None else carried(self._still, state, self._ego.frame_id)


def sensor_frames(recording: Recording) -> dict[str, str]:
    """Return the frame of each modality's sensor, as its first unit names it."""
    frames: dict[str, str] = {}
    for unit in recording.units():
        frames.setdefault(unit.modality, unit.frame_id)
        if len(frames) == len(recording.modalities):
            break
    return frames


def bundle_encoders(
    bundle: Path, levels: Sequence[str], recording: Recording
) -> dict[tuple[str, str], RecordingEncoder]:
    """Return an encoder for each of some levels of a bundle, for the units of one recording.

    :param levels: those wanted; () for all
    :raises EncodingError: if the bundle cannot be used
    """
    encoders = _opened(bundle)
    geometry = RecordingGeometry(recording, sensor_frames(recording))
    made: dict[tuple[str, str], RecordingEncoder] = {}
    for kind, encode in ((CAMERA, _camera_grids), (RADAR, _radar_grids)):
        for level in levels or encoders[kind].levels:
            configuration = ModalityConfiguration(kind, 0.0, level)
            made[kind, level] = partial(encode, encoders[kind], configuration, geometry)
    return made


def cache_flight(
    flight: Path,
    folder: Path,
    bundle: Path,
    made_from: Mapping[str, Any],
    stride_ns: int,
    levels: Sequence[str],
    teacher: FindTruth | None,
    on_share: OnShare,
) -> None:
    """Encode a flight with levels of a bundle, unless that was done before.

    :param made_from: what it depends on beside the flight: plain values
    :param levels: () for all
    :param teacher: the detector that stands in for the truth, None where flights have their own
    """
    key = cache_key({**describe_flight(flight), 'levels': list(levels)}, made_from, stride_ns)
    opened = partial(bundle_encoders, bundle, levels)
    write_flight(flight, folder, key, opened, stride_ns, teacher)
    on_share(1.0)


@lru_cache(maxsize=1)
def _opened(bundle: Path) -> dict[str, UnitEncoder]:
    camera = CameraEncoder.from_path(bundle, _NO_BOXES)
    radar = RadarEncoder.from_path(bundle, RadarLimits())
    return {CAMERA: camera, RADAR: radar}


def _camera_grids(
    encoder: UnitEncoder,
    configuration: ModalityConfiguration,
    geometry: RecordingGeometry,  # noqa: ARG001 - a picture is what it is wherever it was taken
    unit: Unit,
) -> tuple[Grid, Grid]:
    grid = encoder.encode(unit, configuration, 0).grid
    return grid, grid


def _radar_grids(
    encoder: UnitEncoder,
    configuration: ModalityConfiguration,
    geometry: RecordingGeometry,
    unit: Unit,
) -> tuple[Grid, Grid]:
    scan = encoder.encode(unit, configuration, 0)
    try:
        fused = radar_fusion_input(scan, geometry.at(unit.stamp_ns))
    except GeometryError as err:
        raise EncodingError(str(err)) from err
    clipped = np.clip(fused, -_LARGEST_FLOAT16, _LARGEST_FLOAT16)
    return clipped.astype(np.float16), scan.grid
