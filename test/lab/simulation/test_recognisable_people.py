"""A detector of real people, which never saw these pictures, finds the people in them."""

from __future__ import annotations

from pathlib import Path

from mmedge_lab.simulation.build import build_world
from mmedge_lab.simulation.camera import CameraSimulator
from mmedge_ros.data_types import Box
from mmedge_ros.encoding.bundle.model_bundle import open_detector
from mmedge_ros.encoding.detector import DetectorParameters

FLIGHTS = (
    ('meadow_day_near', 3),
    ('park_day_near', 3),
    ('street_day_near', 3),
    ('yard_day_near', 3),
)


def overlap(a: Box, b: Box) -> float:
    width = min(a.x1, b.x1) - max(a.x0, b.x0)
    height = min(a.y1, b.y1) - max(a.y0, b.y0)
    if width <= 0 or height <= 0:
        return 0.0
    return width * height / (a.width * a.height + b.width * b.height - width * height)


def test_yolox_finds_most_of_the_large_free_people_by_day(data_folder: Path) -> None:
    weights = data_folder / 'models' / 'yolox_nano.onnx'
    detector = open_detector(weights, DetectorParameters(score_threshold=0.3))
    found = []
    for name, seed in FLIGHTS:
        camera = CameraSimulator(build_world(name, seed, 8.0))
        for t in (2.0, 4.5, 7.0):
            picture = camera.picture(t)
            boxes = [d.box for d in detector.detect(picture.image).detections]
            for seen in picture.objects:
                box = seen.box
                if seen.label != 'person' or box is None or seen.visibility < 0.9:
                    continue
                if box.height > 60.0:
                    found.append(any(overlap(box, other) >= 0.5 for other in boxes))
    assert len(found) >= 15
    assert sum(found) >= 0.6 * len(found)
