"""Our message types without a ROS installation."""

from __future__ import annotations

from pathlib import Path

import pytest

from mmedge_lab.simulation import SimulationError
from mmedge_lab.simulation.flight_bag import definition_folder, flight_types


def test_types_agree_with_the_definitions_in_the_sources() -> None:
    types = flight_types().types
    truth = types['mmedge_ros/msg/GroundTruth']
    assert {'surroundings', 'pose', 'twist', 'objects'} <= set(truth.__dataclass_fields__)
    assert 'cpu_clock' in types['mmedge_ros/msg/SystemState'].__dataclass_fields__


def test_missing_definitions_are_said_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(SimulationError, match=r'GroundTruth\.msg.*run \./mmedge once'):
        definition_folder([tmp_path, tmp_path / 'nowhere'])
