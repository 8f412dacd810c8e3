"""The parts of Reminisce: exits, orders, healing, questions at depths, refinement, loading."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hand_made_crops import painted_crops
from tiny_stages import write_camera_stages

from mmedge_lab.rivals.reminisce.batching import Way, grouped, one_group, refilled
from mmedge_lab.rivals.reminisce.crop_encoder import CropEncoder, Embedded
from mmedge_lab.rivals.reminisce.exit_choice import (
    dealt,
    fit_predictor,
    sure_exits,
)
from mmedge_lab.rivals.reminisce.galleries import (
    BEST,
    Galleries,
    best_first,
    refining,
)
from mmedge_lab.rivals.reminisce.healing import (
    RANK,
    AllExits,
    fit_adapter,
    heal,
)
from mmedge_lab.rivals.reminisce.layered_loading import WAYS, LoadingTask, run_pictures
from mmedge_lab.rivals.reminisce.refinement import ACTIVATION, THUMBNAIL, refinements
from mmedge_lab.rivals.reminisce.speculation import AtExits
from mmedge_lab.training.crop_set import cut_anew
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bundle.default_model import default_detector
from mmedge_ros.memory.encoders import MemoryEncoder
from mmedge_ros.memory.spaces import AttributeSpace

RNG = np.random.default_rng(0)
EXITS = np.array([1, 3, 1, 2, 3, 1, 1, 2, 3, 1, 3])
OBJECTS, VIEWS, SCENES = 80, 2, 8
CROPS = painted_crops(scenes=5)


@pytest.fixture(scope='module')
def encoder(tmp_path_factory: pytest.TempPathFactory) -> CropEncoder:
    return CropEncoder(default_detector('flight_people'), tmp_path_factory.mktemp('stages'))


@pytest.fixture(scope='module')
def space(encoder: CropEncoder) -> AttributeSpace:
    return encoder.space


# ------------------------------------------------------------------------------ the encoder


@pytest.mark.parametrize('exit_', [1, 4])
def test_many_at_once_are_embedded_as_what_flies_embeds_them(
    encoder: CropEncoder, exit_: int
) -> None:
    flying = MemoryEncoder(default_detector('flight_people'), exit_)
    some = CROPS.rows(np.arange(5))
    expected = [flying.look(crop).vector for crop in cut_anew(some, encoder.description.form)]
    found = encoder.embed(some, lambda _: None).vectors[exit_ - 1]
    assert np.allclose(found, expected, atol=1e-3)


def test_refining_leads_to_what_the_deeper_exit_says(encoder: CropEncoder) -> None:
    whole = encoder.embed(CROPS, lambda _: None).vectors
    made = refinements(encoder, CROPS, 1, 3)
    assert set(made) == {THUMBNAIL, ACTIVATION}
    for one in made.values():
        off = np.abs(one.vectors - whole[2]).mean()
        assert off < 0.5 * np.abs(whole[0] - whole[2]).mean()
        assert one.ms > 0.0
    assert made[ACTIVATION].bytes > made[THUMBNAIL].bytes > 100.0


# ------------------------------------------------------------------------------ orders


@pytest.mark.parametrize('order', [one_group, grouped, refilled])
@pytest.mark.parametrize('size', [1, 4])
def test_every_item_runs_the_stages_up_to_its_exit_in_their_order(order, size: int) -> None:
    seen: dict[int, list[int]] = {}
    for stage, items in order(EXITS, size):
        assert 1 <= len(items) <= size
        for item in items:
            seen.setdefault(item, []).append(stage)
    assert seen == {item: list(range(exit_)) for item, exit_ in enumerate(EXITS)}


def test_what_decides_is_asked_after_every_stage_but_the_last(encoder: CropEncoder) -> None:
    asked: list[int] = []
    way = Way('', EXITS, refilled, 4, lambda stage, _made: asked.append(stage))
    assert way.run(encoder, encoder.blobs(CROPS.rows(np.arange(len(EXITS))))) > 0.0
    assert asked == [stage for stage, _ in refilled(EXITS, 4)]


# ------------------------------------------------------------------------------ exits


def tapped(number: int) -> tuple[np.ndarray, np.ndarray]:
    """Taps whose first value says which exit suffices."""
    wanted = RNG.integers(1, 4, number)
    taps = RNG.normal(0.0, 0.3, (number, 5))
    taps[:, 0] += wanted
    return taps.astype(np.float32), wanted


def test_a_predictor_beats_its_exits_dealt_to_others_if_taps_say_something() -> None:
    (taps, wanted), (held, of_held), (judged, truth) = tapped(600), tapped(300), tapped(300)
    said = fit_predictor(taps, wanted, held, of_held, 3).exits(judged)
    enough, by_chance = np.mean(said >= truth), np.mean(dealt(said, 1) >= truth)
    assert enough > 0.85
    assert enough > by_chance + 0.1
    noise = fit_predictor(taps, RNG.permutation(wanted), held, of_held, 3).exits(judged)
    assert np.mean(noise >= truth) == pytest.approx(np.mean(dealt(noise, 1) >= truth), abs=0.1)


def test_items_leave_at_the_first_head_that_is_sure() -> None:
    logits = np.full((3, 3, 3), 0.0, np.float32)
    logits[0, 0, 0] = logits[1, 1, 0] = 8.0
    assert sure_exits(list(logits), 3, (5.0, 5.0)).tolist() == [1, 2, 3]
    assert sure_exits(list(logits), 3, (1e9, 5.0)).tolist() == [3, 2, 3]


# ------------------------------------------------------------------------------ healing


def missing_at_first(number: int) -> AllExits:
    """The first of two exits lacks what its tap says in its last two values; the end has it."""
    tap = RNG.normal(size=(number, 4)).astype(np.float32)
    first = tap * np.array([1, 1, 0, 0], np.float32)
    return AllExits([tap], [first, tap])


def test_an_adapter_finds_the_map_within_its_rank() -> None:
    taps = RNG.normal(size=(900, 12)).astype(np.float32)
    low, high = (RNG.normal(size=(12, n)) @ RNG.normal(size=(n, 12)) for n in (RANK, 12))
    for truth, fits in ((low, True), (high, False)):
        adapter = fit_adapter(taps, taps @ truth + 2.0)
        assert np.linalg.matrix_rank(adapter.weights) == RANK
        off = np.abs(adapter(taps) - taps @ truth - 2.0).mean()
        assert (off < 0.05 * np.abs(taps @ truth).mean()) == fits


@pytest.mark.parametrize(
    ('hits', 'is_kept'),
    [
        ([0.5, 0.9, 0.8, 0.895], True),
        ([0.5, 0.9, 0.8, 0.88], False),  # the last exit loses
        ([0.5, 0.9, 0.5, 0.95], False),  # nothing is gained
    ],
)
def test_a_group_is_kept_that_gains_and_spares_the_last_exit(
    hits: list[float], is_kept: bool
) -> None:
    data, held, judged = missing_at_first(400), missing_at_first(100), iter(hits)
    adapters = heal(data, held, [[1]], lambda _vectors: next(judged))
    assert set(adapters) == ({1} if is_kept else set())
    first, end = held.healed(adapters)
    assert (np.abs(first - held.vectors[-1]).mean() < 0.1) == is_kept
    # What is added is carried on.
    assert np.array_equal(end, held.vectors[-1]) is not is_kept


def test_a_deeper_group_learns_what_is_left_by_the_shallower_one() -> None:
    tap = RNG.normal(size=(300, 3)).astype(np.float32)
    data = AllExits([tap, tap], [0.0 * tap, tap - 1.0, tap])
    hits = iter([0.1, 0.2, 0.3, *[0.9] * 3, *[0.95] * 3])
    adapters = heal(data, data, [[1], [2]], lambda _vectors: next(hits))
    assert set(adapters) == {1, 2}
    assert np.abs(data.healed(adapters)[1] - tap).mean() < 0.1
    assert np.abs(data.healed({1: adapters[1]})[1] - tap).mean() > 0.3


# ------------------------------------------------------------------------------ galleries


def embedded(space: AttributeSpace, exits: int = 1) -> Embedded:
    """Two views each of 80 objects in eight scenes, whose vectors say exactly what is true.

    Each has class and trousers of its own as far as there are any; exits say the same.
    """
    kinds, bottoms = np.arange(OBJECTS) % 16, np.arange(OBJECTS) // 16
    looks = np.stack([kinds, bottoms, 0 * kinds, 0 * kinds], axis=1)
    facts = np.repeat(looks, VIEWS, axis=0).astype(np.int8)
    logits = np.full((len(facts), space.length), -9.0, np.float32)
    for column, begin in enumerate((0, 32, 40, 42)):
        logits[np.arange(len(facts)), begin + facts[:, column]] = 9.0
    objects = np.repeat(np.arange(OBJECTS), VIEWS)
    vectors = (space.vectors(logits),) * exits
    scenes = np.repeat(np.arange(OBJECTS) % SCENES, VIEWS).astype(np.int32)
    return Embedded(vectors[1:], (logits,) * exits, vectors, facts, scenes, objects)


def test_words_find_what_is_true_and_credit_its_scene(space: AttributeSpace) -> None:
    crops = embedded(space)
    galleries, true = Galleries(crops, space, 2), crops.vectors[0]
    found = galleries.words(true)
    assert found.hit_at_10 == 1.0
    # One question for each object here, each in its scene.
    assert found.asked.tolist() == [2.0 * OBJECTS / SCENES] * SCENES
    wrong = np.where(crops.scenes[:, None] == 3, -true, true)
    found = galleries.words(wrong)
    assert (found.ten[3], found.ten[0]) == (0.0, found.asked[0])
    noise = RNG.normal(size=true.shape).astype(np.float32)
    assert galleries.words(noise).hit_at_10 < 0.5


def test_an_example_is_no_view_of_its_own_entry(space: AttributeSpace) -> None:
    galleries = Galleries(embedded(space), space, 1)
    # Each view is like nothing but itself, then like the other one of its object.
    for vectors, finds in (
        (np.eye(OBJECTS * VIEWS, dtype=np.float32), False),
        (np.repeat(np.eye(OBJECTS, dtype=np.float32), VIEWS, axis=0), True),
    ):
        found = galleries.examples(lambda g, v=vectors: best_first(g.rated(v, v)))
        assert (found.hit_at_10 == 1.0) is finds


def test_only_the_best_are_rated_again(space: AttributeSpace) -> None:
    order, again = np.arange(30)[::-1][None], np.arange(30.0)[::-1][None]
    assert refining(order, again)[0].tolist() == [*range(10, 30), *range(9, -1, -1)]
    crops = embedded(space)
    galleries, true = Galleries(crops, space, 1), crops.vectors[0]
    share = galleries.words(0.0 * true, refined=true).hit_at_10
    assert share < 0.6
    assert galleries.words(true, refined=true).hit_at_10 == 1.0
    assert BEST / OBJECTS < 0.6


def test_the_first_exit_that_finds_as_much_as_the_end_suffices(space: AttributeSpace) -> None:
    crops = embedded(space, exits=2)
    true = crops.vectors[1]
    early = np.where(crops.objects[:, None] < OBJECTS // 2, true, 0.0)
    wanted = Galleries(crops, space, 1).first_sufficient([early, true])
    assert wanted[crops.objects < OBJECTS // 2].max() == 1
    assert np.mean(wanted[crops.objects >= OBJECTS // 2] == 2) > 0.5


def test_speculation_finds_what_an_example_at_the_end_misses(space: AttributeSpace) -> None:
    crops = embedded(space, exits=2)
    # The first exit says it all the other way round.
    crops = crops._replace(vectors=(-crops.vectors[0], crops.vectors[1]))
    galleries = Galleries(crops, space, 1)
    at = AtExits(crops, np.ones(len(crops.objects), np.int64))
    assert galleries.examples(at.plain).hit_at_10 < 0.2
    assert galleries.examples(at.plain_refined).hit_at_10 < 0.2
    assert galleries.examples(at.matched).hit_at_10 == 1.0
    assert galleries.examples(at.speculative).hit_at_10 == 1.0


# ------------------------------------------------------------------------------ loading


def test_stages_loaded_one_by_one_put_out_what_all_at_once_do(tmp_path: Path) -> None:
    stages = [str(stage) for stage in write_camera_stages(tmp_path)]
    reads = [['images'], ['p1'], ['p1', 'p2']]
    task = LoadingTask(WAYS[0], 3, (1, 3, 480, 640), stages, reads)
    found = [run_pictures(replace(task, way=way))['sum'] for way in WAYS]
    assert found[0] == pytest.approx(found[1])
    assert found[0] > 0.0
    Path(stages[1]).write_bytes(b'no network')
    with pytest.raises(EncodingError, match=r'small_2\.onnx'):
        run_pictures(task)
