"""Pipelines for replaying one flight many times: what units measure is worked out once.

What a picture and the scans paired with it say of people does not depend on the tracks, and is
more than half of the work of decision fusion.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from mmedge_ros.data_types import Decision, Measurement, UnitFeatures, UnitKey
from mmedge_ros.geometry.ego_motion import EgoState
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline
from mmedge_ros.skipping.gated_pipeline import GatedPipeline
from mmedge_ros.skipping.question import Question
from mmedge_ros.skipping.scene import Asking

# By units, frame, and the newest odometry where the units are newer still.
_Key: TypeAlias = tuple[UnitKey | None, tuple[UnitKey, ...], str, int | None]
Measured: TypeAlias = dict[_Key, list[Measurement]]


class RememberingPipeline(PerceptionPipeline):
    """Takes measurements from ``measured``.

    It is shared by pipelines that replay one flight in one configuration.
    """

    measured: Measured | None = None
    _newest_ego_ns: int | None = None

    def add_ego_state(self, state: EgoState, frame_id: str, base_frame: str) -> None:
        super().add_ego_state(state, frame_id, base_frame)
        self._newest_ego_ns = max(state.stamp_ns, self._newest_ego_ns or state.stamp_ns)

    def _fuse(
        self, camera: UnitFeatures | None, scans: Sequence[UnitFeatures]
    ) -> list[Measurement]:
        # Feature fusion makes something else of a picture in each window.
        if self.measured is None or self.feature_fusion is not None:
            return super()._fuse(camera, scans)
        units = [*scans, camera] if camera is not None else scans
        ego_ns = self._newest_ego_ns
        is_settled = ego_ns is None or ego_ns >= max(unit.stamp_ns for unit in units)
        key = (
            None if camera is None else camera.key,
            tuple(scan.key for scan in scans),
            self.frame_id,
            None if is_settled else ego_ns,
        )
        found = self.measured.get(key)
        if found is None:
            found = self.measured[key] = super()._fuse(camera, scans)
        return found


class RememberingGatedPipeline(RememberingPipeline, GatedPipeline):
    """The same with a gate; ``shadows`` takes what would be decided at each question."""

    shadows: list[tuple[Question, Decision]] | None = None

    def _ask(self, asking: Asking) -> Decision | None:
        if self.shadows is not None:
            question = self._scene.question(asking, self.tracker.state)
            self.shadows.append((question, self._preview(asking.end_ns, asking.now_ns)))
        return super()._ask(asking)
