"""Encodes every unit of one modality the moment it arrives."""

from __future__ import annotations

import sys
import time
from typing import Any, ClassVar

from rclpy.node import Node

from mmedge_ros import msg
from mmedge_ros.data_types import (
    Configuration,
    Decision,
    ModalityConfiguration,
    UnitFeatures,
    UnitReceipt,
)
from mmedge_ros.encoding.track_recogniser import Recognised
from mmedge_ros.pipeline.encoder_worker import EncoderWorker
from mmedge_ros.ros.brick_plan import BrickPlanOutput
from mmedge_ros.ros.configuration_input import ConfigurationInput
from mmedge_ros.ros.diagnostics import Diagnostics
from mmedge_ros.ros.encoder_setup import (
    EncoderWatch,
    UnitEncoderParameters,
    encoder_figures,
    make_encoder,
)
from mmedge_ros.ros.input_watch import InputWatch
from mmedge_ros.ros.messages import conversions, names, qos
from mmedge_ros.ros.messages.sensor_input import received_unit
from mmedge_ros.ros.node_main import run_nodes
from mmedge_ros.ros.nodes.memory import MomentOutput
from mmedge_ros.ros.parameters import declare
from mmedge_ros.ros.ros_clock import RosClock
from mmedge_ros.ros.unit_input import UnitInput


class UnitEncoderNode(Node):
    """Subscribes to one sensor; publishes receipts before and features after inference."""

    worker_type: ClassVar[type[EncoderWorker]] = EncoderWorker

    def __init__(self, **node_options: Any) -> None:
        super().__init__('unit_encoder', **node_options)
        self._options = p = declare(self, UnitEncoderParameters)
        self._ros_clock = RosClock(self)
        self._sequence = 0
        self._frame_id = ''
        self._encoder = make_encoder(p)
        self.get_logger().info('warming up the encoder')
        self._encoder.warm_up()
        self._receipts = self.create_publisher(msg.UnitReceipt, names.UNIT_RECEIPTS, qos.RESULT)
        self._features = self.create_publisher(msg.UnitFeatures, names.UNIT_FEATURES, qos.RESULT)
        self._moments = MomentOutput(self, self._encoder, p.memory.rate)
        self._worker = self.worker_type(
            self._encoder,
            self._ros_clock,
            self._publish_receipt,
            self._publish_features,
            p.queue,
            self._publish_recognised,
            self._moments.of_decision,
        )
        self._set_up = ModalityConfiguration(p.modality, p.rate, p.level, p.device, p.reuse)
        self._worker.configure(Configuration(modalities=(self._set_up,)))
        self._watch = InputWatch(self, time.monotonic)
        watch = EncoderWatch(self._watch, p)
        if watch.warning:
            self.get_logger().warning(watch.warning)
        # Not every modality that a package adds has networks.
        self._plan = BrickPlanOutput(self, getattr(self._encoder, 'bricks', list))
        self._diagnostics = Diagnostics(self, watch, self._figures)
        configurations = ConfigurationInput(self, self._configure, p.device)
        self._watch.configured = configurations.words
        self.create_subscription(msg.SkipDecision, names.SKIP_DECISION, self._on_skip, qos.RESULT)
        if self._worker.recogniser is not None:
            self._labels = self.create_publisher(msg.TrackLabels, names.TRACK_LABELS, qos.RESULT)
            self._novelties = self.create_publisher(msg.Novelty, names.NOVELTIES, qos.RESULT)
        if self._worker.recogniser is not None or self._moments.is_wanted:
            self.create_subscription(msg.TrackArray, names.TRACKS, self._on_tracks, qos.RESULT)
        self._worker.start()
        # Last, so that a player that waits for this subscription meets a warm encoder.
        self._input = UnitInput(self, p.modality, p.image_transport, self._on_unit)
        self._input.expect_in(self._watch)

    def stop(self) -> None:
        """End the worker."""
        self._worker.stop()
        self._input.close()

    def _on_unit(self, message: Any, info: Any) -> None:
        modality = self._options.modality
        self._watch.heard(modality)
        self._frame_id = message.header.frame_id
        self._worker.offer(received_unit(modality, self._sequence, message, info, self._ros_clock))
        self._sequence += 1

    def _configure(self, made: Configuration) -> None:
        self._worker.configure(made.over(self._set_up))

    def _on_skip(self, message: msg.SkipDecision) -> None:
        self._worker.lease(conversions.from_skip_decision(message))

    def _on_tracks(self, message: msg.TrackArray) -> None:
        if conversions.is_update(message):
            return
        try:
            decision = conversions.from_track_array(message)
        except ValueError as err:
            self.get_logger().warning(f'tracks not used: {err}', throttle_duration_sec=5.0)
            return
        self._worker.offer_tracks(decision)

    def _publish_recognised(self, recognised: Recognised, decision: Decision) -> None:
        if not self.context.ok():
            return
        message = conversions.to_track_labels(recognised.labels, decision.state_ns)
        self._labels.publish(message)
        for novelty in recognised.novelties:
            self.get_logger().info(f'new in view: {novelty.label}, {novelty.reason}')
            self._novelties.publish(conversions.to_novelty(novelty))

    def _publish_receipt(self, receipt: UnitReceipt) -> None:
        if receipt.reason:
            self.get_logger().warning(receipt.reason, throttle_duration_sec=5.0)
        if self.context.ok():
            self._receipts.publish(conversions.to_receipt(receipt, self._frame_id))

    def _publish_features(self, features: UnitFeatures) -> None:
        if self.context.ok():
            self._features.publish(conversions.to_features(features))

    def _figures(self) -> dict[str, object]:
        return {
            **encoder_figures(self._worker, self._encoder),
            **self._plan.figures(),
            **self._input.figures(),
        }


def main(args: list[str] | None = None) -> None:
    """Run the node."""
    sys.exit(run_nodes([UnitEncoderNode], args))


if __name__ == '__main__':
    main()
