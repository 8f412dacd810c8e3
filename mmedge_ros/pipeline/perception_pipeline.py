"""From encoded units to decisions: windows, fusion, tracking.

The same object is driven live by the fusion node and in virtual time by the offline replay.
It never asks for the time; whoever drives it passes the instant in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mmedge_ros.data_types import (
    CAMERA,
    RADAR,
    Decision,
    Measurement,
    Trail,
    UnitFeatures,
    UnitReceipt,
    extend_trail,
)
from mmedge_ros.fusion.decision_fusion import DecisionFusionParameters, fuse_detections
from mmedge_ros.fusion.ego_motion import ODOMETRY_FRAME, EgoMotion, EgoState, carried
from mmedge_ros.fusion.geometry import BASE_FRAME, SensorGeometry, resolve_geometry
from mmedge_ros.fusion.projection import CameraModel
from mmedge_ros.fusion.transforms import StampedTransform, TransformTree
from mmedge_ros.parameter import group, parameter
from mmedge_ros.pipeline.window_assembler import ClosedWindow, WindowAssembler, WindowParameters
from mmedge_ros.tracking.fixed_lag import FixedLagTracker
from mmedge_ros.tracking.tracker import Tracker, TrackerParameters

# Only a clock that stands still lets so many units wait for their window.
_MOST_WAITING = 1000


@dataclass(frozen=True)
class PipelineParameters:
    """Everything that shapes a decision."""

    modalities: tuple[str, ...] = parameter(
        (CAMERA, RADAR), 'sensors that should be there; a silent one is reported lost'
    )
    pairing: float = parameter(
        0.1, 'a radar scan is fused with the camera unit that follows within this', 's', 0.0, 1.0
    )
    lag: float = parameter(
        0.5, 'units that come later than this after newer ones are not used', 's', 0.05, 5.0
    )
    windows: WindowParameters = group(WindowParameters)
    fusion: DecisionFusionParameters = group(DecisionFusionParameters)
    tracker: TrackerParameters = group(TrackerParameters)


class PerceptionPipeline:
    """Windows in, decisions out."""

    def __init__(self, parameters: PipelineParameters | None = None) -> None:
        self.parameters = p = parameters or PipelineParameters()
        self.assembler = WindowAssembler(p.windows, p.modalities)
        self.tracker = FixedLagTracker(Tracker(p.tracker), self._fuse, p.pairing, p.lag)
        self._tree = TransformTree()
        self._camera: CameraModel | None = None
        self._frames: dict[str, str] = {}
        self._geometry: SensorGeometry | None = None
        self._ego = EgoMotion()
        self._frame_id = ''
        self._start_over()

    @property
    def geometry(self) -> SensorGeometry:
        """Sensor poses on the drone, as far as they are known."""
        if self._geometry is None:
            self._geometry = resolve_geometry(
                self._tree,
                self._camera,
                self._frames.get(CAMERA, ''),
                self._frames.get(RADAR, ''),
                self._ego.base_frame or BASE_FRAME,
            )
        return self._geometry

    @property
    def frame_id(self) -> str:
        """The frame tracks live in: that of odometry where there is any."""
        return self._ego.frame_id or self.geometry.frame_id

    @property
    def degraded(self) -> tuple[str, ...]:
        """What decisions have to do without, in words."""
        if self._ego.frame_id:
            return self.geometry.degraded
        missing = f'no odometry: tracks live in {self.geometry.frame_id}'
        return (missing, *self.geometry.degraded)

    @property
    def has_camera(self) -> bool:
        """Whether a calibration was entered."""
        return self._camera is not None

    def set_camera(self, camera: CameraModel) -> None:
        """Enter the camera's calibration."""
        self._camera = camera
        self._geometry = None

    def add_transforms(self, transforms: Sequence[StampedTransform]) -> None:
        """Enter static transforms.

        :raises FusionError: for one that closes a cycle; those before it are entered
        """
        self._geometry = None
        for transform in transforms:
            self._tree.add(transform.parent, transform.child, transform.transform)

    def add_ego_state(self, state: EgoState, frame_id: str, base_frame: str) -> None:
        """Enter how the drone moves: the pose of ``base_frame`` in ``frame_id``.

        Odometry that leaves its frames unnamed is taken to mean the usual ones.
        """
        frame_id, base_frame = frame_id or ODOMETRY_FRAME, base_frame or BASE_FRAME
        if (frame_id, base_frame) != (self._ego.frame_id, self._ego.base_frame):
            self._ego = EgoMotion(frame_id, base_frame)
            self._geometry = None
        self._ego.add(state)

    def set_frames(self, frames: Mapping[str, str]) -> None:
        """Enter the frame of each modality's sensor."""
        if any(self._frames.get(modality) != frame for modality, frame in frames.items()):
            self._frames.update(frames)
            self._geometry = None

    def add_receipt(self, receipt: UnitReceipt, now_ns: int) -> None:
        """Enter what an encoder says of a unit before (or instead of) encoding it."""
        self.assembler.add_receipt(receipt, now_ns)

    def add_features(self, features: UnitFeatures, now_ns: int) -> None:
        """Enter an encoded unit that arrived at ``now_ns``."""
        self.set_frames({features.modality: features.frame_id})
        if not self.assembler.add_features(features, now_ns):
            return
        self._follow_restart()
        self._waiting.append(features)
        del self._waiting[:-_MOST_WAITING]
        # What belongs to the open window is taken in now, while the window is still filling:
        # when it ends, only the last unit is left to do.
        self._absorb(self.assembler.next_end_ns or 0)

    def next_poll_ns(self, now_ns: int) -> int | None:
        """Return when `poll` can next have something to do, None before the first unit."""
        return self.assembler.next_poll_ns(now_ns)

    def poll(self, now_ns: int) -> list[Decision]:
        """Decide every window that can be closed; the caller publishes in this order."""
        self._follow_restart()
        return [self._decide(window) for window in self.assembler.poll(now_ns)]

    def reset(self) -> None:
        """Forget windows, units and tracks; calibration, counts and ids go on."""
        self.assembler.reset()
        self._start_over()

    def _follow_restart(self) -> None:
        if self.assembler.counts.restarts != self._restarts:
            self._start_over()

    def _start_over(self) -> None:
        self._restarts = self.assembler.counts.restarts
        self.tracker.reset()
        self._state_ns = 0
        self._waiting: list[UnitFeatures] = []
        self._newest_ns: dict[str, int] = {}

    def _absorb(self, end_ns: int) -> None:
        """Hand the tracker every waiting unit that belongs to the window that ends then."""
        if self.frame_id != self._frame_id:
            # Transforms or odometry that came late moved the tracking frame: what is known
            # lies elsewhere.
            self._frame_id = self.frame_id
            self.tracker.reset()
        due = [unit for unit in self._waiting if unit.available_ns <= end_ns]
        if due:
            self._waiting = [unit for unit in self._waiting if unit.available_ns > end_ns]
            self.tracker.update(due)

    def _decide(self, window: ClosedWindow) -> Decision:
        self._absorb(window.end_ns)
        for unit in window.fresh:
            previous_ns = self._newest_ns.get(unit.modality, unit.stamp_ns)
            self._newest_ns[unit.modality] = max(previous_ns, unit.stamp_ns)
        # Without anything new the state is predicted to the window end.
        newest_ns = (self.tracker.newest_ns if window.fresh else 0) or window.end_ns
        self._state_ns = min(max(self._state_ns, newest_ns), window.end_ns)
        camera = self.geometry.camera
        return Decision(
            window.end_ns,
            self._state_ns,
            self.frame_id,
            self.tracker.report(
                self._state_ns,
                window.end_ns - self.assembler.window_ns,
                (camera.width, camera.height) if camera else (0, 0),
            ),
            dict(self._newest_ns),
            tuple(sorted({u.configuration_id for u in window.members})),
            window.skipped,
            window.lost,
            window.late,
            self.degraded,
            _critical_trail(window),
        )

    def _fuse(
        self, camera: UnitFeatures | None, scans: Sequence[UnitFeatures]
    ) -> list[Measurement]:
        at_ns = camera.stamp_ns if camera is not None else scans[-1].stamp_ns
        return fuse_detections(
            camera,
            scans,
            self._geometry_at(at_ns),
            self.parameters.fusion,
            [self._geometry_at(scan.stamp_ns) for scan in scans],
        )

    def _geometry_at(self, stamp_ns: int) -> SensorGeometry:
        """Sensor poses in the tracking frame at one instant."""
        state = self._ego.nearest(stamp_ns)
        return self.geometry if state is None else carried(self.geometry, state, self.frame_id)


def _critical_trail(window: ClosedWindow) -> Trail:
    """Path of the unit the window had to wait for, up to the closing of the window."""
    if window.critical is None or not window.critical.trail:
        return ()
    trail = extend_trail(window.critical.trail, 'transport_features', window.critical_arrived_ns)
    return extend_trail(trail, 'window', window.closed_ns)
