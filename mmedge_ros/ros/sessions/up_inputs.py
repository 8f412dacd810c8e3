"""Looks at the inputs of a graph that was started, and says which of them are missing."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus

from mmedge_ros.core.data_types import CAMERA, RADAR
from mmedge_ros.preflight.graph_view import ODOMETRY
from mmedge_ros.preflight.input_report import InputReport, InputsNow
from mmedge_ros.ros.diagnostics import PROBLEM_PREFIX, node_name
from mmedge_ros.ros.messages import names
from mmedge_ros.ros.sessions.graph_snapshot import Input, other_topics, view_topic
from mmedge_ros.ros.sessions.status_listener import StatusListener

_PERIOD = 0.5
# Ten times the stride of decisions.
_RECENT = 1.0
# Statuses of an encoder that is up and has received nothing; there is one a second.
_IN_VAIN = 3


class UpInputs:
    """Asks the middleware for publishers, and takes from decisions which sensors are there.

    :param listener: hears decisions; is spun by its owner
    :param inputs: what the graph waits for, by name
    :param own: names of those whose drivers belong to the graph; they are given time to start
    :param say: called with sentences
    """

    def __init__(
        self,
        listener: StatusListener,
        inputs: Mapping[str, Input],
        own: Collection[str],
        say: Callable[[str], None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._monotonic = monotonic
        self._listener = listener
        self._inputs = inputs
        self._own = own
        self._say = say
        self._looked = monotonic()
        self._report = InputReport(self._looked)
        self._troubles: dict[str, str] = {}
        self._idle: Counter[str] = Counter()
        listener.create_subscription(DiagnosticArray, names.DIAGNOSTICS, self._on_status, 10)

    def look(self) -> None:
        """Say what is to be said; called often, works twice a second."""
        now = self._monotonic()
        if now - self._looked < _PERIOD:
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
        inputs = InputsNow(
            {name: v for name, v in views.items() if v.publishers or name not in self._own},
            other_topics(self._listener, views),
            frozenset(present),
            frozenset(idle),
            self._failures(),
            degraded,
        )
        for sentence in self._report.update(inputs, now):
            self._say(sentence)

    def _on_status(self, message: DiagnosticArray) -> None:
        for status in message.status:
            node = node_name(status)
            name = node.removesuffix('_encoder')
            if node in (CAMERA, RADAR):
                is_error = status.level == DiagnosticStatus.ERROR
                self._troubles[node] = f'the driver says: {status.message}' if is_error else ''
            elif name in (CAMERA, RADAR):
                values = {value.key: value.value for value in status.values}
                self._troubles[node] = _failing(values)
                self._idle[name] = self._idle[name] + 1 if values.get('received') == '0' else 0

    def _failures(self) -> dict[str, str]:
        """Return why sensors cannot be used; a driver knows more than an encoder."""
        failures = {
            name: self._troubles.get(name) or self._troubles.get(f'{name}_encoder', '')
            for name in (CAMERA, RADAR)
        }
        return {name: words for name, words in failures.items() if words}


def _failing(values: Mapping[str, str]) -> str:
    """Say why an encoder has not encoded anything of what came; '' if it has."""
    problems = [key for key in values if key.startswith(PROBLEM_PREFIX)]
    if not problems or values.get('encoded') != '0':
        return ''
    words = problems[0].removeprefix(PROBLEM_PREFIX)
    return f'{values.get("received")} came and none could be used: {words}'
