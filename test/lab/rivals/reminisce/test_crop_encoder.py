"""Many crops in a run, and going on from what is stored."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hand_made_crops import painted_crops
from tiny_recogniser import write_tiny_recogniser

from mmedge_lab.judging import EvaluationError
from mmedge_lab.rivals.reminisce.batching import StageRun, one_group, run_plan
from mmedge_lab.rivals.reminisce.crop_encoder import CropEncoder, Embedded, sureness
from mmedge_lab.rivals.reminisce.refinement import (
    FLOAT16,
    INT4,
    PICTURE,
    THUMBNAIL,
    Refined,
    refinements,
)
from mmedge_lab.training.crop_set import cut_anew
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bundle.default_model import default_detector
from mmedge_ros.encoding.classifier_description import odds
from mmedge_ros.memory.encoders import MemoryEncoder

CROPS = painted_crops(scenes=5)


@pytest.fixture(scope='module')
def encoder(tmp_path_factory: pytest.TempPathFactory) -> CropEncoder:
    return CropEncoder(default_detector('flight_people'), tmp_path_factory.mktemp('stages'))


@pytest.fixture(scope='module')
def embedded(encoder: CropEncoder) -> Embedded:
    return encoder.embed(CROPS, lambda _share: None)


@pytest.fixture(scope='module')
def refined(encoder: CropEncoder) -> dict[str, Refined]:
    return refinements(encoder, CROPS, 1)


def apart(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.abs(one - other).mean())


@pytest.mark.parametrize('exit_', [1, 2, 3, 4])
def test_many_at_once_are_embedded_as_what_flies_embeds_them(
    encoder: CropEncoder, embedded: Embedded, exit_: int
) -> None:
    flying = MemoryEncoder(default_detector('flight_people'), exit_)
    some = CROPS.rows(np.arange(5))
    expected = flying.of_crops(cut_anew(some, encoder.description.form))
    assert np.allclose(embedded.vectors[exit_ - 1][:5], expected, atol=1e-3)


def test_crops_that_left_early_have_the_vectors_of_their_exits(embedded: Embedded) -> None:
    exits = np.arange(len(CROPS.crops)) % 4 + 1
    for row, vector in enumerate(embedded.at(exits)):
        assert np.array_equal(vector, embedded.vectors[exits[row] - 1][row])


def test_resuming_is_running_straight_through_up_to_four_bits(
    refined: dict[str, Refined], embedded: Embedded
) -> None:
    straight = embedded.vectors[2]
    others = apart(straight, straight[::-1])
    assert apart(refined[FLOAT16].vectors[3], straight) < 0.01
    assert 0.0 < apart(refined[INT4].vectors[3], straight) < 0.3 * others
    assert refined[INT4].bytes < refined[FLOAT16].bytes / 3


def test_a_picture_is_exact_and_a_thumbnail_is_near(
    refined: dict[str, Refined], embedded: Embedded
) -> None:
    straight = embedded.vectors[2]
    assert apart(refined[PICTURE].vectors[3], straight) < 1e-4
    assert apart(refined[THUMBNAIL].vectors[3], straight) < 0.5 * apart(straight, straight[::-1])
    assert set(refined[THUMBNAIL].vectors) == {1, 2, 3, 4}
    assert set(refined[INT4].vectors) == {2, 3, 4}


def test_what_was_stored_at_an_exit_is_what_is_resumed_from(
    encoder: CropEncoder, embedded: Embedded
) -> None:
    held = encoder.activations(encoder.blobs(CROPS), 2)
    (to_3,) = encoder.resumed(held, 2, 3).values()
    assert np.allclose(to_3, embedded.vectors[2], atol=1e-3)


def test_a_plan_out_of_order_cannot_run(encoder: CropEncoder) -> None:
    blobs = encoder.blobs(CROPS.rows(np.arange(4)))
    assert run_plan(encoder, blobs, list(one_group(np.array([1, 4, 2, 3]), 2))) > 0.0
    with pytest.raises(EncodingError, match='stage 4'):
        run_plan(encoder, blobs, [StageRun(3, [0]), StageRun(0, [0])])


def test_sureness_is_what_the_recogniser_leaves_by(embedded: Embedded) -> None:
    logits = embedded.logits[0][:20]
    expected = [odds(row[:32], int(row[:32].argmax())) for row in logits]
    assert np.allclose(sureness(logits, 32), expected, rtol=1e-6)


def test_a_recogniser_of_other_objects_is_refused(tmp_path: Path) -> None:
    bundle = write_tiny_recogniser(tmp_path / 'bundle')
    with pytest.raises(EvaluationError, match='such as flight_people'):
        CropEncoder(bundle, tmp_path)
