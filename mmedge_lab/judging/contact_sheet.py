"""Paints a row of flights of each condition, to be looked at: `python -m ...contact_sheet`."""

from __future__ import annotations

import argparse

import cv2
import numpy as np

from mmedge_lab.simulation.build import build_world
from mmedge_lab.simulation.camera import CameraSimulator
from mmedge_lab.simulation.camera_faults import CameraFaults
from mmedge_lab.simulation.standard_sets import HARD_PARTS, standard_set
from mmedge_lab.simulation.textures import Image

_AT = 4.0  # s
_SIZE = (480, 360)
_CLEAR, _BLIND = (80, 220, 80), (150, 150, 150)


def contact_sheet(seeds: list[int]) -> Image:
    """Return a picture of each condition and seed of the hard sets, with true boxes.

    Boxes of those for whom the camera is not clear are grey.
    """
    flights = [f for part in HARD_PARTS for f in standard_set(f'hard_{part}') if f.seed in seeds]
    rows: dict[str, list[Image]] = {}
    for flight in flights:
        world = build_world(flight.scenario, flight.seed, flight.seconds, False, flight.condition)
        picture, faults = CameraSimulator(world).picture(_AT), CameraFaults(world)
        eye = world.path.state(_AT).pose.translation
        for seen, mover in zip(picture.objects, world.movers, strict=True):
            if seen.box is None or seen.visibility == 0.0:
                continue
            away = float(np.linalg.norm(mover.state(_AT).position - eye))
            colour = _CLEAR if faults.clear(_AT, seen.box, away) else _BLIND
            x0, y0, x1, y1 = (round(edge) for edge in seen.box)
            cv2.rectangle(picture.image, (x0, y0), (x1, y1), colour, 1)
        small = cv2.resize(picture.image, _SIZE, interpolation=cv2.INTER_AREA)
        cv2.putText(small, flight.name, (8, 18), cv2.FONT_HERSHEY_SIMPLEX, 0.5, (0, 255, 255), 1)
        rows.setdefault(flight.condition, []).append(np.asarray(small, np.uint8))
    return np.vstack([np.hstack(row) for row in rows.values()])


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('out', metavar='OUT.png')
    parser.add_argument('--seeds', type=int, nargs='+', default=[6000, 6001, 6003, 6007])
    asked = parser.parse_args()
    cv2.imwrite(asked.out, contact_sheet(asked.seeds))
