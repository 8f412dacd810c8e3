"""Decisions are described on a real graph, and the claim on their time ends with the model."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from fake_model_server import DONE, STREAM, Scripts, event, listening
from hand_made_sights import sighted, standing
from live_graph import Bystander
from short_folders import short_folder
from std_msgs.msg import String

from mmedge_ros import msg
from mmedge_ros.core.data_types import NS_PER_S, Decision
from mmedge_ros.ros.graph.description import NodeDescription
from mmedge_ros.ros.graph.process_group import ProcessGroup
from mmedge_ros.ros.messages import conversions, names, qos
from mmedge_ros.ros.messages.conversions import from_time

TOTAL = 20.0


def decision_now() -> msg.TrackArray:
    now_ns = time.time_ns()
    track = sighted(7, 3, 0, standing())
    made = Decision(now_ns, now_ns, 'odom', (track,), {}, published_ns=now_ns)
    return conversions.to_track_array(made)


def test_decisions_are_described_and_the_claim_ends_within_its_lease_when_the_model_dies(
    bystander: Bystander, tmp_path: Path
) -> None:
    node, sentences, demands = bystander.node, list[str](), list[msg.LatencyDemand]()
    node.create_subscription(
        String, names.DESCRIPTION, lambda m: sentences.append(m.data), qos.RECORD
    )
    node.create_subscription(msg.LatencyDemand, names.LATENCY_DEMAND, demands.append, qos.RECORD)
    tracks = node.create_publisher(msg.TrackArray, names.TRACKS, qos.RESULT)
    broken = decision_now()
    broken.tracks[0].pose.pose.position.x = float(np.nan)
    node.create_timer(0.05, lambda: tracks.publish(decision_now()))
    node.create_timer(0.3, lambda: tracks.publish(broken))
    with short_folder() as folder:
        parameters = {
            'model': f'unix:{folder}/fake.sock',
            'describe.kinds': ['scene'],
            'describe.total_limit': TOTAL,
        }
        questions = [NodeDescription('questions', 'questions', parameters)]
        with ProcessGroup(questions, tmp_path / 'logs') as group:
            bystander.group = group
            says = Scripts([STREAM, event('One person walks by.'), DONE])
            with listening(folder, says):
                bystander.wait_until(lambda: len(demands) >= 2)
            died_ns = time.time_ns()
            bystander.wait_until(
                lambda: 'cannot be asked' in bystander.diagnostics['questions'].message
            )
            claimed = len(demands)
            before = len(bystander.told)
            bystander.wait_until(lambda: len(bystander.told) >= before + 3)
    assert set(sentences) == {'One person walks by.'}
    assert demands[0].source == 'describing: scene'
    assert demands[0].total_limit == TOTAL
    assert 0.0 < demands[0].decode_time < TOTAL
    # The fake ends after the sentence that it is at, and what was sent before that is on its way.
    assert len(demands) == claimed
    assert from_time(demands[-1].valid_until) < died_ns + 4 * NS_PER_S
