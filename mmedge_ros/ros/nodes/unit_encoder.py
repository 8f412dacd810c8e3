"""Encodes every unit of one modality the moment it arrives."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

from rclpy.node import Node

from mmedge_ros import msg
from mmedge_ros.adaptation.power_policy import least_gap
from mmedge_ros.core.data_types import (
    CAMERA,
    MOST_REUSE,
    Configuration,
    Decision,
    ModalityConfiguration,
    UnitFeatures,
    UnitReceipt,
)
from mmedge_ros.core.parameter import group, parameter
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bundle.default_model import default_detector
from mmedge_ros.encoding.bundle.model_bundle import domain_warning
from mmedge_ros.encoding.detector import DetectorParameters
from mmedge_ros.encoding.encoder_registry import EncoderSettings, encoder_kind
from mmedge_ros.encoding.opened_levels import HeldLevel
from mmedge_ros.encoding.track_recogniser import Recognised
from mmedge_ros.encoding.track_recognition import RecogniserParameters
from mmedge_ros.encoding.unit_encoder import UnitEncoder
from mmedge_ros.memory.flown_views import FlownViews
from mmedge_ros.pipeline.encoder_worker import EncoderWorker
from mmedge_ros.ros.brick_plan import BrickPlanOutput
from mmedge_ros.ros.configuration_input import ConfigurationInput
from mmedge_ros.ros.diagnostics import Diagnostics, Refusals, problem_figures
from mmedge_ros.ros.input_watch import InputWatch
from mmedge_ros.ros.messages import conversions, names, qos
from mmedge_ros.ros.messages.memory_messages import to_moment
from mmedge_ros.ros.messages.sensor_input import received_unit
from mmedge_ros.ros.node_main import program
from mmedge_ros.ros.parameters import declare
from mmedge_ros.ros.picture_input import unit_input
from mmedge_ros.ros.ros_clock import RosClock
from mmedge_ros.sensing.radar.filter import RadarLimits


@dataclass(frozen=True)
class MemoryViewParameters:
    """What a flight memory gets to see."""

    rate: float = parameter(
        0.0,
        'looks at each object, and at the scene, for a flight memory; they leave as pictures of '
        'people (`perception/moments`); 0: none',
        'Hz',
        0.0,
        10.0,
    )


@dataclass(frozen=True)
class UnitEncoderParameters:
    """One encoder of the graph."""

    modality: str = parameter(
        CAMERA, 'what is encoded: camera, radar, or a modality that a package has registered'
    )
    image_transport: str = parameter(
        'raw',
        'form of the pictures: camera/image or camera/image/compressed',
        choices=('raw', 'compressed'),
    )
    detector: str = parameter(
        '',
        'weights file (.onnx, .pt), bundle folder or name of a bundle; empty takes the one that '
        'suits the pictures',
    )
    simulated: bool = parameter(
        False,
        'the pictures come from the simulator; decides which detector an empty name takes, and '
        'whether to warn of one that was trained on simulated pictures only',
    )
    rate: float = parameter(
        0.0, 'upper bound, whatever a Configuration says; 0 encodes every unit', 'Hz', 0.0
    )
    level: str = parameter('', 'model level until a Configuration says otherwise')
    reuse: int = parameter(
        1,
        'about every n-th picture is encoded, and in the others the detected objects are followed '
        'by image motion; a Configuration may ask for fewer; 1 encodes every one',
        '',
        1,
        MOST_REUSE,
    )
    device: str = parameter('cpu', 'where the network runs: cpu, cuda or tensorrt')
    queue: int = parameter(
        2, 'units that may wait; when full all are dropped and counted, for the newest', '', 1, 100
    )
    detection: DetectorParameters = group(DetectorParameters)
    limits: RadarLimits = group(RadarLimits)
    recogniser: RecogniserParameters = group(RecogniserParameters)
    memory: MemoryViewParameters = group(MemoryViewParameters)


def make_encoder(p: UnitEncoderParameters) -> UnitEncoder:
    """:raises EncodingError: if there is none for the modality, or its model cannot be used."""
    model: Path | None = None
    try:
        model = default_detector(p.detector, p.simulated)
    except EncodingError:
        if p.detector or p.modality == CAMERA:
            raise  # other sensors alone need no model
    settings = (model, p.detection, p.limits, p.recogniser, HeldLevel(p.level, p.device))
    return encoder_kind(p.modality).make(EncoderSettings(*settings, p.memory.rate > 0.0))


class UnitEncoderNode(Node):
    """Subscribes to one sensor; publishes receipts before and features after inference."""

    worker_type: ClassVar[type[EncoderWorker]] = EncoderWorker

    def __init__(self, **node_options: Any) -> None:
        super().__init__('unit_encoder', **node_options)
        self._options = p = declare(self, UnitEncoderParameters)
        self._ros_clock = RosClock(self)
        self._refusals = Refusals(self)
        self._sequence = count()
        self._frame_id = ''
        self._encoder = make_encoder(p)
        self.get_logger().info('warming up the encoder')
        self._encoder.warm_up()
        self._receipts = self.create_publisher(msg.UnitReceipt, names.UNIT_RECEIPTS, qos.RESULT)
        self._features = self.create_publisher(msg.UnitFeatures, names.UNIT_FEATURES, qos.RESULT)
        self._views: FlownViews | None = None
        pictures = getattr(self._encoder, 'pictures', None)
        if p.memory.rate and pictures is not None:
            self._views = views = FlownViews(pictures, p.memory.rate)
            self._moments = self.create_publisher(msg.Moment, names.MOMENTS, qos.RESULT)
            self.create_subscription(
                msg.PowerState,
                names.POWER_STATE,
                lambda message: views.thin(least_gap(message.alpha)),
                qos.LATCHED,
            )
        self._worker = self.worker_type(
            self._encoder,
            self._ros_clock,
            self._publish_receipt,
            self._publish_features,
            p.queue,
            self._publish_recognised,
            self._publish_views,
        )
        self._set_up = ModalityConfiguration(p.modality, p.rate, p.level, p.device, p.reuse)
        self._worker.configure(Configuration(modalities=(self._set_up,)))
        self._watch = InputWatch(self, time.monotonic)
        model = default_detector(p.detector, p.simulated) if p.modality == CAMERA else None
        problem = domain_warning(model, p.simulated) if model else ''
        self._problems = [problem] if problem else []
        if problem:
            self.get_logger().warning(problem)
        # Not every modality that a package adds has networks.
        self._plan = BrickPlanOutput(self, getattr(self._encoder, 'bricks', list))
        self._diagnostics = Diagnostics(self, self, self._figures)
        lease = self._worker.lease
        configurations = ConfigurationInput(self, self._configure, p.device, lease=lease)
        self._watch.configured = configurations.words
        if self._worker.recogniser is not None:
            self._labels = self.create_publisher(msg.TrackLabels, names.TRACK_LABELS, qos.RESULT)
            self._novelties = self.create_publisher(msg.Novelty, names.NOVELTIES, qos.RESULT)
        if self._worker.recogniser or self._views:
            self.create_subscription(msg.TrackArray, names.TRACKS, self._on_tracks, qos.RESULT)
        self._worker.start()
        # Last, so that a player that waits for this subscription meets a warm encoder.
        self._input = unit_input(self, p.modality, p.image_transport, self._on_unit, self._watch)

    def stop(self) -> None:
        """End the worker."""
        self._worker.stop()
        self._input.close()

    def missing(self) -> list[str]:
        """Say in words what is missing at present, and what is wrong with the model."""
        return [*self._watch.missing(), *self._problems]

    def _on_unit(self, message: Any, info: Any) -> None:
        modality, clock = self._options.modality, self._ros_clock
        self._watch.heard(modality)
        self._frame_id = message.header.frame_id
        self._worker.offer(received_unit(modality, next(self._sequence), message, info, clock))

    def _configure(self, made: Configuration) -> None:
        self._worker.configure(made.over(self._set_up))

    def _on_tracks(self, message: msg.TrackArray) -> None:
        if not conversions.is_update(message):
            with self._refusals.of('tracks'):
                self._worker.offer_tracks(conversions.from_track_array(message))

    def _publish_recognised(self, recognised: Recognised, decision: Decision) -> None:
        if not self.context.ok():
            return
        self._labels.publish(conversions.to_track_labels(recognised.labels, decision.state_ns))
        for novelty in recognised.novelties:
            self.get_logger().info(f'new in view: {novelty.label}, {novelty.reason}')
            self._novelties.publish(conversions.to_novelty(novelty))

    def _publish_views(self, decision: Decision) -> None:
        """Publish what a decision shows; called in the encoder's thread, while no unit waits."""
        if self._views is not None and self.context.ok():
            for view in self._views.of_decision(decision):
                self._moments.publish(to_moment(view, decision.frame_id))

    def _publish_receipt(self, receipt: UnitReceipt) -> None:
        if receipt.reason:
            self.get_logger().warning(receipt.reason, throttle_duration_sec=5.0)
        if self.context.ok():
            self._receipts.publish(conversions.to_receipt(receipt, self._frame_id))

    def _publish_features(self, features: UnitFeatures) -> None:
        if self.context.ok():
            self._features.publish(conversions.to_features(features))

    def _figures(self) -> dict[str, object]:
        worker, modality = self._worker, self._options.modality
        return {
            **worker.figures(),
            # Copies are taken because the worker goes on counting.
            **problem_figures(modality, worker.failures.copy()),
            **problem_figures(modality, self._encoder.problems.copy()),
            **(worker.recogniser.figures() if worker.recogniser else {}),
            **self._plan.figures(),
            **self._input.figures(),
        }


main = program(UnitEncoderNode)


if __name__ == '__main__':
    main()
