"""Galleries of objects, questions about them, and how often the right one is among the first.

A question in words names the class of an object and its colours, and is asked where it fits at
most three in a hundred of a gallery. A question by example shows one view of an object, whose
entry is made of the other ones; it is asked of galleries, and among the objects of its own scene,
which share light and ground. What is found is credited to the scenes of the objects that were
looked for, because the crops of a scene are not independent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.judging import EvaluationError
from mmedge_lab.rivals.reminisce.crop_encoder import Embedded
from mmedge_lab.training.recogniser_labels import CLASSES, UNKNOWN, Facts, colour_of, label_of
from mmedge_ros.data_types import FloatArray
from mmedge_ros.memory.moment import Vectors
from mmedge_ros.memory.query import COLOURS, ParsedQuery, read_query
from mmedge_ros.memory.spaces import AttributeSpace
from mmedge_ros.memory.store import unit

OBJECTS, FIRST = 245, 10
# Fewer scores than this have no mean and deviation of their own.
_FEWEST_ON_A_SCALE = 8
_FITTING = 0.03
_DRAWN_OF_A_SCENE = 4
_SEED = 20251125

Places = NDArray[np.intp]


class Found(NamedTuple):
    """Of each of S scenes how much was asked, and found first and among the first ten."""

    asked: FloatArray
    ten: FloatArray
    one: FloatArray

    def __add__(self, other: object) -> Found:
        assert isinstance(other, Found)
        return Found(*(mine + its for mine, its in zip(self, other, strict=True)))

    @property
    def hit_at_10(self) -> float:
        """The share that was found among the first ten; NaN where nothing was asked."""
        asked = float(self.asked.sum())
        return float(self.ten.sum()) / asked if asked else float('nan')


class Gallery(NamedTuple):
    """G objects, and A examples.

    ``objects`` (G,) stand in the order of a tie; ``rows`` are their crops, one object after
    another, and ``views`` (G,) how many each has. ``asks`` (A,) are crops that are examples,
    ``askers`` (A,) the places in ``objects`` that they show.
    """

    objects: Places
    rows: Places
    views: Places
    asks: Places
    askers: Places

    def rated(self, asked: Vectors, stored: Vectors) -> FloatArray:
        """Return the mean cosine (A, G) of each object's views with each example.

        :param asked: (N, D) crops as examples are embedded
        :param stored: (N, D) crops as views are stored
        """
        return mean_cosines(*self.summed(asked, stored))

    def summed(
        self, asked: Vectors, stored: Vectors, chosen: NDArray[np.bool_] | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return the sum of cosines (A, G) and the number of views, the example not among them.

        :param chosen: (N,) which views are looked at
        """
        kept = np.ones(len(stored)) if chosen is None else chosen.astype(float)
        begins = np.concatenate(([0], np.cumsum(self.views)[:-1]))
        directions = unit(stored[self.rows]) * kept[self.rows, None]
        examples = unit(asked[self.asks]).astype(float)
        cosines = examples @ np.add.reduceat(directions, begins, axis=0).T
        numbers = np.tile(np.add.reduceat(kept[self.rows], begins), (len(self.asks), 1))
        own = np.arange(len(self.asks)), self.askers
        itself = np.einsum('ad,ad->a', examples, unit(stored[self.asks]))
        cosines[own] -= itself * kept[self.asks]
        numbers[own] -= kept[self.asks]
        return cosines, numbers


# Returns the places (A, G) in a gallery, what is found best first.
FindExamples = Callable[[Gallery], Places]


class Galleries:
    """Draws galleries among crops and judges what is found in them.

    :param drawn: how many of them
    :param size: objects of each; all where there are fewer
    :raises EvaluationError: if no question fits so few
    """

    def __init__(
        self, crops: Embedded, space: AttributeSpace, drawn: int, size: int = OBJECTS
    ) -> None:
        names, first, self._of_crops = np.unique(
            crops.objects, return_index=True, return_inverse=True
        )
        scenes = crops.scenes[first]
        self.scenes, self._scene_of = np.unique(scenes, return_inverse=True)
        self._space = space
        self.queries, self.fits = questions(crops.facts)
        self._object_fits = self.fits[:, first]
        self._views = np.bincount(self._of_crops)
        random = np.random.default_rng(_SEED)
        self._drawn = [
            self._gallery(random, random.choice(len(names), min(size, len(names)), replace=False))
            for _ in range(drawn)
        ]
        self._of_scenes = [
            self._gallery(random, random.permutation(np.flatnonzero(self._scene_of == scene)))
            for scene in range(len(self.scenes))
            for _ in range(_DRAWN_OF_A_SCENE)
        ]
        if not any(len(self._asked(gallery)) for gallery in self._drawn):
            raise EvaluationError(
                f'{len(names)} objects are too few for questions that fit at most '
                f'{_FITTING:.0%} of them; take crops of more scenes'
            )

    def scores(self, vectors: Vectors) -> FloatArray:
        """Return how well crops (N, D) fit each of Q questions, (Q, N)."""
        return np.stack([self._space.scores(query, vectors) for query in self.queries])

    def words(
        self,
        scores: FloatArray,
        exits: NDArray[np.integer] | None = None,
        refined: FloatArray | None = None,
        best: int = 0,
    ) -> Found:
        """Ask everything in words.

        :param scores: (Q, N), see `scores`
        :param exits: (N,) of crops, to put scores on one scale as a search does; None: as they are
        :param refined: (Q, N) by which the objects that are ``best`` are rated again
        """
        found = self._nothing()
        means = None if exits is not None else self._means(scores)
        again = None if refined is None else self._means(refined)
        for gallery in self._drawn:
            for row in self._asked(gallery):
                if means is None:
                    assert exits is not None
                    rated = self._on_one_scale(scores[row], exits, gallery)
                else:
                    rated = means[row, gallery.objects]
                order = np.argsort(-rated, kind='stable')
                if again is not None:
                    order = refining(order[None], again[row, gallery.objects][None], best)[0]
                fits = np.flatnonzero(self._object_fits[row, gallery.objects])
                self._credit(found, gallery.objects[fits], np.isin(order[:FIRST], fits))
        return found

    def examples(self, find: FindExamples) -> Found:
        """Ask for every object of the galleries by an example."""
        return self._by_example(self._drawn, find)

    def among_siblings(self, find: FindExamples) -> Found:
        """Ask for every object by an example, among the objects of its scene."""
        return self._by_example([g for g in self._of_scenes if len(g.objects) > 1], find)

    def _by_example(self, galleries: Sequence[Gallery], find: FindExamples) -> Found:
        found = self._nothing()
        for gallery in galleries:
            if not len(gallery.asks):
                continue
            hits = find(gallery)[:, :FIRST] == gallery.askers[:, None]
            for place, hit in zip(gallery.askers, hits, strict=True):
                self._credit(found, gallery.objects[[place]], hit)
        return found

    def _gallery(self, random: np.random.Generator, objects: Places) -> Gallery:
        rows = [np.flatnonzero(self._of_crops == one) for one in objects]
        views = np.array([len(of) for of in rows], np.intp)
        askers = np.flatnonzero(views > 1)
        asks = np.array([random.choice(rows[place]) for place in askers], np.intp)
        return Gallery(objects, np.concatenate(rows), views, asks, askers)

    def _asked(self, gallery: Gallery) -> Places:
        fitting = self._object_fits[:, gallery.objects].sum(axis=1)
        return np.flatnonzero((fitting > 0) & (fitting <= _FITTING * len(gallery.objects)))

    def _means(self, scores: FloatArray) -> FloatArray:
        """Return the mean score (Q, O) of each object's views."""
        order = np.argsort(self._of_crops, kind='stable')
        begins = np.concatenate(([0], np.cumsum(self._views)[:-1]))
        means: FloatArray = np.add.reduceat(scores.T[order], begins, axis=0).T / self._views
        return means

    def _on_one_scale(
        self, scores: FloatArray, exits: NDArray[np.integer], gallery: Gallery
    ) -> FloatArray:
        even = on_one_scale(scores[gallery.rows], np.asarray(exits[gallery.rows], np.int64))
        begins = np.concatenate(([0], np.cumsum(gallery.views)[:-1]))
        return np.asarray(np.add.reduceat(even, begins) / gallery.views)

    def _nothing(self) -> Found:
        return Found(*(np.zeros(len(self.scenes)) for _ in Found._fields))

    def _credit(self, found: Found, objects: Places, hits: NDArray[np.bool_]) -> None:
        share = 1.0 / len(objects)
        scenes = self._scene_of[objects]
        np.add.at(found.asked, scenes, share)
        np.add.at(found.ten, scenes, share * bool(hits.any()))
        np.add.at(found.one, scenes, share * bool(hits[:1].any()))


def on_one_scale(scores: FloatArray, exits: NDArray[np.integer]) -> FloatArray:
    """Return scores (N,) with the same mean and deviation for each exit (N,).

    What left an encoder early may be rated higher or lower as a whole. An exit with few views
    keeps the scale of all.
    """
    even = scores.copy()
    for kind in np.unique(exits):
        of_kind = exits == kind
        deviation = float(scores[of_kind].std())
        if np.count_nonzero(of_kind) >= _FEWEST_ON_A_SCALE and deviation > 0.0:
            own = (scores[of_kind] - scores[of_kind].mean()) / deviation
            even[of_kind] = scores.mean() + scores.std() * own
    return even


def questions(facts: NDArray[np.int8]) -> tuple[Sequence[ParsedQuery], NDArray[np.bool_]]:
    """Return Q questions, one for each look of crops, and which crops (Q, N) fit them."""
    looks = facts[:, : Facts._fields.index('bottom') + 1]
    kinds, of_crops = np.unique(looks, axis=0, return_inverse=True)
    labels = {label_of(name) for name in CLASSES}
    queries = [read_query(text, labels) for text in _texts(kinds)]
    return queries, of_crops.reshape(-1)[None] == np.arange(len(kinds))[:, None]


def mean_cosines(cosines: FloatArray, numbers: FloatArray) -> FloatArray:
    """Return the means (A, G) of so many cosines that were summed; -inf of none."""
    with np.errstate(invalid='ignore', divide='ignore'):
        return np.where(numbers > 0.0, cosines / numbers, -np.inf)


def refining(order: Places, again: FloatArray, best: int) -> Places:
    """Return orders (A, G) whose first ``best`` are sorted by what they are rated again (A, G)."""
    head = order[:, :best]
    rated = np.take_along_axis(again, head, axis=1)
    head = np.take_along_axis(head, np.argsort(-rated, axis=1, kind='stable'), axis=1)
    return np.concatenate([head, order[:, best:]], axis=1)


def best_first(rated: FloatArray) -> Places:
    """Return the places (A, G) of what is rated (A, G), best first."""
    return np.argsort(-rated, axis=1, kind='stable')


def _texts(kinds: NDArray[np.int8]) -> Iterator[str]:
    for kind, bottom in kinds:
        label, colour = label_of(CLASSES[kind]), colour_of(CLASSES[kind])
        if bottom == UNKNOWN:
            yield f'{colour} {label}'
        else:
            yield f'{label} in a {colour} top and {COLOURS[bottom]} trousers'
