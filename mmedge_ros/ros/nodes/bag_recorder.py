"""Records what goes into the graph and what comes out of it, as a rosbag2 folder of MCAP files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from rclpy.node import Node

from mmedge_ros.replay import ReplayError
from mmedge_ros.ros.diagnostics import Diagnostics
from mmedge_ros.ros.node_main import run_nodes
from mmedge_ros.ros.parameters import declare
from mmedge_ros.ros.recording.inputs import BagRecorderParameters, RecordingInputs
from mmedge_ros.ros.recording.session import MEGABYTE, RecordingSession
from mmedge_ros.ros.recording.writer import BagWriter
from mmedge_ros.ros.ros_clock import steady_clock


class BagRecorder(Node):
    """Hands messages from the middleware to the disk as they are.

    When the disk is full, recording stops and says so; the node and the graph go on.
    """

    def __init__(self, **node_options: Any) -> None:
        super().__init__('bag_recorder', **node_options)
        p = declare(self, BagRecorderParameters)
        if not p.out:
            raise ReplayError('no folder to record to; set "out"')
        self._inputs = RecordingInputs(self, p)
        self._writer = BagWriter(Path(p.out), p.limits.split_size * MEGABYTE)
        self.session = RecordingSession(self._writer, p.limits)
        self._is_told = False
        self._diagnostics = Diagnostics(
            self, self, self._figures, lambda: bool(self.session.failure), p.out
        )
        self._timer = self.create_timer(0.2, self._check, clock=steady_clock())
        self.session.start()
        self._inputs.start(self.session)

    def stop(self) -> None:
        """Write what waits, and end the recording."""
        self._inputs.stop()
        self.session.stop()

    def missing(self) -> list[str]:
        """Say what is wrong with the recording."""
        problems = [self.session.failure] if self.session.failure else []
        if self.session.dropped:
            problems.append(f'{self.session.dropped} messages dropped: the disk is too slow')
        return [*problems, *self._inputs.unknown.values()]

    def counts(self) -> dict[str, int]:
        """Return how many messages were written, per topic."""
        return dict(self._writer.counts)

    def _check(self) -> None:
        if self.session.failure and not self._is_told:
            self._is_told = True
            self._inputs.stop()
            self.get_logger().error(self.session.failure)

    def _figures(self) -> dict[str, object]:
        counts = self.counts()
        return {
            'messages': sum(counts.values()),
            'dropped': self.session.dropped,
            'files': self._writer.files,
            'topics': ' '.join(self._inputs.topics),
            **counts,
        }


def main(args: list[str] | None = None) -> None:
    """Run the node."""
    sys.exit(run_nodes([BagRecorder], args))


if __name__ == '__main__':
    main()
