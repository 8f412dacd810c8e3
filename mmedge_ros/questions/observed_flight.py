"""What was perceived of a recording: it is replayed once, all labels tracked."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from mmedge_ros.data_types import CAMERA
from mmedge_ros.encoding.bundle.model_bundle import open_detector
from mmedge_ros.encoding.detector import DetectorParameters
from mmedge_ros.geometry.ego_motion import EgoMotion
from mmedge_ros.pipeline.pipeline_parameters import PipelineParameters
from mmedge_ros.questions.observations import (
    DronePath,
    Observations,
    observations_of,
    pose_of,
)
from mmedge_ros.replay.offline_session import OfflineOptions, replay_detector, replay_offline
from mmedge_ros.replay.recording import Recording

OnShare = Callable[[float, str], None]


@dataclass(frozen=True)
class ObservedFlight:
    """Observations of a recording, and the labels that its detector knows.

    ``problems`` are sentences about what the recording lacks.
    """

    observations: Observations
    labels: tuple[str, ...]
    problems: tuple[str, ...]


def observe_flight(
    recording: str,
    detector: str = '',
    on_share: OnShare = lambda _share, _words: None,
    profile: str = '',
) -> ObservedFlight:
    """Replay a recording for its tracks.

    :param detector: model or bundle; '' takes what suits the recording
    :param profile: device profile of the service times; '': they are measured
    :raises ReplayError: if the recording cannot be read
    :raises EncodingError: if the bundle cannot be used
    """
    with Recording(recording) as opened:
        model = replay_detector(opened, detector) if CAMERA in opened.modalities else None
    detection = replace(DetectorParameters(), labels=())
    # Of what no detector knows, not seeing it says nothing.
    labels = () if model is None else tuple(dict.fromkeys(open_detector(model, detection).labels))
    options = OfflineOptions(
        recording,
        '' if model is None else str(model),
        profile=profile,
        pipeline=PipelineParameters(updates=False),
        detection=detection,
    )
    record = replay_offline(options, lambda share, _: on_share(share, 'following what moves'))
    drone = drone_path(record.ego, [decision.state_ns for decision in record.decisions])
    observations = observations_of(record.decisions, drone)
    return ObservedFlight(observations, labels, tuple(record.problems))


def drone_path(ego: EgoMotion | None, stamps_ns: Iterable[int]) -> DronePath | None:
    """Return where the drone was at instants; None where nothing is known of its way."""
    states = [] if ego is None else [(ns, ego.at(ns)) for ns in sorted(set(stamps_ns))]
    known = [(stamp_ns, pose_of(state)) for stamp_ns, state in states if state is not None]
    if not known:
        return None
    return DronePath(
        np.array([stamp_ns for stamp_ns, _ in known], np.int64),
        np.array([pose.position for _, pose in known]),
        np.array([pose.heading for _, pose in known]),
    )
