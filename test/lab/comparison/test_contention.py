"""The contention step of a report, on tables of the published format."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mmedge_ros.configuration import ConfigurationError
from mmedge_ros.lab.comparison.contention import contention, tables_folder


def write_tables(folder: Path) -> Path:
    """Two rates and two levels; under C50 the better level takes far too long."""
    folder.mkdir(parents=True)
    accuracy = {'10': {'small': 50.0, 'large': 70.0}, '30': {'small': 60.0, 'large': 90.0}}
    (folder / 'accuracy_table.json').write_text(json.dumps(accuracy))
    for name, slow in (('H', 1.0), ('C64', 1.5), ('C50', 3.0)):
        times = {rate: {'small': 30.0 * slow, 'large': 80.0 * slow} for rate in accuracy}
        (folder / f'latency_table_{name}.json').write_text(json.dumps(times))
    return folder


def test_every_phase_is_flown_and_the_static_table_beside_it(tmp_path: Path) -> None:
    found = contention(write_tables(tmp_path / 'mmedge_tables'))
    assert found['names'] == ['H', 'C64', 'C50', 'H']
    assert len(found['phases']) == len(found['static_phases']) == 4
    assert found['static_phases'][2]['late'] == found['decisions'] == 60
    assert max(phase['late'] for phase in found['phases']) < 20
    assert '--limit 120 --decisions 60' in found['command']


def test_the_tables_are_looked_for_below_the_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv('MMEDGE_DATA', raising=False)
    assert tables_folder() is None
    monkeypatch.setenv('MMEDGE_DATA', str(tmp_path))
    assert tables_folder() is None
    assert tables_folder() != write_tables(tmp_path / 'mmedge_tables') == tables_folder()


def test_tables_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    folder = write_tables(tmp_path / 'mmedge_tables')
    (folder / 'latency_table_C50.json').write_text('{')
    with pytest.raises(ConfigurationError, match='latency_table_C50'):
        contention(folder)
