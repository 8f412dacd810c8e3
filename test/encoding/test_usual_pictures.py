"""How pictures usually look: the file in a bundle, and how far a second is from it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hand_made_pictures import USUAL, usual_pictures, watched_for_veils

from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.usual_pictures import (
    PICTURES_FILE,
    read_usual_pictures,
    usual_pictures_text,
)
from mmedge_ros.encoding.veil import WEIGHTS

MODELS = Path(__file__).parents[2] / 'models'
GOOD = 'distance: {limit: 0.5, alarm: 3}\nflicker: {limit: 0.03, alarm: 3}\npictures: |\n'
ROWS = '  0.5 0.15 0.2\n' * 20
VEILED = 'veil: {limit: 0.5, alarm: 3}\nveil_weights: |\n  WEIGHTS\n' + GOOD + ROWS
NUMBERS = ' '.join(['0.25'] * WEIGHTS)


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    usual = watched_for_veils()
    (tmp_path / PICTURES_FILE).write_text(usual_pictures_text(usual, ['made by hand']))
    found = read_usual_pictures(tmp_path)
    assert found is not None
    assert found.veil is not None
    assert usual.veil is not None
    assert found.veil.weights == pytest.approx(usual.veil.weights, rel=1e-5)
    assert found.seconds == pytest.approx(usual.seconds, abs=1e-4)
    assert found.bounds == usual.bounds


def test_a_bundle_need_not_know_what_is_usual(tmp_path: Path) -> None:
    assert read_usual_pictures(tmp_path) is None


@pytest.mark.parametrize('name', ['flight_people', 'fused_people'])
def test_bundles_that_ship_know_it(name: str) -> None:
    usual = read_usual_pictures(MODELS / name)
    assert usual is not None
    assert usual.veil is not None


def test_without_flights_by_day_there_is_no_veil(tmp_path: Path) -> None:
    (tmp_path / PICTURES_FILE).write_text(GOOD + ROWS)
    found = read_usual_pictures(tmp_path)
    assert found is not None
    assert found.veil is None
    assert set(found.bounds) == {'distance', 'flicker'}


@pytest.mark.parametrize(
    ('text', 'words'),
    [
        ('- 1', 'not keys and values'),
        (GOOD, 'lines of 3 numbers'),
        (GOOD + ROWS + '  0.5 0.15\n', 'lines of 3 numbers'),
        (GOOD + ROWS + '  0.5 0.15 dark\n', 'lines of 3 numbers'),
        (GOOD + ROWS + '  0.5 0.15 nan\n', 'lines of 3 numbers'),
        (GOOD + ROWS + '  0.5 -0.15 0.2\n', 'lines of 3 numbers'),
        (GOOD.replace('0.5', '0') + ROWS, 'has distance'),
        (GOOD.replace('0.03', '.nan') + ROWS, 'has flicker'),
        (VEILED.replace('WEIGHTS', NUMBERS + ' 0.25'), 'has veil_weights'),
        (VEILED.replace('WEIGHTS', NUMBERS.replace('0.25', '.nan')), 'has veil_weights'),
        (VEILED.replace('WEIGHTS', NUMBERS.replace('0.25', '1e9')), 'has veil_weights'),
        (VEILED.replace('WEIGHTS', NUMBERS).replace('veil:', 'pale:'), 'has veil None'),
        (GOOD.replace('{limit: 0.5, alarm: 3}', '3') + ROWS, 'has distance'),
        ('pictures: ' + '[' * 100 + ']' * 100, 'nested deeper'),
    ],
)
def test_a_wrong_file_is_named_with_its_entry(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / PICTURES_FILE).write_text(text)
    with pytest.raises(EncodingError, match=words) as refused:
        read_usual_pictures(tmp_path)
    assert str(tmp_path / PICTURES_FILE) in str(refused.value)


def test_a_second_like_the_others_is_near_and_a_pale_one_far() -> None:
    usual = usual_pictures()
    assert usual.distance(np.array(USUAL[:3])) < 0.3
    assert usual.distance(np.array(USUAL[:3]) * (1.0, 0.3, 1.0)) > 5.0
    # Nothing at all is far, and no error.
    assert usual.distance(np.zeros(3)) > 5.0


@pytest.mark.parametrize(
    ('factors', 'begin', 'end'),
    [
        ((1.0, 0.3, 1.0), 'contrast is 0.3', 'of the usual in such light'),
        ((1.0, 1.0, 0.4), 'sharpness is 0.4', 'of the usual in such light'),
        ((1.9, 1.0, 1.0), 'brightness is 1.', 'of the usual'),
    ],
)
def test_what_is_most_unlike_is_named(factors: tuple[float, ...], begin: str, end: str) -> None:
    words = usual_pictures().difference(np.array(USUAL[:3]) * factors)
    assert words.startswith(begin)
    assert words.endswith(end)
