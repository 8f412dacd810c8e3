"""The recorded night walk with a wrong calibration."""

from __future__ import annotations

from pathlib import Path

import pytest
from replays import replay, reported

from mmedge_ros.report.pseudo_labels import read_boxes

FRAMES = (20, 319)

pytestmark = pytest.mark.usefixtures('without_figures')


@pytest.fixture(scope='module')
def night(data_folder: Path) -> Path:
    return data_folder / 'millieye' / 'night_walk'


def radar_matched(night: Path, out: Path, detector: Path, profile: Path, **options: Path) -> float:
    """Share of the people, as another detector boxed them, in whom the radar sees movement."""
    (boxes,) = (night.parent).glob('*_auto_person_boxes_*.csv')
    assert read_boxes(boxes)
    outcome = replay(
        night, out, detector=detector, profile=profile, boxes=boxes, frames=FRAMES, **options
    )
    (compared,) = reported(outcome).report['pseudo_labels']
    return float(compared['radar_matched'])


def test_with_the_calibration_of_another_camera_the_radar_misses_the_people(
    night: Path, tmp_path: Path, detector: Path, profile: Path
) -> None:
    right = radar_matched(night, tmp_path / 'right', detector, profile)
    other = night.parent / 'calib2_FOV110.yaml'
    wrong = radar_matched(night, tmp_path / 'wrong', detector, profile, calibration=other)
    assert right >= 0.92
    assert wrong <= 0.70
