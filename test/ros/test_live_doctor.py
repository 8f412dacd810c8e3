"""A graph that lacks its camera: `mmedge up` and `mmedge doctor` say so, by real processes."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live_graph import Bystander, python_environment
from sensor_msgs.msg import Image, PointCloud2
from std_msgs.msg import String

from mmedge_ros.core.data_types import CAMERA, RADAR
from mmedge_ros.preflight.finding import State
from mmedge_ros.preflight.graph_view import ODOMETRY
from mmedge_ros.preflight.input_checks import check_clocks, check_inputs
from mmedge_ros.ros.messages import names, qos
from mmedge_ros.ros.nodes.radar import to_point_cloud
from mmedge_ros.ros.sessions.graph_snapshot import graph_inputs, take_snapshot
from mmedge_ros.sensing.radar.scan import RadarScan

POINTS = np.array([[5.0, 0.0, 0.0, 1.0, 20.0, 5.0]], np.float32)


@contextmanager
def publishing(*pairs: tuple[Any, Any]) -> Iterator[None]:
    """Publish messages 20 times a second, freshly made from (publisher, function)."""
    ended = threading.Event()

    def publish() -> None:
        while not ended.wait(0.05):
            for publisher, make in pairs:
                publisher.publish(make())

    thread = threading.Thread(target=publish)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def scan() -> PointCloud2:
    return to_point_cloud(RadarScan(0, time.time_ns(), time.time_ns(), POINTS), 'radar_link')


def picture_without_a_stamp() -> Image:
    return Image(width=4, height=2, encoding='mono8', step=4, data=bytes(8))


def test_a_snapshot_shows_types_rates_stamps_and_what_cannot_be_read(bystander: Bystander) -> None:
    node = bystander.node
    camera = node.create_publisher(Image, names.CAMERA_IMAGE, qos.SENSOR)
    radar = node.create_publisher(PointCloud2, names.RADAR_POINTS, qos.SENSOR)
    node.create_publisher(PointCloud2, names.RADAR_POINTS, qos.RESULT)
    node.create_publisher(String, names.ODOMETRY, qos.RESULT)
    with publishing((camera, picture_without_a_stamp), (radar, PointCloud2)):
        graph = take_snapshot(graph_inputs())
    found = {f.subject: f for f in check_inputs(graph)}
    assert 'bystander' in found['graph'].words
    assert '4 x 2 px mono8' in found[CAMERA].words
    assert 'Hz' in found[CAMERA].words
    assert 'no field x, y, z' in found[RADAR].words
    assert 'holds std_msgs/msg/String from bystander' in found[ODOMETRY].words
    assert len(graph.inputs[RADAR].publishers) == 2
    assert 'stamps are zero' in check_clocks(graph)[0].words


@contextmanager
def up(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, '-P', '-m', 'mmedge_ros.commands.main', 'up', *arguments],
        env=python_environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=30.0)


def lines_until(process: subprocess.Popen[str], words: str) -> list[str]:
    """Read what it says up to a line with these words."""
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line.strip())
        if words in line:
            return lines
    raise AssertionError(f'{words!r} was not said: {lines}')


@pytest.mark.timeout(120)
def test_up_says_soon_what_is_missing_and_doctor_says_it_too(
    bystander: Bystander, detector: Path, tmp_path: Path
) -> None:
    with up('--detector', str(detector), '--logs', str(tmp_path)) as process:
        said = lines_until(process, 'no odometry')
        assert 'no pictures: nothing publishes /camera/image; start its driver' in ' '.join(said)
        # It says how long it has been running every five seconds.
        assert not any(line.startswith('up: 0:00:10') for line in said)
        radar = bystander.node.create_publisher(PointCloud2, names.RADAR_POINTS, qos.SENSOR)
        with publishing((radar, scan)):
            lines_until(process, 'radar points arrive on /radar/points')
            words = ['doctor', '--json', '--detector', str(detector)]
            done = subprocess.run(
                [sys.executable, '-P', '-m', 'mmedge_ros.commands.main', *words],
                env=python_environment(),
                capture_output=True,
                text=True,
                check=False,
                timeout=60.0,
            )
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    topics = {f['subject']: f for f in report['sections']['topics']}
    assert topics[CAMERA]['words'] == 'nothing publishes /camera/image'
    assert topics[CAMERA]['state'] == State.WRONG.value
    # How much is heard within its time depends on the machine.
    assert '/radar/points' in topics[RADAR]['words']
    assert 'fusion' in topics['graph']['words']
    assert report['wrong'] >= 1
