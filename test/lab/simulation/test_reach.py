"""Hard flights say whom their sensors could see."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hand_made_flight import scene, sensors

from mmedge_lab.simulation.flight import record_flight
from mmedge_lab.simulation.hardships import Outage, draw_hardships
from mmedge_ros.replay.bag import Bag
from mmedge_ros.replay.recorded_truth import read_truth


def test_a_hard_flight_says_whom_its_sensors_could_see(tmp_path: Path) -> None:
    hard = draw_hardships('fog', 1, 1.0)
    # The person walks at 10 m and stays before the fog; the radar is silent half of the time.
    flown = replace(
        scene(1.0), hard=replace(hard, fog=14.0, radar_silent=(Outage(0.0, 0.5),)), terrain=None
    )
    record_flight(tmp_path / 'hard', flown, sensors(flown))
    with Bag(tmp_path / 'hard') as bag:
        truth = read_truth(bag)
    assert truth is not None
    assert truth.problems == ()
    assert {scene.condition for scene in truth.scenes} == {'fog'}
    first, last = (truth.scenes[place].objects for place in (0, -1))
    assert [(one.id, one.clear, one.radar) for one in first] == [(4, True, 0.0), (9, False, 0.0)]
    assert last[0].radar > 0.0
