"""A detector that looks at pictures in two halves."""

from __future__ import annotations

import numpy as np
import pytest

from mmedge_ros.core.data_types import Box, Detection
from mmedge_ros.encoding.detector import DetectorOutput, Image
from mmedge_ros.encoding.tiled_detector import TiledDetector


class BrightBoxes:
    """Finds what is bright: the box of the pixels of each grey level above 100."""

    labels = ('person',)
    input_size = (64, 64)

    def __init__(self) -> None:
        self.shapes: list[tuple[int, ...]] = []

    def warm_up(self) -> None: ...

    def detect(self, image: Image) -> DetectorOutput:
        self.shapes.append(image.shape)
        found = []
        for level in sorted({*image[..., 0].reshape(-1).tolist()} - {0}, reverse=True):
            rows, columns = np.nonzero(image[..., 0] == level)
            box = Box(columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)
            found.append(Detection(box, level / 255.0, 'person'))
        return DetectorOutput(tuple(found), np.array([float(len(found))], np.float32))


def picture(*boxes: tuple[int, int, int, int], size: tuple[int, int] = (200, 100)) -> Image:
    image = np.zeros((size[1], size[0], 3), np.uint8)
    for number, (x0, y0, x1, y1) in enumerate(boxes):
        image[y0:y1, x0:x1] = 250 - number
    return image


def found(image: Image, most: int = 100) -> list[Box]:
    return [one.box for one in TiledDetector(BrightBoxes(), most).detect(image).detections]


def test_whoever_is_in_one_half_is_found_where_they_are() -> None:
    boxes = [(5, 10, 15, 40), (180, 50, 190, 90)]
    assert found(picture(*boxes)) == [Box(*box) for box in boxes]


def test_whoever_stands_in_the_middle_is_found_once() -> None:
    assert found(picture((95, 10, 105, 40))) == [Box(95, 10, 105, 40)]


@pytest.mark.parametrize('box', [(70, 10, 100, 40), (110, 10, 140, 40), (60, 10, 140, 90)])
def test_a_box_that_one_half_cuts_gives_way_to_the_larger_one(
    box: tuple[int, int, int, int],
) -> None:
    (one,) = found(picture(box))
    assert one.x1 - one.x0 >= min(box[2] - box[0], 60)


@pytest.mark.parametrize('left', [0, 170])
def test_people_in_front_of_each_other_in_one_half_stay_two(left: int) -> None:
    boxes = [(left + 5, 10, left + 25, 60), (left + 8, 20, left + 20, 55)]
    assert len(found(picture(*boxes))) == 2


def test_a_tall_picture_is_cut_across() -> None:
    detector = BrightBoxes()
    image = picture((10, 180, 30, 190), size=(100, 200))
    output = TiledDetector(detector, 100).detect(image)
    assert [one.box for one in output.detections] == [Box(10, 180, 30, 190)]
    assert detector.shapes == [(121, 100, 3)] * 2
    np.testing.assert_allclose(output.embedding, [0.5])


def test_the_surest_boxes_of_both_halves_are_kept() -> None:
    assert found(picture((5, 10, 15, 40), (180, 50, 190, 90)), most=1) == [Box(5, 10, 15, 40)]
