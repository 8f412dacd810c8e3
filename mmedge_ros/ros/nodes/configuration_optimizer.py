"""Chooses rates and levels: as accurate as latency limit, battery and computer allow."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from rclpy.node import Node
from std_msgs.msg import String

from mmedge_ros import msg
from mmedge_ros.configuration.configuration_loop import ConfigurationLoop
from mmedge_ros.replay.wire_formats import state_from_message
from mmedge_ros.ros.diagnostics import Diagnostics
from mmedge_ros.ros.input_watch import InputWatch
from mmedge_ros.ros.messages import conversions, names, qos
from mmedge_ros.ros.node_main import run_nodes
from mmedge_ros.ros.optimizer_setup import (
    ConfigurationOptimizerParameters,
    Cost,
    demand_from_message,
    look_at_tracks,
    look_at_unit,
    optimizer_setup,
    seconds_until,
    seen_tracks,
    take_duration,
)
from mmedge_ros.ros.optimizer_status import optimizer_figures
from mmedge_ros.ros.parameters import declare
from mmedge_ros.ros.power_output import PowerOutput
from mmedge_ros.ros.ros_clock import RosClock, steady_clock
from mmedge_ros.ros.waited_entities import defer


class ConfigurationOptimizerNode(Node):
    """Subscribes to units, decisions and the state of the system; publishes configurations."""

    def __init__(self, **node_options: Any) -> None:
        super().__init__('configuration_optimizer', **node_options)
        p = declare(self, ConfigurationOptimizerParameters)
        self._ros_clock = RosClock(self)
        self._setup = optimizer_setup(p)
        self._loop = self._setup.loop
        # None where all stays as set up, within bounds.
        self._choice = self._loop if isinstance(self._loop, ConfigurationLoop) else None
        for note in self._setup.notes:
            self.get_logger().warning(note)
        self._unit_cost, self._decision_cost = Cost(), Cost()
        self._configurations = self.create_publisher(
            msg.Configuration, names.CONFIGURATION, qos.LATCHED
        )
        self._power = PowerOutput(self)
        self._watch = InputWatch(self, time.monotonic)
        self._watch.expect('tracks', names.TRACKS, qos.RESULT)
        self._watch.expect('system state', names.SYSTEM_STATE, qos.RESULT)
        figures = partial(optimizer_figures, self._setup, self._decision_cost, self._unit_cost)
        self._diagnostics = Diagnostics(self, self, figures)
        subscriptions: list[tuple[type, str, Callable[[Any], None]]] = [
            (msg.UnitReceipt, names.UNIT_RECEIPTS, self._on_receipt),
            (msg.SkipDecision, names.SKIP_DECISION, self._on_skip),
            (msg.TrackArray, names.TRACKS, self._on_tracks),
            (msg.SystemState, names.SYSTEM_STATE, self._on_state),
            (msg.BrickPlan, names.BRICK_PLAN, self._on_bricks),
            (String, names.WAKE, lambda _: self._loop.bounds.wake(time.monotonic())),
        ]
        if self._choice is not None:
            subscriptions += [
                (msg.UnitFeatures, names.UNIT_FEATURES, self._on_features),
                (msg.LatencyDemand, names.LATENCY_DEMAND, self._on_demand),
            ]
        for kind, topic, take in subscriptions:
            # Nothing follows from them before it is decided again.
            defer(self.create_subscription(kind, topic, take, qos.FREQUENT_RESULT))
        self._timer = self.create_timer(1.0 / p.rate, self._decide, clock=steady_clock())
        self._decide()

    def missing(self) -> list[str]:
        """Say in words what is missing, and what is guessed without it."""
        return [*self._watch.missing(), *self._setup.notes]

    def _on_features(self, message: msg.UnitFeatures) -> None:
        assert self._choice is not None
        begun = time.perf_counter()
        take_duration(self._choice, message, time.monotonic())
        if self._choice.scene is not None:
            look_at_unit(self._choice.scene, message)
        self._unit_cost.add(time.perf_counter() - begun)

    def _on_receipt(self, message: msg.UnitReceipt) -> None:
        if message.outcome not in (message.DROPPED, message.FAILED):  # counted at its receipt
            stamps = map(conversions.from_time, (message.header.stamp, message.available))
            self._loop.unit_arrived(message.modality, time.monotonic(), *stamps)

    def _on_skip(self, message: msg.SkipDecision) -> None:
        left = seconds_until(message.skip_until, self._ros_clock.now_ns())
        self._loop.resting(message.modality, time.monotonic() + left)

    def _on_tracks(self, message: msg.TrackArray) -> None:
        self._watch.heard('tracks')
        if conversions.is_update(message):
            return
        self._loop.bounds.tracked(seen_tracks(message), time.monotonic())
        if self._choice is None:
            return
        trail = conversions.from_trail(message.trail)
        self._choice.decided(float(message.latency), trail, time.monotonic())
        if self._choice.scene is not None:
            look_at_tracks(self._choice.scene, message)

    def _on_state(self, message: msg.SystemState) -> None:
        self._watch.heard('system state')
        self._loop.system_state(state_from_message(message), time.monotonic())

    def _on_bricks(self, message: msg.BrickPlan) -> None:
        bricks = conversions.from_brick_plan(message)
        self._loop.bounds.placement.take(bricks, time.monotonic())

    def _on_demand(self, message: msg.LatencyDemand) -> None:
        assert self._choice is not None
        demand = demand_from_message(message, self._ros_clock.now_ns())
        if not self._choice.demanded(demand, time.monotonic()):
            words = f'latency demand not used: {self._choice.budget.problem}'
            self.get_logger().warning(words, throttle_duration_sec=5.0)

    def _decide(self) -> None:
        now_ns = self._ros_clock.now_ns()
        begun = time.perf_counter()
        made = self._loop.update(now_ns, time.monotonic())
        self._decision_cost.add(time.perf_counter() - begun)
        if made is not None and self.context.ok():
            self._configurations.publish(conversions.to_configuration(made, now_ns))
            self.get_logger().info(f'configuration {made.id}: {made.reason}')
        if self.context.ok():
            self._power.publish(self._loop.bounds.power.state, now_ns)


def main(args: list[str] | None = None) -> None:
    """Run the node."""
    sys.exit(run_nodes([ConfigurationOptimizerNode], args))


if __name__ == '__main__':
    main()
