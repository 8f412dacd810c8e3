"""Chooses rates and levels: as accurate as latency limit, battery and computer allow."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from rclpy.node import Node
from std_msgs.msg import String

from mmedge_ros import msg
from mmedge_ros.adaptation.configuration_loop import ConfigurationLoop
from mmedge_ros.adaptation.optimizer_setup import (
    ConfigurationOptimizerParameters,
    optimizer_setup,
)
from mmedge_ros.adaptation.power_policy import PowerState
from mmedge_ros.adaptation.scene_indicators import SceneIndicators
from mmedge_ros.core.data_types import CAMERA, RADAR, RETURN_FIELDS, Box
from mmedge_ros.replay.wire_formats import state_from_message
from mmedge_ros.ros.diagnostics import Diagnostics
from mmedge_ros.ros.input_watch import InputWatch
from mmedge_ros.ros.messages import conversions, names, qos
from mmedge_ros.ros.messages.conversions import appearance_of_message
from mmedge_ros.ros.node_main import program
from mmedge_ros.ros.parameters import declare
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
        # s, of the newest few hundred.
        self._unit_cost, self._decision_cost = (deque[float](maxlen=500) for _ in range(2))
        self._configurations = self.create_publisher(
            msg.Configuration, names.CONFIGURATION, qos.LATCHED
        )
        self._told_power: PowerState | None = None
        self._powers = self.create_publisher(msg.PowerState, names.POWER_STATE, qos.LATCHED)
        self._watch = InputWatch(self, time.monotonic)
        self._watch.expect('tracks', names.TRACKS, qos.RESULT)
        self._watch.expect('system state', names.SYSTEM_STATE, qos.RESULT)
        self._diagnostics = Diagnostics(self, self, self._figures)
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
        self._unit_cost.append(time.perf_counter() - begun)

    def _on_receipt(self, message: msg.UnitReceipt) -> None:
        if message.outcome not in (message.DROPPED, message.FAILED):  # counted at its receipt
            stamps = map(conversions.from_time, (message.header.stamp, message.available))
            self._loop.unit_arrived(message.modality, time.monotonic(), *stamps)

    def _on_skip(self, message: msg.SkipDecision) -> None:
        left = conversions.seconds_until(message.skip_until, self._ros_clock.now_ns())
        self._loop.resting(message.modality, time.monotonic() + left)

    def _on_tracks(self, message: msg.TrackArray) -> None:
        self._watch.heard('tracks')
        if conversions.is_update(message):
            return
        self._loop.bounds.tracked(conversions.seen_tracks(message), time.monotonic())
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
        demand = conversions.demand_from_message(message, self._ros_clock.now_ns())
        if not self._choice.demanded(demand, time.monotonic()):
            words = f'latency demand not used: {self._choice.bounds.budget.problem}'
            self.get_logger().warning(words, throttle_duration_sec=5.0)

    def _decide(self) -> None:
        now_ns = self._ros_clock.now_ns()
        begun = time.perf_counter()
        made = self._loop.update(now_ns, time.monotonic())
        self._decision_cost.append(time.perf_counter() - begun)
        if made is not None and self.context.ok():
            self._configurations.publish(conversions.to_configuration(made, now_ns))
            self.get_logger().info(f'configuration {made.id}: {made.reason}')
        if self.context.ok():
            self._publish_power(self._loop.bounds.power.state, now_ns)

    def _publish_power(self, power: PowerState, now_ns: int) -> None:
        before, self._told_power = self._told_power, power
        if power == before:
            return
        if before is None or power.mode is not before.mode:
            self.get_logger().info(f'power {power.mode.name}: {power.reason}')
        self._powers.publish(conversions.to_power_state(power, now_ns))

    def _figures(self) -> dict[str, object]:
        """Return the configuration, its bounds, and what was learned."""
        loop, setup = self._loop, self._setup
        current, power = loop.current, loop.bounds.power.state
        figures: dict[str, object] = {
            'configuration': current.id if current is not None else '',
            'reason': current.reason if current is not None else '',
            'caps': '; '.join(loop.reasons),
            'changes': loop.counts.changes,
            'states': loop.counts.states,
            'power state': power.mode.name,
            'power alpha': f'{power.alpha:.2f}',
            'power reason': power.reason,
            'bursts': loop.bounds.standby.bursts,
            'decision (us, median)': _microseconds(self._decision_cost),
        }
        if isinstance(loop, ConfigurationLoop):
            counts, budget = loop.counts, loop.bounds.budget
            figures |= {
                'configurations to choose from': setup.size,
                'accuracies': setup.source,
                'units': counts.units,
                'durations not used': loop.rejected,
                'decisions': counts.decisions,
                'late decisions': counts.late,
                'consumers': ', '.join(budget.consumers(time.monotonic())),
                'latency demands': budget.taken,
                'latency demands not used': budget.refused,
                'last one not used': budget.problem,
                'calibration (us per unit, median)': _microseconds(self._unit_cost),
            }
        return figures


class _SeenTrack(NamedTuple):
    """The part of a track that is used: reading its covariances takes most of the time."""

    box: Box | None
    box_velocity: tuple[float, float]
    score: float


def look_at_unit(scene: SceneIndicators, message: msg.UnitFeatures) -> None:
    """Pass on what an encoded unit says of the scene; unreadable returns are left out."""
    if message.modality == CAMERA and not message.followed:
        scene.take_appearance(appearance_of_message(message))
    elif message.modality == RADAR and len(message.returns) % len(RETURN_FIELDS) == 0:
        returns = np.frombuffer(message.returns, np.float32)
        scene.take_returns(returns.reshape(-1, len(RETURN_FIELDS)))
    scene.take_embedding(message.modality, np.frombuffer(message.embedding, np.float32))


def look_at_tracks(scene: SceneIndicators, message: msg.TrackArray) -> None:
    """Pass on the tracks of a decision, unless a number in them is impossible."""
    tracks = []
    for track in message.tracks:
        numbers = (*track.box.tolist(), *track.box_velocity.tolist(), track.score)
        if not all(map(math.isfinite, numbers)):
            return
        box = Box(*numbers[:4]) if track.box_valid else None
        tracks.append(_SeenTrack(box, numbers[4:6], track.score))
    scene.decided(tracks)


def take_duration(loop: ConfigurationLoop, message: msg.UnitFeatures, now: float) -> None:
    """Pass on how long a unit took to encode, or to follow, by its trail."""
    if message.followed:
        loop.unit_followed(message.modality, conversions.stage_seconds(message, 'follow'), now)
    else:
        taken = conversions.stage_seconds(message, 'encode')
        loop.unit_encoded(message.modality, message.level, taken, now)


def _microseconds(seconds: Sequence[float]) -> str:
    """Return the median, '' before there is one."""
    return f'{1e6 * median(seconds):.1f}' if seconds else ''


main = program(ConfigurationOptimizerNode)


if __name__ == '__main__':
    main()
