"""The recorder on a graph: what it takes, and what survives when it is killed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer
from live_graph import Bystander, Commander, Stage, looping, scan
from sensor_msgs.msg import CompressedImage, Image, PointCloud2
from typer.testing import CliRunner

from mmedge_ros import msg
from mmedge_ros.commands.record import record
from mmedge_ros.replay.bag import Bag
from mmedge_ros.replay.offline_session import OfflineOptions, replay_offline
from mmedge_ros.replay.recorded_calibration import static_transforms
from mmedge_ros.replay.recording import Recording
from mmedge_ros.ros.graph.options import RecordOptions
from mmedge_ros.ros.graph.process_group import ProcessGroup
from mmedge_ros.ros.messages import names, qos
from mmedge_ros.ros.messages.interfaces import recorded_topics
from mmedge_ros.ros.nodes.bag_recorder import BagRecorder
from mmedge_ros.ros.recording.run import recorder_node

SECOND = 1_000_000_000
EDGE = 'base_link radar_link 0.1 0 0 0 0 0 1'


class Take(Stage):
    """A recorder in this process, and a bystander who publishes."""

    def __init__(self, bystander: Bystander, out: Path, *arguments: str) -> None:
        self.out = out
        given = [a for argument in (f'out:={out}', *arguments) for a in ('-p', argument)]
        self.recorder = BagRecorder(cli_args=['--ros-args', *given])
        super().__init__(bystander, self.recorder)

    def recorded(self) -> dict[str, int]:
        self.end()
        with Bag(self.out) as bag:
            assert bag.problems == []
            return {topic.name: topic.count for topic in bag.topics}


@pytest.fixture
def stage(ros: None, bystander: Bystander, tmp_path: Path) -> Iterator[Take]:
    found = Take(bystander, tmp_path / 'out', 'limits.min_free:=0', f'transforms:=["{EDGE}"]')
    yield found
    found.end()


def test_sensors_and_what_was_said_before_are_recorded(stage: Take) -> None:
    node = stage.bystander.node
    Commander(stage.bystander).configure('camera', 10.0, time.time_ns())
    scans = node.create_publisher(PointCloud2, names.RADAR_POINTS, qos.SENSOR)
    stage.wait_until(
        lambda: stage.recorder.counts().get('/radar/points', 0) >= 5,
        lambda: scans.publish(scan(time.time_ns())),
    )
    stage.wait_until(lambda: stage.recorder.counts().get('/perception/configuration'))
    found = stage.recorded()
    assert found['/perception/configuration'] == 1
    assert found['/tf_static'] == 1
    with Bag(stage.out) as bag:
        (edge,) = static_transforms(bag, pytest.fail)
        assert (edge.parent, edge.child) == ('base_link', 'radar_link')
        configuration = next(bag.messages(['/perception/configuration']))
        assert bag.deserialize(configuration).modalities[0].rate == 10.0
        for message in bag.messages(['/radar/points']):
            stamp = bag.deserialize(message).header.stamp
            late_ns = message.log_ns - (stamp.sec * SECOND + stamp.nanosec)
            assert 0 <= late_ns < SECOND


def test_raw_pictures_are_preferred_and_only_one_form_is_recorded(stage: Take) -> None:
    node = stage.bystander.node
    raw = node.create_publisher(Image, names.CAMERA_IMAGE, qos.SENSOR)
    compressed = node.create_publisher(CompressedImage, names.CAMERA_IMAGE_COMPRESSED, qos.SENSOR)

    def send() -> None:
        raw.publish(Image())
        compressed.publish(CompressedImage())

    stage.wait_until(lambda: stage.recorder.counts().get('/camera/image', 0) >= 3, send)
    assert compressed.get_subscription_count() == 0
    assert '/camera/image/compressed' not in stage.recorded()


def test_a_disk_that_runs_full_ends_the_recording_and_nothing_else(
    ros: None, bystander: Bystander, tmp_path: Path
) -> None:
    stage = Take(bystander, tmp_path / 'out', 'limits.min_free:=1000000000')
    told = bystander.diagnostics
    stage.wait_until(lambda: 'bag_recorder' in told and told['bag_recorder'].level == b'\x02')
    assert 'MB are free, 1000000000 MB are to be kept' in told['bag_recorder'].message
    assert stage.recorder.context.ok()
    stage.end()


def test_a_recorder_that_is_killed_leaves_what_replays_up_to_the_break(
    little_bag: Path, detector: Path, bystander: Bystander, tmp_path: Path
) -> None:
    out = tmp_path / 'flight'
    graph = looping(little_bag, detector)
    edges = tuple(graph[0].parameters['transforms'])
    options = RecordOptions(out=str(out), transforms=edges, min_free=0)
    with ProcessGroup([*graph, recorder_node(options)], tmp_path / 'logs') as group:
        bystander.wait_until(lambda: bystander.figure('bag_recorder', '/camera/image/compressed'))
        bystander.wait_for_decisions(20)
        os.kill(group.pids['bag_recorder'], signal.SIGKILL)
        killed_ns = time.time_ns()
        # The others do not mind.
        bystander.wait_for_decisions(5)
    with Recording(out) as recording:
        assert any('not closed properly' in problem for problem in recording.bag.problems)
        assert 0 <= killed_ns - recording.bag.end_ns < 1.5 * SECOND
        stamps = [u.stamp_ns for u in recording.units() if u.modality == 'camera']
        assert len(stamps) > 20
        # No picture is missing; the little recording starts over after up to 0.3 s.
        assert max(b - a for a, b in pairwise(stamps)) < 0.35 * SECOND
        topics = {topic.name for topic in recording.bag.topics}
        assert {'/perception/tracks', '/camera/camera_info', '/tf_static'} <= topics
    record = replay_offline(OfflineOptions(str(out), str(detector)))
    assert any(decision.tracks for decision in record.decisions)


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    app = typer.Typer()
    app.command()(record)
    monkeypatch.setenv('NO_COLOR', '1')
    return lambda *arguments: CliRunner().invoke(app, [str(a) for a in arguments])


def test_the_command_records_what_is_published(
    command: Callable[..., Any], bystander: Bystander, tmp_path: Path
) -> None:
    latched = bystander.node.create_publisher(msg.PlaybackState, 'state', qos.LATCHED)
    latched.publish(msg.PlaybackState(bag='x'))
    out = tmp_path / 'out'
    done = command(out, '--topics', 'state', '--seconds', '2', '--min-free', '0')
    assert done.exit_code == 0, done.output
    assert done.stdout.strip() == str(out)
    with Bag(out) as bag:
        assert {t.name: t.count for t in bag.topics} == {'/state': 1}


def test_the_command_says_what_it_cannot_do(command: Callable[..., Any], tmp_path: Path) -> None:
    done = command(tmp_path)
    assert (done.exit_code, done.stdout) == (1, '')
    assert 'exists already' in done.stderr
    full = command(tmp_path / 'new', '--min-free', '1000000000')
    assert full.exit_code == 1
    assert 'are to be kept' in full.stderr
    for option in ('--topics', '--camera'):
        unheard = command(tmp_path / 'unheard', option, 'a b')
        assert (unheard.exit_code, unheard.stdout) == (1, ''), unheard.exception
        assert 'a b' in unheard.stderr
    # What cannot be recorded leaves no folder behind.
    assert not (tmp_path / 'unheard').exists()
    assert command('x', '--image-transport', 'png').exit_code == 2
    assert command().exit_code == 2


def test_the_command_lists_the_topics_for_other_recorders(
    command: Callable[..., Any],
) -> None:
    lines = command('--list').stdout.split()
    assert lines == [f'/{topic.lstrip("/")}' for topic in recorded_topics()]
    assert {'/camera/image', '/perception/tracks', '/tf_static'} <= set(lines)
