"""A whole training, tiny: from flights to a bundle that finds what was painted."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from painted_flight import write_painted_set

from mmedge_lab.simulation.flight_folder import flights_in
from mmedge_lab.training import TrainingError
from mmedge_lab.training.checkpoint import load_checkpoint, save_checkpoint
from mmedge_lab.training.detector_session import DetectorRequest, train_detector
from mmedge_lab.training.detector_training import (
    DetectorSettings,
    DetectorTraining,
    load_detector,
)
from mmedge_lab.training.picture_set import PictureSet, write_picture_set
from mmedge_ros.encoding.bundle.model_bundle import load_bundle, open_detector

SUPPORT = Path(__file__).resolve().parents[3] / 'support'
TINY = DetectorSettings(
    size=(160, 128),
    crop=(96, 96),
    pictures=24,
    epochs=2,
    batch=8,
    seed=3,
    threads=1,
)


def silent(share: float, words: str) -> None: ...


@pytest.fixture(scope='module')
def flights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_painted_set(tmp_path_factory.mktemp('flights') / 'set', flights=2, pictures=12)


@pytest.fixture(scope='module')
def pictures(flights: Path, tmp_path_factory: pytest.TempPathFactory) -> PictureSet:
    return write_picture_set(flights_in(flights), tmp_path_factory.mktemp('p') / 'set', 24)


def weights(training: DetectorTraining) -> dict[str, object]:
    return dict(training.network.state_dict())


def assert_equal(one: DetectorTraining, two: DetectorTraining) -> None:
    assert one.losses == two.losses
    assert_equal_weights(one, two)


def assert_equal_weights(one: DetectorTraining, two: DetectorTraining) -> None:
    for name, value in weights(one).items():
        assert torch.equal(value, weights(two)[name]), name


def trained(pictures: PictureSet, folder: Path, settings: DetectorSettings) -> DetectorTraining:
    folder.mkdir(exist_ok=True)
    training = DetectorTraining(pictures, settings, folder)
    training.run()
    return training


@pytest.fixture(scope='module')
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where `whole` was trained."""
    return tmp_path_factory.mktemp('whole')


@pytest.fixture(scope='module')
def whole(pictures: PictureSet, place: Path) -> DetectorTraining:
    """A training that nothing disturbed."""
    return trained(pictures, place, TINY)


def test_a_training_leaves_a_bundle_with_figures_and_nothing_else(
    flights: Path, tmp_path: Path
) -> None:
    out = tmp_path / 'models' / 'walkers'
    progress: list[float] = []
    request = DetectorRequest(flights, out, {'validation': flights}, TINY)
    metrics = train_detector(request, lambda share, words: progress.append(share))
    assert progress == sorted(progress)
    assert [path.name for path in out.parent.iterdir()] == ['walkers']
    bundle = load_bundle(out)
    assert bundle.domain == 'simulated'
    assert bundle.content['metrics'] == {'small': metrics}
    assert metrics['validation']['people'] == 48
    assert bundle.content['training']['data']['seeds'] == [0, 1]
    assert bundle.content['training']['settings']['seed'] == 3
    assert bundle.content['export']['small']['largest_box_difference_px'] <= 1.0
    detector = open_detector(out)
    assert detector.labels == ('person',)
    assert detector.input_size == (160, 128)
    assert bundle.weights().stat().st_size < 1_000_000


def test_the_same_seed_gives_the_same_network_and_another_one_another(
    whole: DetectorTraining, pictures: PictureSet, tmp_path: Path
) -> None:
    assert_equal(whole, trained(pictures, tmp_path / 'again', TINY))
    other = trained(pictures, tmp_path / 'other', replace(TINY, seed=4))
    assert other.losses != whole.losses


def test_a_training_begins_with_a_trained_network_and_says_with_which(
    whole: DetectorTraining, flights: Path, pictures: PictureSet, place: Path, tmp_path: Path
) -> None:
    start = load_detector(place, TINY.width)
    (tmp_path / 'work').mkdir()
    begun = DetectorTraining(pictures, TINY, tmp_path / 'work', start)
    assert_equal_weights(begun, whole)
    settings = replace(TINY, epochs=1)
    request = DetectorRequest(flights, tmp_path / 'more', {}, settings, begin_with=place)
    train_detector(request, silent)
    content = load_bundle(tmp_path / 'more').content
    assert content['training']['settings']['begun_with'] == start.digest


class StoppedError(Exception):
    """Ends a training in the middle of an epoch."""


def test_a_training_that_was_cut_short_ends_as_if_nothing_had_happened(
    whole: DetectorTraining, pictures: PictureSet, tmp_path: Path
) -> None:
    folder = tmp_path / 'cut'
    folder.mkdir()

    def stop(share: float, words: str) -> None:
        if share > 0.7:
            raise StoppedError

    with pytest.raises(StoppedError):
        DetectorTraining(pictures, TINY, folder).run(stop)
    resumed = DetectorTraining(pictures, TINY, folder)
    assert resumed.epoch == 1
    resumed.run()
    assert_equal(whole, resumed)


def test_a_set_of_pictures_is_trained_on_as_it_is(pictures: PictureSet, tmp_path: Path) -> None:
    request = DetectorRequest(pictures.folder, tmp_path / 'walkers', settings=TINY)
    train_detector(request, silent)
    facts = load_bundle(tmp_path / 'walkers').content['training']['data']
    assert facts['sha256'] == pictures.digest


def test_it_learns(pictures: PictureSet, tmp_path: Path) -> None:
    training = trained(pictures, tmp_path / 'one', replace(TINY, epochs=10, learning_rate=5e-3))
    assert training.losses[-1] < 0.8 * training.losses[0]


def test_the_checkpoint_of_another_training_is_refused(
    whole: DetectorTraining, pictures: PictureSet, place: Path
) -> None:
    with pytest.raises(TrainingError, match='other settings: seed 3, not 9'):
        DetectorTraining(pictures, replace(TINY, seed=9), place)
    with pytest.raises(TrainingError, match='other pictures'):
        DetectorTraining(replace(pictures, digest='0' * 64), TINY, place)


@pytest.mark.parametrize('content', [b'', b'nonsense', b'\x80\x04N.'])
def test_a_damaged_checkpoint_is_told(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / 'checkpoint.pt'
    path.write_bytes(content)
    with pytest.raises(TrainingError, match='checkpoint'):
        load_checkpoint(path)


def test_a_full_disk_leaves_the_checkpoint_before(tmp_path: Path, little_room: None) -> None:
    path = tmp_path / 'checkpoint.pt'
    save_checkpoint(path, {'epoch': 1})
    with pytest.raises(OSError, match='too large') as caught:
        save_checkpoint(path, {'epoch': 2, 'network': torch.zeros(100_000)})
    assert caught.value.errno == errno.EFBIG
    assert load_checkpoint(path) == {'epoch': 1}
    assert [p.name for p in tmp_path.iterdir()] == ['checkpoint.pt']


def test_a_full_disk_while_training_is_told_in_a_sentence(
    flights: Path, tmp_path: Path, little_room: None
) -> None:
    request = DetectorRequest(flights, tmp_path / 'walkers', {}, TINY)
    with pytest.raises(TrainingError, match=r'no room left in .*\.walkers\.training'):
        train_detector(request, silent)
    assert not (tmp_path / 'walkers').exists()


def test_a_killed_training_is_no_bundle_and_goes_on_when_asked(
    flights: Path, tmp_path: Path
) -> None:
    out = tmp_path / 'walkers'
    process = subprocess.Popen(
        [sys.executable, SUPPORT / 'train_until_killed.py', flights, out],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, 'PYTHONPATH': os.pathsep.join(sys.path)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == 'second epoch\n'
    process.kill()
    process.wait()
    process.stdout.close()
    assert not out.exists()
    request = DetectorRequest(flights, out, {}, TINY)
    with pytest.raises(TrainingError, match=r'was cut short after epoch 1; go on .* --resume'):
        train_detector(request, silent)
    progress: list[str] = []
    train_detector(replace(request, resume=True), lambda share, words: progress.append(words))
    assert not any(words.startswith('epoch 1 ') for words in progress)
    assert open_detector(out).input_size == (160, 128)
    assert not request.work.exists()


def test_two_trainings_do_not_share_a_work_folder(flights: Path, tmp_path: Path) -> None:
    request = DetectorRequest(flights, tmp_path / 'walkers', {}, TINY)

    def begin_another(share: float, words: str) -> None:
        train_detector(request, silent)

    with pytest.raises(TrainingError, match='another training is writing to'):
        train_detector(request, begin_another)
