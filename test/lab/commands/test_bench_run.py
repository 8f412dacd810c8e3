"""Every bench by one set of options, and the kept tables."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import pytest
from ros_installed import needs_ros
from tiny_bundle import write_tiny_bundle
from truth_fixtures import write_short_flights
from typer.testing import CliRunner

from mmedge_lab.commands.bench_run import BENCHES
from mmedge_lab.commands.main import lab_app
from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.result_pages import write_pages


def run(*arguments: object):  # type: ignore[no-untyped-def]
    return CliRunner().invoke(lab_app, [str(argument) for argument in arguments])


@needs_ros
def test_every_bench_of_the_table_is_there() -> None:
    for entry in BENCHES.values():
        assert import_module(f'mmedge_lab.{entry.module}').bench.__doc__


def test_object_memory_is_compared_with_its_rivals_on_a_set(tmp_path: Path) -> None:
    bundle = write_tiny_bundle(tmp_path / 'tiny', {'small': 0.5, 'medium': 0.6, 'large': 0.7})
    write_short_flights(tmp_path / 'set', 2, 2.2)
    options = ('--detector', bundle, '--rows', 'medium n=2,turned n=2,10 Hz')
    result = run('bench', 'reuse', tmp_path / 'set', *options, '--out', tmp_path / 'out')
    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines()[-1] == str(tmp_path / 'out/reuse.json')
    (accuracy,) = json.loads((tmp_path / 'out/reuse.json').read_text())['tables']
    names = ['medium', 'medium n=2', 'turned n=2', '10 Hz']
    assert [row['name'] for row in accuracy['rows']] == names
    assert (accuracy['subjects'], accuracy['seeds']) == (2, 2)
    against = accuracy['rows'][1]['against']['medium']
    assert against['encoded']['value'] < 0.7
    assert accuracy['rows'][3]['against']['medium']['processor']['value'] < 0.6
    assert 'against medium' in result.stdout
    page = (tmp_path / 'out/reuse.md').read_text()
    assert f'`mmedge lab bench reuse {tmp_path / "set"} --detector {bundle} --rows' in page
    assert "--rows 'medium n=2,turned n=2,10 Hz'`" in page


def test_trackers_are_compared_on_a_set(tmp_path: Path) -> None:
    bundle = write_tiny_bundle(tmp_path / 'tiny')
    write_short_flights(tmp_path / 'set', 2, 1.0)
    options = ('--detector', bundle, '--rows', 'mmedge without radar,mmedge', '--out', tmp_path)
    result = run('bench', 'trackers', tmp_path / 'set', *options)
    assert result.exit_code == 0, result.stderr
    (table,) = json.loads((tmp_path / 'trackers.json').read_text())['tables']
    assert [row['name'] for row in table['rows']] == ['mmedge without radar', 'mmedge']


def test_every_brick_is_measured_and_loading_on_demand_keeps_none(tmp_path: Path) -> None:
    bundle = write_tiny_bundle(tmp_path / 'tiny')
    options = ('--set', 'events=2', '--out', tmp_path / 'out')
    result = run('bench', 'bricks', bundle, *options)
    assert result.exit_code == 0, result.output
    bricks, events = json.loads((tmp_path / 'out/bricks.json').read_text())['tables']
    names = {row['name'].split(' on ')[0] for row in bricks['rows']}
    assert names == {'camera.small', 'camera.large'}
    ways = {row['name']: row['values'] for row in events['rows']}
    assert all(of['processor']['value'] > 0.0 for of in ways.values())
    between = [ways[way]['between']['value'] for way in ('on demand', 'staying loaded')]
    assert between[0] <= between[1]


@needs_ros
def test_pictures_are_measured_both_ways_at_both_sizes(tmp_path: Path) -> None:
    options = ('--set', 'rounds=1', '--set', 'seconds=1', '--out', tmp_path)
    result = run('bench', 'ring', *options)
    assert result.exit_code == 0, result.output
    tables = json.loads((tmp_path / 'ring.json').read_text())['tables']
    assert [table['title'] for table in tables] == ['VGA', '1080p']
    for table in tables:
        assert all(row['values']['latency_p50']['value'] > 0.0 for row in table['rows'])
        assert 'image' in table['rows'][0]['against']


@pytest.mark.parametrize(
    ('options', 'words'),
    [
        (('--rows', '12 Hz'), "no row '12 Hz'"),
        (('--set', 'levl=large'), "the nearest is 'level'"),
        (('--detector', 'nothing_of_the_kind'), 'nothing_of_the_kind'),
    ],
)
def test_what_a_bench_does_not_know_is_named(
    tmp_path: Path, options: tuple[str, ...], words: str
) -> None:
    write_short_flights(tmp_path / 'set', 1, 1.0)
    result = run('bench', 'trackers', tmp_path / 'set', *options, '--out', tmp_path / 'out')
    assert result.exit_code > 0
    assert words in ' '.join(result.stderr.replace('│', '').split())


def test_a_setting_is_of_the_kind_of_its_default(tmp_path: Path) -> None:
    write_short_flights(tmp_path / 'set', 1, 1.0)
    result = run('bench', 'bricks', tmp_path / 'set', '--set', 'rounds=some', '--out', tmp_path)
    assert result.exit_code > 0
    assert "rounds='some' is no int, such as 1" in ' '.join(result.stderr.split())


def test_kept_tables_become_pages(tmp_path: Path) -> None:
    content = {
        'bench': 'reuse',
        'title': 'Reuse',
        'command': 'mmedge lab bench reuse SET',
        'software': '0.1.0 abc',
        'about': {'flights': 3},
        'figures': {'share': {'title': 'share', 'digits': 2, 'relative': False}},
        'tables': [],
        'notes': ['a note'],
    }
    (tmp_path / 'reuse.json').write_text(json.dumps(content))
    (page,) = write_pages(tmp_path / 'kept', [tmp_path / 'reuse.json'])
    generated = page.read_text()
    assert generated.startswith('# Reuse')
    for by_hand in ('## By hand\n\n0.5 of it', 'other words'):
        page.write_text(generated.replace('a note', 'an older note') + f'\n{by_hand}\n')
        for _ in range(2):
            write_pages(tmp_path / 'kept')
            assert page.read_text() == f'{generated}\n{by_hand}\n'
    page.write_text('# Reuse\n\nAll by hand.\n')
    write_pages(tmp_path / 'kept')
    assert page.read_text() == f'{generated}\n# Reuse\n\nAll by hand.\n'
    (tmp_path / 'kept/reuse.json').write_text('[]')
    with pytest.raises(EvaluationError, match='is no table of a bench'):
        write_pages(tmp_path / 'kept')
