"""Bundles of networks that a user brings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import cv2
import numpy as np
import pytest
from hand_made_networks import BOX, endless_network, ultralytics_network
from tiny_detector import write_tiny_detector

from mmedge_lab.training import TrainingError
from mmedge_lab.training.user_levels import (
    Trial,
    TrialPicture,
    UserLevels,
    ascending,
    build_bundle,
    class_labels,
    try_network,
)
from mmedge_ros.adaptation.bundle_configurations import (
    bundle_levels,
    bundle_predictor,
    bundle_space,
    bundle_unit_times,
)
from mmedge_ros.core.data_types import CAMERA, RADAR
from mmedge_ros.encoding.bundle.model_bundle import load_bundle, open_detector
from mmedge_ros.replay.ground_truth import TrueFrame

RATES = {CAMERA: (10.0, 20.0, 30.0), RADAR: (5.0, 10.0, 20.0)}
# A white person on black, which the tiny detectors find to the pixel.
_WHITE = (200.0, 100.0, 260.0, 300.0)


def picture() -> TrialPicture:
    image = np.zeros((480, 640, 3), np.uint8)
    x0, y0, x1, y1 = map(int, _WHITE)
    image[y0:y1, x0:x1] = 255
    nowhere = np.full((1, 3), np.nan)
    truth = TrueFrame(
        np.array([1]),
        np.array(['person']),
        np.array([_WHITE]),
        np.array([1.0]),
        nowhere,
        nowhere,
        nowhere[:, 0],
        np.array([True]),
        np.zeros(1),
    )
    return TrialPicture(cv2.imencode('.jpg', image)[1].tobytes(), truth)


def built(out: Path, weights: Mapping[str, Path], **rest: str) -> dict[str, Trial]:
    request = UserLevels(weights, out, (416, 320), **rest)
    return build_bundle(request, [picture()], lambda _share, _words: None)


def trial(milliseconds: float) -> Trial:
    return Trial((416, 320), ('person',), {}, 1e-3 * milliseconds, 2e-3 * milliseconds, 2, 1.0)


def test_levels_fly_by_their_measured_times(tmp_path: Path) -> None:
    weights = {
        'heavy': write_tiny_detector(tmp_path / 'a.onnx', 640, 512, score=0.7),
        'light': write_tiny_detector(tmp_path / 'b.onnx', score=0.8),
    }
    trials = built(tmp_path / 'own', weights, licence='MIT')
    # Networks as small as these take so alike that a busy machine may swap them.
    assert set(trials) == {'light', 'heavy'}
    assert list(trials) == sorted(trials, key=lambda level: trials[level].median)
    assert trials['light'].recall == 1.0
    bundle = load_bundle(tmp_path / 'own')
    assert bundle.content['licence'] == 'MIT'
    assert bundle_levels(bundle.folder, CAMERA) == tuple(trials)
    space = bundle_space(bundle.folder, (CAMERA, RADAR), RATES)
    times, measured = bundle_unit_times(bundle.folder, space)
    assert measured
    for level, its in trials.items():
        assert times.units[CAMERA, level].median == pytest.approx(its.median, abs=1e-6)
        (detection,) = open_detector(bundle.folder, level=level).detect(white()).detections
        assert detection.label == 'person'
    assert bundle_predictor(bundle.folder, space).source.startswith('assumed')


def white() -> np.ndarray:
    jpeg = np.frombuffer(picture().jpeg, np.uint8)
    return np.asarray(cv2.imdecode(jpeg, cv2.IMREAD_COLOR), np.uint8)


def test_classes_of_other_names_are_people_and_one_object_is_one(tmp_path: Path) -> None:
    weights = {'own': ultralytics_network(tmp_path / 'a.onnx', ('pedestrian', 'People'))}
    trials = built(tmp_path / 'own', weights)
    assert trials['own'].labels == {'pedestrian': 'person', 'People': 'person'}
    detector = open_detector(tmp_path / 'own')
    (detection,) = detector.detect(white()).detections
    assert detector.labels == ('person',)
    # 640 x 480 px become 416 x 312, with 4 rows of padding above and below.
    scale, (x0, y0, x1, y1) = 640 / 416, BOX
    expected = [scale * side for side in (x0, y0 - 4, x1, y1 - 4)]
    assert list(detection.box) == pytest.approx(expected)


def test_a_network_without_people_is_refused_unless_told_which_they_are(tmp_path: Path) -> None:
    path = ultralytics_network(tmp_path / 'a.onnx', ('boat', 'buoy'))
    with pytest.raises(TrainingError, match=r'none of the classes .* \(boat, buoy\).*--people'):
        built(tmp_path / 'own', {'own': path})
    assert not any(p.name.startswith(('own', '.own')) for p in tmp_path.iterdir())
    assert built(tmp_path / 'own', {'own': path}, people='boat')['own'].labels == {
        'boat': 'person'
    }
    with pytest.raises(TrainingError, match="no class 'ship' either"):
        class_labels(('boat',), 'ship', 'a.onnx')
    assert class_labels(('person', 'car'), 'ship', 'a.onnx') == {}


def test_a_network_that_hangs_is_given_up(tmp_path: Path) -> None:
    path = endless_network(tmp_path / 'a.onnx')
    with pytest.raises(TrainingError, match=r"level 'slow' .* not done after 2 s; use a smaller"):
        try_network('slow', path, [picture()], longest=2.0)


def test_the_usual_names_must_mean_ascending_cost() -> None:
    with pytest.raises(TrainingError, match=r"'small' takes 30.0 ms .* 'large' 20.0 ms"):
        ascending({'small': trial(30.0), 'large': trial(20.0)})
    # What differs by less than the machine does stays as it was named.
    assert list(ascending({'large': trial(20.0), 'small': trial(21.0)})) == ['small', 'large']
    assert list(ascending({'small': trial(30.0), 'nano': trial(20.0)})) == ['nano', 'small']
