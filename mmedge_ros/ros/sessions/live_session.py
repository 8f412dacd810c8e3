"""One live replay: the real graph in real processes, recorded into a run record."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.encoding.bundle.model_bundle import detector_words
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline
from mmedge_ros.replay import ReplayError
from mmedge_ros.replay.live_record import LiveRecord
from mmedge_ros.replay.offline_session import (
    begin_record,
    detector_problems,
    finish_record,
    software_of,
)
from mmedge_ros.replay.parameter_file import pipeline_parameters
from mmedge_ros.ros.graph.description import NodeDescription
from mmedge_ros.ros.graph.middleware_profile import set_profile
from mmedge_ros.ros.graph.options import GraphOptions
from mmedge_ros.ros.graph.perception_graph import bag_graph, opened_recording
from mmedge_ros.ros.graph.process_group import ProcessGroup
from mmedge_ros.ros.recording.recorder import Recorder
from mmedge_ros.ros.sessions.own_context import spinning

_START_TIME = 60.0
_AFTERMATH = 5.0


Progress = Callable[[float, LiveRecord], None]
# What goes on beside a session: made when its processes run, ended with them.
Beside = Callable[[ProcessGroup, LiveRecord], AbstractContextManager[object]]
# Another node in place of one of the graph, or the same.
Change = Callable[[NodeDescription], NodeDescription]


def _nothing(_group: ProcessGroup, _live: LiveRecord) -> AbstractContextManager[object]:
    return nullcontext()


def _unchanged(node: NodeDescription) -> NodeDescription:
    return node


def replay_live(
    options: GraphOptions,
    on_progress: Progress | None = None,
    beside: Beside = _nothing,
    change: Change = _unchanged,
    on_detector: Callable[[str], None] = lambda _: None,
) -> RunRecord:
    """Play a recording through the graph and record what it publishes.

    :param beside: what goes on beside it, such as a load
    :param change: returns another node in place of one of the graph, or the same
    :param on_detector: called before it begins with words on what finds people, if anything does
    :raises ReplayError: when the recording cannot be used or the graph does not start
    :raises EncodingError: when there is no detector
    """
    begun = time.monotonic()
    set_profile()
    file = Path(options.params) if options.params else None
    parameters = pipeline_parameters(file)
    live = LiveRecord()
    with (
        opened_recording(options) as recording,
        tempfile.TemporaryDirectory(prefix='mmedge_') as scratch,
    ):
        waits = replace(options, wait_for=('recorder', *options.wait_for))
        nodes = bag_graph(recording, waits)
        nodes = [change(node) for node in nodes]
        model = _model_of(nodes)
        if model:
            on_detector(detector_words(Path(model)))
        first_ns, last_ns = recording.arrivals_ns()
        folder = Path(options.logs or scratch)
        params = [file.resolve()] if file else []
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
        problems = detector_problems(Path(model), recording)
        record.problems = [*problems, *record.problems]
    record.resources = {'cpu_s': group.cpu_seconds, 'peak_rss_mb': group.peak_memory_mb}
    record.software = software_of(Path(model) if model else None, parameters)
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
        # Encoders and fusion are heard apart, the one sooner than the other.
        until = time.monotonic() + _AFTERMATH
        while live.lacks_units() and time.monotonic() < until:
            spin_once()


def _check(group: ProcessGroup, live: LiveRecord, elapsed: float) -> None:
    for name in group.watch():
        words = group.last_words(name, 1)
        raise ReplayError(f'{name} ended: {words or "without a message"}')
    if live.status is None and elapsed > _START_TIME:
        raise ReplayError(
            f'the graph did not start within {_START_TIME:.0f} s; '
            f'the bag player says: {group.last_words("bag_player", 1) or "nothing"}'
        )
