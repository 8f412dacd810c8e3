"""The contact sheet is a picture of the whole flight."""

from __future__ import annotations

import cv2
import hand_made_scenery as made
import numpy as np

from mmedge_lab.simulation.contact_sheet import contact_sheet


def test_a_flight_becomes_one_png_with_its_frames_in_it() -> None:
    world = made.world(
        made.person(1, 9.0, 0.0, velocity=(0.2, 0.4)),
        made.car(2, 14.0, -3.0),
        buildings=(made.building(25.0, 5.0),),
        plants=(made.plant(15.0, 4.0),),
        lamps=(made.lamp(11.0, -4.0, lit=True),),
        lit='lamps',
    )
    png = contact_sheet(world)
    assert png.startswith(b'\x89PNG')
    sheet = cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_COLOR)
    assert sheet is not None
    height, width = sheet.shape[:2]
    assert width > 1600
    assert height > 1000
    # Night frames on the left, paper around them.
    assert sheet[height // 3, width // 4].max() < 120
    assert (sheet[:8] == 255).all()
