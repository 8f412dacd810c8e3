"""`mmedge up`: the graph of the launch files, started and kept without `ros2 launch`."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from mmedge_ros.core.data_types import CAMERA, RADAR, Decision
from mmedge_ros.encoding import EncodingError
from mmedge_ros.preflight.finding import State
from mmedge_ros.preflight.graph_view import COMPRESSED, ODOMETRY
from mmedge_ros.preflight.model_checks import check_model
from mmedge_ros.replay import ReplayError
from mmedge_ros.ros import process_memory
from mmedge_ros.ros.graph.description import single_process
from mmedge_ros.ros.graph.middleware_profile import set_profile
from mmedge_ros.ros.graph.options import GraphOptions
from mmedge_ros.ros.graph.perception_graph import describe_graph
from mmedge_ros.ros.graph.process_group import ProcessGroup
from mmedge_ros.ros.sessions.graph_snapshot import Input, graph_inputs
from mmedge_ros.ros.sessions.own_context import spinning
from mmedge_ros.ros.sessions.status_listener import StatusListener
from mmedge_ros.ros.sessions.up_reports import UpReports

_LOOK = 0.1


def run_up(
    options: GraphOptions,
    show: Callable[[float | None, Decision | None, float], None],
    say: Callable[[str], None],
) -> None:
    """Start the graph and look after it until interrupted, or a recording has ended.

    :param show: called with progress (None without a recording), the newest decision and the
        decisions per second
    :param say: called with sentences about nodes that end or start
    :raises ReplayError: when the recording cannot be used or a node cannot run
    :raises EncodingError: when there is no such model, or its files are damaged
    """
    set_profile()
    nodes = describe_graph(options)
    _check_model(options, say)
    if options.single_process:
        nodes = [single_process(nodes)]
    params = [Path(options.params).resolve()] if options.params else []
    logs = Path(options.logs or 'out/logs')
    say(f'logs: {logs}')

    # A recording's player waits for the others, and ends with an error where it cannot play.
    inputs = {} if options.bag else awaited_inputs(options)
    drivers = {CAMERA: options.camera_driver, RADAR: options.radar_driver}
    own = {name for name, driver in drivers.items() if driver is not None}
    ends = bool(options.bag) and not options.loop
    with (
        ProcessGroup(nodes, logs, params, say) as group,
        spinning(StatusListener) as (listener, spin_once),
    ):
        reports = UpReports(listener, say, inputs, own)
        looked = tidied = time.monotonic()
        while not (ends and listener.finished):
            spin_once()
            if time.monotonic() - looked < _LOOK:
                continue
            looked = time.monotonic()
            if looked - tidied >= process_memory.PERIOD:
                tidied = looked
                process_memory.let_go()
            for name in group.watch():
                words = group.last_words(name, 1) or 'without a message'
                raise ReplayError(f'{name} ended: {words}')
            reports.look()
            show(listener.share(), listener.decision, listener.rate.value())


def _check_model(options: GraphOptions, say: Callable[[str], None]) -> None:
    """Say at once what an encoder would find out after seconds."""
    if options.bag and not options.detector:
        return  # chosen by the recording
    for finding in check_model(options.detector)[0]:
        if finding.state is State.WRONG:
            raise EncodingError(finding.words)
        if finding.state is State.NOTE and not options.bag:
            say(f'{finding.words}; {finding.remedy}')


def awaited_inputs(options: GraphOptions) -> dict[str, Input]:
    """Return the inputs that the graph of these options waits for, by name."""
    inputs = graph_inputs(options.camera, options.radar, options.odometry)
    if options.image_transport == 'compressed':
        inputs[CAMERA] = inputs[COMPRESSED]
    wanted = (*options.modalities, ODOMETRY)
    return {name: inputs[name] for name in (CAMERA, RADAR, ODOMETRY) if name in wanted}
