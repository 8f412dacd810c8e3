"""Answers to questions, and the evidence for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

Value = bool | int | float | str | tuple[int, ...] | tuple[float, float] | None
TRACKS, TRACKS_AND_MEMORY = 'tracks', 'tracks and memory'


class Evidence(NamedTuple):
    """Evidence for an answer: a track from ``begin`` to ``end`` (s).

    ``distance`` (m) is its shortest one there to what is measured from, with one standard
    ``deviation``, at the time ``at`` (s); None where none is known. ``views`` are numbers of
    views in the memory.
    """

    track: int
    label: str
    begin: float
    end: float
    distance: float | None = None
    deviation: float | None = None
    at: float | None = None
    views: tuple[int, ...] = ()


@dataclass(frozen=True)
class Answer:
    """What is answered.

    ``value`` is a truth, a number, a label, a place (x, y), or numbers of tracks. Of a count,
    ``low`` were seen at once and ``high`` distinct tracks; of a distance or speed over a span they
    are its least and largest; of the track that is most so, both are how much. ``watched`` is the
    share of the span in which the camera sent something. ``refused`` says why there is no answer;
    '' where there is one.
    """

    text: str
    value: Value = None
    low: float | None = None
    high: float | None = None
    watched: float | None = None
    evidence: tuple[Evidence, ...] = ()
    source: str = TRACKS
    refused: str = ''
