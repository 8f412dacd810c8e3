"""The bench of the hard world: its groups, the ground plane, and what radars return."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bag_fixtures import write_bag
from hand_made_encoded_flight import encoded_flight
from hand_made_truth import film, run, standing, true_person
from hand_made_units import LENS, MOUNTS, features, unit
from tiny_bundle import write_tiny_bundle
from truth_fixtures import recording_with_truth
from typer.testing import CliRunner

from mmedge_lab.rivals.mmedge.ground_plane import GroundPlaneEncoder
from mmedge_lab.rivals.mmedge.world_bench import detection_sums
from mmedge_ros.commands.main import app
from mmedge_ros.core.data_types import CAMERA, RADAR, Box, ModalityConfiguration, Unit
from mmedge_ros.geometry.sensor_rig import SensorRig
from mmedge_ros.geometry.transforms import Transform


def test_rows_are_judged_over_all_flights_and_by_condition(tmp_path: Path) -> None:
    write_tiny_bundle(tmp_path / 'tiny')
    write_bag(tmp_path / 'set' / 'first', messages=recording_with_truth(0.8))
    words = ['lab', 'bench', 'world', tmp_path / 'set', '--detector', tmp_path / 'tiny']
    words += ['--out', tmp_path / 'out', '--set', f'before={tmp_path / "before"}']
    assert 'before/first cannot be read' in CliRunner().invoke(app, list(map(str, words))).stderr
    (tmp_path / 'before' / 'first').mkdir(parents=True)
    (tmp_path / 'before' / 'first' / 'decisions.jsonl').touch()
    done = CliRunner().invoke(app, list(map(str, words)))
    assert done.exit_code == 0, done.output
    every, usual = json.loads((tmp_path / 'out' / 'world.json').read_text())['tables']
    values, group = ({row['name']: row['values'] for row in of['rows']} for of in (every, usual))
    assert (usual['title'], group) == ('usual', values)
    assert len(values) == 5
    assert {of['reach']['value'] for of in values.values()} == {1.0}
    assert values['before']['worth']['value'] == 0.0
    assert values['shipped']['streaming_iou']['value'] > 0.0


@pytest.mark.parametrize(
    ('readings', 'height'),
    [((), 1.0), ([(0, 2.0)], 3.0), ([(0, math.inf)], 1.0), ([(-300, 2.0)], 1.0)],
)
def test_people_stand_where_the_foot_of_the_box_meets_the_ground(
    readings: list[tuple[int, float]], height: float
) -> None:
    """The camera is 1 m above the base; the foot is 75 px below the middle, at 450 px a radian."""
    flight, rig = encoded_flight(lambda _: 1), SensorRig()
    first = next(of for of in flight.events if isinstance(of, Unit) and of.modality == CAMERA)
    rig.add_transforms(MOUNTS)
    rig.set_camera(LENS)
    rig.set_frames({CAMERA: first.frame_id})
    ahead = 6.0 * height * np.array([1.0, 195.0 / 450.0, 0.0])
    away = float(np.linalg.norm(ahead)) + 0.2
    place = ahead * away / (away - 0.2) + [0.1, 0.0, 0.0]
    truth = film(lambda _: [true_person(1, Box(100.0, 165.0, 150.0, 315.0), place)])
    given = [(first.stamp_ns + ms * 1_000_000, reading) for ms, reading in readings]
    encoder = GroundPlaneEncoder(flight, truth, rig, given)
    for known in (False, True):
        if known:
            rig.add_ego_state(standing(first.stamp_ns), 'odom', 'base_link')
        (seen,) = encoder.encode(first, ModalityConfiguration(CAMERA), 1).detections
        assert math.isnan(seen.distance) != known
    assert seen.distance == pytest.approx(away)
    assert 0.1 < seen.distance_deviation < away
    # It is compared with the truth, and there is no error.
    assert encoder.errors == pytest.approx([0.0], abs=1e-9)


def test_returns_near_bodies_are_counted_beside_what_is_stated_and_what_clutter_does() -> None:
    """Two people at 12 and 14 m, apart from others; a return at the first, one beside the second.

    Scans see 0.8 of both, and a third stands with a fourth, of whom nothing is counted.
    """
    places = ((12.0, 0.0, 0.0), (10.0, 9.0, 0.0), (12.0, -6.0, 0.0), (12.0, -7.0, 0.0))
    people = [true_person(n, position=place) for n, place in enumerate(places)]
    truth = film(lambda _: [replace(one, radar=0.8) for one in people])
    beside = [
        10.0 * math.cos(0.25) - 9.0 * math.sin(0.25),
        10.0 * math.sin(0.25) + 9.0 * math.cos(0.25),
    ]
    returns = np.array([[12.0, 0.4, 0.0, 0.0, 9.0], [*beside, 0.0, 0.0, 9.0]], np.float32)
    record = run([])
    record.radar_pose = Transform.identity()
    record.features = [features(unit(20.0 * n + 5.0, RADAR), returns=returns) for n in range(5)]
    sums = detection_sums(record, truth)
    counted = [sums[f'{name} 2'] for name in ('scans', 'returned', 'stated', 'beside', 'clutter')]
    assert counted == pytest.approx([10, 5, 8, 10, 5])
    assert sums['scans 1'] == 0
