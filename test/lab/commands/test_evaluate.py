"""`mmedge lab evaluate`: hostile input is one sentence, and a small set keeps its figures."""

from __future__ import annotations

import errno
import json
import shutil
from pathlib import Path

import hand_made_results as made
import pytest
from bag_fixtures import recording, write_bag
from tiny_bundle import write_tiny_bundle
from truth_fixtures import recording_with_truth
from typer.testing import CliRunner, Result

from mmedge_lab.rivals.comparison import figures
from mmedge_lab.rivals.comparison.result_files import enter_results, read_results
from mmedge_lab.rivals.mmedge import contention_bench
from mmedge_ros.commands.main import app
from mmedge_ros.report import report_files

FEW = ('--policies', 'ours,non_blocking', '--protocols', 'stream', '--limits', '50ms')
ONE = (*FEW, '--shares', '100', '--jobs', '1', '--no-timing')


@pytest.fixture(scope='module')
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_bundle(tmp_path_factory.mktemp('models') / 'tiny')


@pytest.fixture(scope='module')
def flights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp('flights')
    write_bag(folder / 'first', messages=recording_with_truth(0.8))
    return folder


@pytest.fixture(autouse=True)
def _undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures and published tables take seconds; they have tests of their own."""
    monkeypatch.setattr(figures, 'draw_comparison', lambda report: [])
    monkeypatch.setattr(contention_bench, 'tables_folder', lambda: None)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(
        app, ['lab', 'evaluate', *map(str, arguments)], env={'NO_COLOR': '1'}
    )


def refusal(result: Result) -> str:
    assert (result.exit_code, result.stdout) == (1, ''), result.output
    assert 'Traceback' not in result.stderr
    return result.stderr.splitlines()[-1]


def test_a_report_says_how_to_make_it_again(tmp_path: Path, bundle: Path, flights: Path) -> None:
    result = run(flights, '--bundle', bundle, *ONE, '--out', tmp_path)
    assert result.exit_code == 0, result.output
    assert result.stdout.strip() == str(tmp_path / 'report.html')
    report = json.loads((tmp_path / 'report.json').read_text())
    assert [row['policy'] for row in report['cases']] == ['non_blocking', 'ours']
    assert report['command'].startswith(
        f'mmedge lab evaluate {flights} --bundle {bundle} --policies'
    )
    assert '2 of 2 cases are to be run' in result.stderr
    for name in ('report.html', 'report.md'):
        assert report['verdicts'][0]['target'] in (tmp_path / name).read_text()
    again = run(flights, '--bundle', bundle, *ONE, '--out', tmp_path)
    assert '0 of 2 cases are to be run' in again.stderr
    assert json.loads((tmp_path / 'report.json').read_text()) == report


def test_another_bundle_is_shown_beside_the_headline_on_the_same_flights(
    tmp_path: Path, bundle: Path, flights: Path
) -> None:
    other = shutil.copytree(bundle, tmp_path / 'other')
    options = ('--bundle', bundle, *ONE, '--out', tmp_path / 'out', '--beside', other)
    result = run(flights, *options)
    assert result.exit_code == 0, result.output
    assert '3 of 3 cases are to be run' in result.stderr
    report = json.loads((tmp_path / 'out' / 'report.json').read_text())
    assert report['beside']['name'] == 'other'
    row = report['beside']['figures']['accuracy.streaming_mean_iou']
    # The same networks under another name.
    assert row['headline'] == row['other']
    assert row['difference']['value'] == 0.0
    assert f'--beside {other}' in report['command']
    for name in ('report.html', 'report.md'):
        assert 'Ours with another bundle' in (tmp_path / 'out' / name).read_text()
    assert '0 of 3 cases are to be run' in run(flights, *options).stderr


def test_results_that_are_handed_over_are_judged_before_those_of_the_bundle(
    tmp_path: Path, bundle: Path, flights: Path
) -> None:
    own = shutil.copytree(bundle, tmp_path / 'tiny')
    better, worse = (
        made.written(tmp_path / str(n), made.gate(lost)) for n, lost in enumerate((0.004, 0.02))
    )
    enter_results(own, read_results([worse]))

    def gate_of(*options: object) -> tuple[str, str]:
        out = tmp_path / 'out'
        result = run(flights, '--bundle', own, *ONE, '--out', out, *options)
        assert result.exit_code == 0, result.output
        assert 'all in all this took' in result.stderr
        report = json.loads((out / 'report.json').read_text())
        found = {verdict['key']: verdict for verdict in report['verdicts']}
        return found['gate']['verdict'], report['command']

    assert gate_of()[0] == 'missed'
    verdict, command = gate_of('--results', better)
    assert verdict == 'met'
    assert f'--results {better}' in command


@pytest.mark.parametrize(
    ('options', 'sentence'),
    [
        (('--policies', 'mine'), "no policy 'mine'"),
        (('--policies', 'imputation'), 'imputation was not run: it needs a trained plug-in'),
        (('--protocols', 'both'), "no protocol 'both'"),
        (('--limits', '-3ms'), 'no latency limit'),
        (('--shares', '200'), 'no share of the processor'),
        (('--bundle', 'no_such_bundle'), 'no_such_bundle'),
        (('--seeds', '3'), '--seeds is for flights simulated here'),
    ],
)
def test_options_that_cannot_be_are_one_sentence(
    tmp_path: Path, bundle: Path, flights: Path, options: tuple[str, ...], sentence: str
) -> None:
    result = run(flights, '--bundle', bundle, '--out', tmp_path, *options)
    assert sentence in refusal(result)
    assert not list(tmp_path.glob('cases/**/*.npz'))


def test_a_set_without_ground_truth_is_one_sentence(tmp_path: Path, bundle: Path) -> None:
    write_bag(tmp_path / 'set' / 'only', messages=recording(0.5))
    sentence = refusal(run(tmp_path / 'set', '--bundle', bundle, *ONE, '--out', tmp_path / 'out'))
    assert 'ground truth is needed' in sentence
    assert 'only' in sentence


def test_a_broken_recording_is_read_up_to_the_break_and_the_report_says_so(
    tmp_path: Path, bundle: Path
) -> None:
    path = write_bag(tmp_path / 'set' / 'cut', messages=recording_with_truth(0.8))
    file = next(p for p in path.rglob('*') if p.suffix in ('.mcap', '.db3'))
    file.write_bytes(file.read_bytes()[: file.stat().st_size * 7 // 10])
    for _ in range(2):  # what is kept of it says so as well
        result = run(tmp_path / 'set', '--bundle', bundle, *ONE, '--out', tmp_path / 'out')
        assert result.exit_code == 0, result.output
        report = json.loads((tmp_path / 'out' / 'report.json').read_text())
        (problem,) = [text for text in report['problems'] if text.startswith('flight cut')]
        assert 'broken after' in problem
        assert problem in result.stderr.replace('\n', ' ')


def test_a_folder_without_flights_is_one_sentence(tmp_path: Path, bundle: Path) -> None:
    assert 'holds no flights' in refusal(run(tmp_path, '--bundle', bundle, '--out', tmp_path))


def test_the_same_set_twice_is_one_sentence(tmp_path: Path, bundle: Path, flights: Path) -> None:
    sentence = refusal(run(flights, flights, '--bundle', bundle, *ONE, '--out', tmp_path))
    assert 'two flights named' in sentence


@pytest.mark.parametrize(
    ('content', 'sentence'),
    [
        ('just words', 'device profile'),
        ('probabilities: [0.05, 0.25, 0.5, 0.75, 0.95, 0.99]\nstages_ms: {}\n', 'no stage'),
    ],
)
def test_a_wrong_profile_is_one_sentence(
    tmp_path: Path, bundle: Path, flights: Path, content: str, sentence: str
) -> None:
    profile = tmp_path / 'profile.yaml'
    profile.write_text(content)
    result = run(flights, '--bundle', bundle, *ONE, '--profile', profile, '--out', tmp_path)
    assert sentence in refusal(result)


def test_a_full_disk_is_one_sentence_and_leaves_nothing_half_written(
    tmp_path: Path, bundle: Path, flights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, content: bytes) -> None:
        path.write_bytes(content[:10])
        raise OSError(errno.ENOSPC, 'No space left on device')

    monkeypatch.setattr(report_files, '_write', full)
    result = run(flights, '--bundle', bundle, *ONE, '--out', tmp_path)
    assert 'No space left on device' in refusal(result)
    assert not [path for path in tmp_path.rglob('*') if path.is_file()]


def test_what_moved_is_shown_and_ends_with_code_1(
    tmp_path: Path, bundle: Path, flights: Path
) -> None:
    options = (flights, '--bundle', bundle, *ONE, '--out', tmp_path / 'out')
    kept = tmp_path / 'kept.json'
    assert run(*options, '--store', kept).exit_code == 0
    same = run(*options, '--against', kept)
    assert same.exit_code == 0, same.output
    assert '0 of ' in same.stderr
    content = json.loads(kept.read_text())
    content['cases']['ours-stream-100-50ms']['latency_ms.p50']['value'] += 30.0
    kept.write_text(json.dumps(content))
    moved = run(*options, '--against', kept)
    assert moved.exit_code == 1
    line = next(row for row in moved.stdout.splitlines() if 'latency_ms.p50' in row)
    assert 'ours-stream-100-50ms' in line
    assert '-30' in line
    assert str(tmp_path / 'out' / 'report.html') in moved.stdout
