"""Looking at a running graph from beside it: waits by polling, never by sleeping."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from ipaddress import ip_address
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import bag_fixtures as flight
import psutil
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from sensor_msgs.msg import PointCloud2, PointField

from mmedge_ros import msg
from mmedge_ros.core.data_types import Configuration, Decision, ModalityConfiguration, Trail
from mmedge_ros.replay.recording import Recording
from mmedge_ros.ros.graph.description import NodeDescription
from mmedge_ros.ros.graph.middleware_files import remove_unused, segments_of
from mmedge_ros.ros.graph.middleware_profile import profile_environment
from mmedge_ros.ros.graph.options import GraphOptions
from mmedge_ros.ros.graph.perception_graph import bag_graph
from mmedge_ros.ros.graph.process_group import ProcessGroup
from mmedge_ros.ros.lean_executor import LeanExecutor
from mmedge_ros.ros.messages import conversions, names, qos
from mmedge_ros.ros.messages.conversions import from_time, from_track_array

SECOND = 1_000_000_000
# The id of the configuration that a `Commander` publishes.
FRESH_ID = 7
# Generous: a machine may be busy with something else.
PATIENCE = 120.0
_LOOK = 0.02


# Seconds of the little recordings; long enough for tracks to be confirmed.
DURATION = 2.4


def wait_until(
    executor: SingleThreadedExecutor | None,
    condition: Callable[[], Any],
    timeout: float = PATIENCE,
    meanwhile: Callable[[], Any] | None = None,
) -> Any:
    """Spin the executor until the condition holds, and return what it returned.

    :param meanwhile: called again and again, such as to publish or to look after processes
    """
    deadline = time.monotonic() + timeout
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f'not within {timeout:.0f} s: {condition}')
        if meanwhile is not None:
            meanwhile()
        if executor is not None:
            executor.spin_once(timeout_sec=_LOOK)
        else:
            threading.Event().wait(_LOOK)


class Told(NamedTuple):
    """What a node said of itself, and when it said so (ns)."""

    stamp_ns: int
    node: str
    status: Any


class Bystander:
    """A node of its own context that keeps what the graph says.

    ``decisions``, ``updates``, ``features``, ``receipts`` and ``states`` hold messages in order of
    arrival, ``told`` every status; ``diagnostics`` has the newest one of each node.
    """

    def __init__(self, name: str = 'bystander') -> None:
        self._name = name
        self.decisions: list[msg.TrackArray] = []
        self.updates: list[msg.TrackArray] = []
        self.features: list[msg.UnitFeatures] = []
        self.receipts: list[msg.UnitReceipt] = []
        self.states: list[msg.PlaybackState] = []
        self.diagnostics: dict[str, Any] = {}
        self.told: list[Told] = []
        self.group: ProcessGroup | None = None
        self._context = rclpy.Context()

    def __enter__(self) -> Bystander:
        rclpy.init(context=self._context)
        self.node = Node(self._name, context=self._context)
        # It takes all that came before a condition is looked at again: on a busy machine whoever
        # looks after each message falls ever further behind.
        self.executor = LeanExecutor(context=self._context)
        self.executor.add_node(self.node)
        for kind, topic, profile, keep in (
            (msg.TrackArray, names.TRACKS, qos.RECORD, self._on_tracks),
            (msg.UnitFeatures, names.UNIT_FEATURES, qos.RECORD, self.features.append),
            (msg.UnitReceipt, names.UNIT_RECEIPTS, qos.RECORD, self.receipts.append),
            (msg.PlaybackState, names.PLAYBACK, qos.LATCHED, self.states.append),
        ):
            self.node.create_subscription(kind, topic, keep, profile)
        self.node.create_subscription(DiagnosticArray, '/diagnostics', self._on_status, qos.RECORD)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        segments = segments_of(os.getpid())
        self.executor.shutdown()
        self.node.destroy_node()
        rclpy.try_shutdown(context=self._context)
        # Processes that were killed still count as users of what they wrote to.
        remove_unused(segments)

    def wait_until(self, condition: Callable[[], Any], timeout: float = PATIENCE) -> Any:
        """Wait; a graph that was entered as ``group`` is looked after meanwhile."""
        watch = self.group.watch if self.group is not None else None
        return wait_until(self.executor, condition, timeout, watch)

    def wait_for_decisions(self, count: int) -> list[msg.TrackArray]:
        """Wait for so many more decisions, and return these."""
        before = len(self.decisions)
        self.wait_until(lambda: len(self.decisions) >= before + count)
        return self.decisions[before:]

    def wait_for_units(self, modality: str, count: int) -> list[msg.UnitFeatures]:
        """Wait for so many more encoded units of a modality, and return these."""
        before = len(self.features)

        def newer() -> list[msg.UnitFeatures]:
            return [f for f in self.features[before:] if f.modality == modality]

        self.wait_until(lambda: len(newer()) >= count)
        return newer()

    def _on_tracks(self, message: msg.TrackArray) -> None:
        (self.updates if message.kind == message.UPDATE else self.decisions).append(message)

    def _on_status(self, message: DiagnosticArray) -> None:
        stamp_ns = from_time(message.header.stamp)
        for status in message.status:
            node = status.name.removeprefix('mmedge_ros: ')
            self.diagnostics[node] = status
            self.told.append(Told(stamp_ns, node, status))

    def seconds_until_told(
        self, node: str, condition: Callable[[Any], bool], since_ns: int
    ) -> float | None:
        """Return how long after an instant a node first said so, None if it has not yet.

        By the stamps of its statuses: when this process gets to see them is no matter.
        """
        for told in self.told:
            if told.node == node and told.stamp_ns >= since_ns and condition(told.status):
                return (told.stamp_ns - since_ns) / 1e9
        return None

    def figure(self, node: str, key: str) -> str:
        """Return a figure of a node's newest diagnostics, '' where it has none yet."""
        status = self.diagnostics.get(node)
        values = {v.key: v.value for v in status.values} if status is not None else {}
        return str(values.get(key, ''))


class Stage:
    """A node in this process, and a bystander who talks to it and listens."""

    def __init__(self, bystander: Bystander, node: Node) -> None:
        self.bystander = bystander
        self.node = node
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(node)
        self._is_ended = False

    def wait_until(
        self, condition: Callable[[], Any], meanwhile: Callable[[], Any] = lambda: None
    ) -> Any:
        """Let both listen until the condition holds, and return what it returned."""

        def both() -> None:
            self._executor.spin_once(timeout_sec=0.0)
            meanwhile()

        return wait_until(self.bystander.executor, condition, meanwhile=both)

    def end(self) -> None:
        """Stop the node, unless that has been done."""
        if not self._is_ended:
            self._is_ended = True
            getattr(self.node, 'stop', lambda: None)()
            self._executor.shutdown()
            self.node.destroy_node()


def looping(
    bag: Path, detector: Path, *, visualizer: bool = False, **options: Any
) -> list[NodeDescription]:
    """A graph that plays a recording over and over, once the bystander listens."""
    given = GraphOptions(
        detector=str(detector),
        loop=True,
        wait_for=('bystander',),
        visualizer=visualizer,
        **options,
    )
    with Recording(bag) as recording:
        return bag_graph(recording, given)


class Commander:
    """Publishes what optimiser and gate will publish one day."""

    def __init__(self, bystander: Bystander) -> None:
        node = bystander.node
        self._leases = node.create_publisher(msg.SkipDecision, names.SKIP_DECISION, qos.RESULT)
        self._configurations = node.create_publisher(
            msg.Configuration, names.CONFIGURATION, qos.LATCHED
        )

    @property
    def is_heard(self) -> int:
        """By how many nodes."""
        return min(
            self._leases.get_subscription_count(), self._configurations.get_subscription_count()
        )

    def configure(self, modality: str, rate: float, effective_ns: int) -> None:
        configuration = Configuration(
            FRESH_ID, effective_ns, (ModalityConfiguration(modality, rate, 'small'),)
        )
        self._configurations.publish(conversions.to_configuration(configuration, time.time_ns()))

    def skip(self, modality: str, seconds: float) -> int:
        """Lease from now on; returns its end."""
        now_ns = time.time_ns()
        end_ns = now_ns + round(seconds * SECOND)
        self._leases.publish(
            msg.SkipDecision(
                header=conversions.header(now_ns),
                modality=modality,
                skip_until=conversions.to_time(end_ns),
            )
        )
        return end_ns


def scan(stamp_ns: int) -> PointCloud2:
    """Four returns, as a driver would publish them."""
    recorded = flight.point_cloud(0, stamp_ns)
    return PointCloud2(
        header=conversions.header(stamp_ns, 'radar_link'),
        height=1,
        width=recorded.width,
        fields=[
            PointField(name=f.name, offset=f.offset, datatype=f.datatype, count=1)
            for f in recorded.fields
        ],
        point_step=recorded.point_step,
        row_step=recorded.row_step,
        data=recorded.data.tobytes(),
        is_dense=True,
    )


def is_gapless(trail: Trail) -> bool:
    """Whether every stage begins where the one before it ended, and none runs backwards."""
    joined = all(a.end_ns == b.begin_ns for a, b in pairwise(trail))
    return joined and all(t.end_ns >= t.begin_ns for t in trail)


def trail_error_ms(decision: Decision) -> float:
    """How far the stages' sum is from the age of the critical unit, in milliseconds."""
    total_ns = sum(t.end_ns - t.begin_ns for t in decision.trail)
    return abs(total_ns - (decision.published_ns - decision.trail[0].begin_ns)) / 1e6


def check_decision(message: msg.TrackArray, stride_ns: int = 100_000_000) -> None:
    """Check what must hold for every decision of a graph."""
    decision = from_track_array(message)
    assert decision.window_end_ns % stride_ns == 0
    assert decision.state_ns <= decision.window_end_ns
    if decision.trail:
        assert is_gapless(decision.trail)
        assert trail_error_ms(decision) < 1.0
        assert abs(message.age - sum(s.end_ns - s.begin_ns for s in decision.trail) / 1e9) < 1e-3


def stamps_of(features: Sequence[msg.UnitFeatures], modality: str) -> list[int]:
    """Stamps of a modality's units in order, in nanoseconds."""
    return sorted(from_time(f.header.stamp) for f in features if f.modality == modality)


def is_alive(pid: int) -> bool:
    """Whether a process is there and not a zombie."""
    try:
        state = Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[0]
    except OSError:
        return False
    return state != 'Z'


def children_of(pid: int) -> list[int]:
    """Process ids of the children of a process."""
    found: list[int] = []
    for task in Path(f'/proc/{pid}/task').glob('*/children'):
        found += [int(text) for text in task.read_text().split()]
    return found


def python_environment() -> dict[str, str]:
    """The environment for a command line of the package, from these sources."""
    root = Path(__file__).resolve().parents[2]
    return {**os.environ, 'PYTHONPATH': str(root), 'NO_COLOR': '1', 'COLUMNS': '200'}


def new_environment() -> dict[str, str]:
    """The environment of a user who has set nothing, in the domain of the tests."""
    given = python_environment()
    for name in profile_environment({}):
        given.pop(name, None)
    return given


def open_addresses(pid: int) -> list[str]:
    """Local addresses of a process's internet sockets that other machines can reach."""
    sockets = psutil.Process(pid).net_connections('inet')
    bound = [socket.laddr.ip for socket in sockets if socket.laddr]
    assert bound, 'a node without sockets would find nobody'
    return [address for address in bound if not ip_address(address).is_loopback]


def abandoned(segments: Iterable[Path]) -> list[Path]:
    """Shared-memory files that are there though no process but this one, who listened, uses them.

    Ports have numbers that another graph on the machine may take over at once.
    """
    used = {path for pid in psutil.pids() if pid != os.getpid() for path in segments_of(pid)}
    return [path for path in segments if path.exists() and path not in used]
