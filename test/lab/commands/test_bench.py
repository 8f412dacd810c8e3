"""The benches, from the command line to the figures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from configuration_examples import nested, write, write_all
from typer.testing import CliRunner

from mmedge_lab.commands.bench import bench_app

ROOT = Path(__file__).resolve().parents[3]


def run(*arguments: object):  # type: ignore[no-untyped-def]
    return CliRunner().invoke(bench_app, [str(argument) for argument in arguments])


def contention(folder: Path, *more: object):  # type: ignore[no-untyped-def]
    accuracy, quiet, busy = write_all(folder)
    phases = f'{quiet},{busy},{quiet}'
    options = ('--limits', 70, '--decisions', 40)
    return run('contention', '--accuracy', accuracy, '--phases', phases, *options, *more)


def test_the_optimizer_bench_prints_json_and_nothing_else(tmp_path: Path) -> None:
    accuracy, quiet, busy = write_all(tmp_path)
    options = ('--latency', quiet, '--latency', busy, '--limits', '50ms,1ms')
    result = run('optimizer', '--accuracy', accuracy, *options, '--json')
    assert result.exit_code == 0, result.stderr
    report = json.loads(result.stdout)
    assert report['configurations'] == 12
    first, second = report['tables']
    assert (first['latency'], second['latency']) == (str(quiet), str(busy))
    assert [answer['regret'] for answer in first['limits']] == [0.0, 0.0]
    assert [answer['feasible'] for answer in first['limits']] == [True, False]
    assert first['limits'][0]['configuration'] == ['huge', '15', 'stereo']
    assert first['limits'][1]['violation_ms'] == 19.0
    assert first['sweep']['largest_regret'] == second['sweep']['largest_regret'] == 0.0
    assert set(report['decision_us']) == {'81', '256', '625', '1296', '2401'}
    assert all(times['equal_to_exhaustive'] for times in report['decision_us'].values())


def test_the_optimizer_bench_prints_tables_a_person_can_read(tmp_path: Path) -> None:
    accuracy, quiet, _ = write_all(tmp_path)
    result = run('optimizer', '--accuracy', accuracy, '--latency', quiet)
    assert result.exit_code == 0, result.stderr
    row = next(line for line in result.stdout.splitlines() if line.startswith('60 '))
    assert row.split() == ['60', 'huge', '45', 'stereo', '83.00', '57.0', '0.0']
    assert '400 limits from 18 to 63 ms: largest regret 0' in result.stdout
    assert 'search alone' in result.stdout


def test_the_contention_bench_says_what_happened_in_each_phase(tmp_path: Path) -> None:
    result = contention(tmp_path, '--json')
    assert result.exit_code == 0, result.stderr
    report = json.loads(result.stdout)
    assert [phase['late'] <= 5 for phase in report['phases']] == [True] * 3
    assert all(phase['regret_at_end'] is not None for phase in report['phases'])
    assert [len(phase['decisions']) for phase in report['phases']] == [40] * 3
    assert [phase['late'] for phase in report['static_table']['phases']] == [0, 40, 0]
    busy = report['phases'][1]
    assert busy['late'] == sum(decision['late'] for decision in busy['decisions'])


def test_the_same_seed_gives_the_same_flight(tmp_path: Path) -> None:
    noisy = ('--noise', 0.15, '--outliers', 0.05, '--json', '--seed')
    first, again, other = (
        json.loads(contention(tmp_path, *noisy, seed).stdout) for seed in (1, 1, 2)
    )
    assert first['phases'] == again['phases']
    assert first['phases'] != other['phases']
    assert sum(phase['outliers'] for phase in first['phases']) > 0


def test_the_contention_bench_prints_tables_a_person_can_read(tmp_path: Path) -> None:
    result = contention(tmp_path)
    assert result.exit_code == 0, result.stderr
    rows = [line.split() for line in result.stdout.splitlines()]
    assert [row[:2] for row in rows if row[:1] == ['busy']][-1] == ['busy', '40']
    assert 'numbers instead of 12; R2 by phase' in ' '.join(result.stdout.split())


@pytest.mark.parametrize(
    ('content', 'words'),
    [
        ('{', 'not JSON'),
        ('[1, 2]', 'holds a list, not nested objects'),
        ('{"tiny": {"5": {"mono": NaN}}}', 'NaN is not a number'),
        ('[' * 200_000, 'nested deeper than 12'),
        (nested(lambda m, r, s: -1), 'tiny > 5 > mono: -1 ms is no latency'),
    ],
)
def test_a_hostile_table_is_refused_in_a_sentence(
    tmp_path: Path, content: object, words: str
) -> None:
    accuracy, _, _ = write_all(tmp_path)
    bad = write(tmp_path / 'bad.json', content)
    for arguments in (
        ('optimizer', '--latency', bad),
        ('contention', '--phases', bad, '--limits', 50, '--decisions', 5),
    ):
        result = run(*arguments, '--accuracy', accuracy, '--json')
        assert result.exit_code == 1
        assert 'bad.json' in result.stderr.replace('\n', '')
        assert words in ' '.join(result.stderr.split())
        assert result.stdout == ''


@pytest.mark.parametrize(
    ('more', 'words'),
    [
        (('--limits', 0), 'a latency limit'),
        (('--limits', 'nan'), 'a latency limit'),
        (('--decisions', 0), "Invalid value for '--decisions'"),
        (('--decisions', 99_999), 'too many'),
        (('--noise', 2), "Invalid value for '--noise'"),
        (('--phases', ','), 'at least one'),
    ],
)
def test_an_impossible_option_is_refused(
    tmp_path: Path, more: tuple[object, ...], words: str
) -> None:
    result = contention(tmp_path, *more)
    assert result.exit_code == 2
    assert words in ' '.join(result.stderr.replace('│', ' ').split())


def test_published_tables_are_answered_without_regret(data_folder: Path) -> None:
    folder = data_folder / 'mmedge_tables'
    tables = [folder / f'latency_table_{name}.json' for name in ('H', 'C64', 'C50')]
    options = [word for table in tables for word in ('--latency', str(table))]
    result = run('optimizer', '--accuracy', folder / 'accuracy_table.json', *options, '--json')
    report = json.loads(result.stdout)
    for table in report['tables']:
        assert [answer['limit_ms'] for answer in table['limits']] == [60, 80, 120, 140, 160]
        assert all(answer['regret'] == 0.0 and answer['feasible'] for answer in table['limits'])
        assert (table['sweep']['largest_regret'], table['sweep']['wrongly_flagged']) == (0.0, 0)
    assert report['tables'][0]['limits'][2]['accuracy'] == 93.44
    assert report['tables'][2]['limits'][2]['accuracy'] == 90.64
    times = report['decision_us']['2401']
    assert times['search']['processor_p50'] < times['fresh']['processor_p50']
    assert times['unit']['processor_p50'] > 0.0


@pytest.mark.parametrize('scatter', [(), ('--noise', '0.15', '--outliers', '0.02')])
def test_contention_in_published_tables_costs_few_late_decisions(
    data_folder: Path, scatter: tuple[str, ...]
) -> None:
    folder = data_folder / 'mmedge_tables'
    names = ('H', 'C64', 'C50', 'H')
    phases = ','.join(str(folder / f'latency_table_{name}.json') for name in names)
    options = ('--phases', phases, '--limits', 120, '--decisions', 60, '--json', *scatter)
    result = run('contention', '--accuracy', folder / 'accuracy_table.json', *options)
    report = json.loads(result.stdout)
    for phase in report['phases']:
        assert phase['late'] <= 5
        if not scatter:
            assert phase['regret_at_end'] <= 2.0
    assert [phase['late'] for phase in report['static_table']['phases']][1] > 30


def test_nothing_is_lost_when_the_bench_runs_alone(tmp_path: Path) -> None:
    accuracy, quiet, _ = write_all(tmp_path)
    code = 'from mmedge_lab.commands.bench import bench_app; bench_app()'
    arguments = ['optimizer', '--accuracy', str(accuracy), '--latency', str(quiet), '--json']
    result = subprocess.run(
        [sys.executable, '-c', code, *arguments],
        cwd=ROOT,
        env={**os.environ, 'PYTHONPATH': str(ROOT)},
        capture_output=True,
        check=True,
        timeout=100,
    )
    assert json.loads(result.stdout)['configurations'] == 12
