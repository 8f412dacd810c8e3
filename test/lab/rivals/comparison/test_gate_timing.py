"""What a gate costs: the parts are of the whole, and features differ each time."""

from __future__ import annotations

import pytest
from hand_made_gates import gate

from mmedge_lab.rivals.comparison.gate_timing import gate_times
from mmedge_ros.skipping.gate import Gate
from mmedge_ros.skipping.gate_features import GateFeatures


def test_the_parts_are_parts_of_the_whole() -> None:
    times = gate_times(gate())
    assert set(times) == {'whole', 'asking', 'taking in', 'question', 'network'}
    middle = {name: found['p50'] for name, found in times.items()}
    assert min(middle.values()) > 0.0
    assert max(middle['asking'], middle['taking in']) < middle['whole']
    assert max(middle['question'], middle['network']) < middle['asking']


def test_what_is_asked_is_of_five_people_and_new_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    evaluated: list[GateFeatures] = []

    def confidence(_: Gate, features: GateFeatures) -> float:
        evaluated.append(features)
        return 0.0

    monkeypatch.setattr(Gate, 'confidence', confidence)
    gate_times(gate())
    settled = evaluated[-len(evaluated) // 3 + 30 :]  # the third time round
    assert {features.people for features in settled} == {5.0}
    assert len(set(settled)) == len(settled)
