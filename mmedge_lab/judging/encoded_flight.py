"""A flight whose units are encoded once per level, to be replayed in any configuration.

A configuration changes which units pass and at which level they are encoded, not the features
of a unit at a level. So a replay takes the features from memory; windows, fusion and tracking
run anew, bit for bit as if the encoders had been at work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from mmedge_lab.judging.steered_replay import SteeredReplay, Steering
from mmedge_ros.core.data_types import (
    CAMERA,
    Appearance,
    Configuration,
    ModalityConfiguration,
    Unit,
    UnitFeatures,
)
from mmedge_ros.core.device_profile import DeviceProfile
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.object_memory import ObjectMemory
from mmedge_ros.encoding.unit_encoder import UnitEncoder
from mmedge_ros.geometry.image_motion import Grey
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.geometry.sensor_rig import RigReport
from mmedge_ros.geometry.transforms import StampedTransform
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline
from mmedge_ros.pipeline.pipeline_parameters import PipelineParameters
from mmedge_ros.replay import ReplayError
from mmedge_ros.replay.ground_truth import GroundTruth
from mmedge_ros.replay.offline_replay import OfflineReplay
from mmedge_ros.replay.offline_session import begin_record, enter_geometry
from mmedge_ros.replay.recording import Recording
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.camera.image import decode_half_grey, decode_image, half_grey

_NO_EMBEDDING = np.zeros(0, np.float32)


class _Greys(NamedTuple):
    """A picture in grey at half its size, as an encoder has it that encodes or follows it."""

    encoded: Grey
    followed: Grey


class _Place(NamedTuple):
    """A unit of a modality at a level, '' where there is one model."""

    modality: str
    level: str
    sequence: int


@dataclass
class EncodedFlight:
    """A recording in memory: what arrived when, and the features of each unit at each level.

    ``events`` hold units without their payload. ``levels`` are those of each modality's encoder,
    () where one model or none serves every level. Features are added by `encode_flight`, and
    with ``greys`` the pictures by which units can be followed instead of encoded.
    """

    record: RunRecord
    events: tuple[Unit | RigReport, ...]
    periods_ns: Mapping[str, int]
    transforms: Sequence[StampedTransform]
    camera: CameraModel | None
    levels: dict[str, tuple[str, ...]] = field(default_factory=dict)
    features: dict[_Place, UnitFeatures | Exception] = field(default_factory=dict)
    greys: dict[int, _Greys] = field(default_factory=dict)

    @property
    def modalities(self) -> tuple[str, ...]:
        """Modalities with features."""
        return tuple(self.levels)

    def keep(self, modality: str, level: str, sequence: int, made: UnitFeatures) -> None:
        """Enter the features of a unit; level '' where one model serves every level."""
        self.features[_Place(modality, level, sequence)] = made

    @property
    def truth(self) -> GroundTruth | None:
        """The ground truth; None where the recording holds none."""
        return self.record.truth


def load_flight(recording: Recording, parameters: PipelineParameters) -> EncodedFlight:
    """Read what a replay needs of a recording, features aside.

    :param parameters: of the pipeline that will be replayed
    :raises ReplayError: if there is nothing to play
    """
    return EncodedFlight(
        begin_record(recording, parameters, 'offline'),
        tuple(
            replace(event, payload=None) if isinstance(event, Unit) else event
            for event in recording.events()
        ),
        dict(recording.periods_ns),
        tuple(recording.transforms),
        recording.camera,
    )


def encode_flight(
    flight: EncodedFlight,
    recording: Recording,
    encoders: Mapping[str, UnitEncoder],
    wanted: Mapping[str, Collection[str]],
    on_progress: Callable[[float], None] | None = None,
    *,
    with_greys: bool = False,
) -> None:
    """Encode every unit of a recording once per level; what is there already is kept.

    :param wanted: levels to encode, by modality
    :param with_greys: keep what replays with ``reuse`` in the configuration need: 160 kB for each
        picture of 640 x 480 px
    :param on_progress: called with the share done, 0..1
    """
    for modality, encoder in encoders.items():
        flight.levels[modality] = encoder.levels
    total = max(sum(isinstance(event, Unit) for event in flight.events), 1)
    for number, unit in enumerate(recording.units()):
        if unit.modality in encoders:
            encoder = encoders[unit.modality]
            for level in _distinct_levels(encoder.levels, wanted[unit.modality]):
                place = _Place(unit.modality, level, unit.sequence)
                if place not in flight.features:
                    flight.features[place] = _encoded(encoder, unit, level)
            if with_greys and unit.modality == CAMERA:
                _keep_greys(flight, unit)
        if on_progress:
            on_progress((number + 1) / total)


def _keep_greys(flight: EncodedFlight, unit: Unit) -> None:
    try:
        greys = _Greys(half_grey(decode_image(unit.payload)), decode_half_grey(unit.payload))
    except SensingError:
        return
    flight.greys[unit.sequence] = greys


def _distinct_levels(levels: tuple[str, ...], wanted: Iterable[str]) -> list[str]:
    return sorted({level if levels else '' for level in wanted})


def _encoded(encoder: UnitEncoder, unit: Unit, level: str) -> UnitFeatures | Exception:
    try:
        return encoder.encode(unit, ModalityConfiguration(unit.modality, 0.0, level), 0)
    except (SensingError, EncodingError) as err:
        return err


class StoredEncoder:
    """Returns the features of each unit from memory, and follows as `CameraEncoder` does."""

    def __init__(self, flight: EncodedFlight, modality: str) -> None:
        self.modality = modality
        self.levels = flight.levels[modality]
        self.problems: Counter[str] = Counter()
        self._features = flight.features
        self._greys = flight.greys
        self.memory = ObjectMemory()

    def encode(
        self, unit: Unit, configuration: ModalityConfiguration, configuration_id: int
    ) -> UnitFeatures:
        if self.modality != CAMERA or not self._greys:
            return self._stored(unit, configuration, configuration_id)
        due, greys = self.memory.due(unit, configuration), self._greys.get(unit.sequence)
        followed = None if due or greys is None else self.memory.follow(unit, greys.followed)
        if followed is None:
            self.memory.forget()
        features = self._stored(unit, configuration, configuration_id)
        if followed is not None:
            return features.without_grid(
                detections=followed,
                followed=True,
                embedding=_NO_EMBEDDING,
                appearance=Appearance(),
            )
        if configuration.reuse <= 1 or greys is None:
            return features
        detections = features.detections
        remembered = self.memory.remember(unit, configuration, greys.encoded, detections)
        return replace(features, detections=remembered)

    def _stored(
        self, unit: Unit, configuration: ModalityConfiguration, configuration_id: int
    ) -> UnitFeatures:
        level = configuration.level if self.levels else ''
        features = self._features.get(_Place(unit.modality, level, unit.sequence))
        if features is None:
            raise ReplayError(
                f'{unit.modality} unit {unit.sequence} was not encoded with level {level!r}; '
                'encode the flight with every level that is replayed'
            )
        if isinstance(features, Exception):
            raise features.with_traceback(None)
        return replace(
            features,
            # The stamp may have been put right, and the trail goes on from here.
            stamp_ns=unit.stamp_ns,
            trail=unit.trail,
            rate=configuration.rate,
            level=features.level or configuration.level,
            configuration_id=configuration_id,
        )

    def warm_up(self) -> None:
        """There is nothing to load."""


def replay_encoded(
    flight: EncodedFlight,
    pipeline: PerceptionPipeline,
    configuration: Configuration | Steering,
    profile: DeviceProfile,
    modalities: Collection[str] = (),
    encoders: Mapping[str, UnitEncoder] | None = None,
) -> RunRecord:
    """Replay an encoded flight in virtual time, in one configuration or in chosen ones.

    :param pipeline: a new one; it is given the calibration here
    :param configuration: rates and levels, or what chooses them in flight
    :param modalities: those whose units arrive; () for all that were recorded
    :param encoders: by modality, in place of a `StoredEncoder`
    :raises ReplayError: if the profile lacks a stage, or a unit was not encoded with its level
    """
    arriving = [m for m in flight.modalities if not modalities or m in modalities]
    # A withheld sensor is still mounted on the drone.
    set_up_geometry(flight, pipeline, [m for m in flight.modalities if m not in arriving])
    given = encoders or {}
    working = {m: given.get(m) or StoredEncoder(flight, m) for m in arriving}
    if isinstance(configuration, Configuration):
        replay = OfflineReplay(pipeline, working, profile, flight.periods_ns)
        for server in replay.servers.values():
            server.intake.control.schedule.add(configuration)
    else:
        replay = SteeredReplay(pipeline, working, profile, configuration, flight.periods_ns)
    replay.run(
        event
        for event in flight.events
        if not isinstance(event, Unit) or event.modality in working
    )
    record = replace(flight.record, features=[], units={}, problems=[], decisions=[])
    replay.fill(record)
    enter_geometry(record, pipeline, flight.modalities)
    record.profile = profile.description
    return record


def set_up_geometry(
    flight: EncodedFlight, pipeline: PerceptionPipeline, withheld: Collection[str] = ()
) -> None:
    """Give a pipeline the calibration of a flight.

    :param withheld: modalities whose units never arrive, so that their frames must be given
    """
    pipeline.rig.add_transforms(flight.transforms)
    if flight.camera is not None:
        pipeline.rig.set_camera(flight.camera)
    pipeline.rig.set_frames({m: f for m, f in _frames(flight).items() if m in withheld})


def _frames(flight: EncodedFlight) -> dict[str, str]:
    frames: dict[str, str] = {}
    for event in flight.events:
        if isinstance(event, Unit):
            frames.setdefault(event.modality, event.frame_id)
        if len(frames) == len(flight.modalities):
            break
    return {m: frame for m, frame in frames.items() if m in flight.modalities}
