"""A table of accuracies, corrected by what is known of the scene."""

from __future__ import annotations

import hashlib
import io
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tiny_bundle import write_tiny_bundle

from mmedge_ros.adaptation import ConfigurationError
from mmedge_ros.adaptation.accuracy_predictor import AccuracyTable, Indicators
from mmedge_ros.adaptation.bundle_configurations import (
    bundle_predictor,
    bundle_space,
    manifest_of,
)
from mmedge_ros.adaptation.configuration_space import ConfigurationSpace, ModalityOptions
from mmedge_ros.adaptation.learned_accuracy import (
    FIELDS,
    SURFACE,
    WEIGHTS,
    AccuracySurface,
    LearnedAccuracy,
    encoded,
    surface_bytes,
    surface_from,
    within_bounds,
)


def surface(**weights: tuple[str, float]) -> AccuracySurface:
    """Return one whose coefficients follow a field each: ``level=('height', -0.1)``."""
    numbers = np.zeros((len(FIELDS), len(SURFACE)))
    for term, (field, weight) in weights.items():
        numbers[FIELDS.index(field), SURFACE.index(term)] = weight
    return AccuracySurface(
        np.zeros(len(FIELDS)),
        np.ones(len(FIELDS)),
        np.zeros(len(SURFACE)),
        numbers,
        np.array([10.0, 30.0]),
        np.array([5.0, 20.0]),
    )


LEVELS = ('small', 'medium', 'large')
SPACE = ConfigurationSpace(
    [
        ModalityOptions('camera', (10.0, 30.0), LEVELS, ''),
        ModalityOptions('radar', (5.0, 20.0), ('',), ''),
    ]
)
TABLE = AccuracyTable(np.linspace(0.3, 0.6, len(SPACE)), is_measured=True)
SMALL = Indicators(tracks=2.0, track_height=20.0, smallest=15.0, score=0.5, motion=0.1)
TALL = SMALL._replace(track_height=120.0)
# Where people are small, a better level is worth more; tall people are detected anyway.
LEARNT = surface(level=('height', -0.05), all=('height', 0.05))

numbers = st.floats() | st.sampled_from([0.0, 1e300, -1e300])


def learnt(made: AccuracySurface = LEARNT, table: AccuracyTable = TABLE) -> LearnedAccuracy:
    return LearnedAccuracy(table, made, SPACE)


def by_level(values: np.ndarray) -> np.ndarray:
    return values.reshape(SPACE.grid.shape)[0, :, 0, 0]


def test_with_nothing_known_it_is_the_table() -> None:
    assert learnt().predict(Indicators()) == pytest.approx(TABLE.predict(Indicators()))
    assert learnt().is_measured
    assert learnt().uses_indicators


def test_a_scene_changes_what_a_level_is_worth() -> None:
    gains = [np.ptp(by_level(learnt().predict(scene))) for scene in (SMALL, TALL)]
    assert gains[0] > gains[1]
    assert learnt().predict(TALL).mean() > learnt().predict(SMALL).mean()


def test_nobody_followed_is_known_and_nobody_asked_is_not() -> None:
    empty, unknown = encoded(Indicators(tracks=0.0)), encoded(Indicators())
    followed, height = FIELDS.index('followed'), FIELDS.index('height')
    assert (empty[followed], empty[height]) == (0.0, 0.0)
    assert np.isnan(unknown).all()


def test_at_the_bounds_the_order_stays() -> None:
    values = within_bounds(np.array([[0.7, 1.2, 1.1], [-0.3, -0.2, math.nan]]))
    assert values[0] == pytest.approx([0.5, 1.0, 0.9])
    assert values[1, :2] == pytest.approx([0.0, 0.1])


@given(st.lists(numbers, min_size=len(Indicators._fields), max_size=len(Indicators._fields)))
def test_whatever_is_said_of_a_scene_predictions_are_accuracies(values: list[float]) -> None:
    with np.errstate(all='ignore'):
        accuracies = learnt().predict(Indicators(*values))
    assert np.isfinite(accuracies).all()
    assert ((accuracies >= 0.0) & (accuracies <= 1.0)).all()


def test_a_file_holds_what_was_learnt() -> None:
    content = surface_bytes(LEARNT)
    assert len(content) < 100_000
    read = surface_from(content, 'it')
    assert learnt(read).predict(SMALL) == pytest.approx(learnt().predict(SMALL), abs=1e-6)


def broken(**changed: Any) -> bytes:
    with np.load(io.BytesIO(surface_bytes(LEARNT))) as file:
        arrays = {name: file[name] for name in file.files} | changed
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ('content', 'words'),
    [
        (b'', 'no accuracy predictor'),
        (b'PK\x03\x04nonsense', 'no accuracy predictor'),
        (surface_bytes(LEARNT)[:-200], 'no accuracy predictor'),
        (broken(fields=np.array(FIELDS[::-1])), 'other fields'),
        (broken(terms=np.array(['all'])), 'other terms'),
        (broken(offset=np.full(7, np.nan, np.float32)), 'offset'),
        (broken(mean=np.zeros(3, np.float32)), 'mean'),
        (broken(weights=np.zeros((len(FIELDS), 7))), 'weights of float64'),
        (broken(fields=np.array([{}], dtype=object)), 'no accuracy predictor'),
        (broken(mean=np.zeros(10**6, np.float32)), 'unpacks to more'),
    ],
)
def test_a_file_that_holds_something_else_is_refused(content: bytes, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        surface_from(content, 'it')


@given(st.binary(max_size=300))
def test_no_bytes_are_taken_for_a_predictor(content: bytes) -> None:
    with pytest.raises(ConfigurationError):
        surface_from(content, 'it')


@pytest.mark.parametrize(
    ('camera', 'radar', 'words'),
    [
        (ModalityOptions('camera', (5.0, 30.0), LEVELS), (5.0, 20.0), 'rates of the camera'),
        (ModalityOptions('camera', (10.0, 60.0), LEVELS), (5.0, 20.0), 'rates of the camera'),
        (ModalityOptions('camera', (10.0,), LEVELS), (5.0, 40.0), 'rates of the radar'),
        (ModalityOptions('camera', (10.0,), ('nano', 'huge')), (5.0,), 'levels nano, huge'),
        (ModalityOptions('lidar', (10.0,), LEVELS), (5.0,), 'rates of the lidar'),
    ],
)
def test_configurations_that_it_was_not_trained_for_are_refused(
    camera: ModalityOptions, radar: tuple[float, ...], words: str
) -> None:
    space = ConfigurationSpace([camera, ModalityOptions('radar', radar, ('',))])
    table = AccuracyTable(np.full(len(space), 0.5), is_measured=True)
    with pytest.raises(ConfigurationError, match=words):
        LearnedAccuracy(table, LEARNT, space)


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A bundle with a table and a learnt predictor."""
    folder = write_tiny_bundle(tmp_path / 'tiny')
    listed = []
    space = bundle_space(folder, ('camera', 'radar'), {'camera': (10.0,), 'radar': (20.0,)})
    for index in range(len(space)):
        camera, radar = space.parts(index)
        row = {m.modality: [m.rate, m.level] for m in (camera, radar)}
        listed.append({**row, 'value': 0.4})
    (folder / WEIGHTS).write_bytes(surface_bytes(LEARNT))
    digest = hashlib.sha256(surface_bytes(LEARNT)).hexdigest()
    content = {
        **manifest_of(folder),
        'accuracy': {'configurations': listed},
        'predictor': {'network': {'weights': WEIGHTS, 'sha256': digest}},
    }
    (folder / 'manifest.yaml').write_text(yaml.safe_dump(content))
    return folder


def predictor_of(bundle: Path, rate: float = 10.0) -> tuple[bool, str]:
    space = bundle_space(bundle, ('camera', 'radar'), {'camera': (rate,), 'radar': (20.0,)})
    made = bundle_predictor(bundle, space)
    assert np.isfinite(made.predictor.predict(SMALL)).all()
    return made.predictor.uses_indicators, made.note


def test_a_bundle_with_a_predictor_is_flown_by_it(bundle: Path) -> None:
    assert predictor_of(bundle) == (True, '')


def changed(bundle: Path, section: object) -> None:
    content = {**manifest_of(bundle), 'predictor': section}
    (bundle / 'manifest.yaml').write_text(yaml.safe_dump(content))


def test_another_file_than_the_manifest_names_is_not_used(bundle: Path) -> None:
    other = replace(LEARNT, offset=LEARNT.offset + 0.1)
    (bundle / WEIGHTS).write_bytes(surface_bytes(other))
    is_learnt, note = predictor_of(bundle)
    assert not is_learnt
    assert 'fetch the bundle again' in note


@pytest.mark.parametrize('section', [3, [], {'network': 5}, {'network': {'sha256': 4}}])
def test_an_entry_that_cannot_be_read_is_said(bundle: Path, section: object) -> None:
    changed(bundle, section)
    is_learnt, note = predictor_of(bundle)
    assert not is_learnt
    assert note


def test_an_entry_that_says_the_table_is_better_is_no_fault(bundle: Path) -> None:
    changed(bundle, {'used': 'table'})
    assert predictor_of(bundle) == (False, '')
