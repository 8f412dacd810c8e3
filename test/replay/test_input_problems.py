"""What is said of frames, picture sizes and silences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mmedge_ros.core.data_types import CAMERA, NS_PER_S, RADAR, UnitFeatures
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.replay.input_problems import input_problems

SIZE = (640, 480)


def problems(
    units: list[UnitFeatures], *modalities: str, span: tuple[float, float] = (0.0, 10.0)
) -> list[str]:
    record = RunRecord('bag', 'offline', 0.05, 0.5, 0.1, features=units)
    record.camera = CameraModel(*SIZE, np.diag([500.0, 500.0, 1.0]), np.zeros(0), 'none')
    first_ns, last_ns = (round(t * NS_PER_S) for t in span)
    return input_problems(record, modalities, first_ns, last_ns)


def units(
    modality: str,
    begin: float = 0.0,
    end: float = 10.0,
    rate: float = 10.0,
    frame: str = 'sensor',
    size: tuple[int, int] = SIZE,
) -> list[UnitFeatures]:
    """Units from ``begin`` up to ``end``, s."""
    instants = np.arange(begin, end + 1e-9, 1.0 / rate)
    return [
        UnitFeatures(
            modality,
            number,
            round(t * NS_PER_S),
            round(t * NS_PER_S),
            frame,
            (),
            image_size=size if modality == CAMERA else (0, 0),
        )
        for number, t in enumerate(instants)
    ]


def test_a_sensor_slower_than_a_window_is_not_called_silent() -> None:
    assert problems(units(RADAR, rate=1.0), RADAR) == []


def test_the_longest_of_several_silences_is_told_with_its_beginning() -> None:
    flow = units(RADAR, 0.0, 2.0) + units(RADAR, 3.0, 4.0) + units(RADAR, 6.5, 10.0)
    assert problems(flow, RADAR) == [
        'radar: nothing usable for 2.5 s from 4.0 s on; the longest of 2 such gaps'
    ]


def test_a_sensor_that_starts_late_or_ends_early_is_told_of() -> None:
    assert problems(units(RADAR, 3.0), RADAR) == ['radar: nothing usable for 3.0 s from 0.0 s on']
    assert problems(units(RADAR, 0.0, 6.0), RADAR) == ['radar: nothing usable in the last 4.0 s']


def test_a_sensor_of_which_nothing_could_be_used_is_told_of() -> None:
    assert problems(units(CAMERA), CAMERA, RADAR) == [
        'radar: not one of its messages could be used'
    ]


def test_pictures_of_another_size_than_the_calibration_are_counted() -> None:
    mixed = units(CAMERA, 0.0, 5.0) + units(CAMERA, 5.1, 10.0, size=(320, 240))
    (said,) = problems(mixed, CAMERA)
    assert 'camera: 50 of 101 pictures are 320 x 240 px' in said
    assert '640 x 480' in said
    assert '--calibration' in said


def test_frames_that_change_or_have_no_name_are_told_of() -> None:
    (nameless,) = problems(units(RADAR, frame=''), RADAR)
    assert 'name no frame' in nameless
    two = units(RADAR, 0.0, 5.0, frame='left') + units(RADAR, 5.1, frame='right')
    (changed,) = problems(two, RADAR)
    assert "name 2 frames ('left', 'right')" in changed


def scans(*places: tuple[float, float]) -> list[UnitFeatures]:
    returns = np.array([[x, y, 0.0, 0.0, 10.0] for x, y in places], np.float32)
    return [replace(unit, returns=returns) for unit in units(RADAR)]


def test_scans_of_one_return_each_are_told_of_with_the_remedy() -> None:
    (problem,) = problems(scans((4.0, 1.0)), RADAR)
    assert 'no scan has more than one return: let the driver publish a whole scan' in problem
    assert problems(scans((4.0, 1.0), (5.0, -1.0)), RADAR) == []


def test_points_in_the_axes_of_ti_are_told_of_with_the_remedy() -> None:
    (problem,) = problems(scans((-2.0, 4.0), (1.0, 3.0), (0.5, 7.0)), RADAR)
    assert 'axes of TI (x to the right, y forward); let the driver turn them' in problem
    # A radar that looks forward, and sees what lies on its left only.
    assert problems(scans((4.0, 2.0), (3.0, 1.0), (5.0, 0.5)), RADAR) == []
