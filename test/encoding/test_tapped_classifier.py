"""A classifier is left early where its memory recalls the class, and says so."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from numpy.typing import NDArray
from tiny_recogniser import CLASSES, SIZE, write_tiny_recogniser

from mmedge_ros.core.data_types import LabelSource
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.classifier_description import describe_classifier
from mmedge_ros.encoding.crops import as_input
from mmedge_ros.encoding.tapped_classifier import LookCounts, MemorisedClassifier, open_classifier

BLUE, GREEN, RED = (250, 10, 10), (10, 250, 10), (10, 10, 250)


@pytest.fixture(scope='module')
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_recogniser(tmp_path_factory.mktemp('bundle') / 'tiny')


@pytest.fixture
def bundle(kept: Path, tmp_path: Path) -> Path:
    """A copy that a test may spoil."""
    return Path(shutil.copytree(kept, tmp_path / 'tiny'))


def opened(folder: Path, **options: Any) -> MemorisedClassifier:
    description = describe_classifier(folder)
    assert description is not None
    return open_classifier(description, **options)


def blob(colour: tuple[int, int, int], folder: Path) -> NDArray[np.float32]:
    description = describe_classifier(folder)
    assert description is not None
    return as_input(np.full((20, 15, 3), colour, np.uint8), description.form)


def spoil(folder: Path, **changes: Any) -> None:
    path = folder / 'manifest.yaml'
    content = yaml.safe_load(path.read_text())
    content['recogniser'] |= changes
    path.write_text(yaml.safe_dump(content))


def test_the_first_look_runs_through_and_gives_class_certainty_and_attributes(kept: Path) -> None:
    look = opened(kept).look(blob(GREEN, kept))
    assert CLASSES[look.label] == 'person green'
    assert (look.source, look.exit) == (LabelSource.FULL, 2)
    assert look.certainty > 0.99
    assert look.shares.argmax() == look.label
    description = describe_classifier(kept)
    assert description is not None
    assert description.attribute_values(look.attributes)['light'][0] == 'yes'


def test_another_class_than_the_hot_ones_runs_through(kept: Path) -> None:
    classifier = opened(kept)
    classifier.look(blob(GREEN, kept))
    look = classifier.look(blob(RED, kept))
    assert (CLASSES[look.label], look.source) == ('dog red', LabelSource.FULL)


@pytest.mark.parametrize(
    ('changes', 'words'),
    [
        ({'format': 2}, 'format'),
        ({'classes': []}, 'classes'),
        ({'classes': ['a', 'a', 'b']}, 'all different'),
        ({'labels': 'person'}, 'labels'),
        ({'stages': []}, 'stages'),
        ({'attributes': {'light': []}}, 'attributes.light'),
        ({'input': {'size': [6.5, 8]}}, 'input'),
        ({'input': {'size': [6, 8], 'rgb': 'no'}}, 'input'),
        ({'input': {'size': [6, 8], 'deviation': [0.0, 1.0, 1.0]}}, 'input'),
        ({'input': {'size': [6, 8], 'margin': float('nan')}}, 'input'),
        ({'input': {'size': [6, 8], 'padding': 3}}, 'input'),
        ({'input': None}, 'input'),
    ],
)
def test_a_manifest_that_is_wrong_is_refused_by_the_name_of_the_entry(
    bundle: Path, changes: dict[str, Any], words: str
) -> None:
    spoil(bundle, **changes)
    with pytest.raises(EncodingError, match=words):
        describe_classifier(bundle)


def test_a_memory_of_other_classes_is_refused(bundle: Path) -> None:
    spoil(bundle, classes=['person blue', 'person green'])
    with pytest.raises(EncodingError, match='3 classes for a classifier of 2'):
        opened(bundle)


def test_a_crop_that_gives_no_number_is_an_error_and_the_next_one_is_recognised(
    kept: Path,
) -> None:
    classifier = opened(kept)
    broken = np.full((1, 3, SIZE[1], SIZE[0]), np.nan, np.float32)
    with pytest.raises(EncodingError, match='not finite'):
        classifier.look(broken)
    assert CLASSES[classifier.look(blob(RED, kept)).label] == 'dog red'


def test_without_a_memory_a_head_that_is_sure_enough_is_believed(bundle: Path) -> None:
    spoil(bundle, exits=[0.9])
    classifier = opened(bundle, with_memory=False)
    look = classifier.look(blob(BLUE, bundle))
    assert CLASSES[look.label] == 'person blue'
    assert (look.source, look.exit) == (LabelSource.FULL, 1)
    assert look.shares.shape == (3,)
    assert look.attributes.tolist() == [1.0, 0.0]
    assert (classifier.counts.exits, classifier.counts.full) == ([1], 0)


@pytest.mark.parametrize('exits', [[0.0], [-1.0], [True], ['x'], [1.0, 1.0], 'x', {'a': 1}])
def test_exits_that_are_no_odds_of_taps_are_an_error(bundle: Path, exits: Any) -> None:
    spoil(bundle, exits=exits)
    with pytest.raises(EncodingError, match='least odds of at most 1 taps'):
        describe_classifier(bundle)


def test_without_a_memory_a_head_that_is_unsure_is_not_believed(bundle: Path) -> None:
    spoil(bundle, exits=[1000.0])
    classifier = opened(bundle, with_memory=False)
    assert classifier.look(blob(BLUE, bundle)).exit == 2
    assert (classifier.counts.exits, classifier.counts.full) == ([0], 1)


def test_what_was_saved_compares_all_looks_with_those_that_ran_through() -> None:
    assert np.isnan(LookCounts([3]).saved)
    # Four looks at a second each would take 4 s.
    assert LookCounts([2], full=2, seconds=3.0, full_seconds=2.0).saved == 0.25
