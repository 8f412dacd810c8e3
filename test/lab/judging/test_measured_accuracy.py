"""From the report of an evaluation to the table that the optimiser reads."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
import yaml

from mmedge_lab.judging.bundle_cases import ANY, Case
from mmedge_lab.judging.measured_accuracy import with_accuracy
from mmedge_ros.adaptation import ConfigurationError
from mmedge_ros.adaptation.accuracy_predictor import Indicators, bundle_accuracy
from mmedge_ros.adaptation.configuration_space import ConfigurationSpace, ModalityOptions

MANIFEST = 'name: small_bundle\ncamera:\n  levels: {small: {}, large: {}}\nlicence: ours\n'
SPACE = ConfigurationSpace(
    [
        ModalityOptions('camera', (10.0, 30.0), ('small', 'large')),
        ModalityOptions('radar', (20.0,), ('',)),
    ]
)


def row(rate: float, level: str, iou: float, places: float = 0.5) -> dict[str, Any]:
    return {
        'name': Case(rate, level, 20.0, ANY).name,
        'values': {
            'streaming_mean_iou': {'value': iou, 'low': None, 'high': None},
            'place_recall': {'value': places, 'low': None, 'high': None},
        },
    }


def report(*rows: dict[str, Any], manifest: str = MANIFEST, **against: object) -> dict[str, Any]:
    return {
        'tables': [
            {'title': '', 'rows': [{'name': 'fusion', 'values': {}, 'against': against}]},
            {'title': 'configurations', 'rows': [*rows]},
        ],
        'evaluated': {
            'manifest': hashlib.sha256(manifest.encode()).hexdigest(),
            'set': 'validation',
            'flights': ['day_1', 'night_2'],
            'seconds': 16.0,
            'service_times': 'nominal: everything alike',
        },
    }


ROWS = (
    row(10.0, 'small', 0.3),
    row(30.0, 'small', 0.35),
    row(10.0, 'large', 0.5),
    row(30.0, 'large', 0.6, 1.0),
)


def test_the_optimiser_reads_what_was_measured() -> None:
    content = yaml.safe_load(with_accuracy(MANIFEST, report(*ROWS)))
    table = bundle_accuracy(content, SPACE)
    assert table is not None
    assert table.is_measured
    # In the order of the space: by rate, then by level.
    expected = [0.9 * iou + 0.1 * places for iou, places in ((0.3, 0.5), (0.5, 0.5))]
    expected += [0.9 * 0.35 + 0.05, 0.9 * 0.6 + 0.1]
    assert table.predict(Indicators()).tolist() == pytest.approx(expected)


def test_the_manifest_says_how_it_was_measured_and_keeps_the_rest() -> None:
    text = with_accuracy(MANIFEST, report(*ROWS))
    assert text.startswith(MANIFEST)
    entry = yaml.safe_load(text)['accuracy']
    assert entry['flights'] == ['day_1', 'night_2']
    assert (entry['set'], entry['seconds']) == ('validation', 16.0)
    assert '0.9 streaming mean IoU' in entry['measure']


def test_a_newer_table_takes_the_place_of_an_older_one() -> None:
    first = with_accuracy(MANIFEST, report(*ROWS))
    followed = first.replace('accuracy:', 'gate: {}\naccuracy:') + 'more: 1\n'
    again = with_accuracy(first, report(*reversed(ROWS)))
    assert again.count('accuracy:') == 1
    assert yaml.safe_load(again)['accuracy']['configurations'][0]['value'] == pytest.approx(0.64)
    judged = report(*ROWS, manifest=followed)
    assert yaml.safe_load(with_accuracy(followed, judged))['more'] == 1


def test_a_report_about_other_networks_is_refused() -> None:
    with pytest.raises(ConfigurationError, match='not this one; evaluate the bundle again'):
        with_accuracy(MANIFEST + 'other: 1\n', report(*ROWS))


@pytest.mark.parametrize('value', [None, 'much', 1.5, -0.1, float('nan')])
def test_a_configuration_without_a_figure_is_refused(value: object) -> None:
    broken = row(10.0, 'small', 0.3)
    broken['values']['place_recall'] = {'value': value}
    with pytest.raises(ConfigurationError, match='no place_recall of camera small 10 Hz'):
        with_accuracy(MANIFEST, report(broken, *ROWS[1:]))
