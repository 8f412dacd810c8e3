"""Asks flight memories for objects that flights saw, and counts what is found.

*Words*: each object of a gallery is asked for by its looks; a hit is a moment among the first ten
whose shown view lies on an object that fits. *Examples*: the views of an object in one light are
looked for in the flights of another light; a hit shows the same object.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.flight_bootstrap import Estimate, interval, mean_by_seed
from mmedge_lab.judging.memory_cases import RememberedFlight
from mmedge_lab.judging.memory_rivals import RANDOM, Rival
from mmedge_lab.judging.memory_truth import (
    NOBODY,
    Question,
    SeenObject,
    galleries,
    questions,
    words_of,
)
from mmedge_ros.data_types import FloatArray
from mmedge_ros.memory.moment import Moment
from mmedge_ros.memory.query import Filters, MemoryQuery, read_query
from mmedge_ros.memory.search import search

FIRST = 10
# So many of the coarse order are looked at again.
REFINED = (10, 20, 50)
_LOTS = 20
_ALL = 1000
# Why an object is not found, in the order in which it is asked.
NO_VIEW, OTHER_LABEL, MIXED, LOOKS = 'no view', 'another label', 'mixed track', 'looks'
_MOSTLY = 0.5


class Asked(NamedTuple):
    """A question with one of the objects that it is about.

    ``weight``: objects of one question share it, and what is in several galleries counts once.
    """

    gallery: tuple[str, ...]
    question: Question
    target: SeenObject
    weight: float


@dataclass(frozen=True, eq=False)
class Hits:
    """Whether each of N questions was answered, by rival: (N, 2) at 1 and at 10, in 0..1.

    ``seeds`` (N,) are those that are drawn for intervals.
    """

    seeds: Sequence[str]
    weights: FloatArray
    by_rival: dict[str, FloatArray]

    def share(self, rival: str, place: int, chosen: NDArray[np.bool_] | None = None) -> Estimate:
        """Estimate how many questions are answered; ``place`` 0: at 1, 1: at 10."""
        value, drawn = self._drawn(self.by_rival[rival][:, place], chosen)
        return Estimate(value, *interval(drawn, self._seeds(chosen)))

    def difference(self, ours: str, other: str, place: int) -> Estimate:
        """Estimate ours minus the other's, on the same questions."""
        hits = self.by_rival[ours][:, place] - self.by_rival[other][:, place]
        value, drawn = self._drawn(hits, None)
        return Estimate(value, *interval(drawn, self._seeds(None)))

    def ratio(self, ours: str, other: str, place: int) -> Estimate:
        """Estimate ours as a share of the other's."""
        (value, drawn), (whole, others) = (
            self._drawn(self.by_rival[name][:, place], None) for name in (ours, other)
        )
        with np.errstate(invalid='ignore', divide='ignore'):
            ratios = drawn / others
        return Estimate(value / whole if whole else math.nan, *interval(ratios, self._seeds(None)))

    def _drawn(
        self, hits: FloatArray, chosen: NDArray[np.bool_] | None
    ) -> tuple[float, FloatArray]:
        weights = self.weights if chosen is None else self.weights * chosen
        return mean_by_seed(hits, weights, self.seeds)

    def _seeds(self, chosen: NDArray[np.bool_] | None) -> int:
        known = self.weights > 0.0 if chosen is None else (self.weights > 0.0) & chosen
        return len({seed for seed, is_in in zip(self.seeds, known, strict=True) if is_in})


def asked_in_words(flights: Sequence[RememberedFlight]) -> list[Asked]:
    """Return what is asked in all galleries.

    :raises EvaluationError: if the galleries are so small that no words single anything out
    """
    by_name = {flight.name: flight for flight in flights}
    drawn = galleries({flight.name: flight.seed for flight in flights})
    uses = Counter(name for gallery in drawn for name in gallery)
    asked = []
    sizes = []
    for gallery in drawn:
        objects = [one for name in gallery for one in by_name[name].objects]
        sizes.append(len(objects))
        for question in questions(objects):
            asked += [
                Asked(gallery, question, one, 1.0 / (len(question.fitting) * uses[one.flight]))
                for one in question.fitting
            ]
    if not asked:
        raise EvaluationError(
            f'of galleries of {max(sizes, default=0)} objects no words single one out; name sets '
            'with flights of more seeds'
        )
    return asked


def hits_by_words(
    flights: Sequence[RememberedFlight], rivals: Sequence[Rival], asked: Sequence[Asked]
) -> Hits:
    """Ask every rival in words."""
    by_name = {flight.name: flight for flight in flights}
    return Hits(
        [one.target.seed for one in asked],
        np.array([one.weight for one in asked]),
        {rival.name: _answers(rival, asked, by_name) for rival in rivals},
    )


def refined_hits(
    flights: Sequence[RememberedFlight], coarse: Rival, fine: Rival, asked: Sequence[Asked]
) -> dict[int, FloatArray]:
    """Rank by one rival and its best moments again by another: hits (N, 2) by their number."""
    by_name = {flight.name: flight for flight in flights}
    found: dict[int, list[tuple[bool, bool]]] = {count: [] for count in REFINED}
    for one in asked:
        orders = [moments_of(rival, one, _ALL) for rival in (coarse, fine)]
        for count, hits in found.items():
            candidates = {_key(moment) for moment in orders[0][:count]}
            chosen = [moment for moment in orders[1] if _key(moment) in candidates]
            hits.append(_hit(chosen, one.question, by_name))
    return {count: np.array(hits, float) for count, hits in found.items()}


def causes(
    flights: Sequence[RememberedFlight], rival: Rival, asked: Sequence[Asked]
) -> dict[str, float]:
    """Say why a rival did not find objects: shares of all questions.

    No view lies on the object; its views are stored under another label; the tracks that show it
    mostly show others; or its looks are rated lower than those of others.
    """
    by_name = {flight.name: flight for flight in flights}
    answers = _answers(rival, asked, by_name)[:, 1]
    total = sum(one.weight for one in asked)
    shares = dict.fromkeys((NO_VIEW, OTHER_LABEL, MIXED, LOOKS), 0.0)
    for one, answer in zip(asked, answers, strict=True):
        if not answer:
            shares[_cause(by_name[one.target.flight], one.target)] += one.weight / total
    return shares


class Example(NamedTuple):
    """An object of a flight, the numbers of its views, and where it is looked for."""

    target: SeenObject
    views: NDArray[np.int64]
    shown_in: str
    gallery: tuple[str, ...]


def examples_of(flights: Sequence[RememberedFlight]) -> list[Example]:
    """Return all examples: of each object in view in two lights, its largest moment in one.

    An object of which there is no moment cannot be pointed at, and is not asked for. The gallery
    holds a flight of each seed, those of the other light where there are such.
    """
    pairs = [
        (one, other)
        for one, other in itertools.permutations(flights, 2)
        if one.cast == other.cast and one.light != other.light
    ]
    return [
        example
        for one, other in pairs
        for example in _examples(one, other, _gallery(other, flights))
    ]


def hits_by_example(
    flights: Sequence[RememberedFlight], rivals: Sequence[Rival], examples: Sequence[Example]
) -> Hits:
    """Ask every rival by examples."""
    by_name = {flight.name: flight for flight in flights}

    def answers(rival: Rival) -> FloatArray:
        lots = _LOTS if rival.name == RANDOM else 1
        hits = [[_found_again(rival, one, by_name) for one in examples] for _ in range(lots)]
        return np.asarray(np.mean(np.array(hits, float), axis=0))

    return Hits(
        [example.target.seed for example in examples],
        np.ones(len(examples)),
        {rival.name: answers(rival) for rival in rivals},
    )


def _answers(
    rival: Rival, asked: Sequence[Asked], flights: Mapping[str, RememberedFlight]
) -> FloatArray:
    lots = _LOTS if rival.name == RANDOM else 1
    hits = [
        [_hit(moments_of(rival, one, FIRST), one.question, flights) for one in asked]
        for _ in range(lots)
    ]
    return np.asarray(np.mean(np.array(hits, float), axis=0))


def moments_of(rival: Rival, asked: Asked, limit: int) -> Sequence[Moment]:
    """Return what a rival answers in words, best first."""
    memories = rival.of(asked.gallery)
    labels = {str(label) for memory in memories for label in memory.views.texts['label']}
    parsed = read_query(asked.question.text, labels)
    wanted = parsed.subject.labels if rival.filters else tuple(sorted(labels - {''}))
    query = MemoryQuery(parsed, filters=Filters(labels=wanted))
    return search(memories, query, lambda _: rival.scorer, limit).moments


def _hit(
    moments: Sequence[Moment], question: Question, flights: Mapping[str, RememberedFlight]
) -> tuple[bool, bool]:
    """Say whether the first moment fits, and whether one of the first ten does."""
    fits = [shows(moment, question, flights[moment.flight]) for moment in moments[:FIRST]]
    return any(fits[:1]), any(fits)


def shows(moment: Moment, question: Question, flight: RememberedFlight) -> bool:
    """Say whether the view of a moment that is shown lies on an object that fits."""
    owner = flight.owners[moment.shown.id]
    return owner != NOBODY and words_of(flight.looks[owner]) == question.text


def _key(moment: Moment) -> tuple[str, int, int]:
    return moment.flight, moment.shown.run, moment.shown.item.track_id


def _cause(flight: RememberedFlight, target: SeenObject) -> str:
    integers, labels = flight.table.integers, flight.table.texts['label']
    owners = np.array([flight.owners[int(number)] for number in integers['id']])
    shows = owners == target.id
    if not shows.any():
        return NO_VIEW
    shows &= labels == target.look.label
    if not shows.any():
        return OTHER_LABEL
    tracks = integers['track']
    shares = [float((owners[tracks == t] == target.id).mean()) for t in np.unique(tracks[shows])]
    return LOOKS if max(shares) > _MOSTLY else MIXED


def _gallery(other: RememberedFlight, flights: Sequence[RememberedFlight]) -> tuple[str, ...]:
    """Return a flight of each seed, those most like one first, and that one of its own."""
    chosen: dict[str, str] = {}
    for flight in sorted(
        flights,
        key=lambda f: (f.name != other.name, f.scenario != other.scenario, f.light != other.light),
    ):
        chosen.setdefault(flight.seed, flight.name)
    return tuple(chosen.values())


def _examples(
    one: RememberedFlight, other: RememberedFlight, gallery: tuple[str, ...]
) -> Iterator[Example]:
    integers = one.table.integers
    in_view = {seen.id for seen in other.objects}
    for target in one.objects:
        if target.id not in in_view:
            continue
        tracks = Counter(
            (int(integers['run'][row]), int(integers['track'][row]))
            for row, number in enumerate(integers['id'])
            if one.owners[int(number)] == target.id
        )
        if not tracks:
            continue
        run, track = min(tracks, key=lambda key: (-tracks[key], key))
        is_of = (integers['run'] == run) & (integers['track'] == track)
        yield Example(target, integers['id'][is_of], other.name, gallery)


def _found_again(
    rival: Rival, example: Example, flights: Mapping[str, RememberedFlight]
) -> tuple[bool, bool]:
    own = rival.memories[example.target.flight].views
    taps = own.taps(np.isin(own.integers['id'], example.views))
    query = MemoryQuery(examples=taps)
    found = search(rival.of(example.gallery), query, lambda _: rival.scorer, FIRST).moments
    shows = [
        moment.flight == example.shown_in
        and flights[moment.flight].owners[moment.shown.id] == example.target.id
        for moment in found
    ]
    return any(shows[:1]), any(shows)
