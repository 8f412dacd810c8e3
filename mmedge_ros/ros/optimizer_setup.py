"""Parameters of the optimiser's node, and what it decides with."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
from builtin_interfaces.msg import Time

from mmedge_ros import msg
from mmedge_ros.configuration import ConfigurationError
from mmedge_ros.configuration.bundle_configurations import (
    bundle_defaults,
    bundle_levels,
    bundle_predictor,
    bundle_space,
    bundle_unit_times,
)
from mmedge_ros.configuration.configuration_loop import (
    ConfigurationLoop,
    ConfigurationLoopParameters,
)
from mmedge_ros.configuration.fixed_configuration import FixedConfiguration
from mmedge_ros.configuration.latency_budget import LatencyDemand
from mmedge_ros.configuration.scene_indicators import SceneIndicators
from mmedge_ros.configuration.unit_time_profile import unit_times_from_profile
from mmedge_ros.data_types import CAMERA, MOST_REUSE, NS_PER_S, RADAR, RETURN_FIELDS, Box
from mmedge_ros.encoding.bricks import costs_from_plain
from mmedge_ros.encoding.bundle.default_model import default_detector
from mmedge_ros.parameter import group, parameter
from mmedge_ros.power.placement import Placement
from mmedge_ros.records.device_profile import read_profile
from mmedge_ros.ros.messages.conversions import appearance_of_message, from_time


@dataclass(frozen=True)
class ConfigurationOptimizerParameters:
    """What can be chosen, and by which rules."""

    optimise: bool = parameter(
        True,
        'choose rates and levels; otherwise all stays as set up, but within the bounds that '
        'battery, heat and load set',
    )
    rate: float = parameter(10.0, 'how often it is decided', 'Hz', 0.5, 100.0)
    modalities: tuple[str, ...] = parameter(
        (CAMERA, RADAR), 'sensors whose rates and levels are chosen: camera, radar'
    )
    camera_rates: tuple[float, ...] = parameter(
        (10.0, 20.0, 30.0),
        'rates of the camera to choose from, the lowest first',
        'Hz',
        0.1,
        1000.0,
    )
    radar_rates: tuple[float, ...] = parameter(
        (5.0, 10.0, 20.0), 'rates of the radar to choose from, the lowest first', 'Hz', 0.1, 1000.0
    )
    camera_reuse: tuple[int, ...] = parameter(
        (1, 2, 3, 6),
        'how sparsely pictures may be encoded: 2 encodes about every 2nd one and follows what was '
        'detected in the others; 1 encodes every one',
        minimum=1,
        maximum=MOST_REUSE,
    )
    detector: str = parameter(
        '', 'the model whose levels are chosen; that of the encoders, see there'
    )
    simulated: bool = parameter(False, 'the pictures come from the simulator, as at the encoders')
    profile: str = parameter(
        '',
        'device profile measured by mmedge profile; without one unit times are learned in flight, '
        'and levels that have not run are guessed',
    )
    adaptation: ConfigurationLoopParameters = group(ConfigurationLoopParameters)


@dataclass(frozen=True)
class OptimizerSetup:
    """``notes`` name what is missing, ``source`` where accuracies come from."""

    loop: ConfigurationLoop | FixedConfiguration
    notes: tuple[str, ...]
    source: str
    size: int


def optimizer_setup(p: ConfigurationOptimizerParameters) -> OptimizerSetup:
    """Make the loop that the parameters describe.

    :raises EncodingError: if the model cannot be read
    :raises ReplayError: if the profile cannot be read
    :raises ConfigurationError: if profile, accuracies or rates do not suit the model
    """
    rates = {CAMERA: p.camera_rates, RADAR: p.radar_rates}
    model = default_detector(p.detector, p.simulated)
    profile = read_profile(Path(p.profile)) if p.profile else None
    costs = costs_from_plain(profile.details.get('bricks')) if profile else []
    placement = Placement(costs, bundle_defaults(model))
    if not p.optimise:
        levels = {modality: bundle_levels(model, modality) for modality in p.modalities}
        fixed = FixedConfiguration(levels, bundle_defaults(model), p.adaptation, placement)
        return OptimizerSetup(fixed, (), 'none: it does not optimise', 0)
    for modality in p.modalities:
        if modality not in rates:
            raise ConfigurationError(
                f'modalities: there are no rates for {modality!r}; choose from {", ".join(rates)}'
            )
    space = bundle_space(model, p.modalities, rates, p.camera_reuse)
    notes = []
    if profile is not None:
        times = unit_times_from_profile(profile, space)
    else:
        times, measured = bundle_unit_times(model, space)
        begin = 'begin with those in the bundle' if measured else 'are guessed until measured'
        notes.append(f'no device profile: unit times {begin} (mmedge profile)')
    accuracies = bundle_predictor(model, space)
    if accuracies.note:
        notes.append(accuracies.note)
    loop = ConfigurationLoop(space, times, accuracies.predictor, p.adaptation, placement)
    return OptimizerSetup(loop, tuple(notes), accuracies.source, len(space))


class Cost:
    """How long a repeated computation takes; the newest few hundred times."""

    def __init__(self) -> None:
        self._seconds: deque[float] = deque(maxlen=500)

    def add(self, seconds: float) -> None:
        """Enter one time."""
        self._seconds.append(seconds)

    def microseconds(self) -> str:
        """Return the median, '' before there is one."""
        return f'{1e6 * median(self._seconds):.1f}' if self._seconds else ''


class _SeenTrack(NamedTuple):
    """The part of a track that is used: reading its covariances takes most of the time."""

    box: Box | None
    box_velocity: tuple[float, float]
    score: float


def look_at_unit(scene: SceneIndicators, message: msg.UnitFeatures) -> None:
    """Pass on what an encoded unit says of the scene; unreadable returns are left out."""
    if message.modality == CAMERA and not message.followed:
        scene.take_appearance(appearance_of_message(message))
    elif message.modality == RADAR and len(message.returns) % len(RETURN_FIELDS) == 0:
        returns = np.frombuffer(message.returns, np.float32)
        scene.take_returns(returns.reshape(-1, len(RETURN_FIELDS)))
    scene.take_embedding(message.modality, np.frombuffer(message.embedding, np.float32))


def look_at_tracks(scene: SceneIndicators, message: msg.TrackArray) -> None:
    """Pass on the tracks of a decision, unless a number in them is impossible."""
    tracks = []
    for track in message.tracks:
        numbers = (*track.box.tolist(), *track.box_velocity.tolist(), track.score)
        if not all(map(math.isfinite, numbers)):
            return
        box = Box(*numbers[:4]) if track.box_valid else None
        tracks.append(_SeenTrack(box, numbers[4:6], track.score))
    scene.decided(tracks)


def take_duration(loop: ConfigurationLoop, message: msg.UnitFeatures, now: float) -> None:
    """Pass on how long a unit took to encode, or to follow, by its trail."""
    if message.followed:
        loop.unit_followed(message.modality, stage_seconds(message, 'follow'), now)
    else:
        taken = stage_seconds(message, 'encode')
        loop.unit_encoded(message.modality, message.level, taken, now)


def stage_seconds(message: msg.UnitFeatures, name: str) -> float:
    """Return how long a stage of a unit took by its trail; NaN where unknown."""
    for stage in reversed(message.trail):
        if stage.stage == name:
            return (from_time(stage.end) - from_time(stage.begin)) / NS_PER_S
    return math.nan


def seen_tracks(message: msg.TrackArray) -> list[tuple[int, bool]]:
    """Return the ids of tracks, and whether the camera has seen each lately."""
    return [(track.id, track.box_valid or CAMERA in track.seen_by) for track in message.tracks]


def demand_from_message(message: msg.LatencyDemand, now_ns: int) -> LatencyDemand:
    """Return what a consumer announces; its lease counts from now."""
    return LatencyDemand(
        message.source,
        float(message.decode_time),
        float(message.total_limit),
        (from_time(message.valid_until) - now_ns) / NS_PER_S,
    )


def seconds_until(instant: Time, now_ns: int) -> float:
    """Return how far ahead an instant is, never negative."""
    return max(from_time(instant) - now_ns, 0) / NS_PER_S
