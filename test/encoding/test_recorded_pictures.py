"""YOLOX-nano on recorded pictures, against its boxes as another program computed them."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from rosbags.highlevel import AnyReader
from rosbags.typesys import Stores, get_typestore

from mmedge_ros.core.data_types import Detection
from mmedge_ros.encoding.detector import DetectorParameters
from mmedge_ros.encoding.onnx_detector import OnnxDetector
from mmedge_ros.sensing.camera.image import decode_image

EVERY = 8
LOWEST_SCORE = 0.35
Row = tuple[float, ...]


@pytest.fixture(scope='module')
def pseudo_labels(data_folder: Path) -> dict[int, list[Row]]:
    """Boxes and scores by frame; the output of a detector, not ground truth."""
    found: dict[int, list[Row]] = defaultdict(list)
    name = '20200729-213410_auto_person_boxes_yoloxnano.csv'
    with (data_folder / 'millieye' / name).open() as file:
        for row in csv.DictReader(file):
            box = tuple(float(row[key]) for key in ('x0', 'y0', 'x1', 'y1', 'score'))
            found[int(float(row['frame']))].append(box)
    return found


@pytest.fixture(scope='module')
def detections(data_folder: Path) -> dict[int, tuple[Detection, ...]]:
    """What the detector finds in every eighth frame."""
    detector = OnnxDetector(
        data_folder / 'models' / 'yolox_nano.onnx',
        DetectorParameters(score_threshold=LOWEST_SCORE),
    )
    found = {}
    bag = data_folder / 'millieye' / 'night_walk'
    with AnyReader([bag], default_typestore=get_typestore(Stores.ROS2_KILTED)) as reader:
        pictures = [c for c in reader.connections if c.topic.endswith('/compressed')]
        for frame, (connection, _, data) in enumerate(reader.messages(pictures)):
            if frame % EVERY == 0:
                image = decode_image(reader.deserialize(data, connection.msgtype))
                found[frame] = detector.detect(image).detections
    return found


def iou(a: Row, b: Row) -> float:
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    common = max(width, 0) * max(height, 0)
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
    return common / (sum(areas) - common)


def test_the_network_finds_the_boxes_of_the_recording(detections, pseudo_labels) -> None:
    # Over all 401 frames 98.5 % of 1106 boxes; the rest lies near a threshold.
    best = [
        max((iou(tuple(d.box), row) for d in detections[frame]), default=0.0)
        for frame in detections
        for row in pseudo_labels[frame]
    ]
    assert len(best) > 100
    assert np.mean(np.array(best) > 0.9) >= 0.97
    assert np.median(best) > 0.97


def test_the_network_finds_little_else(detections, pseudo_labels) -> None:
    extra = [
        d
        for frame, found in detections.items()
        for d in found
        if all(iou(tuple(d.box), row) < 0.5 for row in pseudo_labels[frame])
    ]
    # They score just above the limit the pseudo-labels were cut at.
    assert len(extra) <= 0.03 * sum(len(found) for found in detections.values())
    assert all(d.score < LOWEST_SCORE + 0.1 for d in extra)
