"""Boxes of people in the night recording, by frame: a detector's output, not ground truth."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path

from mmedge_ros.core.data_types import Box


def night_walk_boxes(data_folder: Path) -> dict[int, list[Box]]:
    """Return the boxes by the place of their picture in the recording."""
    boxes: dict[int, list[Box]] = defaultdict(list)
    name = '20200729-213410_auto_person_boxes_yoloxnano.csv'
    with (data_folder / 'millieye' / name).open() as file:
        for row in csv.DictReader(file):
            corners = Box(*(float(row[key]) for key in ('x0', 'y0', 'x1', 'y1')))
            boxes[int(float(row['frame']))].append(corners)
    return boxes
