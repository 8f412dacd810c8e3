"""A video file and a simulated radar through the real drivers, encoders and fusion.

Whatever is unplugged, reset or killed: nothing breaks, it is told soon, and the rest carries on.
One graph serves all tests, because starting one takes its time.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import bag_fixtures as flight
import cv2
import pytest
from live_graph import Bystander, check_decision, stamps_of
from sensor_msgs.msg import PointCloud2

from mmedge_ros import msg
from mmedge_ros.ros.graph.options import GraphOptions
from mmedge_ros.ros.graph.perception_graph import describe_graph, video_camera
from mmedge_ros.ros.graph.process_group import ProcessGroup
from mmedge_ros.ros.messages import names, qos
from mmedge_ros.ros.messages.conversions import from_time
from mmedge_ros.sensing.radar.point_cloud import decode_points
from mmedge_ros.sensing.simulated_board.board import BOOT_NOISE, SimulatedBoard
from mmedge_ros.sensing.simulated_board.frames import WalkingPerson
from mmedge_ros.transport.shared_segment import FOLDER, PREFIX

UNPLUGGED_TIME = 3.0
# A machine with nothing else to do needs a fifth of these.
TOLD_WITHIN = 5.0
BACK_WITHIN = 10.0
ERROR = b'\x02'
SECOND = 1_000_000_000

EXTRINSICS = """
transforms:
- {parent: base_link, child: radar_link, translation: [0, 0, 0], rotation: [0, 0, 0, 1]}
- parent: base_link
  child: camera_color_optical_frame
  translation: [0, 0, 0]
  rotation: [-0.5, 0.5, -0.5, 0.5]
"""
CAMERA_INFO = """
image_width: 64
image_height: 48
camera_matrix: {rows: 3, cols: 3, data: [50, 0, 32, 0, 50, 24, 0, 0, 1]}
"""


class Rig:
    """The graph on a film and a board in the test's hands, and who listens to it."""

    def __init__(self, bystander: Bystander, group: ProcessGroup, video: Path, board: Any) -> None:
        self.bystander, self.group, self.video, self.board = bystander, group, video, board
        self.scans: list[tuple[PointCloud2, int]] = []
        bystander.group = group
        bystander.node.create_subscription(
            PointCloud2,
            names.RADAR_POINTS,
            lambda scan: self.scans.append((scan, time.time_ns())),
            qos.SENSOR,
        )


def write_film(path: Path) -> Path:
    """Write a white box that goes to the right and comes back."""
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*'MJPG'), 20.0, (64, 48))
    for number in (*range(40), *range(39, 0, -1)):
        writer.write(flight.picture(number))
    writer.release()
    return path


@pytest.fixture(scope='module')
def rig(detector: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    folder = tmp_path_factory.mktemp('rig')
    (folder / 'extrinsics.yaml').write_text(EXTRINSICS)
    (folder / 'camera.yaml').write_text(CAMERA_INFO)
    video = write_film(folder / 'walk.avi')
    with SimulatedBoard(WalkingPerson(), folder / 'ports') as board, Bystander() as bystander:
        board.unplug()
        board.plug_in(BOOT_NOISE)
        ports = {'command_port': str(board.command_path), 'data_port': str(board.data_path)}
        options = GraphOptions(
            detector=str(detector),
            extrinsics=str(folder / 'extrinsics.yaml'),
            camera_driver={**video_camera(video), 'calibration_file': str(folder / 'camera.yaml')},
            radar_driver={**ports, 'answer_time': 0.3},
        )
        with ProcessGroup(describe_graph(options), folder / 'logs') as group:
            yield Rig(bystander, group, video, board)


class Watcher:
    """Looks at what the graph says while a sensor is pulled."""

    def __init__(self, bystander: Bystander) -> None:
        self._bystander = bystander

    def wait_for_tracks(self, modality: str) -> None:
        """Wait for a decision with a track that this modality sees."""
        self._bystander.wait_until(
            lambda: any(self._sees(d, modality) for d in self._bystander.decisions[-3:])
        )

    def pull(self, node: str, unplug: Callable[[], object], other: str) -> None:
        """Unplug a sensor for a while; the other one must go on and it must be told."""
        bystander = self._bystander
        pulled_ns = time.time_ns()
        unplug()
        bystander.wait_until(lambda: self._seconds_until_error(node, pulled_ns) is not None)
        told = self._seconds_until_error(node, pulled_ns)
        assert told is not None
        assert told < TOLD_WITHIN
        end_ns = pulled_ns + round(UNPLUGGED_TIME * SECOND)
        bystander.wait_until(lambda: from_time(bystander.decisions[-1].window_end) >= end_ns)
        decisions = [
            d for d in bystander.decisions if pulled_ns < from_time(d.window_end) <= end_ns
        ]
        # Ten a second all the while.
        assert len(decisions) >= 0.9 * 10 * UNPLUGGED_TIME
        assert all(node in decision.lost for decision in decisions[len(decisions) // 2 :])
        bystander.wait_until(
            lambda: any(
                node in d.lost and self._sees(d, other)
                for d in bystander.decisions
                if pulled_ns < from_time(d.window_end)
            )
        )
        for decision in decisions:
            check_decision(decision)

    def put_back(self, node: str, plug: Callable[[], object]) -> None:
        """Plug a sensor in again; it must be back soon."""
        bystander = self._bystander
        put_back_ns, known = time.time_ns(), len(bystander.features)
        plug()

        def back() -> list[int]:
            stamps = stamps_of(bystander.features[known:], node)
            return [stamp for stamp in stamps if stamp >= put_back_ns]

        bystander.wait_until(lambda: len(back()) >= 2)
        assert (back()[1] - put_back_ns) / SECOND < BACK_WITHIN
        bystander.wait_until(lambda: bystander.diagnostics[node].level != ERROR)

    def _seconds_until_error(self, node: str, since_ns: int) -> float | None:
        return self._bystander.seconds_until_told(node, lambda s: s.level == ERROR, since_ns)

    @staticmethod
    def _sees(decision: msg.TrackArray, modality: str) -> bool:
        return any(modality in track.seen_by for track in decision.tracks)


def test_either_sensor_may_be_unplugged(rig: Rig) -> None:
    watcher = Watcher(rig.bystander)
    watcher.wait_for_tracks('camera')
    watcher.wait_for_tracks('radar')
    pids = rig.group.pids
    hidden = rig.video.with_suffix('.hidden')
    watcher.pull('camera', lambda: rig.video.rename(hidden), other='radar')
    watcher.put_back('camera', lambda: hidden.rename(rig.video))
    watcher.pull('radar', rig.board.unplug, other='camera')
    watcher.put_back('radar', rig.board.plug_in)
    watcher.wait_for_tracks('radar')
    assert rig.group.pids == pids


def test_scans_are_clouds_in_the_robots_axes_stamped_when_they_were_measured(rig: Rig) -> None:
    rig.bystander.wait_until(lambda: len(rig.scans) > 3)
    cloud, _ = rig.scans[-1]
    assert cloud.header.frame_id == 'radar_link'
    assert [f.name for f in cloud.fields] == ['x', 'y', 'z', 'velocity', 'snr', 'noise']
    # This process may have been late to some of them.
    ages = [(got_ns - from_time(scan.header.stamp)) / 1e9 for scan, got_ns in rig.scans]
    assert 0.005 < min(ages) < 0.5
    points = decode_points(cloud)
    assert len(points) == 11
    assert (points[:, 0] > 2.0).all()  # everything simulated lies ahead
    assert (points[:, 4] > 10.0).all()
    assert rig.bystander.figure('radar', 'board') == 'SDK 3.6.0.0 on xWR68xx'


def test_a_board_that_lost_its_power_is_started_again(rig: Rig) -> None:
    bystander, reset_ns = rig.bystander, time.time_ns()
    rig.board.reset()

    def told() -> float | None:
        return bystander.seconds_until_told(
            'radar', lambda s: 'fallen silent' in s.message, reset_ns
        )

    bystander.wait_until(lambda: told() is not None)
    silent_ns = reset_ns + round((told() or 0.0) * SECOND)

    def later() -> list[int]:
        stamps = (from_time(scan.header.stamp) for scan, _ in rig.scans)
        return [stamp for stamp in stamps if stamp > silent_ns]

    assert min(bystander.wait_until(later)) - silent_ns < 2.0 * SECOND
    bystander.wait_until(lambda: bystander.diagnostics['radar'].level != ERROR)


def test_pictures_reach_the_encoder_through_the_ring_of_whichever_camera_lives(rig: Rig) -> None:
    bystander, cameras = rig.bystander, [rig.group.pids['camera']]
    count = bystander.node.count_subscribers
    bystander.wait_until(lambda: count('/camera/image') == 0)
    stamps = [from_time(unit.header.stamp) for unit in bystander.wait_for_units('camera', 20)]
    assert len(set(stamps)) == len(stamps)
    for node, figure in (('camera_encoder', 'ring_read'), ('camera', 'ring_written')):
        bystander.wait_until(
            lambda node=node, figure=figure: int(bystander.figure(node, figure) or 0) >= 20
        )
    assert bystander.figure('camera_encoder', 'ring_torn') == '0'
    # Killed in the middle of whatever it does, and started again.
    os.kill(cameras[0], signal.SIGKILL)
    bystander.wait_until(lambda: rig.group.pids.get('camera', cameras[0]) != cameras[0])
    bystander.wait_for_units('camera', 20)
    bystander.wait_until(lambda: count('/camera/image') == 0)
    cameras.append(rig.group.pids['camera'])
    assert list(FOLDER.glob(f'{PREFIX}{cameras[1]}_*'))
    rig.group.stop()
    for pid in cameras:
        assert not list(FOLDER.glob(f'{PREFIX}{pid}_*'))
