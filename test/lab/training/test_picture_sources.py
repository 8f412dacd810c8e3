"""The layouts in which people keep pictures with labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from mmedge_lab.training import TrainingError
from mmedge_lab.training.picture_set import open_pictures
from mmedge_lab.training.picture_sources import read_source

WHOLE = [0.0, 0.0, 1.0, 1.0]


def write_picture(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    cv2.imwrite(str(path), np.zeros((50, 100, 3), np.uint8))


def coco(**changes: Any) -> dict[str, Any]:
    content: dict[str, Any] = {
        'images': [{'id': 7, 'file_name': 'a.jpg', 'width': 100, 'height': 50}],
        'categories': [{'id': 1, 'name': 'person'}, {'id': 5, 'name': 'airplane'}],
        'annotations': [
            {'image_id': 7, 'category_id': 1, 'bbox': [10, 5, 20, 40], 'iscrowd': 0},
            {'image_id': 7, 'category_id': 1, 'bbox': [50, 0, 50, 25], 'iscrowd': 1},
            {'image_id': 7, 'category_id': 5, 'bbox': [0, 0, 9, 9], 'iscrowd': 0},
        ],
    }
    return {**content, **changes}


def write_coco(folder: Path, **changes: Any) -> Path:
    file = folder / 'annotations' / 'instances_val.json'
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(coco(**changes)))
    write_picture(folder / 'val' / 'a.jpg')
    return file


def test_crowds_of_coco_are_ignored_and_other_classes_left_out(tmp_path: Path) -> None:
    (picture,) = read_source(write_coco(tmp_path))
    assert picture.path == tmp_path / 'val' / 'a.jpg'
    np.testing.assert_allclose(picture.objects, [[0, 0.1, 0.1, 0.3, 0.9]])
    np.testing.assert_allclose(picture.ignored, [[0, 0.5, 0.0, 1.0, 0.5]])


@pytest.mark.parametrize(
    'broken',
    [
        {'images': [{'id': 7, 'file_name': 'a.jpg', 'width': 0, 'height': 50}]},
        {'annotations': [{'image_id': 8, 'category_id': 1, 'bbox': [1, 2, 3, 4]}]},
        {'annotations': [{'image_id': 7, 'category_id': 1, 'bbox': [1, 2, 3]}]},
        {'annotations': [{'image_id': 7, 'category_id': 1, 'bbox': [1, 2, 3, float('nan')]}]},
        {'categories': None},
    ],
)
def test_a_broken_list_of_coco_is_refused_by_its_name(
    tmp_path: Path, broken: dict[str, Any]
) -> None:
    with pytest.raises(
        TrainingError, match=r'instances_val.json is no list of pictures and boxes'
    ):
        read_source(write_coco(tmp_path, **broken))


def test_a_picture_that_is_listed_and_missing_is_named(tmp_path: Path) -> None:
    file = write_coco(tmp_path)
    (tmp_path / 'val' / 'a.jpg').unlink()
    with pytest.raises(TrainingError, match=r"names 'a.jpg', which is neither in"):
        read_source(file)


def test_a_data_yaml_has_folders_and_classes_of_its_own(tmp_path: Path) -> None:
    write_picture(tmp_path / 'images' / 'first' / 'a.png')
    labels = tmp_path / 'labels' / 'first' / 'a.txt'
    labels.parent.mkdir(parents=True)
    labels.write_text('0 0.5 0.5 1 1\n1 0.5 0.5 0.5 0.5\n')
    file = tmp_path / 'data.yaml'
    file.write_text('train: images/first\nval: images/other\nnames: [boat, Pedestrian]\n')
    (picture,) = read_source(file)
    np.testing.assert_allclose(picture.objects, [[0, 0.25, 0.25, 0.75, 0.75]])
    with pytest.raises(TrainingError, match=r'names .*other, which is no folder'):
        read_source(file, 'val')
    file.write_text('train: images/first\n')
    with pytest.raises(TrainingError, match=r'data.yaml must have `names`'):
        read_source(file)


def test_labels_that_cannot_be_are_refused_with_their_file(tmp_path: Path) -> None:
    write_picture(tmp_path / 'images' / 'a.jpg')
    labels = tmp_path / 'labels' / 'a.txt'
    labels.parent.mkdir()
    for text in ('0 nan 0.5 0.1 0.1', '-1 0.5 0.5 0.1 0.1', '4 0.5 0.5 0.1 0.1', 'person 1 1 1 1'):
        labels.write_text(text)
        with pytest.raises(TrainingError, match=r'a.txt cannot be used'):
            read_source(tmp_path)


def test_what_nobody_labelled_in_a_source_is_not_taught_to_be_background(tmp_path: Path) -> None:
    for name, label in (('a', '0 0.5 0.5 0.5 0.5'), ('b', '2 0.5 0.5 0.5 0.5')):
        write_picture(tmp_path / 'images' / f'{name}.jpg')
        (tmp_path / 'labels').mkdir(exist_ok=True)
        (tmp_path / 'labels' / f'{name}.txt').write_text(label)
    (tmp_path / 'sources.csv').write_text('file,source\na.jpg,town\nb.jpg,roads\n')
    first, second = open_pictures(tmp_path).pictures
    np.testing.assert_allclose(first.ignored, [[n, *WHOLE] for n in (1, 2, 3)])
    np.testing.assert_allclose(second.ignored, [[n, *WHOLE] for n in (0, 1, 3)])
    (tmp_path / 'sources.csv').unlink()
    for picture in open_pictures(tmp_path).pictures:
        np.testing.assert_allclose(picture.ignored, [[n, *WHOLE] for n in (1, 3)])


def test_sources_are_drawn_equally_often_but_no_picture_nine_times(tmp_path: Path) -> None:
    for folder, count in (('small', 2), ('middle', 15), ('large', 43)):
        for number in range(count):
            write_picture(tmp_path / folder / 'images' / f'{number}.jpg')
    pictures = open_pictures(*(tmp_path / name for name in ('small', 'middle', 'large')))
    drawn = pictures.drawn(np.random.default_rng(0))
    small, middle, large = (
        [drawn.count(number) for number in numbers]
        for numbers in (range(2), range(2, 17), range(17, 60))
    )
    assert small == [8, 8]
    assert (sum(middle), sum(large)) == (22, 22)
    assert set(middle) == {1, 2}
    assert set(large) == {0, 1}


def test_half_of_an_epoch_is_simulated(tmp_path: Path) -> None:
    for folder, count in (('ground', 4), ('air', 16), ('scenes', 20)):
        for number in range(count):
            write_picture(tmp_path / folder / 'images' / f'{number}.jpg')
    (tmp_path / 'scenes' / 'index.json').write_text('{"simulator": 1}')
    pictures = open_pictures(*(tmp_path / name for name in ('ground', 'air', 'scenes')))
    drawn = pictures.drawn(np.random.default_rng(0))
    counts = [sum(first <= n < last for n in drawn) for first, last in ((0, 4), (4, 20), (20, 40))]
    assert counts == [10, 10, 20]
