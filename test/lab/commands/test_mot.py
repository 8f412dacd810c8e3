"""The commands on MOTChallenge text, from the command line to the file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mmedge_ros.commands.main import app

TRUTH = ''.join(f'{n},1,{10 + n},20,40,100,1,-1,-1,-1\n' for n in range(1, 21))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / 'gt.txt').write_text(TRUTH)
    lines = [f'{n},-1,{10 + n},20,40,100,0.9,-1,-1,-1\n' for n in range(1, 21)]
    (tmp_path / 'det.txt').write_text(''.join(lines))
    return tmp_path


def run(*arguments: object):  # type: ignore[no-untyped-def]
    return CliRunner().invoke(app, ['lab', *map(str, arguments)])


def test_detections_are_tracked_and_the_tracks_judged(folder: Path) -> None:
    out, report = folder / 'new' / 'tracks.txt', folder / 'figures.json'
    tracked = run('mot', folder / 'det.txt', '--out', out, '--width', 640, '--height', 480)
    assert tracked.exit_code == 0
    assert tracked.stdout.strip() == str(out)
    judged = run('mot', out, '--truth', folder / 'gt.txt', '--out', report)
    assert judged.exit_code == 0
    figures = json.loads(report.read_text())
    assert figures['mota'] == 0.95  # the track is believed from the second frame on
    assert (figures['id_switches'], figures['false_negatives']) == (0, 1)
    rows = dict(line.split()[:2] for line in judged.stdout.splitlines() if line.strip())
    assert (rows['MOTA'], rows['IDF1']) == ('0.950', '0.974')
    assert 'MOTA' not in judged.stderr


def test_figures_nobody_can_know_are_null_and_a_dash(folder: Path) -> None:
    report = folder / 'figures.json'
    judged = run('mot', folder / 'det.txt', '--truth', folder / 'gt.txt', '--out', report)
    figures = json.loads(report.read_text())
    assert (figures['idf1'], figures['id_switches'], figures['recall']) == (None, None, 1.0)
    assert 'without an id' in judged.stderr
    rows = dict(line.split()[:2] for line in judged.stdout.splitlines() if line.strip())
    assert rows['MOTA'] == '-'


@pytest.mark.parametrize(
    ('arguments', 'words'),
    [
        (('bad.txt', '--truth', 'gt.txt'), 'bad.txt, line 2: 2 columns'),
        (('gt.txt', '--truth', 'empty.txt'), 'no box that counts'),
        (('gt.txt', '--truth', 'det.txt'), 'without an id'),
        (('bad.txt', '--out', 'out.txt'), 'bad.txt, line 2: 2 columns'),
        (('det.txt', '--out', 'out.txt', '--fps', '0'), '0 pictures per second'),
        (('det.txt', '--out', 'out.txt', '--width', '-3'), 'width is -3 px'),
        (('det.txt', '--out', 'gt.txt/out.txt'), 'cannot write'),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(
    folder: Path, arguments: tuple[str, ...], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / 'bad.txt').write_text(TRUTH.splitlines(keepends=True)[0] + 'so,what\n')
    (folder / 'empty.txt').write_text('')
    monkeypatch.chdir(folder)
    result = run('mot', *arguments)
    assert result.exit_code == 1
    assert words in result.stderr
    assert result.stdout == ''
    assert not (folder / 'out.txt').exists()


def test_rivals_are_compared_on_the_same_detections(folder: Path) -> None:
    pytest.importorskip('trackers', reason='run ./mmedge install rivals for this test')
    report = folder / 'figures.json'
    judged = run(
        'mot', folder / 'det.txt', '--truth', folder / 'gt.txt', '--rivals', '--out', report
    )
    assert judged.exit_code == 0
    trackers = json.loads(report.read_text())['trackers']
    assert list(trackers) == ['SORT', 'ByteTrack', 'OC-SORT', 'mmedge']
    assert all(figures['id_switches'] == 0 for figures in trackers.values())
    rows = dict(line.split()[:2] for line in judged.stdout.splitlines() if line.strip())
    assert rows['mmedge'] == '0.950'
