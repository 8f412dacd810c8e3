"""`mmedge lab train ablations`: what can be refused is refused before anything is begun."""

from __future__ import annotations

from pathlib import Path

from hand_made_features import hand_made_flight, write_features
from typer.testing import CliRunner, Result

from mmedge_lab.commands.train import train_app


def run(features: Path, out: Path, *arguments: str) -> Result:
    given = ['ablations', str(features), '--out', str(out), *arguments]
    return CliRunner().invoke(train_app, given)


def test_the_help_names_the_options() -> None:
    done = CliRunner().invoke(train_app, ['ablations', '--help'], env={'COLUMNS': '120'})
    assert done.exit_code == 0
    for option in ('--seeds', '--epochs', '--flights', '--judged', '--resume', '--out'):
        assert option in done.stdout


def test_a_folder_without_features_is_refused_with_the_command_that_makes_them(
    tmp_path: Path,
) -> None:
    done = run(tmp_path, tmp_path / 'out')
    assert done.exit_code == 1
    assert 'holds no features of flights' in done.stderr
    assert '--features' in done.stderr
    assert not (tmp_path / 'out').exists()


def test_features_without_flights_to_judge_on_are_refused(tmp_path: Path) -> None:
    write_features(tmp_path / 'cache/train/one', hand_made_flight(seconds=0.3))
    done = run(tmp_path, tmp_path / 'out')
    assert done.exit_code == 1
    assert 'cache/validation holds no features' in done.stderr.replace('\n', '')


def test_damaged_features_are_told(tmp_path: Path) -> None:
    write_features(tmp_path / 'cache/train/one', hand_made_flight(seconds=0.3))
    (tmp_path / 'cache/train/one/units.npz').write_bytes(b'PK')
    done = run(tmp_path, tmp_path / 'out')
    assert done.exit_code == 1
    assert 'cannot be used' in done.stderr


def test_less_than_one_seed_is_refused(tmp_path: Path) -> None:
    assert run(tmp_path, tmp_path / 'out', '--seeds', '0').exit_code == 2


def test_ablations_that_have_ended_are_not_begun_again(tmp_path: Path) -> None:
    out = tmp_path / 'out'
    out.mkdir()
    (out / 'report.json').write_text('{}')
    done = run(tmp_path, out)
    assert done.exit_code == 1
    assert 'have ended' in done.stderr
    assert (out / 'report.json').read_text() == '{}'
