"""Finds moments in one or more flight memories: filters first, then every view is rated."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.memory import FlightMemoryError
from mmedge_ros.memory.encoders import Embed, example_picture
from mmedge_ros.memory.moment import Moment, Spot, Vectors, ViewKind, lights_of, moves
from mmedge_ros.memory.query import (
    LONGEST_QUERY,
    Filters,
    MemoryQuery,
    ParsedQuery,
    read_query,
)
from mmedge_ros.memory.relations import best_partners
from mmedge_ros.memory.store import Integers, ItemTable, MemoryReader, unit
from mmedge_ros.memory.store_file import StoreHeader

NO_ABSENCE = 'scores compare these moments; none of them says that something was not there'


class QueryScorer(Protocol):
    """Rates how well views fit words."""

    def scores(self, query: ParsedQuery, vectors: Vectors) -> FloatArray:
        """Return scores (N,), larger is better, of vectors (N, D) for the subject of a query.

        Relations and motion are judged elsewhere.
        """


class SearchedMemory(Protocol):
    """A memory that can be searched, such as a `MemoryReader`."""

    @property
    def name(self) -> str: ...

    @property
    def header(self) -> StoreHeader: ...

    def table(self) -> ItemTable: ...


# The scorer for vectors of a bundle; it raises FlightMemoryError if that is not here.
ScorerFor = Callable[[StoreHeader], QueryScorer]


@dataclass(frozen=True, eq=False)
class SearchResult:
    """What a search found, best first.

    ``rated`` of ``stored`` views passed the filters. ``notes`` are sentences for the searcher:
    words that are unknown or were taken for others, views that could not be judged.
    """

    moments: tuple[Moment, ...]
    rated: int
    stored: int
    notes: tuple[str, ...]


def search(
    memories: Sequence[SearchedMemory],
    query: MemoryQuery,
    scorer_for: ScorerFor,
    limit: int = 10,
) -> SearchResult:
    """Return the moments of all flights that fit best.

    :raises FlightMemoryError: if a memory cannot be read, or examples are of another bundle
    """
    tables = [memory.table() for memory in memories]
    others = (label for relation in query.parsed.relations for label in relation.other.labels)
    labels = (*query.all_filters.labels, *others)
    notes = [*_said_of_words(query.parsed), *_said_of_labels(tables, labels)]
    rated: list[_RatedFlight] = []
    for memory, table in zip(memories, tables, strict=True):
        if table.damaged:
            notes.append(f'{memory.name}: {table.damaged} damaged views are left out')
        rated.append(_RatedFlight(memory, table, query, scorer_for, notes))
    candidates = heapq.nsmallest(
        limit,
        (
            (-score, begin, place, group)
            for place, flight in enumerate(rated)
            for score, begin, group in flight.groups(limit)
        ),
    )
    return SearchResult(
        tuple(rated[place].moment(group, -score) for score, _, place, group in candidates),
        sum(len(flight.rows) for flight in rated),
        sum(map(len, tables)),
        (*dict.fromkeys(notes), NO_ABSENCE),
    )


def taps_of(memory: MemoryReader, number: int) -> Vectors:
    """Return the taps (E, T) of the moment that an item belongs to, to find more like it.

    :raises FlightMemoryError: if there is no such item
    """
    table = memory.table()
    rows = np.flatnonzero(table.integers['id'] == number)
    if not len(rows):
        raise FlightMemoryError(
            f'{memory.name} has no view {number}; name one that a search has shown'
        )
    groups = groups_of(table)
    return table.taps(groups == groups[rows[0]])


class _RatedFlight:
    """The views of a flight that pass: ``rows`` (N,) of its table with their ``scores`` (N,).

    ``beside`` (N,) are rows of the other object that is asked for, -1: none. What could not be
    judged is added to the notes.
    """

    def __init__(
        self,
        memory: SearchedMemory,
        table: ItemTable,
        query: MemoryQuery,
        scorer_for: ScorerFor,
        notes: list[str],
    ) -> None:
        self._name, self._header, self._table = memory.name, memory.header, table
        self._scorer_for = scorer_for
        self.rows = np.flatnonzero(_passing(table, query.all_filters, notes))
        self.beside = np.full(len(self.rows), -1, np.int64)
        partner_scores: list[FloatArray] = []
        for kind, other in query.parsed.relations:
            subjects = np.zeros(len(table), bool)
            subjects[self.rows] = True
            _note_unknown(notes, subjects, table.positions[:, :2], 'place')
            wanted = Filters(labels=other.labels, motions=other.motions)
            others = np.flatnonzero(_passing(table, wanted, notes))
            fits = self._text_scores(others, query.parsed.of(other))
            partners = best_partners(kind, table, self.rows, others, fits)
            has_one = partners >= 0
            partner_scores = [scores[has_one] for scores in partner_scores]
            partner_scores.append(fits[partners[has_one]])
            self.rows, self.beside = self.rows[has_one], others[partners[has_one]]
        # The object and what it stands beside count alike, and so do words and examples.
        parts = [*self._own_scores(query), *partner_scores]
        if len(query.examples) and len(parts) > 1:
            parts = [_standard(part) for part in parts]
        self.scores: FloatArray = np.mean(parts, axis=0)
        groups = groups_of(table)[self.rows]
        self._groups = np.unique(groups, return_inverse=True)[1].reshape(-1)

    def groups(self, limit: int) -> Iterator[tuple[float, int, int]]:
        """Yield score, begin and number of the best moments; alike ones in the order of time."""
        if not len(self.rows):
            return
        means = np.bincount(self._groups, self.scores) / np.bincount(self._groups)
        begins = np.full(len(means), np.iinfo(np.int64).max)
        np.minimum.at(begins, self._groups, self._table.integers['stamp'][self.rows])
        for group in np.lexsort((begins, -means))[:limit].tolist():
            yield float(means[group]), int(begins[group]), group

    def moment(self, group: int, score: float) -> Moment:
        """Return a moment by its number."""
        table = self._table
        members = np.flatnonzero(self._groups == group)
        stamps = table.integers['stamp'][self.rows[members]]
        members = members[np.argsort(stamps, kind='stable')]
        best = int(self.scores[members].argmax())
        beside = int(self.beside[members[best]])
        views = tuple(table.item(int(row)) for row in self.rows[members])
        return Moment(self._name, score, views, best, table.item(beside) if beside >= 0 else None)

    def _own_scores(self, query: MemoryQuery) -> Iterator[FloatArray]:
        """Yield the scores (N,) by words and by examples, as far as they are asked for."""
        has_examples, length = len(query.examples) > 0, self._header.tap_length
        if has_examples:
            if query.examples.shape[1] != length:
                raise FlightMemoryError(
                    f'examples of {query.examples.shape[1]} values, a memory of {length}; embed '
                    'the example with the bundle of the memory'
                )
            # Examples show one object: their mean shows it better than each of them.
            example = unit(unit(query.examples).mean(axis=0, keepdims=True))[0]
            yield (unit(self._table.taps(self.rows)) @ example).astype(float)
        if query.parsed.subject.words or not has_examples:
            yield self._text_scores(self.rows, query.parsed)

    def _text_scores(self, rows: Integers, parsed: ParsedQuery) -> FloatArray:
        if not parsed.subject.words or not len(rows):
            return np.zeros(len(rows))
        scorer = self._scorer_for(self._header)
        scores = np.asarray(scorer.scores(parsed, self._table.vectors[rows]), float)
        if scores.shape != rows.shape or not np.isfinite(scores).all():
            raise FlightMemoryError(
                f'the text encoder rated {len(rows)} views with {scores.shape} scores, or with '
                'what is no number; fetch the bundle again'
            )
        return scores


def _standard(scores: FloatArray) -> FloatArray:
    """Return scores with mean 0 and deviation 1; alike ones become 0."""
    if not len(scores):
        return scores
    deviation = float(scores.std())
    return (scores - scores.mean()) / deviation if deviation > 1e-9 else np.zeros_like(scores)


def _passing(table: ItemTable, filters: Filters, notes: list[str]) -> NDArray[np.bool_]:
    """Mark the views (N,) that pass; note how many could not be judged."""
    integers = table.integers
    passing = np.ones(len(table), bool)
    if filters.between_ns is not None:
        first, last = filters.between_ns
        passing &= (integers['stamp'] >= first) & (integers['stamp'] <= last)
    if filters.offsets_ns is not None:
        first, last = filters.offsets_ns
        offsets = table.facts['bag_offset']
        known = np.where(offsets < 0, np.nan, offsets)[:, None]
        _note_unknown(notes, passing, known, 'place in a recording')
        passing &= (offsets >= max(first, 0)) & (offsets <= last)
    if filters.labels:
        passing &= np.isin(table.texts['label'], filters.labels)
    if filters.lights:
        lights = lights_of(table.reals('brightness')[:, 0])
        passing &= np.isin(lights, filters.lights)
    if filters.phases:
        passing &= np.isin(table.facts['phase'], filters.phases)
    if filters.centre is not None:
        gaps = table.positions[:, :2] - filters.centre[:2]
        _note_unknown(notes, passing, gaps, 'place')
        passing &= np.hypot(gaps[:, 0], gaps[:, 1]) <= filters.radius
    for motion in filters.motions:
        velocities = table.velocities
        _note_unknown(notes, passing, velocities[:, :2], 'speed')
        passing &= moves(motion, table.positions, velocities, table.drones)
    return passing


def _note_unknown(
    notes: list[str], passing: NDArray[np.bool_], values: FloatArray, name: str
) -> None:
    unknown = np.count_nonzero(passing & ~np.isfinite(values).all(axis=1))
    if unknown:
        notes.append(f'{unknown} views without a known {name} are left out')


def groups_of(table: ItemTable) -> Integers:
    """Return which moment (N,) each view belongs to: that of its track, or its own."""
    integers = table.integers
    own = np.where(integers['kind'] == ViewKind.KEY_FRAME, integers['id'], -1)
    keys = np.stack([integers['run'], integers['track'], own], axis=1)
    groups: Integers = np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)
    return groups


def _said_of_words(parsed: ParsedQuery) -> Iterator[str]:
    if parsed.unknown:
        yield f'not in the vocabulary: {", ".join(parsed.unknown)}'
    for word, other in parsed.taken_as:
        yield f'{word} is searched for as {other}'


def _said_of_labels(tables: Sequence[ItemTable], labels: Sequence[str]) -> Iterator[str]:
    stored = {str(label) for table in tables for label in np.unique(table.texts['label'])}
    missing = [label for label in labels if label not in stored]
    if missing:
        known = ', '.join(sorted(stored - {''})) or 'none'
        yield f'no view is stored as {", ".join(missing)}; stored labels: {known}'


MOST_MOMENTS = 1000


class AskedScorer(QueryScorer, Protocol):
    """A scorer that says whether words outside the vocabulary tell it something as well."""

    knows_all_words: bool


@dataclass(frozen=True)
class SearchRequest:
    """A question to memories; empty fields ask for nothing.

    ``example`` is a JPEG or PNG of one object; ``like`` the number of a view of the first memory.
    ``near``: x, y, radius (m). ``between_ns``: first and last stamp; ``offsets_ns`` the same from
    the begin of each recording.
    """

    words: str = ''
    example: bytes = b''
    like: int = 0
    near: tuple[float, float, float] | None = None
    between_ns: tuple[int, int] | None = None
    offsets_ns: tuple[int, int] | None = None
    limit: int = 10


def find_moments(
    memories: Sequence[MemoryReader],
    request: SearchRequest,
    scorer_for: Callable[[StoreHeader], AskedScorer],
    embed: Embed,
) -> SearchResult:
    """Return the moments that fit a question best.

    :raises FlightMemoryError: if nothing is asked or understood, the example is no picture, or a
        memory cannot be read
    :raises EncodingError: if the example cannot be embedded
    """
    words, filters = request.words.strip(), _filters(request)
    if len(words) > LONGEST_QUERY:
        raise FlightMemoryError(f'a question has at most {LONGEST_QUERY} characters')
    if not 1 <= request.limit <= MOST_MOMENTS:
        raise FlightMemoryError(f'{request.limit} moments; ask for 1 to {MOST_MOMENTS}')
    labels = {str(label) for memory in memories for label in memory.table().texts['label']}
    parsed = read_query(words, labels)
    left = parsed.left_to_text()
    # Asked only where it matters: what made a memory need not be here for other questions.
    is_left = left != parsed and all(scorer_for(m.header).knows_all_words for m in memories)
    parsed = left if is_left else parsed
    examples = [
        *([taps_of(memories[0], request.like)] if request.like else ()),
        *([embed(example_picture(request.example))] if request.example else ()),
    ]
    if not examples and filters == Filters() and not (parsed.is_understood or is_left):
        unknown = ', '.join(parsed.unknown) or repr(words)
        raise FlightMemoryError(
            f'none of these words is known: {unknown}; ask for labels, colours, motion or light, '
            'such as "person in red"'
            if words
            else 'nothing is asked for; say words, an example, a place or a time'
        )
    bundles = {memory.header for memory in memories}
    if examples and len(bundles) > 1:
        raise FlightMemoryError(
            f'the memories were made by {len(bundles)} bundles, and examples are compared by one; '
            'search them one after another'
        )
    if words and len(bundles) > 1 and any(scorer_for(b).knows_all_words for b in bundles):
        raise FlightMemoryError(
            f'the memories were made by {len(bundles)} encoders, whose scores for words do not '
            'compare; search them one after another'
        )
    # No examples are what a query has by default.
    shown = {'examples': np.concatenate(examples)} if examples else {}
    query = MemoryQuery(parsed, filters=filters, **shown)
    return search(memories, query, scorer_for, request.limit)


def _filters(request: SearchRequest) -> Filters:
    for span in (request.between_ns, request.offsets_ns):
        if span is not None and span[0] > span[1]:
            raise FlightMemoryError('the time ends before it begins; name the earlier one first')
    place = request.near or (0.0, 0.0, 0.0)
    x, y, radius = place
    if request.near and (not all(map(math.isfinite, place)) or radius <= 0.0):
        raise FlightMemoryError(
            f'near {x:g}, {y:g} with a radius of {radius:g} m; name a place and a radius above 0'
        )
    return Filters(
        between_ns=request.between_ns,
        offsets_ns=request.offsets_ns,
        centre=Spot(x, y) if request.near else None,
        radius=radius,
    )
