"""Asks flight memories for objects that flights saw, and counts what is found.

*Words*: each object of a gallery is asked for by its looks; a hit is a moment among the first ten
whose shown view lies on an object that fits. *Examples*: the views of an object in one light are
looked for in the flights of another light; a hit shows the same object. *Scrubbing*: how many
thumbnails of an answer are looked at until something is found, beside one picture for each second
of the recording.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.bench import (
    Bench,
    BenchRequest,
    Figure,
    Results,
    Row,
    Sums,
    flights_about,
)
from mmedge_lab.judging.mean_colour import MeanColourScorer
from mmedge_lab.judging.memory_flights import RememberedFlight, read_remembered, remember
from mmedge_lab.judging.memory_truth import (
    NOBODY,
    MemoryQuestion,
    RememberedObject,
    galleries,
    questions,
    words_of,
)
from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.encoding.bundle.default_model import default_detector
from mmedge_ros.encoding.classifier_description import describe_classifier
from mmedge_ros.memory.int4 import packed, unpacked
from mmedge_ros.memory.moment import Moment, Vectors
from mmedge_ros.memory.query import MemoryQuery, ParsedQuery, read_query
from mmedge_ros.memory.search import QueryScorer, search
from mmedge_ros.memory.spaces import AttributeSpace
from mmedge_ros.memory.store import ItemTable
from mmedge_ros.memory.store_file import StoreHeader

FIRST, GIVES_UP = 10, 20
OURS, MEAN_COLOUR, RANDOM = 'ours', 'mean_colour', 'random'
_LOTS, _TIMED = 20, 20
_COSTS = 'what it costs'
_BUILT = f'{_COSTS}: built'
_FIGURES: Mapping[str, Figure] = {
    'questions': Figure('questions of a flight', 'asked', digits=1),
    'hit_10': Figure('hit@10', 'ten', 'asked'),
    'hit_1': Figure('hit@1', 'one', 'asked'),
    'median': Figure('median', 'looks', digits=0, quantile=0.5),
    'mean': Figure('mean', 'seen', 'sought', 1),
    'build': Figure('processor s for a second of flight', 'build_s', 'seconds', 2),
    'peak_mb': Figure('MB at most', 'peak_mb', digits=0),
    'bytes': Figure('bytes a view', 'bytes', 'items', 0),
    'views': Figure('views of a flight', 'items', digits=0),
    'question_ms': Figure('ms a question', 'question_ms', digits=1, quantile=0.5),
}


class RivalMemory(NamedTuple):
    """The memory of a flight with the vectors of a rival."""

    name: str
    header: StoreHeader
    views: ItemTable

    def table(self) -> ItemTable:
        return self.views


class Rival(NamedTuple):
    """One way to embed: its name, what rates its vectors, and its memories by flight."""

    name: str
    scorer: QueryScorer
    memories: Mapping[str, RivalMemory]


class _RandomOrder:
    def __init__(self) -> None:
        self._random = np.random.default_rng(0)

    def scores(self, query: ParsedQuery, vectors: Vectors) -> FloatArray:  # noqa: ARG002
        return self._random.random(len(vectors))


def rivals_of(flights: Sequence[RememberedFlight], bundle: Path) -> list[Rival]:
    """Return what memories are built with, and rivals on the same views.

    :raises EvaluationError: if the bundle has no recogniser
    """
    description = describe_classifier(bundle)
    if description is None:
        raise EvaluationError(f'{bundle} has no recogniser, which a flight memory embeds with')
    space, random = AttributeSpace(description), np.random.default_rng(0)
    own = {
        f.name: RivalMemory(
            f.name, StoreHeader(OURS, f.table.vectors.shape[1], f.table.tap_length), f.table
        )
        for f in flights
    }
    lots = {
        name: memory._replace(views=replace(memory.views, packed_taps=_noise(random, memory)))
        for name, memory in own.items()
    }
    return [
        Rival(OURS, space, own),
        Rival(MEAN_COLOUR, MeanColourScorer(), {f.name: _of_colours(f) for f in flights}),
        Rival(RANDOM, _RandomOrder(), lots),
    ]


def _of_colours(flight: RememberedFlight) -> RivalMemory:
    """Return a memory whose views are rated, and compared, by their colours."""
    codes, length = packed(flight.colours), flight.colours.shape[1]
    views = replace(
        flight.table, vectors=unpacked(codes, length), packed_taps=codes, tap_length=length
    )
    return RivalMemory(flight.name, StoreHeader(MEAN_COLOUR, length, length), views)


def _noise(random: np.random.Generator, memory: RivalMemory) -> Any:
    shape = len(memory.views), memory.header.tap_length
    return packed(random.normal(size=shape).astype(np.float32))


class AskedSearch(NamedTuple):
    """A question in words with one of the objects that it is about.

    ``weight``: objects of one question share it, and what is in several galleries counts once.
    """

    gallery: tuple[str, ...]
    question: MemoryQuestion
    target: RememberedObject
    weight: float


class Example(NamedTuple):
    """An object of a flight, its taps there, and where it is looked for."""

    target: RememberedObject
    views: Sequence[int]
    shown_in: str
    gallery: tuple[str, ...]


Hits = tuple[bool, bool]


@dataclass(frozen=True)
class MemoryJudge:
    """Asks rivals for what flights saw."""

    flights: Mapping[str, RememberedFlight]

    def asked_in_words(self) -> list[AskedSearch]:
        """Return what is asked in all galleries.

        :raises EvaluationError: if the galleries are so small that no words single anything out
        """
        drawn = galleries({flight.name: flight.seed for flight in self.flights.values()})
        uses = Counter(name for gallery in drawn for name in gallery)
        asked, sizes = [], [0]
        for gallery in drawn:
            objects = [one for name in gallery for one in self.flights[name].objects]
            sizes.append(len(objects))
            asked += [
                AskedSearch(
                    gallery, question, one, 1.0 / (len(question.fitting) * uses[one.flight])
                )
                for question in questions(objects)
                for one in question.fitting
            ]
        if not asked:
            raise EvaluationError(
                f'of galleries of {max(sizes)} objects no words single one out; name sets with '
                'flights of more seeds'
            )
        return asked

    def moments(self, rival: Rival, asked: AskedSearch, limit: int) -> Sequence[Moment]:
        """Return what a rival answers in words, best first."""
        memories = [rival.memories[name] for name in asked.gallery]
        labels = {str(label) for memory in memories for label in memory.views.texts['label']}
        query = MemoryQuery(read_query(asked.question.text, labels))
        return search(memories, query, lambda _: rival.scorer, limit).moments

    def words(self, rival: Rival, asked: AskedSearch) -> Hits:
        """Say whether words find an object at first, and among the first ten."""
        return self._hits(self.moments(rival, asked, FIRST), asked.question)

    def shows(self, moment: Moment, question: MemoryQuestion) -> bool:
        """Say whether the view of a moment that is shown lies on an object that fits."""
        flight = self.flights[moment.flight]
        owner = flight.owners[moment.shown.id]
        return owner != NOBODY and words_of(flight.looks[owner]) == question.text

    def _hits(self, moments: Sequence[Moment], question: MemoryQuestion) -> Hits:
        fits = [self.shows(moment, question) for moment in moments[:FIRST]]
        return any(fits[:1]), any(fits)

    def examples(self) -> list[Example]:
        """Return the largest moment of each object that is in view in two lights.

        An object of which there is no moment cannot be pointed at, and is not asked for. The
        gallery holds a flight of each seed, those of the other light where there are such.
        """
        pairs = itertools.permutations(self.flights.values(), 2)
        return [
            example
            for one, other in pairs
            if one.cast == other.cast and one.light != other.light
            for example in _examples(one, other, self._gallery(other))
        ]

    def example(self, rival: Rival, example: Example) -> Hits:
        """Say whether an example finds the same object in its flight."""
        own = rival.memories[example.target.flight].views
        taps = own.taps(np.isin(own.integers['id'], example.views))
        memories = [rival.memories[name] for name in example.gallery]
        query = MemoryQuery(examples=taps)
        found = search(memories, query, lambda _: rival.scorer, FIRST).moments
        owners = self.flights[example.shown_in].owners
        shows = [
            moment.flight == example.shown_in and owners[moment.shown.id] == example.target.id
            for moment in found
        ]
        return any(shows[:1]), any(shows)

    def _gallery(self, other: RememberedFlight) -> tuple[str, ...]:
        """Return a flight of each seed, those most like one first, and that one of its own."""
        chosen: dict[str, str] = {}
        for flight in sorted(
            self.flights.values(),
            key=lambda f: (f != other, f.scenario != other.scenario, f.light != other.light),
        ):
            chosen.setdefault(flight.seed, flight.name)
        return tuple(chosen.values())

    def scrubbed(self, rival: Rival, flight: RememberedFlight) -> Iterator[tuple[int, int]]:
        """Yield how much is looked at by who asks first, and by who scrubs, for each question.

        The flight is asked for everything that a picture at a whole second shows. Who has not
        found it among the first thumbnails scrubs after that.
        """
        alike: dict[str, list[RememberedObject]] = defaultdict(list)
        for one in flight.objects:
            if one.scrubbed:
                alike[words_of(one.look)].append(one)
        for text, objects in sorted(alike.items()):
            asked = AskedSearch(
                (flight.name,), MemoryQuestion(text, tuple(objects)), objects[0], 1.0
            )
            moments = self.moments(rival, asked, GIVES_UP)
            places = [n for n, one in enumerate(moments, 1) if self.shows(one, asked.question)]
            seen = min(one.scrubbed for one in objects)
            yield min(places, default=GIVES_UP + seen), seen

    def question_ms(self, rival: Rival, asked: Sequence[AskedSearch]) -> list[float]:
        """Return the processor time (ms) of questions in words to all flights."""
        taken = []
        for one in asked[:_TIMED]:
            begun = time.process_time()
            self.moments(rival, one._replace(gallery=tuple(self.flights)), FIRST)
            taken.append(1e3 * (time.process_time() - begun))
        return taken

    def sums(
        self,
        ask: Callable[[Rival, Any], Hits],
        rival: Rival,
        asked: Sequence[AskedSearch] | Sequence[Example],
    ) -> list[Sums]:
        """Return of each flight how much was asked for, and found at first and among ten.

        Lots are drawn again and again.
        """
        found = {name: dict.fromkeys(('asked', 'one', 'ten'), 0.0) for name in self.flights}
        for one in asked:
            weight = one.weight if isinstance(one, AskedSearch) else 1.0
            lots = range(_LOTS if rival.name == RANDOM else 1)
            first, ten = np.mean([ask(rival, one) for _ in lots], axis=0)
            sums = found[one.target.flight]
            for column, share in (('asked', 1.0), ('one', first), ('ten', ten)):
                sums[column] += weight * float(share)
        return list(found.values())


def _examples(
    one: RememberedFlight, other: RememberedFlight, gallery: tuple[str, ...]
) -> Iterator[Example]:
    in_view = {seen.id for seen in other.objects}
    runs, tracks, numbers = (one.table.integers[name] for name in ('run', 'track', 'id'))
    keys = list(zip(runs.tolist(), tracks.tolist(), strict=True))
    for target in one.objects:
        counts = Counter(
            key
            for key, number in zip(keys, numbers.tolist(), strict=True)
            if one.owners[number] == target.id
        )
        if target.id in in_view and counts:
            largest = min(counts, key=lambda key: (-counts[key], key))
            views = [n for key, n in zip(keys, numbers.tolist(), strict=True) if key == largest]
            yield Example(target, views, other.name, gallery)


def bench(request: BenchRequest) -> Bench:
    """Build memories of flights and ask them for what the flights saw."""
    bundle = default_detector(request.detector or 'flight_people')
    subjects, folder = request.flights(), request.out / 'memories'

    def answered(results: Results) -> dict[Row, Sequence[Sums]]:
        built = zip(subjects, results[_BUILT], strict=True)
        return _answered([read_remembered(folder, s, noted) for s, noted in built], bundle)

    return Bench(
        'How well flight memories find what flights saw',
        (Row('built', partial(remember, bundle, folder), group=_COSTS),),
        _FIGURES,
        subjects,
        references=(OURS,),
        about={**flights_about(subjects), 'bundle': bundle.name},
        derive=answered,
    )


def _answered(flights: Sequence[RememberedFlight], bundle: Path) -> dict[Row, Sequence[Sums]]:
    """Return the rows of questions, in words and by example, and of what asking costs."""
    judge = MemoryJudge({flight.name: flight for flight in flights})
    rivals = rivals_of(flights, bundle)
    words, examples = judge.asked_in_words(), judge.examples()
    rows: dict[Row, Sequence[Sums]] = {}
    for one in rivals:
        rows[_row(one.name, 'in words')] = judge.sums(judge.words, one, words)
    own = rows[_row(OURS, 'in words')]
    for light in dict.fromkeys(flight.light for flight in flights):
        chosen = [of if f.light == light else {} for of, f in zip(own, flights, strict=True)]
        rows[_row(light, 'in words, by light')] = chosen
    for one in rivals if examples else ():
        rows[_row(one.name, 'by example')] = judge.sums(judge.example, one, examples)
    looks = [list(judge.scrubbed(rivals[0], flight)) for flight in flights]
    for place, name in enumerate(('thumbnails, then pictures', 'a picture a second')):
        counts = [[float(look[place]) for look in of] for of in looks]
        found = [{'looks': of, 'seen': sum(of), 'sought': float(len(of))} for of in counts]
        rows[_row(name, 'looked at until found')] = found
    asking: Sums = {'question_ms': judge.question_ms(rivals[0], words)}
    rows[_row('a question in words to all flights', _COSTS)] = [asking, *[{}] * len(flights[1:])]
    return rows


def _row(name: str, group: str) -> Row:
    return Row(name, group=group)
