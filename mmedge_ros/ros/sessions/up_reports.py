"""Sentences while a graph runs: which inputs are missing, and what nodes report as errors."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus

from mmedge_ros.core.data_types import CAMERA, RADAR
from mmedge_ros.preflight.graph_view import ODOMETRY
from mmedge_ros.preflight.input_report import InputReport, InputsNow
from mmedge_ros.ros.diagnostics import PROBLEM_PREFIX, node_name
from mmedge_ros.ros.input_watch import DOUBLED
from mmedge_ros.ros.messages import names
from mmedge_ros.ros.sessions.graph_snapshot import Input, other_topics, view_topic
from mmedge_ros.ros.sessions.status_listener import StatusListener

_PERIOD = 0.5
# Ten times the stride of decisions.
_RECENT = 1.0
# s. Nodes load their networks: until then, or the first decision, silence is no fault.
_START_TIME = 30.0
# Statuses of an encoder that is up and has received nothing; there is one a second.
_IN_VAIN = 3
_MOST_NODES = 100


class UpReports:
    """Reports what is missing or wrong, from publishers, diagnostics of all nodes, and decisions.

    Errors are said once each, and when they are over; what follows from another node's is not.

    :param listener: hears decisions; is spun by its owner
    :param say: called with sentences
    :param inputs: what the graph waits for, by name; without any, only nodes report them
    :param own: names of those whose drivers belong to the graph; they are given time to start
    """

    def __init__(
        self,
        listener: StatusListener,
        say: Callable[[str], None],
        inputs: Mapping[str, Input],
        own: Collection[str] = (),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._monotonic = monotonic
        self._listener = listener
        self._say = say
        self._inputs = inputs
        self._own = own
        self._begun = self._looked = monotonic()
        self._report = InputReport(self._begun)
        self._troubles: dict[str, str] = {}
        self._idle: Counter[str] = Counter()
        self._faults: dict[str, str] = {}
        self._said: dict[str, str] = {}
        self._is_doubled = False
        listener.create_subscription(DiagnosticArray, names.DIAGNOSTICS, self._on_statuses, 100)

    def look(self) -> None:
        """Say what is to be said of inputs; called often, works twice a second."""
        now = self._monotonic()
        if not self._inputs or now - self._looked < _PERIOD:
            return
        self._looked = now
        views = {name: view_topic(self._listener, i) for name, i in self._inputs.items()}
        idle = {name for name, count in self._idle.items() if count >= _IN_VAIN}
        present, degraded = set[str](), tuple[str, ...]()
        decision = self._listener.decision
        if decision is not None and now - self._listener.decided_at < _RECENT:
            degraded = decision.degraded
            present = set(decision.newest_ns) - set(decision.lost)
            is_without = any(text.startswith('no odometry') for text in degraded)
            (idle if is_without else present).add(ODOMETRY)
        elif views[ODOMETRY].publishers:
            present.add(ODOMETRY)
        # A driver knows more of its sensor than an encoder.
        troubles = {
            name: self._troubles.get(name) or self._troubles.get(f'{name}_encoder', '')
            for name in (CAMERA, RADAR)
        }
        inputs = InputsNow(
            {name: v for name, v in views.items() if v.publishers or name not in self._own},
            other_topics(self._listener, views),
            frozenset(present),
            frozenset(idle),
            {name: words for name, words in troubles.items() if words},
            degraded,
        )
        for sentence in self._report.update(inputs, now):
            self._say(sentence)

    def _on_statuses(self, message: DiagnosticArray) -> None:
        for status in message.status:
            name = node_name(status)
            if name and (name in self._faults or len(self._faults) < _MOST_NODES):
                is_fault = status.level == DiagnosticStatus.ERROR
                self._faults[name] = status.message if is_fault else ''
                self._note_trouble(name, status)
                self._report_fault(name)

    def _note_trouble(self, name: str, status: DiagnosticStatus) -> None:
        """Remember why a sensor cannot be used, and how long its encoder has received nothing."""
        modality = name.removesuffix('_encoder')
        if name in (CAMERA, RADAR):
            fault = self._faults[name]
            self._troubles[name] = f'the driver says: {fault}' if fault else ''
        elif modality in (CAMERA, RADAR):
            values = {value.key: value.value for value in status.values}
            self._troubles[name] = _failing(values)
            is_idle = values.get('received') == '0'
            self._idle[modality] = self._idle[modality] + 1 if is_idle else 0

    def _report_fault(self, name: str) -> None:
        words = self._faults[name]
        is_starting = self._monotonic() - self._begun <= _START_TIME
        if words.startswith('no ') and is_starting and self._listener.decision is None:
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
        """Whether the report of inputs says it, or the encoder, which knows more of it."""
        tells_inputs = bool(self._inputs)
        for modality in (CAMERA, RADAR):
            encoder = f'{modality}_encoder'
            if tells_inputs and name == modality:
                return True
            if words.startswith(f'no {modality} input') and name == encoder:
                return tells_inputs
            if words.startswith(f'no {modality} input') and self._faults.get(encoder):
                return True
        return False


def _failing(values: Mapping[str, str]) -> str:
    """Say why an encoder has not encoded anything of what came; '' if it has."""
    problems = [key for key in values if key.startswith(PROBLEM_PREFIX)]
    if not problems or values.get('encoded') != '0':
        return ''
    words = problems[0].removeprefix(PROBLEM_PREFIX)
    return f'{values.get("received")} came and none could be used: {words}'
