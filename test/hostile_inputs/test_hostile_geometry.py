"""Calibrations and transforms that are missing, empty or contradict each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import bag_fixtures as flight
import numpy as np
from replays import Message, Outcome, each, reported

# What decisions say of themselves differs where something had to be assumed.
ASSUMED = 'assumed at the origin, looking forward'


def uncalibrated(message: Any) -> Any:
    message.k, message.p = np.zeros(9), np.zeros(12)
    return message


def edge(parent: str, child: str, x: float = 0.0) -> Any:
    (found,) = flight.static_transforms(flight.BEGIN_NS).transforms
    found.header.frame_id, found.child_frame_id = parent, child
    found.transform.translation.x = x
    return found


def with_edges(messages: list[Message], *edges: Any) -> list[Message]:
    static = flight.static_transforms(flight.BEGIN_NS)
    static.transforms = list(edges)
    return each(messages, flight.TF_STATIC, lambda _, m: static)


def without(messages: list[Message], topic: str) -> list[Message]:
    return [entry for entry in messages if entry[0] != topic]


def labels(outcome: Outcome) -> set[str]:
    return {track['label'] for track in outcome.report['tracks']}


def test_a_camera_info_of_zeros_is_no_calibration(run: Any) -> None:
    messages = each(flight.recording(2.0), flight.CAMERA_INFO, lambda _, m: uncalibrated(m))
    outcome = reported(
        run(messages),
        r'camera_info: messages without a usable calibration: 40 \(camera is not calibrated',
        'no camera calibration: a lens of 53 degrees across the picture is assumed',
    )
    assert labels(outcome) == {'person'}


def test_a_camera_info_that_becomes_usable_is_used(run: Any, whole: Outcome) -> None:
    messages = each(
        flight.recording(2.0),
        flight.CAMERA_INFO,
        lambda number, m: uncalibrated(m) if number < 3 else m,
    )
    late = reported(run(messages), 'usable calibration: 3, the next one was used')
    assert late.decisions == whole.decisions


def test_without_transforms_the_sensors_are_assumed_to_look_forward(run: Any) -> None:
    outcome = reported(
        run(without(flight.recording(2.0), flight.TF_STATIC)),
        f'no transform from base_link to camera_optical_frame: {ASSUMED}',
        f'no transform from base_link to radar_link: {ASSUMED}',
    )
    assert 'person' in labels(outcome)


def test_of_transforms_in_a_circle_the_one_that_closes_it_is_left_out(
    run: Any, whole: Outcome
) -> None:
    circle = with_edges(
        flight.recording(2.0),
        edge('radar_link', 'camera_optical_frame'),
        edge('camera_optical_frame', 'radar_link'),
    )
    outcome = reported(
        run(circle, 'circle'),
        "static transform not used: transform 'camera_optical_frame' -> 'radar_link' closes a cyc",
    )
    assert outcome.decisions == whole.decisions


def test_a_transform_that_leads_nowhere_is_left_out_and_the_others_used(
    run: Any, whole: Outcome
) -> None:
    mixed = with_edges(
        flight.recording(2.0),
        edge('mast', 'lamp', 1e300),
        edge('radar_link', 'camera_optical_frame'),
    )
    outcome = reported(run(mixed, 'mixed'), "static transform not used: .*'mast' -> 'lamp'")
    assert outcome.decisions == whole.decisions


def test_a_transform_of_nan_leaves_the_sensor_where_it_is_assumed(run: Any) -> None:
    messages = flight.recording(2.0)
    none = run(without(messages, flight.TF_STATIC), 'none')
    nan = with_edges(messages, edge('radar_link', 'camera_optical_frame', np.nan))
    assert reported(run(nan, 'nan'), ASSUMED).decisions == none.decisions


def test_a_calibration_file_decides_against_the_recording(run: Any, tmp_path: Path) -> None:
    file = tmp_path / 'rig.yaml'
    # The other way round than recorded: together they would close a circle.
    file.write_text(
        'transforms:\n- parent: camera_optical_frame\n  child: radar_link\n'
        '  translation: [0.0, 0.0, 0.0]\n  rotation: [0.5, -0.5, 0.5, 0.5]\n'
    )
    outcome = run(flight.recording(1.0), calibration=file)
    reported(outcome, "not used: transform 'radar_link' -> 'camera_optical_frame' closes a cycle")
