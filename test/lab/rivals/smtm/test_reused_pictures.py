"""Blocks of the picture before are taken over where they match, and only there."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from tiny_recogniser import write_tiny_recogniser

from mmedge_lab.rivals.smtm.methods import LookAnswer
from mmedge_lab.rivals.smtm.reused_pictures import ReusedBlocks
from mmedge_ros.encoding.classifier_description import describe_classifier
from mmedge_ros.encoding.crops import CropForm
from mmedge_ros.encoding.tapped_classifier import TappedClassifier, open_classifier

FORM = CropForm((6, 8), rgb=False)


@pytest.fixture(scope='module')
def classifier(tmp_path_factory: pytest.TempPathFactory) -> TappedClassifier:
    description = describe_classifier(write_tiny_recogniser(tmp_path_factory.mktemp('bundle')))
    assert description is not None
    return open_classifier(description).classifier


class Reusing(ReusedBlocks):
    """Looks at pictures of 32 x 32 px: what is run is shown by its mean colours."""

    def __init__(
        self, classifier: TappedClassifier, crops: NDArray[np.uint8], **more: bool
    ) -> None:
        limit = 30.0 if more else 0.1
        super().__init__(classifier, FORM, crops, limit, **more)


def looks(
    classifier: TappedClassifier, *crops: NDArray[np.uint8], **more: bool
) -> list[LookAnswer]:
    method = Reusing(classifier, np.stack(crops), **more)
    return [method.look(row, 0) for row in range(len(crops))]


def noise(seed: int) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 255, (32, 32, 3), np.uint8)


def test_the_first_picture_is_new_and_the_same_one_is_reused_whole(
    classifier: TappedClassifier,
) -> None:
    first, second = looks(classifier, noise(0), noise(0))
    assert (first.reused, second.reused) == (0.0, 1.0)
    assert first.label == second.label
    assert second.stages == 2


def test_what_changed_is_new(classifier: TappedClassifier) -> None:
    changed = np.full((32, 32, 3), 20, np.uint8)
    one = changed.copy()
    changed[:16] = 220
    assert looks(classifier, one, changed)[1].reused == 0.5
    assert looks(classifier, one, changed, moves=True)[1].reused == 0.5


def test_only_moving_blocks_are_found_elsewhere(classifier: TappedClassifier) -> None:
    grey = np.random.default_rng(1).integers(0, 2, (48, 48, 1), np.uint8) * 200
    picture = np.repeat(grey, 3, axis=2)
    one, moved = picture[8:40, 8:40], picture[8:40, 10:42]
    assert looks(classifier, one, moved, moves=True)[1].reused >= 0.75
