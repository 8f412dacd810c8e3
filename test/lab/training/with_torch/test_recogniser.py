"""A recogniser learns colours, and what is written is what was trained."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from mmedge_lab.training.crop_set import (
    CLASSES,
    CROP_SIZE,
    CropSet,
    LabelFacts,
    SeenCrop,
    crop_set,
)
from mmedge_lab.training.networks.recogniser_network import RecogniserNetwork
from mmedge_lab.training.recogniser_training import (
    FORM,
    RecogniserSettings,
    attribute_logits,
    learned,
    plain_inputs,
    recogniser_training,
    write_recogniser,
)
from mmedge_ros.core.data_types import Box, LabelSource
from mmedge_ros.encoding.classifier_description import describe_classifier
from mmedge_ros.encoding.crops import crop_input
from mmedge_ros.encoding.tapped_classifier import open_classifier

# Where the object is in a kept crop.
BOX = Box(9.0, 13.5, 39.0, 58.5)
SETTINGS = RecogniserSettings(scenes=20, epochs=3, batch=64, threads=1)


def painted(kind: int, scene: int) -> SeenCrop:
    """A crop in a colour of its class, on ground that differs from scene to scene."""
    random = np.random.default_rng((kind, scene))
    crop = np.empty((CROP_SIZE[1], CROP_SIZE[0], 3), np.uint8)
    crop[:] = random.integers(60, 120, 3)
    middle = np.array([kind % 4, kind // 4 % 4, kind // 16]) * (75, 75, 200)
    crop[18:54, 12:36] = middle
    return SeenCrop(crop, LabelFacts(kind, kind % 8, kind % 2, -1), 40.0, 0, scene, kind)


@pytest.fixture(scope='module')
def crops() -> CropSet:
    return crop_set([painted(k, scene) for k in range(len(CLASSES)) for scene in range(10)])


@pytest.fixture(scope='module')
def network(crops: CropSet, tmp_path_factory: pytest.TempPathFactory) -> RecogniserNetwork:
    training = recogniser_training(learned(crops), SETTINGS, tmp_path_factory.mktemp('work'))
    training.run()
    assert training.losses[-1] < training.losses[0]
    return training.network


def test_what_is_written_recognises_in_flight_what_the_network_does(
    crops: CropSet, network: RecogniserNetwork, tmp_path: Path
) -> None:
    bundle, out = tmp_path / 'bundle', tmp_path / 'out'
    bundle.mkdir()
    (bundle / 'manifest.yaml').write_text('name: tiny\n')
    write_recogniser(network, crops, SETTINGS, bundle, out)
    description = describe_classifier(out)
    assert description is not None
    # Without its exits: what is compared is the end of the network.
    classifier = open_classifier(replace(description, exits=()), with_memory=False)
    inputs = plain_inputs(crops.crops[::40])
    with torch.no_grad():
        wanted = network(inputs)[-1][:, : len(CLASSES)].argmax(dim=1)
    for one, label in zip(inputs.numpy(), wanted.tolist(), strict=True):
        look = classifier.look(one[None])
        assert (look.source, look.label) == (LabelSource.FULL, label)
        assert look.attributes.shape == (attribute_logits(),)


def test_crops_in_flight_are_about_those_that_were_learned_from(crops: CropSet) -> None:
    learned_from = plain_inputs(crops.crops[::40]).numpy()
    in_flight = [crop_input(crop, BOX, FORM)[0] for crop in crops.crops[::40]]
    # In flight they are cut at whole pixels: edges lie half a pixel beside.
    assert np.abs(np.array(in_flight) - learned_from).mean() < 0.06
