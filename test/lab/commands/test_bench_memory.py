"""`mmedge lab bench memory`: its report, its words, and how it ends where something is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hand_made_crops import write_crops
from typer.testing import CliRunner, Result

from mmedge_lab.commands.bench import bench_app

# Of the first sixty scenes, twelve fit margins and six judge.
SCENES, OBJECTS = 60, 6


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('COLUMNS', '200')


def run(crops: Path, out: Path, *more: str) -> Result:
    options = ['--crops', crops, '--out', out, '--large', '', '--quick', *more]
    return CliRunner().invoke(bench_app, ['memory', *map(str, options)])


def sentence(done: Result) -> str:
    assert done.exit_code == 1
    assert 'Traceback' not in done.output
    (line,) = [line for line in done.stderr.splitlines() if line.startswith('mmedge:')]
    return line


def test_every_part_is_judged_beside_its_control(tmp_path: Path) -> None:
    done = run(write_crops(tmp_path / 'crops', SCENES, OBJECTS), tmp_path / 'out', '--watts', '5')
    assert done.exit_code == 0, done.output
    report = json.loads((tmp_path / 'out/memory.json').read_text())
    rows = report['rows']
    assert {name[0] for name in rows} == {one['row'][0] for one in report['comparisons']}
    assert {name[0] for name in rows} == set('abcde')
    assert all({one['row'], one['control']} <= set(rows) for one in report['comparisons'])
    assert rows['a exit 3']['words']['value'] > rows['a exit 1']['words']['low']
    assert set(report['healed_groups_kept']) == {'by steps of 1', 'by steps of 2', 'at the pivot'}
    slow, fast = (
        next(row for row in report['throughput'] if row['way'] == way and row['batch'] == 1)
        for way in ('end', 'exit 1')
    )
    assert fast['per_s'] > slow['per_s']
    assert slow['mj'] == pytest.approx(5000.0 / slow['per_s'], rel=1e-2)
    assert report['loading'] == []
    assert 'the predictor is right in' in done.stderr
    assert 'note: this was quick' in done.stderr


def test_a_folder_without_crops_ends_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / 'crops').mkdir()
    assert 'holds no crops; name the folder' in sentence(run(tmp_path / 'crops', tmp_path / 'out'))


def test_too_few_scenes_end_with_a_sentence(tmp_path: Path) -> None:
    done = run(write_crops(tmp_path / 'crops', 8), tmp_path / 'out')
    assert 'take crops of more scenes' in sentence(done)


def test_an_encoder_in_one_graph_cannot_be_loaded_by_stages(tmp_path: Path) -> None:
    done = run(write_crops(tmp_path / 'crops', 8), tmp_path / 'out', '--large', 'flight_people')
    assert 'name a bundle whose camera is in stages' in sentence(done)
