"""`mmedge record`: the recorder beside a running graph, until Ctrl-C or a full disk."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import rclpy
from rclpy.impl.implementation_singleton import rclpy_implementation

from mmedge_ros.replay import ReplayError
from mmedge_ros.ros.graph.description import (
    NodeDescription,
    ros_arguments,
    sim_time,
    write_parameters,
)
from mmedge_ros.ros.graph.options import RecordOptions
from mmedge_ros.ros.graph.perception_graph import read_extrinsics
from mmedge_ros.ros.messages.names import driver_remappings
from mmedge_ros.ros.nodes.bag_recorder import BagRecorder
from mmedge_ros.ros.sessions.own_context import spinning

_SHOW_PERIOD = 0.2


def recorder_node(options: RecordOptions) -> NodeDescription:
    """Describe the recorder; the launch files and `mmedge record` both read it."""
    edges = read_extrinsics(options.extrinsics, options.frame_prefix) if options.extrinsics else ()
    return NodeDescription(
        'bag_recorder',
        'bag_recorder',
        {
            **sim_time(options.clock),
            'out': options.out,
            'topics': list(options.topics) or [''],
            'image_transport': options.image_transport,
            'transforms': [*edges, *options.transforms] or [''],
            'limits.split_size': options.split_size,
            'limits.min_free': options.min_free,
        },
        driver_remappings(options.camera, options.radar, options.odometry, options.battery),
        # Started again it would find its own folder in the way.
        respawn=False,
    )


def run_recording(
    options: RecordOptions, show: Callable[[float | None, str], None]
) -> dict[str, int]:
    """Record until interrupted, the time is up or the disk is full; return counts per topic.

    :param show: called with the share of the time that is over (None without a limit) and a
        state
    :raises ReplayError: when the folder exists, the disk fails or is full, or a topic can have
        no such name
    """
    description = recorder_node(options)
    with tempfile.TemporaryDirectory(prefix='mmedge_') as scratch:
        arguments = ros_arguments(description, [write_parameters(description, Path(scratch))])
        with spinning(partial(_recorder, arguments)) as (node, spin_once):
            try:
                _spin(node, spin_once, options.seconds, show)
            finally:
                node.stop()
    if node.session.failure:
        raise ReplayError(node.session.failure)
    return node.counts()


def _recorder(arguments: list[str], context: rclpy.Context) -> BagRecorder:
    try:
        return BagRecorder(context=context, cli_args=arguments, use_global_arguments=False)
    except rclpy_implementation.RCLInvalidROSArgsError as error:
        # All that a user gives of them are names of topics; the middleware adds its own source.
        reason = str(error).partition('. Error')[0]
        raise ReplayError(f'a topic has a name that no topic can have: {reason}') from error


def _spin(
    node: BagRecorder,
    spin_once: Callable[[], None],
    seconds: float,
    show: Callable[[float | None, str], None],
) -> None:
    started = shown = time.monotonic()
    while not node.session.failure:
        spin_once()
        now = time.monotonic()
        if seconds and now - started >= seconds:
            return
        if now - shown >= _SHOW_PERIOD:
            shown = now
            show((now - started) / seconds if seconds else None, _state(node))


def _state(node: BagRecorder) -> str:
    counts = node.counts()
    counted = ', '.join(f'{count} on {topic}' for topic, count in sorted(counts.items()))
    return '; '.join([counted or 'no topic to be recorded has a publisher yet', *node.missing()])
