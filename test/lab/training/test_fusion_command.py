"""`mmedge lab train fusion`: what can be refused is refused before anything is begun."""

from __future__ import annotations

import importlib.util
import inspect
from pathlib import Path

import pytest
from painted_crossing import write_crossing
from typer.testing import CliRunner, Result

from mmedge_lab.commands.train import fusion, train_app
from mmedge_lab.training import fusion_session
from mmedge_lab.training.fusion_session import FusionRequest
from mmedge_lab.training.fusion_settings import FusionSettings


def run(place: Path, *arguments: str | Path) -> Result:
    known = ('--narrow', place / 'narrow', '--wide', place / 'wide', '--out', place / 'out')
    given = ['fusion', place / 'set', *known, *arguments]
    return CliRunner().invoke(train_app, [str(argument) for argument in given])


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in ('set', 'narrow', 'wide'):
        (tmp_path / name).mkdir()
    return tmp_path


def add_detectors(place: Path) -> None:
    for name in ('narrow', 'wide'):
        (place / name / 'checkpoint.pt').touch()


def test_the_help_names_the_options() -> None:
    done = CliRunner().invoke(train_app, ['fusion', '--help'], env={'COLUMNS': '120'})
    assert done.exit_code == 0
    for option in (
        '--narrow',
        '--wide',
        '--pseudo-labels',
        '--frames',
        '--without',
        '--whole-window',
    ):
        assert option in done.stdout


def test_what_is_not_said_is_as_the_settings_have_it() -> None:
    options = inspect.signature(fusion).parameters
    usual = FusionSettings()
    for name in ('epochs', 'seed', 'whole_window'):
        assert options[name].default == getattr(usual, name), name


def test_parts_are_left_out_in_one_order(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = []

    def train_fusion(request: FusionRequest, _: object) -> dict[str, object]:
        requests.append(request)
        return {}

    monkeypatch.setattr(fusion_session, 'train_fusion', train_fusion)
    assert run(place, '--without', 'aggregation', '--without', 'shift').exit_code == 0
    settings = requests[0].settings
    assert settings.without == ('shift', 'aggregation')
    assert settings.plain()['without'] == ['shift', 'aggregation']


def test_a_folder_without_flights_is_refused(place: Path) -> None:
    done = run(place)
    assert done.exit_code == 1
    assert 'holds no flights' in done.stderr


def test_detectors_that_are_not_there_are_told(place: Path) -> None:
    write_crossing(place / 'set/one', seconds=0.2)
    done = run(place)
    assert done.exit_code == 1
    assert '--keep-work' in done.stderr


def test_flights_without_ground_truth_are_refused_at_once(place: Path) -> None:
    write_crossing(place / 'set/one', seconds=0.2, truth=False)
    add_detectors(place)
    done = run(place)
    assert done.exit_code == 1
    assert 'ground truth is needed' in done.stderr
    assert '--pseudo-labels' in done.stderr
    assert not (place / '.out.training').exists()


@pytest.mark.parametrize('frames', ['3', '9:3', 'a:b', ':-1'])
def test_frames_that_are_no_span_are_refused(place: Path, frames: str) -> None:
    done = run(place, '--pseudo-labels', 'yolox_nano', '--frames', frames)
    assert done.exit_code == 2
    assert '--frames' in done.stderr


def test_frames_without_a_teacher_mean_nothing(place: Path) -> None:
    done = run(place, '--frames', '0:10')
    assert done.exit_code == 2
    assert '--pseudo-labels' in done.stderr


@pytest.mark.skipif(
    importlib.util.find_spec('torch') is not None, reason='torch is installed in this environment'
)
def test_without_torch_it_is_said_what_brings_it(place: Path) -> None:
    write_crossing(place / 'set/one', seconds=0.2)
    add_detectors(place)
    done = run(place)
    assert done.exit_code == 1
    assert './mmedge lab train installs' in done.stderr
