"""A video file and a simulated radar through the real drivers, encoders and fusion.

Either of them is unplugged for three seconds: nothing breaks, it is told soon, and the other one
carries on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import bag_fixtures as flight
import cv2
import pytest
from live_graph import Bystander, check_decision, stamps_of

from mmedge_ros import msg
from mmedge_ros.ros.graph.options import GraphOptions
from mmedge_ros.ros.graph.perception_graph import describe_graph, video_camera
from mmedge_ros.ros.graph.process_group import ProcessGroup
from mmedge_ros.ros.messages.conversions import from_time
from mmedge_ros.sensing.simulated_board.board import SimulatedBoard
from mmedge_ros.sensing.simulated_board.frames import board_frames

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


@pytest.fixture
def video(tmp_path: Path) -> Path:
    """A white box that goes to the right and comes back."""
    path = tmp_path / 'walk.avi'
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*'MJPG'), 20.0, (64, 48))
    for number in (*range(40), *range(39, 0, -1)):
        writer.write(flight.picture(number))
    writer.release()
    return path


@pytest.fixture
def board(tmp_path: Path) -> Iterator[SimulatedBoard]:
    """A radar that sees a person walk to and fro; its cable is in our hands."""
    folder = tmp_path / 'board'
    folder.mkdir()
    with SimulatedBoard(board_frames(None), folder) as found:
        yield found


@pytest.fixture
def graph(
    video: Path, board: SimulatedBoard, detector: Path, bystander: Bystander, tmp_path: Path
) -> Iterator[ProcessGroup]:
    (tmp_path / 'extrinsics.yaml').write_text(EXTRINSICS)
    (tmp_path / 'camera.yaml').write_text(CAMERA_INFO)
    options = GraphOptions(
        detector=str(detector),
        extrinsics=str(tmp_path / 'extrinsics.yaml'),
        camera_driver={
            **video_camera(video),
            'calibration_file': str(tmp_path / 'camera.yaml'),
        },
        radar_driver={
            'command_port': str(board.command_path),
            'data_port': str(board.data_path),
        },
    )
    with ProcessGroup(describe_graph(options), tmp_path / 'logs', respawn=False) as group:
        bystander.group = group
        yield group


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
        put_back_ns = time.time_ns()
        plug()

        def back() -> list[int]:
            stamps = stamps_of(bystander.features, node)
            return [stamp for stamp in stamps if stamp >= put_back_ns]

        bystander.wait_until(lambda: len(back()) >= 2)
        assert (back()[1] - put_back_ns) / SECOND < BACK_WITHIN
        bystander.wait_until(lambda: bystander.diagnostics[node].level != ERROR)

    def _seconds_until_error(self, node: str, since_ns: int) -> float | None:
        return self._bystander.seconds_until_told(node, lambda s: s.level == ERROR, since_ns)

    @staticmethod
    def _sees(decision: msg.TrackArray, modality: str) -> bool:
        return any(modality in track.seen_by for track in decision.tracks)


def test_either_sensor_may_be_unplugged(
    graph: ProcessGroup, bystander: Bystander, board: SimulatedBoard, video: Path
) -> None:
    watcher = Watcher(bystander)
    watcher.wait_for_tracks('camera')
    watcher.wait_for_tracks('radar')
    pids = graph.pids
    hidden = video.with_suffix('.hidden')
    watcher.pull('camera', lambda: video.rename(hidden), other='radar')
    watcher.put_back('camera', lambda: hidden.rename(video))
    watcher.pull('radar', board.unplug, other='camera')
    watcher.put_back('radar', board.plug_in)
    watcher.wait_for_tracks('radar')
    assert graph.pids == pids
