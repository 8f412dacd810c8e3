"""A bundle with a semantic memory, made of a trained classifier and a folder of pictures."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
import yaml
from hand_made_classifiers import (
    CLASSES,
    as_blob,
    mobile_classifier,
    picture_of,
    residual_classifier,
    write_model,
    write_pictures,
)

from mmedge_lab.training import TrainingError
from mmedge_lab.training.labelled_pictures import class_names, labelled_pictures
from mmedge_lab.training.tap_figures import TapFigures
from mmedge_lab.training.tapped_bundle import TapRequest, make_tapped_bundle
from mmedge_ros.data_types import LabelSource
from mmedge_ros.encoding.classifier_description import describe_classifier
from mmedge_ros.encoding.crops import as_input
from mmedge_ros.encoding.tapped_classifier import MemorisedClassifier, open_classifier


@pytest.fixture(scope='module')
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two models and pictures of their classes."""
    folder = tmp_path_factory.mktemp('tap')
    write_model(folder / 'residual.onnx', residual_classifier('Softmax'))
    write_model(folder / 'mobile.onnx', mobile_classifier())
    write_pictures(folder / 'pictures', 45)
    return folder


@pytest.fixture(scope='module', params=['residual', 'mobile'])
def made(place: Path, request: pytest.FixtureRequest) -> tuple[Path, TapFigures]:
    """A bundle of each, and its figures."""
    out = place / f'bundle_{request.param}'
    wanted = TapRequest(place / f'{request.param}.onnx', out, place / 'pictures', taps=3)
    return out, make_tapped_bundle(wanted, lambda share, words: None)


@pytest.fixture
def small(tmp_path: Path, place: Path) -> TapRequest:
    """A request with few pictures of its own, for what goes wrong."""
    pictures = write_pictures(tmp_path / 'pictures', 3)
    return TapRequest(place / 'mobile.onnx', tmp_path / 'out/bundle', pictures)


def refused(request: TapRequest) -> str:
    """The words of the error; nothing of the bundle may be left behind."""
    with pytest.raises(TrainingError) as error:
        make_tapped_bundle(request, lambda share, words: None)
    assert not request.out.parent.exists() or not list(request.out.parent.iterdir())
    return str(error.value)


def opened(out: Path) -> MemorisedClassifier:
    description = describe_classifier(out)
    assert description is not None
    assert description.classes == CLASSES
    assert description.form.size == (32, 32)
    return open_classifier(description)


def test_its_classifier_names_the_classes_and_is_left_early_once_they_are_met(
    made: tuple[Path, TapFigures],
) -> None:
    classifier = opened(made[0])
    looks = []
    for number in range(40):
        label = (2, 0)[number % 2]
        look = classifier.look(as_blob(picture_of(label, 5000 + number)))
        assert look.label == label
        looks.append(look)
    assert looks[0].source is looks[1].source is LabelSource.FULL
    assert sum(look.source is LabelSource.MEMORY for look in looks[4:]) > 30
    assert min(look.exit for look in looks) == 1


def test_its_figures_are_those_of_pictures_held_out(made: tuple[Path, TapFigures]) -> None:
    out, figures = made
    assert (figures.fitted, figures.held_out, figures.unreadable) == (120, 60, 0)
    assert figures.whole_accuracy > 0.95
    assert figures.accuracy > 0.95
    assert sum(stage.share for stage in figures.stages) == pytest.approx(1.0)
    assert sum(stage.left for stage in figures.stages) == pytest.approx(1.0)
    assert figures.stages[-1].left < 0.2
    assert figures.stages[-1].width == 0
    assert all(stage.seconds > 0.0 for stage in figures.stages)
    memory = opened(out).memory
    assert memory is not None
    assert figures.memory_bytes == memory.bytes


def test_it_holds_stages_memory_and_one_section(made: tuple[Path, TapFigures]) -> None:
    out, figures = made
    names = {f'recogniser_{number}.onnx' for number in range(1, len(figures.stages) + 1)}
    assert {file.name for file in out.iterdir()} == {*names, 'recogniser.npz', 'manifest.yaml'}
    manifest = yaml.safe_load((out / 'manifest.yaml').read_text())
    assert list(manifest) == ['name', 'recogniser']
    sizes = [entry['bytes'] for entry in manifest['recogniser']['stages']]
    assert sizes == [(out / name).stat().st_size for name in sorted(names)]
    assert not [file.name for file in out.parent.iterdir() if file.name.startswith('.')]


def test_pictures_are_held_out_alike_each_time(place: Path, made: tuple[Path, TapFigures]) -> None:
    out, _ = made
    wanted = TapRequest(
        place / f'{out.name.removeprefix("bundle_")}.onnx', place / 'again', place / 'pictures',
        taps=3,
    )  # fmt: skip
    make_tapped_bundle(wanted, lambda share, words: None)
    try:
        for file in wanted.out.glob('*.*[xz]'):
            assert file.read_bytes() == (out / file.name).read_bytes()
    finally:
        for file in wanted.out.iterdir():
            file.unlink()
        wanted.out.rmdir()


def test_with_square_the_middle_of_a_picture_is_looked_at(small: TapRequest) -> None:
    request = dataclasses.replace(small, square=True, rgb=False)
    for name in CLASSES:
        for file in (small.pictures / name).iterdir():
            picture = cv2.imread(str(file))
            edge = np.zeros((40, 200, 3), np.uint8)
            cv2.imwrite(str(file), np.hstack([edge, picture[:, :, ::-1], edge]))
    figures = make_tapped_bundle(request, lambda share, words: None)
    assert figures.whole_accuracy == 1.0
    description = describe_classifier(request.out)
    assert description is not None
    assert description.form.square
    assert not description.form.rgb
    classifier = open_classifier(description)
    assert classifier.look(as_input(picture_of(3, 1)[:, :, ::-1], description.form)).label == 3


def test_the_order_of_the_outputs_is_that_of_the_labels(small: TapRequest, tmp_path: Path) -> None:
    labels = tmp_path / 'labels.txt'
    names = ('zebra', 'ant', 'café', 'dog')
    labels.write_text('\ufeff' + '\r\n'.join(names) + '\n\n', 'utf-8')
    for old, new in zip(CLASSES, names, strict=True):
        (small.pictures / old).rename(small.pictures / new)
    figures = make_tapped_bundle(
        dataclasses.replace(small, labels=labels), lambda share, words: None
    )
    assert figures.whole_accuracy == 1.0
    description = describe_classifier(small.out)
    assert description is not None
    assert description.classes == names


def test_what_is_no_picture_is_passed_over_and_counted_where_it_is_called_one(
    small: TapRequest,
) -> None:
    folder = small.pictures / 'red'
    (folder / 'notes.txt').write_text('no picture')
    (folder / '00.jpg').write_text('no picture either')
    (folder / 'folder.png').mkdir()
    os.mkfifo(folder / 'pipe.png')
    (small.pictures / '.hidden').mkdir()
    figures = make_tapped_bundle(small, lambda share, words: None)
    assert (figures.unreadable, figures.fitted, figures.held_out) == (1, 8, 4)


def test_an_input_that_a_stage_cannot_bear_is_named(small: TapRequest) -> None:
    tiny, model = (1e-38, 1e-38, 1e-38), small.model.with_name('residual.onnx')
    assert 'what is no number' in refused(dataclasses.replace(small, model=model, deviation=tiny))


def only_broken(request: TapRequest) -> None:
    for file in (request.pictures / 'red').iterdir():
        file.write_bytes(file.read_bytes()[:60])


def empty_class(request: TapRequest) -> None:
    for file in (request.pictures / 'green').iterdir():
        file.unlink()


def two_pictures(request: TapRequest) -> None:
    next((request.pictures / 'green').iterdir()).unlink()


def one_class_more(request: TapRequest) -> None:
    (request.pictures / 'violet').mkdir()


def no_utf8(request: TapRequest) -> None:
    (request.pictures / 'red').rename(os.fsdecode(os.fsencode(request.pictures) + b'/r\xffd'))


def odd_name(request: TapRequest) -> None:
    (request.pictures / 'red').rename(request.pictures / 'r\x1b[31m')


@pytest.mark.parametrize(
    ('spoil', 'words'),
    [
        (only_broken, "'red' has 0 pictures that can be read"),
        (empty_class, 'at least 3 pictures'),
        (two_pictures, "'green' has 2 pictures"),
        (one_class_more, 'has 5 folders, the classifier tells 4 classes'),
        (no_utf8, 'not UTF-8'),
        (odd_name, 'no name of a class'),
    ],
)
def test_pictures_that_do_not_suit_leave_nothing_behind(
    small: TapRequest, spoil: Callable[[TapRequest], None], words: str
) -> None:
    spoil(small)
    assert words in refused(small)


@pytest.mark.parametrize(
    ('content', 'words'),
    [
        (b'a\nb\nc\n', 'names 3 classes'),
        (b'blue\ngreen\nred\n../red\n', 'no folder for'),
        (b'blue\ngreen\nred\nred\n', 'lines 3 and 4'),
        (b'blue\n\xff\n', 'no UTF-8 text'),
        (b'blue\n\nred\n', 'line 2'),
    ],
)
def test_labels_that_do_not_suit_are_refused(
    small: TapRequest, tmp_path: Path, content: bytes, words: str
) -> None:
    labels = tmp_path / 'labels.txt'
    labels.write_bytes(content)
    assert words in refused(dataclasses.replace(small, labels=labels))


def test_a_bundle_that_is_there_stays_as_it_is(small: TapRequest) -> None:
    small.out.mkdir(parents=True)
    (small.out / 'mine').touch()
    with pytest.raises(TrainingError, match='exists already'):
        make_tapped_bundle(small, lambda share, words: None)
    assert [file.name for file in small.out.iterdir()] == ['mine']


def test_a_name_of_a_bundle_that_is_not_utf8_is_refused(small: TapRequest) -> None:
    out = small.out.with_name(os.fsdecode(b'b\xff'))
    assert 'not UTF-8' in refused(dataclasses.replace(small, out=out))


def test_so_many_pictures_of_a_class_are_taken_evenly(place: Path) -> None:
    chosen = labelled_pictures(place / 'pictures', 4, most=5)
    assert [file.name for file in chosen.files[1]] == [f'{n}.png' for n in (0, 9, 18, 27, 36)]
    assert chosen.classes == CLASSES


def test_labels_are_read_whatever_ends_their_lines(tmp_path: Path) -> None:
    path = tmp_path / 'labels.txt'
    path.write_bytes(b'one\r\ntwo words\nthree')
    assert class_names(path) == ('one', 'two words', 'three')
