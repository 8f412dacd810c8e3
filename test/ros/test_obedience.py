"""Player and encoder obey configurations and skip leases, and a change of level loses no unit."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from live_graph import FRESH_ID, SECOND, Bystander, Commander, looping
from tiny_bundle import write_tiny_bundle

from mmedge_ros import msg
from mmedge_ros.core.data_types import UnitOutcome
from mmedge_ros.encoding.bricks import BrickState, BrickStatus
from mmedge_ros.ros.graph.process_group import ProcessGroup
from mmedge_ros.ros.messages import conversions, names, qos


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


@pytest.fixture
def graph(raw_bag: Path, bystander: Bystander, tmp_path: Path) -> Iterator[ProcessGroup]:
    bundle = write_tiny_bundle(tmp_path / 'tiny')
    with ProcessGroup(looping(raw_bag, bundle), tmp_path / 'logs') as bystander.group:
        yield bystander.group


def test_it_thins_pauses_and_resumes_like_a_driver(
    graph: ProcessGroup, bystander: Bystander
) -> None:
    commander, bricks = Commander(bystander), list[BrickStatus]()
    bystander.node.create_subscription(
        msg.BrickPlan,
        names.BRICK_PLAN,
        lambda message: bricks.extend(conversions.from_brick_plan(message)),
        qos.RESULT,
    )
    bystander.wait_until(lambda: commander.is_heard == 3)
    bystander.wait_for_units('camera', 10)

    _wait_for_a_new_round(bystander)
    begin_ns = time.time_ns()
    end_ns = commander.skip('radar', 0.4)
    _check_the_pause(bystander, begin_ns, end_ns)

    # On a whole half second, not so soon that the message could be late, nor the whole second
    # ahead beyond which configurations are refused.
    half = SECOND // 2
    effective_ns = ((time.time_ns() + 3 * SECOND // 10) // half + 1) * half
    commander.configure('camera', 10.0, effective_ns)
    _check_the_rates(bystander, effective_ns)

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
    _check_the_levels(bystander, bricks)


def _wait_for_a_new_round(bystander: Bystander) -> None:
    """Wait until the recording has started over: then there is no gap for two seconds."""

    def rounds() -> int:
        return len({state.offset for state in bystander.states})

    before = rounds()
    bystander.wait_until(lambda: rounds() > before)


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


def _check_the_levels(bystander: Bystander, bricks: list[BrickStatus]) -> None:
    """Check that the new level was loaded beside the one that served, which stays for a while."""

    def states(name: str) -> set[BrickState]:
        return {status.state for status in bricks if status.name == name}

    bystander.wait_until(lambda: BrickState.RUNNING in states('camera.small'))
    bystander.wait_until(lambda: BrickState.RESIDENT in states('camera.large'))
    figure = 'brick camera.small on cpu'
    bystander.wait_until(
        lambda: bystander.figure('camera_encoder', figure).startswith('running, loaded in')
    )
    assert BrickState.FAILED not in states('camera.small')
    assert bystander.wait_for_units('camera', 1)[-1].level == 'small'
    running = [s for s in bricks if s.name == 'camera.small' and s.run_time > 0.0]
    assert running[-1].load_time > 0.0
    encoded = [f.sequence for f in bystander.features if f.modality == 'camera']
    # A busy machine may drop one from a full queue; it is said, and none is lost.
    dropped = {r.sequence for r in bystander.receipts if r.outcome == UnitOutcome.DROPPED}
    assert set(range(encoded[0], encoded[-1])) <= {*encoded, *dropped}
    assert encoded == sorted(encoded)
