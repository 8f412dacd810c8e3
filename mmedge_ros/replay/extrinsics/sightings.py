"""What a recording shows of people: boxes by the camera, returns by the radar, and ego motion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from mmedge_ros.core.data_types import (
    CAMERA,
    NS_PER_S,
    RADAR,
    FloatArray,
    ModalityConfiguration,
    Unit,
    UnitFeatures,
)
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.encoder_registry import EncoderSettings, encoder_kind
from mmedge_ros.encoding.unit_encoder import UnitEncoder
from mmedge_ros.geometry.ego_motion import EgoMotion, carried
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.geometry.sensor_poses import BASE_FRAME, SensorGeometry, resolve_geometry
from mmedge_ros.geometry.transforms import StampedTransform, TransformTree
from mmedge_ros.pipeline.unit_intake import plausible_stamp
from mmedge_ros.replay.extrinsics import ExtrinsicsError
from mmedge_ros.replay.recording import Recording
from mmedge_ros.sensing import SensingError

_NOTHING = np.zeros(0, np.float32)
# Ego motion is looked up on an even grid: ten times as quick, and odometry rarely comes faster.
_EGO_STEP = 0.01
_LONGEST = 7200  # s


@dataclass(frozen=True, eq=False)
class EgoCourse:
    """The drone's motion at ``times`` (N,) s, evenly spaced; rates are in the axes of the base.

    ``rotations`` (N, 3, 3) turn the base into the odometry frame, ``velocities`` (N, 3) m/s,
    ``turning`` (N, 3) rad/s.
    """

    times: FloatArray
    rotations: FloatArray
    velocities: FloatArray
    turning: FloatArray


@dataclass(frozen=True, eq=False)
class Sightings:
    """Pictures and scans of one recording, by their stamps, without what was not needed.

    ``transforms`` and ``camera`` are what the calibration starts from; ``ego`` is None without
    odometry. ``origin_ns`` is the stamp that times in s count from.
    """

    pictures: tuple[UnitFeatures, ...]
    scans: tuple[UnitFeatures, ...]
    camera: CameraModel
    transforms: tuple[StampedTransform, ...]
    ego: EgoMotion | None = None

    @property
    def origin_ns(self) -> int:
        return self.pictures[0].stamp_ns

    def seconds(self, stamp_ns: int) -> float:
        return (stamp_ns - self.origin_ns) / NS_PER_S

    @property
    def geometry(self) -> SensorGeometry:
        """The sensors' poses on the rig, as the calibration starts from them."""
        return resolve_geometry(
            TransformTree(self.transforms),
            self.camera,
            self.pictures[0].frame_id,
            self.scans[0].frame_id,
            self.ego.base_frame if self.ego else BASE_FRAME,
        )

    def geometry_at(self, stamp_ns: int, geometry: SensorGeometry) -> SensorGeometry:
        """Return the poses of a rig's sensors at an instant, in the odometry frame if known."""
        state = self.ego.nearest(stamp_ns) if self.ego else None
        if state is None or self.ego is None:
            return geometry
        return carried(geometry, state, self.ego.frame_id)

    def course(self) -> EgoCourse | None:
        """Return the ego motion on an even grid; None without odometry all along."""
        if self.ego is None:
            return None
        first, last = self.pictures[0].stamp_ns, self.pictures[-1].stamp_ns
        if last - first > _LONGEST * NS_PER_S:
            return None  # a stamp is wrong by years, or it is no flight for calibration
        step_ns = round(_EGO_STEP * NS_PER_S)
        states = [self.ego.at(stamp) for stamp in range(first, last, step_ns)]
        known = [
            (state, state.velocity, state.angular_velocity)
            for state in states
            if state is not None
            and state.velocity is not None
            and state.angular_velocity is not None
        ]
        if len(known) < 100 or len(known) < 0.9 * len(states):
            return None
        rotations = np.array([state.pose.rotation for state, _, _ in known])
        return EgoCourse(
            np.array([self.seconds(state.stamp_ns) for state, _, _ in known]),
            rotations,
            np.einsum('nji,nj->ni', rotations, [velocity for _, velocity, _ in known]),
            np.einsum('nji,nj->ni', rotations, [turning for _, _, turning in known]),
        )


def observe(
    recording: Recording, detector: Path, on_progress: Callable[[float], None] | None = None
) -> Sightings:
    """Detect people in every picture of a recording and decode every scan.

    :param on_progress: called with the share that is done
    :raises ExtrinsicsError: if it lacks a sensor, or the camera's calibration
    :raises EncodingError: if the detector cannot be used
    """
    path = recording.bag.path
    for modality in (CAMERA, RADAR):
        if modality not in recording.modalities:
            raise ExtrinsicsError(
                f'{path}: there is no {modality} in the recording; it takes both sensors'
            )
    if recording.camera is None:
        raise ExtrinsicsError(
            f'{path}: the camera is not calibrated; name its camera_info YAML with --calibration'
        )
    settings = EncoderSettings(detector)
    # The networks of a bundle for the radar are of no use here.
    encoders = {
        CAMERA: encoder_kind(CAMERA).make(settings),
        RADAR: encoder_kind(RADAR).make(replace(settings, model=None)),
    }
    units: dict[str, list[UnitFeatures]] = {CAMERA: [], RADAR: []}
    first_ns, last_ns = recording.arrivals_ns()
    for unit in recording.units():
        if unit.modality in encoders:
            _encode(encoders[unit.modality], unit, units[unit.modality])
        if on_progress:
            share = (unit.available_ns - first_ns) / max(last_ns - first_ns, 1)
            on_progress(min(max(share, 0.0), 1.0))
    for modality, seen in units.items():
        if not seen:
            raise ExtrinsicsError(f'{path}: no message of the {modality} can be used')
        seen.sort(key=lambda unit: unit.stamp_ns)
    return Sightings(
        tuple(units[CAMERA]),
        tuple(units[RADAR]),
        recording.camera,
        tuple(recording.transforms),
        recording.ego_motion(),
    )


def _encode(encoder: UnitEncoder, unit: Unit, seen: list[UnitFeatures]) -> None:
    try:
        features = encoder.encode(unit, ModalityConfiguration(unit.modality), 0)
    except (SensingError, EncodingError):
        return  # the replay of the recording reports what is wrong with it
    if not plausible_stamp(unit.stamp_ns, unit.available_ns):
        features = replace(features, stamp_ns=unit.available_ns)
    seen.append(features.without_grid(embedding=_NOTHING))
