"""Sentences about what nodes report as errors on /diagnostics: once each, and when it is over."""

from __future__ import annotations

import re
from collections.abc import Callable

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.node import Node

from mmedge_ros.core.data_types import CAMERA, RADAR
from mmedge_ros.ros.diagnostics import node_name
from mmedge_ros.ros.input_watch import DOUBLED
from mmedge_ros.ros.messages import names

# Statuses are published once a second.
_MOST_NODES = 100


class FaultLines:
    """Listens to all nodes; what follows from another node's error is left out.

    :param say: called with sentences
    :param has_begun: whether all nodes have started: until then silence is no fault
    :param tells_inputs: whether `UpInputs` tells of silent sensors and failing drivers
    """

    def __init__(
        self,
        node: Node,
        say: Callable[[str], None],
        has_begun: Callable[[], bool],
        tells_inputs: bool = False,
    ) -> None:
        self._say = say
        self._has_begun = has_begun
        self._tells_inputs = tells_inputs
        self._faults: dict[str, str] = {}
        self._said: dict[str, str] = {}
        self._is_doubled = False
        node.create_subscription(DiagnosticArray, names.DIAGNOSTICS, self.take, 100)

    def take(self, message: DiagnosticArray) -> None:
        """Take statuses in."""
        for status in message.status:
            name = node_name(status)
            if name and (name in self._faults or len(self._faults) < _MOST_NODES):
                is_fault = status.level == DiagnosticStatus.ERROR
                self._faults[name] = status.message if is_fault else ''
                self._report(name)

    def _report(self, name: str) -> None:
        words = self._faults[name]
        if words.startswith('no ') and not self._has_begun():
            return
        if DOUBLED in words:
            # All nodes of a graph are there twice where one is, and report under one name.
            if not self._is_doubled:
                self._is_doubled = True
                self._say(f'{name}: {words}')
            return
        if words and self._is_told_elsewhere(name, words):
            return
        # The seconds grow, and reasons change while nodes start.
        kind = re.sub(r' for \d+ s.*', '', words)
        if kind != self._said.get(name, ''):
            self._said[name] = kind
            self._say(f'{name}: {words}' if words else f'{name}: running again')

    def _is_told_elsewhere(self, name: str, words: str) -> bool:
        for modality in (CAMERA, RADAR):
            encoder = f'{modality}_encoder'
            if self._tells_inputs and name == modality:
                return True
            if words.startswith(f'no {modality} input') and name == encoder:
                return self._tells_inputs
            if words.startswith(f'no {modality} input') and self._faults.get(encoder):
                return True  # the encoder says more of it
        return False
