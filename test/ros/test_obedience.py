"""Player and encoders obey configurations and skip leases that somebody publishes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from commander import FRESH_ID, SECOND, Commander, scan
from live_graph import Bystander, stamps_of
from sensor_msgs.msg import PointCloud2

from mmedge_ros.core.data_types import UnitOutcome
from mmedge_ros.replay.recording import Recording
from mmedge_ros.ros.graph.description import NodeDescription
from mmedge_ros.ros.graph.options import GraphOptions
from mmedge_ros.ros.graph.perception_graph import bag_graph
from mmedge_ros.ros.graph.process_group import ProcessGroup
from mmedge_ros.ros.messages import conversions, names, qos


@pytest.fixture
def commander(bystander: Bystander) -> Commander:
    return Commander(bystander)


def received(bystander: Bystander, modality: str) -> list[int]:
    """Stamps of the units that an encoder was sent, whether or not it had the time for them."""
    outcomes = (UnitOutcome.RECEIVED, UnitOutcome.DROPPED)
    return sorted(
        {
            conversions.from_time(receipt.header.stamp)
            for receipt in bystander.receipts
            if receipt.modality == modality and receipt.outcome in outcomes
        }
    )


class TestPlayer:
    """All of it on one graph, because starting one takes its time."""

    @pytest.fixture
    def graph(
        self, raw_bag: Path, detector: Path, bystander: Bystander, tmp_path: Path
    ) -> Iterator[ProcessGroup]:
        with Recording(raw_bag) as recording:
            nodes = bag_graph(
                recording, GraphOptions(detector=str(detector), loop=True, wait_for=('bystander',))
            )
        with ProcessGroup(nodes, tmp_path) as group:
            bystander.group = group
            yield group

    def test_it_thins_pauses_and_resumes_like_a_driver(
        self, graph: ProcessGroup, bystander: Bystander, commander: Commander
    ) -> None:
        bystander.wait_until(lambda: commander.is_heard == 3)
        bystander.wait_for_units('camera', 10)

        self._wait_for_a_new_round(bystander)
        begin_ns = time.time_ns()
        end_ns = commander.skip('radar', 0.4)
        self._check_the_pause(bystander, begin_ns, end_ns)

        # On a whole half second, not so soon that the message could be late, nor the whole second
        # ahead beyond which configurations are refused.
        half = SECOND // 2
        effective_ns = ((time.time_ns() + 3 * SECOND // 10) // half + 1) * half
        commander.configure('camera', 10.0, effective_ns)
        self._check_the_rates(bystander, effective_ns)

        state = bystander.states[-1]
        counts = dict(
            zip(
                state.modalities,
                zip(state.captured, state.transferred, state.skipped, strict=True),
                strict=True,
            )
        )
        captured, transferred, skipped = counts['camera']
        assert (captured - transferred > 10, skipped) == (True, 0)
        captured, transferred, skipped = counts['radar']
        assert 5 <= skipped <= 11
        assert captured - transferred == skipped

    @staticmethod
    def _wait_for_a_new_round(bystander: Bystander) -> None:
        """Wait until the recording has started over: then there is no gap for two seconds."""

        def rounds() -> int:
            return len({state.offset for state in bystander.states})

        before = rounds()
        bystander.wait_until(lambda: rounds() > before)

    @staticmethod
    def _check_the_pause(bystander: Bystander, begin_ns: int, end_ns: int) -> None:
        last_ns = end_ns + SECOND // 5
        for modality in ('radar', 'camera'):
            bystander.wait_until(
                lambda modality=modality: max(received(bystander, modality)) > last_ns
            )
        radar, camera = (
            np.array([s for s in received(bystander, m) if begin_ns <= s <= last_ns])
            for m in ('radar', 'camera')
        )
        # It may take the player a moment to hear of it.
        assert radar[radar < end_ns].max(initial=0) < begin_ns + SECOND // 5
        assert radar[radar >= end_ns].min() - end_ns < 0.05 * SECOND
        # The pause is longer; a busy machine may lose a picture or two.
        assert np.diff(camera).max() < 0.3 * SECOND

    @staticmethod
    def _check_the_rates(bystander: Bystander, effective_ns: int) -> None:
        bystander.wait_until(lambda: received(bystander, 'radar')[-1] > effective_ns + 2 * SECOND)
        for features in bystander.features:
            is_new = conversions.from_time(features.header.stamp) >= effective_ns
            assert features.configuration_id == (FRESH_ID if is_new else 0)
            assert features.rate == (10.0 if is_new and features.modality == 'camera' else 0.0)
        for modality, before, after in (('camera', 20, 10), ('radar', 25, 25)):
            stamps = np.array(received(bystander, modality))
            last = np.sum((stamps >= effective_ns - SECOND // 2) & (stamps < effective_ns))
            first = np.sum((stamps >= effective_ns) & (stamps < effective_ns + 2 * SECOND))
            # Where the recording starts over there is a gap of up to 0.3 s.
            assert before * 0.2 <= last <= before * 0.5 + 1, modality
            assert after * 1.4 <= first <= after * 2 + 1, modality
        ids = [i for d in bystander.decisions for i in d.configuration_ids]
        assert set(ids) == {0, FRESH_ID}


class TestEncoder:
    """A source that cannot pause: the encoder leaves out what it is not to encode."""

    @pytest.fixture(autouse=True)
    def graph(self, bystander: Bystander, tmp_path: Path) -> Iterator[ProcessGroup]:
        encoder = NodeDescription('radar_encoder', 'unit_encoder', {'modality': 'radar'})
        with ProcessGroup([encoder], tmp_path) as group:
            bystander.group = group
            yield group

    @pytest.fixture(autouse=True)
    def sent(self, bystander: Bystander) -> list[int]:
        """Stamps of 25 scans a second that are sent whatever anybody says."""
        scans = bystander.node.create_publisher(PointCloud2, names.RADAR_POINTS, qos.SENSOR)
        stamps: list[int] = []

        def send() -> None:
            stamps.append(time.time_ns())
            scans.publish(scan(stamps[-1]))

        bystander.node.create_timer(0.04, send)
        return stamps

    def test_it_skips_under_a_lease_and_resumes_by_itself(
        self, bystander: Bystander, commander: Commander, sent: list[int]
    ) -> None:
        bystander.wait_until(lambda: commander.is_heard)
        bystander.wait_for_units('radar', 5)
        begin_ns = time.time_ns()
        end_ns = commander.skip('radar', 0.4)

        def skipped() -> list[int]:
            receipts = (r for r in bystander.receipts if r.outcome == UnitOutcome.SKIPPED)
            return [conversions.from_time(r.header.stamp) for r in receipts]

        bystander.wait_until(skipped)
        bystander.wait_until(lambda: stamps_of(bystander.features, 'radar')[-1] > end_ns)
        encoded = stamps_of(bystander.features, 'radar')
        # It may take the encoder a moment to hear of it.
        during = {s for s in sent if begin_ns + SECOND // 5 <= s < end_ns}
        assert during.isdisjoint(encoded)
        assert set(skipped()) <= {s for s in sent if begin_ns <= s < end_ns}
        assert set(skipped()).isdisjoint(encoded)
