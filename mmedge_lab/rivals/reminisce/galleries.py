"""Galleries of objects, questions about them, and how often the right one is among the first.

A question in words names the class of an object and its colours, and is asked where it fits at
most three in a hundred of a gallery. A question by example shows one view of an object, whose
entry is made of the other ones. What is found is credited to the scenes of the objects that were
looked for, because the crops of a scene are not independent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.judging import EvaluationError
from mmedge_lab.rivals.reminisce.crop_encoder import Embedded
from mmedge_lab.training.crop_set import CLASSES, UNKNOWN, LabelFacts, colour_of, label_of
from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.memory.moment import Vectors
from mmedge_ros.memory.query import COLOURS, ParsedQuery, read_query
from mmedge_ros.memory.spaces import AttributeSpace
from mmedge_ros.memory.store import unit

OBJECTS, FIRST, BEST = 245, 10, 20
_FITTING = 0.03
_SEED = 20251125

Places = NDArray[np.intp]


class Found(NamedTuple):
    """Of each of S scenes how much was asked, and found among the first ten."""

    asked: FloatArray
    ten: FloatArray

    @property
    def hit_at_10(self) -> float:
        """The share that was found; NaN where nothing was asked."""
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
        return mean_cosines(*self.summed(asked, stored, np.ones(len(stored), np.bool_)))

    def summed(
        self, asked: Vectors, stored: Vectors, chosen: NDArray[np.bool_]
    ) -> tuple[FloatArray, FloatArray]:
        """Return the sum of cosines (A, G) and the number of views, the example not among them.

        :param chosen: (N,) which views are looked at
        """
        kept = chosen.astype(float)
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
        self.scenes, self._scene_of = np.unique(crops.scenes[first], return_inverse=True)
        self._space = space
        self._queries, self._fits = questions(crops.facts)
        self._object_fits = self._fits[:, first]
        random = np.random.default_rng(_SEED)
        self._drawn = [
            self._gallery(random, random.choice(len(names), min(size, len(names)), replace=False))
            for _ in range(drawn)
        ]
        if not any(len(self._asked(gallery)) for gallery in self._drawn):
            raise EvaluationError(
                f'{len(names)} objects are too few for questions that fit at most '
                f'{_FITTING:.0%} of them; take crops of more scenes'
            )

    def words(self, vectors: Vectors, refined: Vectors | None = None) -> Found:
        """Ask everything in words of crops (N, D).

        :param refined: (N, D) by which the objects that are `BEST` are rated again
        """
        found = self._nothing()
        means = self._means(vectors)
        again = None if refined is None else self._means(refined)
        for gallery in self._drawn:
            for row in self._asked(gallery):
                order = best_first(means[row, gallery.objects][None])
                if again is not None:
                    order = refining(order, again[row, gallery.objects][None])
                fits = np.flatnonzero(self._object_fits[row, gallery.objects])
                self._credit(found, gallery.objects[fits], np.isin(order[0, :FIRST], fits))
        return found

    def examples(self, find: FindExamples) -> Found:
        """Ask for every object of the galleries by an example."""
        found = self._nothing()
        for gallery in self._drawn:
            if len(gallery.asks):
                hits = find(gallery)[:, :FIRST] == gallery.askers[:, None]
                for place, hit in zip(gallery.askers, hits, strict=True):
                    self._credit(found, gallery.objects[[place]], hit)
        return found

    def first_sufficient(self, vectors: Sequence[Vectors]) -> NDArray[np.int64]:
        """Return the first exit (N,), from 1, at which each crop is found as well as at the end.

        Its own question is asked. It is found as well if the share of others that are rated at
        least as high is no larger than at the end, or so small that it would be among the first
        ten of a gallery.

        :param vectors: (N, D) at each exit
        """
        places = np.stack([_shares_above(self._scores(of), self._fits) for of in vectors])
        enough = places <= np.maximum(places[-1], FIRST / OBJECTS)
        return np.asarray(enough.argmax(axis=0) + 1, np.int64)

    def _gallery(self, random: np.random.Generator, objects: Places) -> Gallery:
        rows = [np.flatnonzero(self._of_crops == one) for one in objects]
        views = np.array([len(of) for of in rows], np.intp)
        askers = np.flatnonzero(views > 1)
        asks = np.array([random.choice(rows[place]) for place in askers], np.intp)
        return Gallery(objects, np.concatenate(rows), views, asks, askers)

    def _asked(self, gallery: Gallery) -> Places:
        fitting = self._object_fits[:, gallery.objects].sum(axis=1)
        return np.flatnonzero((fitting > 0) & (fitting <= _FITTING * len(gallery.objects)))

    def _scores(self, vectors: Vectors) -> FloatArray:
        return np.stack([self._space.scores(query, vectors) for query in self._queries])

    def _means(self, vectors: Vectors) -> FloatArray:
        """Return the mean score (Q, O) of each object's views."""
        sums = [np.bincount(self._of_crops, scores) for scores in self._scores(vectors)]
        return np.asarray(np.stack(sums) / np.bincount(self._of_crops))

    def _nothing(self) -> Found:
        return Found(np.zeros(len(self.scenes)), np.zeros(len(self.scenes)))

    def _credit(self, found: Found, objects: Places, hits: NDArray[np.bool_]) -> None:
        share, scenes = 1.0 / len(objects), self._scene_of[objects]
        np.add.at(found.asked, scenes, share)
        np.add.at(found.ten, scenes, share * bool(hits.any()))


def questions(facts: NDArray[np.int8]) -> tuple[Sequence[ParsedQuery], NDArray[np.bool_]]:
    """Return Q questions, one for each look of crops, and which crops (Q, N) fit them."""
    looks = facts[:, : LabelFacts._fields.index('bottom') + 1]
    kinds, of_crops = np.unique(looks, axis=0, return_inverse=True)
    labels = {label_of(name) for name in CLASSES}
    queries = [read_query(text, labels) for text in _texts(kinds)]
    return queries, of_crops.reshape(-1)[None] == np.arange(len(kinds))[:, None]


def mean_cosines(cosines: FloatArray, numbers: FloatArray) -> FloatArray:
    """Return the means (A, G) of so many cosines that were summed; -inf of none."""
    with np.errstate(invalid='ignore', divide='ignore'):
        return np.where(numbers > 0.0, cosines / numbers, -np.inf)


def best_first(rated: FloatArray) -> Places:
    """Return the places (A, G) of what is rated (A, G), best first."""
    return np.argsort(-rated, axis=1, kind='stable')


def refining(order: Places, again: FloatArray) -> Places:
    """Return orders (A, G) whose first `BEST` are sorted by what they are rated again (A, G)."""
    head = order[:, :BEST]
    rated = best_first(np.take_along_axis(again, head, axis=1))
    return np.concatenate([np.take_along_axis(head, rated, axis=1), order[:, BEST:]], axis=1)


def _shares_above(scores: FloatArray, fits: NDArray[np.bool_]) -> FloatArray:
    """Return the share of the items that do not fit that are rated at least as high (N,)."""
    places = np.zeros(fits.shape[1])
    for row, fitting in zip(scores, fits, strict=True):
        others = np.sort(row[~fitting])
        below = np.searchsorted(others, row[fitting], side='left')
        places[fitting] = 1.0 - below / max(len(others), 1)
    return places


def _texts(kinds: NDArray[np.int8]) -> Iterator[str]:
    for kind, bottom in kinds:
        label, colour = label_of(CLASSES[kind]), colour_of(CLASSES[kind])
        if bottom == UNKNOWN:
            yield f'{colour} {label}'
        else:
            yield f'{label} in a {colour} top and {COLOURS[bottom]} trousers'
