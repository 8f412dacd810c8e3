"""Keeps what the flight saw, and answers questions about it; encoders send it views."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rclpy.node import Node
from visualization_msgs.msg import MarkerArray

from mmedge_ros import MmedgeError, msg, srv
from mmedge_ros.core.data_types import CAMERA
from mmedge_ros.core.parameter import ParameterError, parameter
from mmedge_ros.encoding.bundle.default_model import default_detector
from mmedge_ros.geometry.sensor_rig import SensorRig
from mmedge_ros.memory.encoders import MemoryEncoder, bundle_that_embeds
from mmedge_ros.memory.keeper import MemoryKeeper
from mmedge_ros.memory.search import find_moments
from mmedge_ros.memory.store import SUFFIX, MemoryReader
from mmedge_ros.memory.views import with_drone, with_place
from mmedge_ros.ros.diagnostics import Diagnostics, problem_figures
from mmedge_ros.ros.geometry_inputs import GeometryInputs, RigParameters, at_once, set_up_rig
from mmedge_ros.ros.messages import names, qos
from mmedge_ros.ros.messages.markers import moment_markers
from mmedge_ros.ros.messages.memory_messages import (
    from_moment,
    from_query,
    to_found_moment,
)
from mmedge_ros.ros.node_main import program
from mmedge_ros.ros.parameters import declare
from mmedge_ros.ros.ros_clock import RosClock


@dataclass(frozen=True)
class MemoryParameters(RigParameters):
    """The memory of this flight."""

    folder: str = parameter(
        '', 'where views are kept, best FLIGHT.memory beside the recording FLIGHT'
    )
    detector: str = parameter(
        '',
        'model of the camera encoder, see there: the recogniser of its bundle embeds, or that of '
        'the first bundle with one',
    )
    simulated: bool = parameter(
        False, 'the pictures come from the simulator; decides which bundle an empty name takes'
    )
    keep: float = parameter(
        0.0, 'views are forgotten after this long; 0 keeps them until somebody forgets', 'h', 0.0
    )
    pictures: bool = parameter(
        True, 'keep thumbnails; without them what was seen is found, but not shown'
    )


def memory_place(named: str) -> Path:
    """Return the folder of a memory, ending in ``.memory``.

    :raises ParameterError: if none is named
    """
    if not named:
        raise ParameterError(
            'memory: name a folder for what is remembered, such as folder:=flight.memory'
        )
    folder = Path(named).expanduser().absolute()
    return folder if folder.suffix == SUFFIX else folder.with_name(folder.name + SUFFIX)


class MemoryNode(Node):
    """Subscribes to views; a thread of its own embeds and writes them."""

    def __init__(self, **node_options: Any) -> None:
        super().__init__('memory', **node_options)
        p = declare(self, MemoryParameters)
        self._ros_clock = RosClock(self)
        self._frame_id = ''
        self._refused = self._asked = 0
        # Where the drone and its camera are; `GeometryInputs` enters it.
        self._rig = SensorRig()
        set_up_rig(self._rig, p)
        self._folder = memory_place(p.folder)
        detector = default_detector(p.detector, p.simulated)
        self._encoder = MemoryEncoder(bundle_that_embeds(detector))
        now_ns = self._ros_clock.now_ns
        self._keeper = MemoryKeeper(self._folder, self._encoder, now_ns, p.keep, p.pictures)
        # The keeper's thread writes; this one reads.
        self._reader = MemoryReader(self._folder)
        self._markers = self.create_publisher(MarkerArray, names.MEMORY_MARKERS, qos.LATCHED)
        self._diagnostics = Diagnostics(self, self, self._figures)
        self._geometry = GeometryInputs(
            self, at_once(self._rig), not self._rig.has_camera, p.frame_prefix
        )
        self._keeper.start()
        self.create_subscription(msg.Moment, names.MOMENTS, self._on_moment, qos.RESULT)
        self.create_service(srv.QueryMemory, names.MEMORY_QUERY, self._on_query)
        self.get_logger().info(f'remembering in {self._folder}')

    def stop(self) -> None:
        """Write what waits."""
        # The last one to close the file tidies up.
        self._reader.close()
        self._keeper.stop()

    def missing(self) -> list[str]:
        """Say why the last views were lost; a scene without anything new sends none."""
        return [self._keeper.problem] if self._keeper.problem else []

    def _on_moment(self, message: msg.Moment) -> None:
        try:
            view = from_moment(message)
        except ValueError as err:
            self._refused += 1
            self.get_logger().warning(f'view not kept: {err}', throttle_duration_sec=5.0)
            return
        self._frame_id = message.header.frame_id
        self._rig.set_frames({CAMERA: view.camera_frame})
        self._rig.see_picture(*view.item.image_size)
        stamp_ns = view.item.stamp_ns
        placed = with_place(view.item, self._rig.geometry_at(stamp_ns))
        self._keeper.offer(view._replace(item=with_drone(placed, self._rig.ego_at(stamp_ns))))

    def _on_query(self, request: Any, response: Any) -> Any:
        self._asked += 1
        try:
            space, embed = self._encoder.space, self._encoder.example
            found = find_moments([self._reader], from_query(request), lambda _: space, embed)
            response.moments = [
                to_found_moment(moment, self._reader.thumbnail(moment.shown.id))
                for moment in found.moments
            ]
        except (MmedgeError, ValueError) as err:
            response.message = str(err)
            return response
        response.success, response.notes = True, list(found.notes)
        now_ns = self._ros_clock.now_ns()
        self._markers.publish(moment_markers(found.moments, self._frame_id, now_ns))
        return response

    def _figures(self) -> dict[str, object]:
        keeper = self._keeper
        return {
            'kept': keeper.kept,
            'dropped': keeper.dropped,
            'refused': self._refused,
            'asked': self._asked,
            **problem_figures('memory', keeper.failures.copy()),
        }


main = program(MemoryNode)


if __name__ == '__main__':
    main()
