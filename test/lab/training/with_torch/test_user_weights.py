"""A .pt file of ultralytics becomes a level."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
import torch

from mmedge_lab.training.detector_training import SCALES
from mmedge_lab.training.epoch_training import prepare_torch
from mmedge_lab.training.picture_sources import CLASSES
from mmedge_lab.training.scene_pictures import truth_of
from mmedge_lab.training.user_levels import TrialPicture, UserLevels, build_bundle, named_levels
from mmedge_ros.encoding.bundle.model_bundle import load_bundle, open_detector
from mmedge_ros.encoding.ultralytics_network import new_network


def test_a_pt_file_is_exported_and_becomes_a_level(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'cache'))
    prepare_torch(tmp_path, 1)
    torch.manual_seed(0)
    torch.save({'model': new_network(CLASSES, SCALES['narrow'])}, tmp_path / 'own.pt')
    weights = named_levels([f'own={tmp_path / "own.pt"}'])
    grey = np.full((96, 128, 3), 114, np.uint8)
    picture = TrialPicture(cv2.imencode('.jpg', grey)[1].tobytes(), truth_of([]))
    request = UserLevels(weights, tmp_path / 'bundle', (160, 128), trusted=True)
    trials = build_bundle(request, [picture], lambda _share, _words: None)
    assert trials['own'].input_size == (160, 128)
    assert load_bundle(tmp_path / 'bundle').content['source']['own']['file'] == 'own.pt'
    assert open_detector(tmp_path / 'bundle').labels == ('person',)
