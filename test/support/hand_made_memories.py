"""Flights that are remembered, made by hand: who is where in their views is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from hand_made_moments import HEADER, memory_of, view

from mmedge_lab.judging.memory_bench import Rival, RivalMemory
from mmedge_lab.judging.memory_flights import RememberedFlight
from mmedge_lab.judging.memory_truth import RememberedObject
from mmedge_lab.simulation.appearance import COLOURS, MoverLook
from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.memory.moment import Vectors
from mmedge_ros.memory.query import ParsedQuery


class View(NamedTuple):
    """A view of a track, whom it shows, and its vector; see `looking`."""

    track: int
    owner: int
    vector: FloatArray
    label: str = 'car'


def car(colour: str) -> MoverLook:
    return MoverLook('car', colour)


def looking(colour: str, sure: float = 1.0) -> FloatArray:
    """The vector of what looks as if it had a colour."""
    vector = np.zeros(len(COLOURS), np.float32)
    vector[COLOURS.index(colour)] = sure
    return vector


class ByColour:
    """Rates views by the value of the colour that is asked for."""

    def scores(self, query: ParsedQuery, vectors: Vectors) -> FloatArray:
        wanted = [COLOURS.index(value) for _, value in query.subject.attributes]
        return np.asarray(vectors[:, wanted].sum(axis=1), float)


def remembered(
    folder: Path,
    name: str,
    looks: Mapping[int, MoverLook],
    views: Sequence[View],
    seed: str = '1',
    light: str = 'day',
) -> RememberedFlight:
    """A flight with these movers, all of them in view, and these views, a second apart."""
    items = [
        view(one.track, 1.0 + number, vector=one.vector, label=one.label)
        for number, one in enumerate(views)
    ]
    with memory_of(folder / f'{name}.memory', *items) as memory:
        table = memory.table()
    return RememberedFlight(
        name=name,
        seed=seed,
        light=light,
        scenario=f'street_{light}_near',
        cast=f'cast of {seed}',
        objects=tuple(
            RememberedObject(name, seed, light, n, look, 40.0) for n, look in looks.items()
        ),
        looks=looks,
        table=table,
        owners={
            int(number): one.owner for number, one in zip(table.integers['id'], views, strict=True)
        },
        vectors={},
        taps={},
    )


def rival_of(
    *flights: RememberedFlight, name: str = 'ours', shift: FloatArray | None = None
) -> Rival:
    """What embeds flights as their memories do; ``shift`` is added to every vector."""
    return Rival(
        name,
        ByColour(),
        {
            flight.name: RivalMemory(
                flight.name,
                HEADER,
                flight.table
                if shift is None
                else replace(flight.table, vectors=flight.table.vectors + shift),
            )
            for flight in flights
        },
    )


def crowd(count: int, *first: str) -> dict[int, MoverLook]:
    """Looks of cars of these colours, numbered from 1, and of other things to fill a gallery."""
    looks = {number: car(colour) for number, colour in enumerate(first, 1)}
    filling = [MoverLook('dog', 'brown')] * (count - len(first))
    return looks | dict(enumerate(filling, len(first) + 1))
