"""One offline replay from a path to a run record."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Container
from dataclasses import dataclass, field, replace
from pathlib import Path

from mmedge_ros.core.data_types import (
    CAMERA,
    NS_PER_S,
    RADAR,
    Configuration,
    Decision,
    ModalityConfiguration,
)
from mmedge_ros.core.device_profile import read_profile
from mmedge_ros.core.run_record import RunRecord, software_identity
from mmedge_ros.encoding.bundle.default_model import default_detector
from mmedge_ros.encoding.bundle.model_bundle import detector_words, domain_warning
from mmedge_ros.encoding.detector import DetectorParameters
from mmedge_ros.encoding.encoder_registry import EncoderSettings, encoder_kind
from mmedge_ros.encoding.track_recognition import RecogniserParameters
from mmedge_ros.pipeline.fusion_strategy import fusion_strategy, open_pipeline
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline
from mmedge_ros.pipeline.pipeline_parameters import PipelineParameters
from mmedge_ros.replay.input_problems import input_problems
from mmedge_ros.replay.offline_replay import OfflineReplay
from mmedge_ros.replay.picture_recording import PictureParameters
from mmedge_ros.replay.recording import Recording, TopicChoice
from mmedge_ros.sensing.radar.filter import RadarLimits

# Called with a share, 0..1, of what there is to do, and with words for what is being done.
OnShare = Callable[[float, str], None]


@dataclass(frozen=True)
class OfflineOptions:
    """What to replay and with what. Empty texts mean the default.

    About every ``reuse``-th picture is encoded. ``configurations`` take effect in flight, as those
    of an optimiser do.
    """

    bag: str
    detector: str = ''
    calibration: str = ''
    profile: str = ''
    topics: TopicChoice = field(default_factory=TopicChoice)
    pictures: PictureParameters = field(default_factory=PictureParameters)
    pipeline: PipelineParameters = field(default_factory=PipelineParameters)
    detection: DetectorParameters = field(default_factory=DetectorParameters)
    limits: RadarLimits = field(default_factory=RadarLimits)
    reuse: int = 1
    recogniser: RecogniserParameters = field(default_factory=RecogniserParameters)
    configurations: tuple[Configuration, ...] = ()


def replay_offline(
    options: OfflineOptions,
    on_progress: Callable[[float, Decision], None] | None = None,
    on_detector: Callable[[str], None] = lambda _: None,
) -> RunRecord:
    """Replay a recording in virtual time.

    :param on_progress: called with the share of the recording done and the newest decision
    :param on_detector: called before it begins with words on what finds people, if anything does
    :raises ReplayError: when the recording, the profile or the calibration cannot be used
    :raises EncodingError: when the detector cannot be used
    """
    begun, used = time.monotonic(), time.process_time()
    with Recording(
        options.bag, options.topics, options.calibration, options.pictures
    ) as recording:
        profile = read_profile(Path(options.profile)) if options.profile else None
        model = replay_detector(recording, options.detector)
        # Without pictures there is no model either.
        fused_by = model if CAMERA in recording.modalities else None
        settings = EncoderSettings(fused_by, options.detection, options.limits, options.recogniser)
        encoders = {m: encoder_kind(m).make(settings) for m in recording.modalities}
        for encoder in encoders.values():
            encoder.warm_up()
        if fused_by:
            on_detector(detector_words(fused_by))
        pipeline = open_pipeline(fused_by, options.pipeline)
        pipeline.rig.add_transforms(recording.transforms)
        if recording.camera is not None:
            pipeline.rig.set_camera(recording.camera)
        # Those of the units alone are known only after a video was read once.
        first_ns, last_ns = recording.bag.begin_ns, recording.bag.end_ns

        def report(decision: Decision) -> None:
            if on_progress:
                share = (decision.window_end_ns - first_ns) / max(last_ns - first_ns, 1)
                on_progress(min(max(share, 0.0), 1.0), decision)

        replay = OfflineReplay(pipeline, encoders, profile, recording.periods_ns, report)
        if CAMERA in replay.servers and options.reuse > 1:
            part = ModalityConfiguration(CAMERA, reuse=options.reuse)
            schedule = replay.servers[CAMERA].intake.control.schedule
            schedule.add(Configuration(modalities=(part,)))
        for server in replay.servers.values():
            for configuration in options.configurations:
                server.intake.control.schedule.add(configuration)
        replay.run(recording.events())
        record = begin_record(recording, options.pipeline, 'offline')
        replay.fill(record)
        finish_record(record, recording, pipeline)
        record.problems = [*detector_problems(model, recording), *record.problems]
    record.profile = Path(options.profile).name if options.profile else ''
    record.software = software_of(fused_by, options.pipeline)
    record.wall_time = time.monotonic() - begun
    record.resources = {
        'cpu_s': time.process_time() - used,
        'peak_rss_mb': resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0,
    }
    return record


def follow_everything(
    recording: str,
    detector: str,
    on_share: OnShare,
    profile: str = '',
    configurations: tuple[Configuration, ...] = (),
) -> RunRecord:
    """Replay a recording with all labels of the detector tracked, people and others.

    Nothing is published between decisions. The options are those of `OfflineOptions`, and errors
    those of `replay_offline`.

    :param on_share: called with the share of the recording done, and with what is being done
    """
    options = OfflineOptions(
        recording,
        detector,
        profile=profile,
        pipeline=PipelineParameters(updates=False),
        detection=replace(DetectorParameters(), labels=()),
        configurations=configurations,
    )
    return replay_offline(options, lambda share, _: on_share(share, 'following what moves'))


def replay_detector(recording: Recording, named: str) -> Path:
    """Return the detector for a recording; an empty path where it has no pictures.

    :raises EncodingError: when there is none
    """
    if CAMERA not in recording.modalities:
        return Path()
    is_simulated = recording.is_simulated
    above = not (named or is_simulated) and recording.flies()
    return default_detector(named, is_simulated, above)


def software_of(model: Path | None, parameters: PipelineParameters) -> dict[str, str]:
    """Return what a record says of the software that made it.

    :param model: bundle or weight file; None where there are no pictures
    :raises EncodingError: if the manifest of a bundle cannot be read
    """
    return {
        **software_identity(model or ''),
        'strategy': fusion_strategy(model, parameters),
        **({'detector': detector_words(model)} if model else {}),
    }


def detector_problems(model: Path, recording: Recording) -> list[str]:
    """Say in words if a detector is none for pictures like those of a recording.

    :raises EncodingError: if the manifest of its bundle cannot be read
    """
    if CAMERA not in recording.modalities:
        return []
    warning = domain_warning(model, recording.is_simulated, recording.flies())
    return [warning] if warning else []


def begin_record(recording: Recording, parameters: PipelineParameters, mode: str) -> RunRecord:
    """Start a record with what the recording itself says."""
    windows = parameters.windows
    first_ns, last_ns = recording.arrivals_ns()
    stride_ns = round(windows.stride * NS_PER_S)
    return RunRecord(
        str(recording.bag.path),
        mode,
        windows.deadline,
        windows.window,
        windows.stride,
        windows=-(-last_ns // stride_ns) - -(-first_ns // stride_ns) + 1,
        camera_stamps_ns=recording.camera_stamps_ns(),
        ego=recording.ego_motion(),
        truth=recording.truth(),
        duration=(last_ns - first_ns) / NS_PER_S,
        picture_scale=recording.picture_scale,
    )


def enter_geometry(
    record: RunRecord, pipeline: PerceptionPipeline, modalities: Container[str]
) -> None:
    """Note how the sensors of a pipeline that has run are mounted, of these modalities."""
    geometry = pipeline.rig.geometry
    record.frame_id = pipeline.rig.frame_id
    record.camera = geometry.camera
    record.camera_pose = geometry.camera_pose if geometry.camera else None
    record.radar_pose = geometry.radar_pose if RADAR in modalities else None


def finish_record(record: RunRecord, recording: Recording, pipeline: PerceptionPipeline) -> None:
    """Add geometry, and what was wrong in the input."""
    enter_geometry(record, pipeline, recording.modalities)
    missing = [m for m in pipeline.parameters.modalities if m not in recording.modalities]
    record.problems = [
        *recording.bag.problems,
        *recording.problems,
        *(f'the recording has no {modality}' for modality in missing),
        *input_problems(record, recording.modalities, *recording.arrivals_ns()),
        *(record.truth.problems if record.truth else ()),
        *pipeline.degraded,
        *record.problems,
    ]
