"""Turns encoded units into decisions: windows, fusion, tracking."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from rclpy.node import Node

from mmedge_ros import msg
from mmedge_ros.data_types import Configuration, Decision, SkipDecision
from mmedge_ros.pipeline.decision_worker import DecisionWorker
from mmedge_ros.ros.brick_plan import BrickPlanOutput
from mmedge_ros.ros.configuration_input import ConfigurationInput
from mmedge_ros.ros.diagnostics import Diagnostics
from mmedge_ros.ros.fusion_setup import FusionParameters, fusion_pipeline
from mmedge_ros.ros.fusion_status import FusionStatus
from mmedge_ros.ros.geometry_inputs import GeometryInputs
from mmedge_ros.ros.input_watch import InputWatch
from mmedge_ros.ros.messages import conversions, names, qos
from mmedge_ros.ros.node_main import run_nodes
from mmedge_ros.ros.parameters import declare
from mmedge_ros.ros.ros_clock import RosClock

T = TypeVar('T')


class FusionNode(Node):
    """Subscribes to receipts and features; publishes decisions, updates and skip leases."""

    worker_type: ClassVar[type[DecisionWorker]] = DecisionWorker

    def __init__(self, **node_options: Any) -> None:
        super().__init__('fusion', **node_options)
        parameters = declare(self, FusionParameters)
        self._ros_clock = RosClock(self)
        self._pipeline = fusion_pipeline(parameters)
        self._refusals: dict[str, Any] = {}
        self._tracks = self.create_publisher(
            msg.TrackArray, names.TRACKS, **qos.overridable(qos.RESULT)
        )
        self._skips = self.create_publisher(msg.SkipDecision, names.SKIP_DECISION, qos.RESULT)
        self._watch = InputWatch(self, time.monotonic)
        self._status = FusionStatus(self._pipeline, self._watch)
        self._worker = self.worker_type(
            self._pipeline,
            self._ros_clock,
            self._publish,
            self._ros_clock.longest_wait,
            self._publish_skip,
        )
        self._plan = BrickPlanOutput(self, self._status.bricks)
        self._diagnostics = Diagnostics(self, self._status, self._figures)
        for modality in parameters.pipeline.modalities:
            self._watch.expect(modality, names.UNIT_FEATURES, qos.RESULT, is_shared=True)
        self._geometry_inputs = GeometryInputs(
            self,
            self._worker.submit,
            not self._pipeline.rig.has_camera,
            parameters.frame_prefix,
            parameters.publish_transform,
        )
        self._worker.start()
        self.create_subscription(
            msg.UnitReceipt, names.UNIT_RECEIPTS, self._on_receipt, qos.RESULT
        )
        self.create_subscription(
            msg.UnitFeatures, names.UNIT_FEATURES, self._on_features, qos.RESULT
        )
        self._watch.configured = ConfigurationInput(self, self._configure).words
        self.create_subscription(msg.TrackLabels, names.TRACK_LABELS, self._on_labels, qos.RESULT)

    def stop(self) -> None:
        """End the worker."""
        self._worker.stop()

    def _on_receipt(self, message: msg.UnitReceipt) -> None:
        receipt = self._converted(conversions.from_receipt, message, 'receipt')
        if receipt is not None:
            self._worker.submit(lambda pipeline, now_ns: pipeline.add_receipt(receipt, now_ns))

    def _on_features(self, message: msg.UnitFeatures) -> None:
        self._watch.heard(message.modality)
        features = self._converted(conversions.from_features, message, 'features')
        if features is not None:
            self._worker.submit_unit(features)

    def _configure(self, made: Configuration) -> None:
        self._worker.submit(lambda pipeline, _now_ns: pipeline.configure(made), urgent=False)

    def _on_labels(self, message: msg.TrackLabels) -> None:
        labels = self._converted(conversions.from_track_labels, message, 'labels')
        if labels is not None:
            self._worker.submit(
                lambda pipeline, _now_ns: pipeline.add_labels(labels), urgent=False
            )

    def _converted(self, convert: Callable[[Any], T], message: Any, words: str) -> T | None:
        try:
            return convert(message)
        except ValueError as err:
            # Throttled apart: a logger throttles by where it is called.
            refusals = self._refusals.setdefault(words, self.get_logger().get_child(words))
            refusals.warning(f'{words} not used: {err}', throttle_duration_sec=5.0)
            return None

    def _publish(self, decision: Decision) -> None:
        if not self.context.ok():
            return  # stopped in the middle of the work
        published = decision.published(self._ros_clock.now_ns())
        self._tracks.publish(conversions.to_track_array(published))
        self._status.published(published)

    def _publish_skip(self, skip: SkipDecision) -> None:
        if self.context.ok():
            self._skips.publish(conversions.to_skip_decision(skip))

    def _figures(self) -> dict[str, object]:
        return {
            **self._status.figures(self._worker),
            **self._plan.figures(),
            **self._geometry_inputs.figures(),
        }


def main(args: list[str] | None = None) -> None:
    """Run the node."""
    sys.exit(run_nodes([FusionNode], args))


if __name__ == '__main__':
    main()
