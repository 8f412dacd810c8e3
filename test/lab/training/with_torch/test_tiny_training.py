"""A whole training, tiny: from pictures to a bundle that finds what was painted."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from painted_flight import write_painted_pictures, write_painted_set

from mmedge_lab.training import TrainingError
from mmedge_lab.training.detector_training import (
    DetectorSettings,
    load_detector,
    train_detector,
)
from mmedge_ros.encoding.bundle.model_bundle import load_bundle, open_detector

TINY = DetectorSettings(
    size=(160, 128),
    crop=(96, 96),
    epochs=2,
    batch=8,
    seed=3,
    threads=1,
)


def silent(share: float, words: str) -> None: ...


@pytest.fixture(scope='module')
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp('pictures') / 'set'
    write_painted_pictures(folder, 24)
    return folder


def test_a_training_leaves_a_bundle_with_figures_and_nothing_else(
    pictures: Path, tmp_path: Path
) -> None:
    flights = write_painted_set(tmp_path / 'flights', flights=2, pictures=12)
    out = tmp_path / 'models' / 'walkers'
    progress: list[float] = []
    metrics = train_detector(
        [pictures],
        out,
        lambda share, words: progress.append(share),
        validation=flights,
        settings=TINY,
    )
    assert progress == sorted(progress)
    assert [path.name for path in out.parent.iterdir()] == ['walkers']
    bundle = load_bundle(out)
    assert bundle.domain == 'simulated'
    assert bundle.content['metrics'] == {'small': metrics}
    assert metrics['validation']['people'] == 48
    assert bundle.content['training']['data']['pictures'] == 24
    assert bundle.content['training']['settings']['seed'] == 3
    assert bundle.content['export']['small']['largest_box_difference_px'] <= 1.0
    detector = open_detector(out)
    assert detector.labels == ('person',)
    assert detector.input_size == (160, 128)
    assert bundle.camera_stages()[0].stat().st_size < 1_000_000


def test_a_training_on_pictures_of_both_kinds_keeps_what_it_began_with(
    pictures: Path, tmp_path: Path
) -> None:
    own = tmp_path / 'own'
    shutil.copytree(pictures, own)
    (own / 'index.json').unlink()
    (own / 'sources.csv').write_text('file,source\n000000.jpg,lake\n')
    begun = tmp_path / 'begun'
    train_detector([pictures], begun, silent, settings=TINY)
    out = tmp_path / 'mixed'
    settings = replace(TINY, epochs=1, learning_rate=1e-6)
    train_detector(
        [pictures, own],
        out,
        silent,
        settings=settings,
        begin_with=begun,
        remind=begun,
        attribution='By Ann.',
    )
    content = load_bundle(out).content
    stated = content['training']['settings']
    digest = load_detector(begun, 'narrow').digest
    assert (stated['begun_with'], stated['reminded_by']) == (digest, digest)
    assert (content['domain'], content['attribution']) == ('real and simulated', 'By Ann.')
    assert [of['pictures'] for of in content['training']['data']['sets']] == [24, 24]
    assert 'lake' in (out / 'sources.csv').read_text()
    ways = [load_detector(folder, 'narrow').network.parameters() for folder in (begun, out)]
    change = max(float((a - b).abs().max()) for a, b in zip(*ways, strict=True))
    assert 0.0 < change < 0.01


def test_two_trainings_do_not_share_a_work_folder(pictures: Path, tmp_path: Path) -> None:
    out = tmp_path / 'walkers'

    def begin_another(share: float, words: str) -> None:
        train_detector([pictures], out, silent, settings=TINY)

    with pytest.raises(TrainingError, match='another training is writing to'):
        train_detector([pictures], out, begin_another, settings=TINY)


def test_a_full_disk_while_training_is_told_in_a_sentence(
    pictures: Path, tmp_path: Path, little_room: None
) -> None:
    with pytest.raises(TrainingError, match=r'no room left in .*\.walkers\.training'):
        train_detector([pictures], tmp_path / 'walkers', silent, settings=TINY)
    assert not (tmp_path / 'walkers').exists()
