"""Flights are what they were: pictures, truth and scans of four worlds at kept instants.

To keep what is meant to change, run this file as a program with PYTHONPATH=.:test/support.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from mmedge_lab.simulation.build import build_world
from mmedge_lab.simulation.camera import CameraSimulator
from mmedge_lab.simulation.radar import RadarSimulator
from mmedge_lab.simulation.radar_detector import SimulatedRadarParameters

KEPT = Path(__file__).with_name('golden_flights.json')
WORLDS = {
    'meadow_day_near': 3,
    'park_dusk_middle': 11,
    'street_lamps_near': 7,
    'yard_fog_far': 5,
}
SECONDS, INSTANT, SCANS = 4.0, 2.0, 5
GRID = (16, 12)
# Levels of 255, pixels, and sums of metres, m/s and dB: processors round differently, but not so
# much that a return comes or goes.
PICTURE, BOX, SUMS = 1.0, 1.0, 0.2


def seen(scenario: str) -> dict[str, Any]:
    """What the sensors say of a world, in few numbers."""
    world = build_world(scenario, WORLDS[scenario], SECONDS)
    picture = CameraSimulator(world).picture(INSTANT)
    radar = RadarSimulator(world, SimulatedRadarParameters())
    scans = [radar.scan(INSTANT + 0.05 * number, number) for number in range(SCANS)]
    small = cv2.resize(picture.image, GRID, interpolation=cv2.INTER_AREA)
    return {
        'picture': [' '.join(map(str, row)) for row in small.reshape(GRID[1], -1).tolist()],
        'boxes': {
            str(one.id): [round(float(side)) for side in one.box]
            for one in picture.objects
            if one.box is not None
        },
        'returns': [len(scan) for scan in scans],
        'sums': [round(float(total), 1) for total in np.sum(np.concatenate(scans), axis=0)],
    }


@pytest.mark.parametrize('scenario', WORLDS)
def test_a_flight_is_what_it_was(scenario: str) -> None:
    kept, now = json.loads(KEPT.read_text())[scenario], seen(scenario)
    before, after = (
        np.array([row.split() for row in flight['picture']], float) for flight in (kept, now)
    )
    assert np.abs(after - before).max() <= PICTURE
    assert now['boxes'].keys() == kept['boxes'].keys()
    for number, box in kept['boxes'].items():
        assert now['boxes'][number] == pytest.approx(box, abs=BOX)
    assert now['returns'] == kept['returns']
    assert now['sums'] == pytest.approx(kept['sums'], abs=SUMS)


if __name__ == '__main__':
    lines = (f'"{name}": {json.dumps(seen(name))}' for name in WORLDS)
    KEPT.write_text('{' + ',\n'.join(lines) + '}\n')
