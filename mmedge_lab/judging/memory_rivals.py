"""Embeddings that are compared on the same views of flights, and what rates their vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.mean_colour import LENGTH, MeanColourScorer
from mmedge_lab.judging.memory_cases import (
    COLOUR,
    EXIT,
    PICTURE,
    TRUE_BOXES,
    RememberedFlight,
    rows_of,
)
from mmedge_ros.data_types import FloatArray
from mmedge_ros.encoding.classifier_description import describe_classifier
from mmedge_ros.memory.int4 import packed, unpacked
from mmedge_ros.memory.moment import Vectors, ViewKind
from mmedge_ros.memory.query import ParsedQuery
from mmedge_ros.memory.search import QueryScorer
from mmedge_ros.memory.spaces import AttributeSpace
from mmedge_ros.memory.store import ItemTable
from mmedge_ros.memory.store_file import StoreHeader
from mmedge_ros.memory.view_choice import ViewQuality

ONE_VIEW, RATED_LABELS = 'one_view', 'rated_labels'
MEAN_COLOUR, RIDGE = 'mean_colour', 'mean_colour_ridge'
RANDOM, LEVELS, HEADS = 'random', 'levels', 'heads'
# Makes vectors (N, D) of `colour_features` (N, 42).
Regression = Callable[[Vectors], Vectors]


@dataclass(frozen=True, eq=False)
class RivalMemory:
    """The memory of a flight with the vectors of a rival."""

    name: str
    header: StoreHeader
    views: ItemTable

    def table(self) -> ItemTable:
        return self.views


class RandomOrder:
    """Rates views by lot."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(0)

    def scores(self, query: ParsedQuery, vectors: Vectors) -> FloatArray:  # noqa: ARG002
        return self._random.random(len(vectors))


@dataclass(frozen=True, eq=False)
class Rival:
    """One way to embed: its name, words for people, what rates it, and its memories by flight.

    ``filters``: only views with the label that is asked for are rated, as a search does.
    """

    name: str
    words: str
    scorer: QueryScorer
    memories: Mapping[str, RivalMemory]
    filters: bool = True

    def of(self, flights: Iterable[str]) -> list[RivalMemory]:
        """Return the memories of flights."""
        return [self.memories[flight] for flight in flights]


def rivals_of(
    flights: Sequence[RememberedFlight], bundle: Path, usual: int, ridge: Regression | None = None
) -> list[Rival]:
    """Return all rivals, first the exit that a memory is built with.

    :param usual: that exit
    :param ridge: what makes vectors of colours; None leaves that rival out
    """
    space = space_of(bundle)
    own = EXIT.format(usual)
    exits = sorted({name for name in flights[0].vectors if name.startswith(EXIT.format(''))})
    named = {
        own: f'exit {usual}, which a memory is built with',
        **{name: name.replace('_', ' ') for name in exits if name != own},
        PICTURE: f'exit {usual} of the picture, not of the thumbnail',
        TRUE_BOXES: f'exit {usual} with true boxes in place of the detector’s',
    }
    named[exits[-1]] += ' (the end)' if exits[-1] != own else ', the end'
    rivals = [
        _rival(name, words, space, flights, _of(flights, name), _of(flights, name, taps=True))
        for name, words in named.items()
    ]
    said = _of(flights, own)
    words = f'exit {usual}, examples by what its heads say, not by its tap'
    rivals.append(_rival(HEADS, words, space, flights, said, said))
    one = Rival(ONE_VIEW, 'the best view of each track alone', space, _one_view(rivals[0]))
    words = 'labels rated like other words, not filtered'
    rivals += [one, replace(rivals[0], name=RATED_LABELS, words=words, filters=False)]
    colours = {flight.name: flight.vectors[COLOUR] for flight in flights}
    shares = {name: features[:, :LENGTH] for name, features in colours.items()}
    words = 'mean colour, words as shares of pixels'
    rivals.append(_rival(MEAN_COLOUR, words, MeanColourScorer(), flights, shares, shares))
    if ridge is not None:
        regressed = {name: ridge(features) for name, features in colours.items()}
        words = 'mean colour, regressed onto the same classes'
        rivals.append(_rival(RIDGE, words, space, flights, regressed, regressed))
    rivals.append(Rival(RANDOM, 'in any order', RandomOrder(), _by_lot(one)))
    return rivals


def levels_rival(flights: Sequence[RememberedFlight], bundle: Path, usual: int) -> Rival:
    """Return the memories of flights in which the level of the detector changed.

    :param usual: the exit that a memory is built with
    """
    own = EXIT.format(usual)
    vectors, taps = _of(flights, own), _of(flights, own, taps=True)
    words = 'the level of the detector changes every two seconds'
    return _rival(LEVELS, words, space_of(bundle), flights, vectors, taps)


def space_of(bundle: Path) -> AttributeSpace:
    """Return the space of a bundle's recogniser.

    :raises EvaluationError: if it has none
    """
    description = describe_classifier(bundle)
    if description is None:
        raise EvaluationError(f'{bundle} has no recogniser; name a bundle with one')
    return AttributeSpace(description)


def _rival(
    name: str,
    words: str,
    scorer: QueryScorer,
    flights: Sequence[RememberedFlight],
    vectors: Mapping[str, Vectors],
    taps: Mapping[str, Vectors],
) -> Rival:
    """Return the rival that rates words by vectors and examples by taps, kept in four bits."""
    memories = {}
    for flight in flights:
        # Key frames have none.
        is_track = flight.table.integers['kind'] == ViewKind.TRACK
        rated, compared = (
            np.where(is_track[:, None], made[flight.name], np.float32(0.0))
            for made in (vectors, taps)
        )
        header = StoreHeader(name, rated.shape[1], compared.shape[1])
        views = replace(
            flight.table,
            vectors=unpacked(packed(rated), header.length),
            packed_taps=packed(compared),
            tap_length=header.tap_length,
        )
        memories[flight.name] = RivalMemory(flight.name, header, views)
    return Rival(name, words, scorer, memories)


def _of(
    flights: Sequence[RememberedFlight], name: str, *, taps: bool = False
) -> dict[str, Vectors]:
    """Return the vectors or taps by what embedded them, by flight."""
    return {f.name: (f.taps if taps else f.vectors)[name] for f in flights}


def _one_view(rival: Rival) -> dict[str, RivalMemory]:
    """Return memories in which each track has its best view alone."""
    return {
        name: replace(memory, views=rows_of(memory.views, _best_rows(memory.views)))
        for name, memory in rival.memories.items()
    }


def _by_lot(rival: Rival) -> dict[str, RivalMemory]:
    """Return memories whose taps say nothing."""
    random = np.random.default_rng(0)
    memories = {}
    for name, memory in rival.memories.items():
        shape = len(memory.views), memory.header.tap_length
        taps = packed(random.normal(size=shape).astype(np.float32))
        memories[name] = replace(memory, views=replace(memory.views, packed_taps=taps))
    return memories


def _best_rows(table: ItemTable) -> np.ndarray:
    best: dict[tuple[int, int], tuple[float, int]] = {}
    qualities = table.reals('size', 'sharpness', 'visibility')
    for row, quality in enumerate(qualities):
        if table.integers['kind'][row] == ViewKind.TRACK:
            key = (int(table.integers['run'][row]), int(table.integers['track'][row]))
            best[key] = max(best.get(key, (-1.0, 0)), (ViewQuality(*quality).score, row))
    return np.array(sorted(row for _, row in best.values()), np.intp)
