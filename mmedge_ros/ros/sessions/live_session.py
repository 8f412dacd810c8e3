"""One live replay: the real graph in real processes, recorded into a run record."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from mmedge_ros.data_types import CAMERA, NS_PER_S
from mmedge_ros.geometry.transforms import format_static_transform
from mmedge_ros.pipeline.fusion_strategy import fusion_strategy
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline
from mmedge_ros.records.run_record import RunRecord, software_identity
from mmedge_ros.replay import ReplayError
from mmedge_ros.replay.live_record import LiveRecord
from mmedge_ros.replay.offline_session import (
    begin_record,
    detector_problems,
    finish_record,
    replay_detector,
)
from mmedge_ros.replay.parameter_file import pipeline_parameters
from mmedge_ros.replay.picture_recording import PictureParameters
from mmedge_ros.replay.recording import Recording, TopicChoice
from mmedge_ros.ros.graph.description import (
    OPTIMIZER,
    GraphOptions,
    NodeDescription,
    perception_graph,
)
from mmedge_ros.ros.graph.middleware_profile import set_profile
from mmedge_ros.ros.graph.process_group import ProcessGroup
from mmedge_ros.ros.recording.recorder import Recorder
from mmedge_ros.ros.sessions.own_context import spinning

_START_TIME = 60.0
_AFTERMATH = 5.0


@dataclass(frozen=True)
class LiveOptions:
    """What to replay through the graph and with what. Empty texts mean the default.

    ``optimise`` lets the graph choose rates and levels, by the unit times of ``profile``.
    ``view`` is the port of the live page; 0 makes none. About every ``reuse``-th picture is
    encoded. ``recogniser`` says more of tracked objects. ``memory`` is the folder of a flight
    memory. ``questions`` are parameters of a node that answers questions.
    """

    bag: str
    detector: str = ''
    calibration: str = ''
    rate: float = 1.0
    clock: bool = False
    topics: TopicChoice = field(default_factory=TopicChoice)
    pictures: PictureParameters = field(default_factory=PictureParameters)
    params: Path | None = None
    logs: Path | None = None
    optimise: bool = False
    profile: str = ''
    view: int = 0
    reuse: int = 1
    recogniser: str = ''
    memory: str = ''
    questions: Mapping[str, Any] | None = None


Progress = Callable[[float, LiveRecord], None]
# What goes on beside a session: made when its processes run, ended with them.
Beside = Callable[[ProcessGroup, LiveRecord], AbstractContextManager[object]]
# Another node in place of one of the graph, or the same.
Change = Callable[[NodeDescription], NodeDescription]


def _nothing(_group: ProcessGroup, _live: LiveRecord) -> AbstractContextManager[object]:
    return nullcontext()


def _unchanged(node: NodeDescription) -> NodeDescription:
    return node


def bag_graph(
    recording: Recording,
    detector: str = '',
    calibration: str = '',
    *,
    rate: float = 1.0,
    loop: bool = False,
    clock: bool = False,
    params: Path | None = None,
    transforms: tuple[str, ...] = (),
    wait_for: tuple[str, ...] = (),
    optimise: bool = False,
    profile: str = '',
    view: int = 0,
    reuse: int = 1,
    recogniser: str = '',
    memory: str = '',
    questions: Mapping[str, Any] | None = None,
) -> list[NodeDescription]:
    """Describe the graph that plays a recording.

    :param transforms: static ones that take the place of, or come on top of, the recorded ones
    :param optimise: add the optimiser, and a monitor that plays the recorded state if there is any
    :param profile: device profile for the optimiser
    :param view: port of the live page, which shows the monitor's state as well; 0 makes none
    :param reuse: about every n-th picture is encoded
    :param recogniser: `bundle`, or a bundle folder, that says more of tracked objects
    :param memory: folder in which a flight memory is kept; '' keeps none
    :param questions: parameters of the node that answers questions; None makes none
    """
    if calibration and recording.picture_scale > 1.0:
        raise ReplayError(
            'a live graph gets the pictures of this video scaled down, to which a calibration of '
            'its own size does not apply; replay it offline, without --live'
        )
    topics = recording.topics
    chosen = {'camera': topics.camera, 'radar': topics.radar, 'odometry': topics.odometry}
    model = replay_detector(recording, detector)
    return perception_graph(
        GraphOptions(
            modalities=recording.modalities,
            bag=str(recording.bag.path.resolve()),
            bag_topics={name: topic for name, topic in chosen.items() if topic},
            bag_pictures=asdict(recording.bag.pictures.parameters)
            if recording.bag.pictures
            else {},
            rate=rate,
            loop=loop,
            clock=clock,
            stride=pipeline_parameters(params).windows.stride,
            detector=str(model.resolve()) if CAMERA in recording.modalities else '',
            simulated=recording.is_simulated,
            calibration=str(Path(calibration).resolve()) if calibration else '',
            transforms=(
                *(format_static_transform(t) for t in recording.transforms),
                *transforms,
            ),
            image_transport='compressed' if topics.compressed else 'raw',
            reuse=reuse,
            recogniser=recogniser,
            memory=memory,
            questions=questions,
            wait_for=(
                *wait_for,
                *((OPTIMIZER,) if optimise else ()),
                *(('memory',) if memory else ()),
                *(('questions',) if questions is not None else ()),
            ),
            monitor=monitor_parameters(recording) if optimise or view else None,
            optimizer=optimizer_parameters(profile, params) if optimise else None,
            viewer=viewer_parameters(view, params) if view else None,
        )
    )


def monitor_parameters(recording: Recording) -> dict[str, Any]:
    """Return the monitor's: it plays the state that was recorded, or else watches the machine."""
    if recording.has_system_state:
        return {'trace': str(recording.bag.path.resolve()), 'loop': True}
    return {'battery': False}


def optimizer_parameters(profile: str, params: Path | None) -> dict[str, Any]:
    """Return the optimiser's: the limit is the deadline of the fusion node.

    :raises ParameterError: for a parameter file that is none
    """
    deadline = pipeline_parameters(params).windows.deadline
    given = {'profile': str(Path(profile).resolve())} if profile else {}
    return {'adaptation.latency_limit': deadline, **given}


def viewer_parameters(port: int, params: Path | None) -> dict[str, Any]:
    """Return the viewer's: late decisions are those beyond the deadline of the fusion node.

    :raises ParameterError: for a parameter file that is none
    """
    deadline = pipeline_parameters(params).windows.deadline
    return {'port': port, 'pipeline.windows.deadline': deadline}


def replay_live(
    options: LiveOptions,
    on_progress: Progress | None = None,
    beside: Beside = _nothing,
    change: Change = _unchanged,
) -> RunRecord:
    """Play a recording through the graph and record what it publishes.

    :param beside: what goes on beside it, such as a load
    :param change: returns another node in place of one of the graph, or the same
    :raises ReplayError: when the recording cannot be used or the graph does not start
    :raises EncodingError: when there is no detector
    """
    begun = time.monotonic()
    set_profile()
    parameters = pipeline_parameters(options.params)
    live = LiveRecord()
    with (
        Recording(options.bag, options.topics, options.calibration, options.pictures) as recording,
        tempfile.TemporaryDirectory(prefix='mmedge_') as scratch,
    ):
        nodes = bag_graph(
            recording,
            options.detector,
            options.calibration,
            rate=options.rate,
            clock=options.clock,
            params=options.params,
            wait_for=('recorder',),
            optimise=options.optimise,
            profile=options.profile,
            view=options.view,
            reuse=options.reuse,
            recogniser=options.recogniser,
            memory=options.memory,
            questions=options.questions,
        )
        nodes = [change(node) for node in nodes]
        first_ns, last_ns = recording.arrivals_ns()
        folder = options.logs or Path(scratch)
        params = [options.params.resolve()] if options.params else []
        with (
            ProcessGroup(nodes, folder, params, live.notes.append) as group,
            beside(group, live),
        ):
            _record(live, group, last_ns, parameters.windows.stride, options.rate, on_progress)
        record = begin_record(recording, parameters, 'live')
        live.fill(record, first_ns, last_ns)
        pipeline = PerceptionPipeline(parameters)
        pipeline.rig.add_transforms(recording.transforms)
        if recording.camera is not None:
            pipeline.rig.set_camera(recording.camera)
        pipeline.rig.set_frames({f.modality: f.frame_id for f in record.features})
        ego = record.ego.nearest(first_ns) if record.ego else None
        if record.ego and ego:
            pipeline.rig.add_ego_state(ego, record.ego.frame_id, record.ego.base_frame)
        finish_record(record, recording, pipeline)
        problems = detector_problems(Path(_model_of(nodes)), recording)
        record.problems = [*problems, *record.problems]
    record.resources = {'cpu_s': group.cpu_seconds, 'peak_rss_mb': group.peak_memory_mb}
    model = _model_of(nodes)
    strategy = fusion_strategy(Path(model) if model else None, parameters)
    record.software = {**software_identity(model), 'strategy': strategy}
    record.wall_time = time.monotonic() - begun
    return record


def _model_of(nodes: list[NodeDescription]) -> str:
    return next((str(n.parameters['detector']) for n in nodes if 'detector' in n.parameters), '')


def _record(
    live: LiveRecord,
    group: ProcessGroup,
    last_ns: int,
    stride: float,
    rate: float,
    on_progress: Progress | None,
) -> None:
    """Spin the recorder until the last window is decided, or nothing more is to be expected."""
    stride_ns = round(stride * NS_PER_S)
    started = looked = time.monotonic()
    finished_at: float | None = None
    with spinning(partial(Recorder, live)) as (_, spin_once):
        while not live.is_complete(last_ns, stride_ns):
            spin_once()
            now = time.monotonic()
            if now - looked < 0.1:
                continue
            looked = now
            _check(group, live, now - started)
            if on_progress:
                on_progress(live.share(), live)
            if live.status is not None and live.status.finished:
                finished_at = finished_at or now
                if now - finished_at > _AFTERMATH / min(rate, 1.0):
                    live.notes.append('the graph did not decide the last windows')
                    return


def _check(group: ProcessGroup, live: LiveRecord, elapsed: float) -> None:
    for name in group.watch():
        words = group.last_words(name, 1)
        raise ReplayError(f'{name} ended: {words or "without a message"}')
    if live.status is None and elapsed > _START_TIME:
        raise ReplayError(
            f'the graph did not start within {_START_TIME:.0f} s; '
            f'the bag player says: {group.last_words("bag_player", 1) or "nothing"}'
        )
