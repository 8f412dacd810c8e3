"""In a live graph the networks say what they do, and a change of level loses no unit."""

from __future__ import annotations

from pathlib import Path

from live_graph import Bystander
from tiny_bundle import write_tiny_bundle

from mmedge_ros import msg
from mmedge_ros.core.data_types import Configuration, ModalityConfiguration, UnitOutcome
from mmedge_ros.encoding.bricks import BrickState, BrickStatus
from mmedge_ros.replay.recording import Recording
from mmedge_ros.ros.graph.options import GraphOptions
from mmedge_ros.ros.graph.perception_graph import bag_graph
from mmedge_ros.ros.graph.process_group import ProcessGroup
from mmedge_ros.ros.messages import conversions, names, qos

LEAD_NS = 100_000_000


class Onlooker:
    """Keeps what is said of bricks, and says which level is wanted."""

    def __init__(self, bystander: Bystander) -> None:
        self._bystander = bystander
        self._id = 0
        self.said: list[BrickStatus] = []
        node = bystander.node
        node.create_subscription(msg.BrickPlan, names.BRICK_PLAN, self._on_plan, qos.RESULT)
        self._wanted = node.create_publisher(msg.Configuration, names.CONFIGURATION, qos.LATCHED)

    def want(self, level: str) -> None:
        self._id += 1
        now_ns = self._bystander.node.get_clock().now().nanoseconds
        parts = (ModalityConfiguration('camera', 0.0, level),)
        made = Configuration(self._id, now_ns + LEAD_NS, parts)
        self._wanted.publish(conversions.to_configuration(made, now_ns))

    def states(self, brick: str) -> set[BrickState]:
        return {status.state for status in self.said if status.name == brick}

    def _on_plan(self, message: msg.BrickPlan) -> None:
        assert message.node == 'camera_encoder'
        self.said += conversions.from_brick_plan(message)


def shown(bystander: Bystander, figure: str) -> str:
    status = bystander.diagnostics.get('camera_encoder')
    values = {} if status is None else {value.key: value.value for value in status.values}
    return str(values.get(figure, ''))


def test_a_level_is_loaded_beside_the_one_that_serves_and_no_unit_is_lost(
    raw_bag: Path, bystander: Bystander, tmp_path: Path
) -> None:
    bundle = write_tiny_bundle(tmp_path / 'tiny')
    with Recording(raw_bag) as recording:
        nodes = bag_graph(
            recording, GraphOptions(detector=str(bundle), loop=True, wait_for=('bystander',))
        )
    nodes = [node for node in nodes if node.name not in ('monitor', 'visualizer')]
    onlooker = Onlooker(bystander)
    with ProcessGroup(nodes, tmp_path / 'logs') as group:
        bystander.group = group
        bystander.wait_for_units('camera', 10)
        onlooker.want('small')
        bystander.wait_until(lambda: BrickState.RUNNING in onlooker.states('camera.small'))
        last = bystander.wait_for_units('camera', 10)[-1]
        assert last.level == 'small'
        # The other one stays for a while, in case it is wanted back.
        bystander.wait_until(lambda: BrickState.RESIDENT in onlooker.states('camera.large'))
        bystander.wait_until(
            lambda: shown(bystander, 'brick camera.small on cpu').startswith('running, loaded in')
        )
    assert BrickState.FAILED not in onlooker.states('camera.small')
    running = [s for s in onlooker.said if s.name == 'camera.small' and s.run_time > 0.0]
    assert running[-1].load_time > 0.0
    encoded = [f.sequence for f in bystander.features if f.modality == 'camera']
    # A busy machine may drop one from a full queue; it is said, and none is lost.
    dropped = {r.sequence for r in bystander.receipts if r.outcome == UnitOutcome.DROPPED}
    assert set(range(encoded[0], encoded[-1])) <= {*encoded, *dropped}
    assert encoded == sorted(encoded)
