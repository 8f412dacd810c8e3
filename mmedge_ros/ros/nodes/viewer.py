"""Serves the live page; subscribes to nothing while nobody looks at it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from rclpy.node import Node

from mmedge_ros.data_types import Decision
from mmedge_ros.parameter import group, parameter
from mmedge_ros.ros.node_main import run_nodes
from mmedge_ros.ros.parameters import declare
from mmedge_ros.ros.rig_setup import frame_prefix, set_up_rig
from mmedge_ros.ros.ros_clock import steady_clock
from mmedge_ros.ros.viewer_inputs import ViewerInputs
from mmedge_ros.viewing.drawing import Picture
from mmedge_ros.viewing.live_page import DEFAULT_PORT, LivePage
from mmedge_ros.viewing.live_scene import LiveScene

# At most ten states and pictures a second; a little less than their period.
_SHORTEST_PERIOD = 0.09
# How often is looked whether somebody looks, and an unchanged state sent again, s.
_LOOK = 0.5
# What flies comes first where the processor is short.
_NICENESS = 10


@dataclass(frozen=True)
class _WindowParameters:
    """Of the windows, as the fusion node has them."""

    deadline: float = parameter(
        0.05,
        'decisions later than this count as late, where no optimiser sets a limit',
        's',
        0.005,
        5.0,
    )


@dataclass(frozen=True)
class _PipelineParameters:
    """What must agree with the fusion node."""

    windows: _WindowParameters = group(_WindowParameters)


@dataclass(frozen=True)
class ViewerParameters:
    """The viewer."""

    REMOVED: ClassVar[dict[str, str]] = {
        'deadline': 'it is pipeline.windows.deadline, as in the fusion node'
    }

    port: int = parameter(
        DEFAULT_PORT,
        'the page is at 127.0.0.1 and this port, or the next free one; the log says which',
        minimum=1,
        maximum=65535,
    )
    image_transport: str = parameter(
        'raw',
        'form of the pictures: camera/image or camera/image/compressed',
        choices=('raw', 'compressed'),
    )
    pipeline: _PipelineParameters = group(_PipelineParameters)
    calibration_file: str = parameter(
        '', 'camera_info YAML (and transforms) that takes the place of what is published'
    )
    transforms: tuple[str, ...] = parameter(
        (), 'static transforms, each "parent child x y z qx qy qz qw" in m'
    )
    frame_prefix: str = frame_prefix()


class Viewer(Node):
    """Idle until a browser opens the page, and again when the last one has left."""

    def __init__(self, **node_options: Any) -> None:
        super().__init__('viewer', **node_options)
        self._options = p = declare(self, ViewerParameters)
        self._scene = LiveScene(p.pipeline.windows.deadline)
        set_up_rig(self._scene.rig, p.transforms, p.calibration_file, p.frame_prefix)
        self._page = LivePage(p.port)
        self._inputs: ViewerInputs | None = None
        self._sent_at = self._shown_at = 0.0
        self._timer = self.create_timer(_LOOK, self._follow_demand, clock=steady_clock())
        self.get_logger().info(f'live view: {self._page.address}')

    def stop(self) -> None:
        """Close the page."""
        self._page.close()

    def _follow_demand(self) -> None:
        """Listen while a browser looks; send what is known also when nothing comes."""
        if self._page.watchers and self._inputs is None:
            self._inputs = ViewerInputs(
                self,
                self._scene,
                self._options.image_transport,
                self._on_decision,
                self._on_picture,
            )
        elif not self._page.watchers and self._inputs is not None:
            self._inputs.close()
            self._inputs = None
            self._scene.clear()
            self._page.show(lambda: None)
        elif self._inputs is not None and time.monotonic() - self._sent_at > _LOOK:
            self._send()

    def _on_decision(self, decision: Decision) -> None:
        self._scene.add_decision(decision)
        if time.monotonic() - self._sent_at > _SHORTEST_PERIOD:
            self._send()

    def _send(self) -> None:
        self._sent_at = time.monotonic()
        self._page.update(self._scene.snapshot())

    def _on_picture(self, draw: Callable[[], Picture | None]) -> None:
        now = time.monotonic()
        if now - self._shown_at > _SHORTEST_PERIOD:
            self._shown_at = now
            self._page.show(draw)


def main(args: list[str] | None = None) -> None:
    """Run the node."""
    os.nice(_NICENESS)
    sys.exit(run_nodes([Viewer], args))


if __name__ == '__main__':
    main()
