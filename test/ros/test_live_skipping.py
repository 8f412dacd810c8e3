"""A gate that is sure lets the camera rest, and nobody has to be alive to wake it up again."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from gated_bundle import write_gated_bundle
from live_graph import Bystander, check_decision, looping, stamps_of

from mmedge_ros import msg
from mmedge_ros.core.data_types import NS_PER_S, SkipDecision
from mmedge_ros.ros.graph.process_group import ProcessGroup
from mmedge_ros.ros.messages import names, qos
from mmedge_ros.ros.messages.conversions import from_skip_decision, from_track_array

LONGEST_NS = NS_PER_S // 2


@pytest.fixture
def leases(bystander: Bystander) -> list[SkipDecision]:
    """What is published of leases, in order of arrival."""
    heard: list[SkipDecision] = []
    bystander.node.create_subscription(
        msg.SkipDecision,
        names.SKIP_DECISION,
        lambda message: heard.append(from_skip_decision(message)),
        qos.RECORD,
    )
    return heard


@pytest.fixture
def graph(little_bag: Path, bystander: Bystander, tmp_path: Path) -> Iterator[ProcessGroup]:
    model = write_gated_bundle(tmp_path / 'gated')
    with ProcessGroup(looping(little_bag, model), tmp_path, respawn=False) as bystander.group:
        yield bystander.group


def skipped_by_player(bystander: Bystander, modality: str) -> int:
    state = bystander.states[-1]
    return int(dict(zip(state.modalities, state.skipped, strict=True)).get(modality, 0))


def test_the_camera_rests_while_the_gate_is_sure_and_works_again_when_fusion_dies(
    graph: ProcessGroup, bystander: Bystander, leases: list[SkipDecision]
) -> None:
    bystander.wait_until(lambda: len(leases) >= 3)
    assert {lease.modality for lease in leases} == {'camera'}
    for lease in leases:
        assert lease.issued_ns <= lease.skip_until_ns <= lease.issued_ns + LONGEST_NS
        assert lease.skip_until_ns <= lease.window_end_ns
        assert lease.confidence == pytest.approx(0.993, abs=0.001)
    bystander.wait_until(lambda: skipped_by_player(bystander, 'camera') >= 5)
    assert skipped_by_player(bystander, 'radar') == 0
    for message in bystander.decisions:
        check_decision(message)
    found = [from_track_array(message) for message in bystander.decisions]
    early = [decision for decision in found if decision.latency < 0.0]
    assert any('camera' in decision.skipped for decision in early)
    ends = [decision.window_end_ns for decision in found]
    assert ends == sorted(set(ends))
    bystander.wait_until(lambda: int(bystander.figure('fusion', 'early') or 0) > 0)
    assert bystander.figure('fusion', 'gate_off') == 'False'
    assert bystander.figure('fusion', 'slow_modality') == 'camera'

    os.kill(graph.pids['fusion'], signal.SIGKILL)
    bystander.wait_until(lambda: graph.watch() == ['fusion'])
    last_ns = max(lease.skip_until_ns for lease in leases)
    wanted_ns = last_ns + 2 * NS_PER_S
    bystander.wait_until(lambda: stamps_of(bystander.features, 'camera')[-1] > wanted_ns)
    after = [s for s in stamps_of(bystander.features, 'camera') if last_ns <= s < wanted_ns]
    # 20 Hz; where the recording starts over there is a gap of up to 0.3 s.
    assert len(after) >= 30
    assert after[0] - last_ns < NS_PER_S // 2
