"""Replays a recording once for its tracks, of all labels."""

from __future__ import annotations

from dataclasses import replace

from mmedge_ros.core.data_types import CAMERA
from mmedge_ros.encoding.bundle.model_bundle import open_detector
from mmedge_ros.encoding.detector import DetectorParameters
from mmedge_ros.questions.observations import observations_of
from mmedge_ros.questions.selection import KnownFlight
from mmedge_ros.replay.offline_session import OnShare, follow_everything, replay_detector
from mmedge_ros.replay.recording import Recording


def observe_flight(
    recording: str,
    detector: str = '',
    on_share: OnShare = lambda _share, _words: None,
    profile: str = '',
) -> KnownFlight:
    """Replay a recording for its tracks.

    :param detector: model or bundle; '' takes what suits the recording
    :param profile: device profile of the service times; '': they are measured
    :raises ReplayError: if the recording cannot be read
    :raises EncodingError: if the bundle cannot be used
    """
    with Recording(recording) as opened:
        model = replay_detector(opened, detector) if CAMERA in opened.modalities else None
    # Of what no detector knows, not seeing it says nothing.
    labels: tuple[str, ...] = ()
    if model is not None:
        detection = replace(DetectorParameters(), labels=())
        labels = tuple(dict.fromkeys(open_detector(model, detection).labels))
    record = follow_everything(recording, str(model or ''), on_share, profile)
    observations = observations_of(record.decisions, record.ego)
    return KnownFlight(observations, labels=labels, problems=tuple(record.problems))
