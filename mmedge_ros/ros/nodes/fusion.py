"""Turns encoded units into decisions: windows, fusion, tracking."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from rclpy.node import Node

from mmedge_ros import msg
from mmedge_ros.core.data_types import (
    Configuration,
    Decision,
    SkipDecision,
)
from mmedge_ros.core.parameter import group, parameter
from mmedge_ros.geometry.sensor_rig import SensorRig
from mmedge_ros.pipeline.decision_worker import DecisionWorker
from mmedge_ros.pipeline.fusion_strategy import model_of_encoders, open_pipeline
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline
from mmedge_ros.pipeline.pipeline_parameters import PipelineParameters
from mmedge_ros.pipeline.pipeline_status import PipelineStatus
from mmedge_ros.ros.brick_plan import BrickPlanOutput
from mmedge_ros.ros.configuration_input import ConfigurationInput
from mmedge_ros.ros.diagnostics import Diagnostics, Refusals, problem_figures
from mmedge_ros.ros.geometry_inputs import GeometryInputs, RigParameters, set_up_rig
from mmedge_ros.ros.input_watch import InputWatch
from mmedge_ros.ros.messages import conversions, names, qos
from mmedge_ros.ros.node_main import program
from mmedge_ros.ros.parameters import declare
from mmedge_ros.ros.rangefinder_input import RangefinderInput
from mmedge_ros.ros.ros_clock import RosClock
from mmedge_ros.tracking import data_association


@dataclass(frozen=True)
class FusionParameters(RigParameters):
    """The fusion node."""

    detector: str = parameter(
        '',
        'model of the camera encoder, see there: a bundle may bring networks that fuse',
    )
    simulated: bool = parameter(
        False, 'the pictures come from the simulator; decides which model an empty name takes'
    )
    publish_transform: bool = parameter(
        False,
        'publish odom -> base_link on /tf from odometry, where no other node does: RViz needs it, '
        'and an autopilot or robot_localization has it mostly',
    )
    pipeline: PipelineParameters = group(PipelineParameters)


class FusionNode(Node):
    """Subscribes to receipts and features; publishes decisions, updates and skip leases."""

    worker_type: ClassVar[type[DecisionWorker]] = DecisionWorker

    def __init__(self, **node_options: Any) -> None:
        super().__init__('fusion', **node_options)
        parameters = declare(self, FusionParameters)
        self._ros_clock = RosClock(self)
        self._pipeline = fusion_pipeline(parameters)
        self._refusals = Refusals(self)
        self._tracks = self.create_publisher(
            msg.TrackArray, names.TRACKS, **qos.overridable(qos.RESULT)
        )
        self._skips = self.create_publisher(msg.SkipDecision, names.SKIP_DECISION, qos.RESULT)
        self._watch = InputWatch(self, time.monotonic)
        self._status = PipelineStatus(self._pipeline)
        self._worker = self.worker_type(
            self._pipeline,
            self._ros_clock,
            self._publish,
            self._ros_clock.longest_wait,
            self._publish_skip,
        )
        self._plan = BrickPlanOutput(self, self._status.bricks)
        self._diagnostics = Diagnostics(self, self, self._figures)
        for modality in parameters.pipeline.modalities:
            self._watch.expect(modality, names.UNIT_FEATURES, qos.RESULT, is_shared=True)
        self._geometry_inputs = GeometryInputs(
            self,
            self._enter,
            not self._pipeline.rig.has_camera,
            parameters.frame_prefix,
            parameters.publish_transform,
        )
        self._rangefinder = RangefinderInput(self, self._enter)
        self._worker.start()
        for kind, topic, take in (
            (msg.UnitReceipt, names.UNIT_RECEIPTS, self._on_receipt),
            (msg.UnitFeatures, names.UNIT_FEATURES, self._on_features),
            (msg.TrackLabels, names.TRACK_LABELS, self._on_labels),
        ):
            self.create_subscription(kind, topic, take, qos.RESULT)
        self._watch.configured = ConfigurationInput(self, self._configure).words

    def stop(self) -> None:
        """End the worker."""
        self._worker.stop()

    def missing(self) -> list[str]:
        """Say in words what is missing, and what is wrong with pictures and gate."""
        return [*self._watch.missing(), *self._status.problems()]

    def _on_receipt(self, message: msg.UnitReceipt) -> None:
        with self._refusals.of('receipt'):
            receipt = conversions.from_receipt(message)
            self._worker.submit(lambda pipeline, now_ns: pipeline.add_receipt(receipt, now_ns))

    def _on_features(self, message: msg.UnitFeatures) -> None:
        self._watch.heard(message.modality)
        with self._refusals.of('features'):
            self._worker.submit_unit(conversions.from_features(message))

    def _on_labels(self, message: msg.TrackLabels) -> None:
        with self._refusals.of('labels'):
            labels = conversions.from_track_labels(message)
            self._worker.submit(
                lambda pipeline, _now_ns: pipeline.add_labels(labels), urgent=False
            )

    def _enter(self, change: Callable[[SensorRig], object], urgent: bool = True) -> None:
        self._worker.submit(lambda pipeline, _now_ns: change(pipeline.rig), urgent)

    def _configure(self, made: Configuration) -> None:
        self._worker.submit(lambda pipeline, _now_ns: pipeline.configure(made), urgent=False)

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
            **problem_figures('fusion', self._status.shed(self._worker)),
            **self._plan.figures(),
            **self._geometry_inputs.figures(),
        }


def fusion_pipeline(parameters: FusionParameters) -> PerceptionPipeline:
    """Open the pipeline, and give it the calibration that the parameters name.

    :raises EncodingError: if the model cannot be read
    :raises GeometryError: if a transform or the calibration cannot
    """
    data_association.prepare()
    p = parameters.pipeline
    pipeline = open_pipeline(model_of_encoders(parameters.detector, parameters.simulated, p), p)
    set_up_rig(pipeline.rig, parameters)
    return pipeline


main = program(FusionNode)


if __name__ == '__main__':
    main()
