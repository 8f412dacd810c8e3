"""What is asked of galleries, what is found, and which scenes it is credited to."""

from __future__ import annotations

import numpy as np
import pytest

from mmedge_lab.judging import EvaluationError
from mmedge_lab.rivals.reminisce.crop_encoder import Embedded
from mmedge_lab.rivals.reminisce.exit_choice import Exits
from mmedge_lab.rivals.reminisce.galleries import Galleries, best_first, questions, refining
from mmedge_lab.rivals.reminisce.speculation import AtExits
from mmedge_ros.encoding.bundle.default_model import default_detector
from mmedge_ros.encoding.classifier_description import describe_classifier
from mmedge_ros.memory.spaces import AttributeSpace

OBJECTS, VIEWS, SCENES = 80, 2, 8


@pytest.fixture(scope='module')
def space() -> AttributeSpace:
    description = describe_classifier(default_detector('flight_people'))
    assert description is not None
    return AttributeSpace(description)


def embedded(space: AttributeSpace, exits: int = 1) -> Embedded:
    """Two views each of 80 objects in eight scenes, whose vectors say exactly what is true.

    Each has class and trousers of its own as far as there are any; exits say the same.
    """
    kinds = np.arange(OBJECTS) % 16
    bottoms = np.arange(OBJECTS) // 16
    facts = np.repeat(
        np.stack([kinds, bottoms, 0 * kinds, 0 * kinds], axis=1), VIEWS, axis=0
    ).astype(np.int8)
    logits = np.full((len(facts), space.length), -9.0, np.float32)
    rows = np.arange(len(facts))
    for column, begin in enumerate((0, 32, 40, 42)):
        logits[rows, begin + facts[:, column]] = 9.0
    objects = np.repeat(np.arange(OBJECTS), VIEWS)
    vectors = tuple(space.vectors(logits) for _ in range(exits))
    taps = tuple(vectors[0] for _ in range(exits - 1))
    scenes = np.repeat(np.arange(OBJECTS) % SCENES, VIEWS).astype(np.int32)
    return Embedded(taps, (logits,) * exits, vectors, facts, scenes, objects)


def test_words_find_what_is_true_and_noise_does_not(space: AttributeSpace) -> None:
    crops = embedded(space)
    galleries = Galleries(crops, space, 2)
    true = galleries.words(galleries.scores(crops.vectors[0]))
    assert true.hit_at_10 == 1.0
    noise = np.random.default_rng(0).normal(size=crops.vectors[0].shape).astype(np.float32)
    assert galleries.words(galleries.scores(noise)).hit_at_10 < 0.5
    # One question for each object here, each in its scene.
    assert true.asked.tolist() == [2.0 * OBJECTS / SCENES] * SCENES


def test_hits_are_credited_to_the_scenes_of_what_was_looked_for(space: AttributeSpace) -> None:
    crops = embedded(space)
    galleries = Galleries(crops, space, 1)
    wrong = crops.vectors[0].copy()
    wrong[crops.scenes == 3] *= -1.0
    found = galleries.words(galleries.scores(wrong))
    assert found.ten[3] == 0.0
    assert found.ten[0] == found.asked[0] > 0.0


def test_an_example_is_no_view_of_its_own_entry(space: AttributeSpace) -> None:
    crops = embedded(space)
    galleries = Galleries(crops, space, 1)
    # Each view is like nothing but itself.
    vectors = np.eye(len(crops.objects), dtype=np.float32)
    found = galleries.examples(lambda g: best_first(g.rated(vectors, vectors)))
    assert found.hit_at_10 < 0.4
    alike = np.repeat(np.eye(OBJECTS, dtype=np.float32), VIEWS, axis=0)
    assert galleries.examples(lambda g: best_first(g.rated(alike, alike))).hit_at_10 == 1.0


def test_siblings_are_the_objects_of_one_scene(space: AttributeSpace) -> None:
    crops = embedded(space)
    galleries = Galleries(crops, space, 1)
    # All that a vector says is the scene: that finds the ten of a scene, but no object of it.
    scenes = np.eye(SCENES, dtype=np.float32)[crops.scenes]
    find = lambda g: best_first(g.rated(scenes, scenes))  # noqa: E731
    assert galleries.examples(find).hit_at_10 == 1.0
    found = galleries.among_siblings(find)
    assert float(found.one.sum() / found.asked.sum()) < 0.4


def test_only_the_best_are_rated_again() -> None:
    order = np.array([[4, 3, 2, 1, 0]])
    again = np.array([[9.0, 8.0, 7.0, 2.0, 1.0]])
    assert refining(order, again, 3).tolist() == [[2, 3, 4, 1, 0]]


def test_refined_words_come_from_the_candidates(space: AttributeSpace) -> None:
    crops = embedded(space)
    galleries = Galleries(crops, space, 1)
    true = galleries.scores(crops.vectors[0])
    nothing = np.zeros_like(true)
    assert galleries.words(nothing, refined=true, best=OBJECTS).hit_at_10 == 1.0
    assert galleries.words(nothing, refined=true, best=1).hit_at_10 < 0.5
    assert galleries.words(true, refined=nothing, best=5).hit_at_10 == 1.0


def test_one_scale_evens_out_what_an_exit_rates_higher_as_a_whole(space: AttributeSpace) -> None:
    crops = embedded(space)
    galleries = Galleries(crops, space, 1)
    exits: Exits = np.repeat(np.arange(OBJECTS) % 2 + 1, VIEWS)
    scores = galleries.scores(crops.vectors[0]) + 1000.0 * (exits == 2)
    assert galleries.words(scores).hit_at_10 < 0.9
    assert galleries.words(scores, exits).hit_at_10 == 1.0


def test_speculation_finds_what_an_example_at_the_end_misses(space: AttributeSpace) -> None:
    crops = embedded(space, exits=2)
    # The first exit says it all the other way round.
    crops = crops._replace(vectors=(-crops.vectors[0], crops.vectors[1]))
    galleries = Galleries(crops, space, 1)
    exits: Exits = np.ones(len(crops.objects), np.int64)
    at = AtExits(crops, exits, crops.at(exits), crops.vectors[1])
    assert galleries.examples(at.plain).hit_at_10 < 0.2
    assert galleries.examples(at.plain_refined).hit_at_10 < 0.2
    assert galleries.examples(at.matched).hit_at_10 == 1.0
    assert galleries.examples(at.speculative).hit_at_10 == 1.0


def test_questions_name_what_is_worn(space: AttributeSpace) -> None:
    queries, fits = questions(np.array([[3, 2, 0, 0], [19, -1, -1, -1], [3, 2, 1, 0]], np.int8))
    texts = [query.text for query in queries]
    assert sorted(texts) == ['person in a red top and white trousers', 'red car']
    assert fits[texts.index('red car')].tolist() == [False, True, False]
    assert all(not query.unknown for query in queries)


def test_too_few_objects_are_refused(space: AttributeSpace) -> None:
    crops = embedded(space)
    few = Embedded(
        (), crops.logits, (crops.vectors[0][:8],), crops.facts[:8], crops.scenes[:8],
        crops.objects[:8],
    )  # fmt: skip
    with pytest.raises(EvaluationError, match='take crops of more scenes'):
        Galleries(few, space, 2)
