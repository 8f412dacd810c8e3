"""The topics of a node that lets a language model describe decisions."""

from __future__ import annotations

import time
from collections.abc import Iterable

from rclpy.node import Node
from std_msgs.msg import String

from mmedge_ros import msg
from mmedge_ros.adaptation.latency_budget import LatencyDemand
from mmedge_ros.core.data_types import NS_PER_S, Decision
from mmedge_ros.core.parameter import ParameterError
from mmedge_ros.questions.describing import DescribeParameters, Describer
from mmedge_ros.questions.language_model import LanguageModel, OwnModel
from mmedge_ros.ros.messages import conversions, names, qos
from mmedge_ros.ros.ros_clock import RosClock

# How often a claim is announced anew (s): well within its lease.
_PERIOD = 0.5
# A decision that was longer on its way (s) is not described.
_OLD = 1.0


class DescribingOutput:
    """Publishes sentences about decisions, and the time that they take; nothing without kinds.

    :param model: that makes them; None where there is none
    :raises ParameterError: for kinds of questions that there are not, or without a model
    """

    def __init__(
        self,
        node: Node,
        clock: RosClock,
        model: LanguageModel | None,
        parameters: DescribeParameters,
    ) -> None:
        self._node, self._clock, self._own = node, clock, model
        self._describer: Describer | None = None
        self._announced_at = -_PERIOD
        self._sentences = node.create_publisher(String, names.DESCRIPTION, qos.RESULT)
        self._demands = node.create_publisher(msg.LatencyDemand, names.LATENCY_DEMAND, qos.RESULT)
        if not parameters.kinds:
            return
        if model is None:
            raise ParameterError('describe.kinds: name the model that describes, as model')
        self._describer = Describer(model, parameters, self._publish)

    @property
    def model(self) -> LanguageModel | None:
        """What questions that are asked once go to."""
        return self._describer or self._own

    def stop(self) -> None:
        """Describe nothing more, and release the model."""
        if self._describer is not None:
            self._describer.close()
        if isinstance(self._own, OwnModel):
            self._own.server.stop()

    def missing(self) -> list[str]:
        """Say what is wrong with the model."""
        return self._describer.missing() if self._describer is not None else []

    def decided(self, decision: Decision) -> None:
        """Describe a decision if the model is free, and announce what sentences take."""
        if self._describer is None:
            return
        now_ns = self._clock.now_ns()
        waited = (now_ns - decision.published_ns) / NS_PER_S
        if waited < _OLD:
            self._describer.offer(decision, max(waited, 0.0))
        if time.monotonic() >= self._announced_at + _PERIOD:
            self._announced_at = time.monotonic()
            self._announce(self._describer.demands(), now_ns)

    def figures(self) -> dict[str, object]:
        """Return what diagnostics show of it."""
        return {} if self._describer is None else self._describer.figures()

    def _announce(self, demands: Iterable[LatencyDemand], now_ns: int) -> None:
        for demand in demands:
            announced = msg.LatencyDemand(
                source=demand.source,
                decode_time=demand.decode_time,
                total_limit=demand.total_limit,
                valid_until=conversions.to_time(now_ns + round(demand.lease * NS_PER_S)),
            )
            announced.header.stamp = conversions.to_time(now_ns)
            self._demands.publish(announced)

    def _publish(self, sentence: str) -> None:
        if self._node.context.ok():
            self._sentences.publish(String(data=sentence))
