"""Where people are in a radar's view, told from what is true in the picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from painted_crossing import LENS, walker, write_crossing

from mmedge_lab.training.feature_cache import true_frame
from mmedge_lab.training.radar_training import cell_pixels, people_in_view, radar_samples
from mmedge_ros.encoding.feature_grid import view_positions
from mmedge_ros.geometry.sensor_poses import OPTICAL_TO_BODY, SensorGeometry
from mmedge_ros.geometry.transforms import Transform
from mmedge_ros.replay.ground_truth import TrueFrame

STILL = np.zeros(3)
GEOMETRY = SensorGeometry(
    'base_link', LENS, Transform(OPTICAL_TO_BODY, STILL), Transform.identity()
)
CELLS = cell_pixels(GEOMETRY)
PERSON = 0


def truth_of(*objects: tuple[int, tuple[float, float, float, float], float, bool]) -> TrueFrame:
    rows = [(kind, *box, away, float(clear)) for kind, box, away, clear in objects]
    return true_frame(np.array(rows, np.float32))


def test_people_are_marked_where_the_radar_sees_them(tmp_path: Path) -> None:
    flight = write_crossing(tmp_path / 'one', seconds=0.5)
    samples = list(radar_samples([flight], 2))
    assert len(samples) == 5
    for number, sample in enumerate(samples):
        place, _ = walker(2 * number / 20 + 0.005, 0)
        row, column = np.floor(view_positions(place[None])[0]).astype(int)
        assert sample.people[row, column] == 1
        assert np.exp(sample.log_range[row, column]) == pytest.approx(6.0, rel=0.05)
        assert (sample.people == 1).sum() < 60
        assert len(sample.returns) > 8


def test_the_nearer_of_two_counts() -> None:
    box = (140.0, 90.0, 180.0, 150.0)
    _, log_range = people_in_view(
        truth_of((PERSON, box, 20.0, True), (PERSON, box, 9.0, True), (PERSON, box, 15.0, True)),
        CELLS,
    )
    known = np.exp(log_range[np.isfinite(log_range)])
    assert known == pytest.approx(9.0)


def test_who_need_not_be_found_is_not_taught_to_be_nothing() -> None:
    hidden, seen = (40.0, 90.0, 80.0, 150.0), (200.0, 90.0, 240.0, 150.0)
    people, _ = people_in_view(
        truth_of((PERSON, hidden, 10.0, False), (PERSON, seen, 10.0, True)), CELLS
    )
    assert set(np.unique(people).tolist()) == {-1, 0, 1}
