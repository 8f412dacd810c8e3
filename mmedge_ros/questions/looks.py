"""How tracks look, and pictures of them, from the flight memory of the same flight.

Numbers of tracks differ from one replay to the next, so that views go by time, label and place.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.encoding.bundle.default_model import bundle_folders, default_detector
from mmedge_ros.memory import FlightMemoryError
from mmedge_ros.memory.moment import ViewKind
from mmedge_ros.memory.query import Attribute, ParsedQuery, Phrase
from mmedge_ros.memory.spaces import AttributeSpace, PairSpace, scorer_for
from mmedge_ros.memory.store import ItemTable, MemoryReader
from mmedge_ros.questions import QuestionError
from mmedge_ros.questions.answer import Answer
from mmedge_ros.questions.model_prompt import MOST_PICTURES, PromptPicture
from mmedge_ros.questions.observations import Observations, ObservedTrack
from mmedge_ros.questions.selection import KnownFlight

# A view is of the nearest track within these.
_SAME_TIME_NS, _SAME_PLACE = NS_PER_S // 5, 1.5


@dataclass(frozen=True)
class RememberedLooks:
    """How probable a look is of each track; ``rows`` are those of a track's views, by track."""

    table: ItemTable
    space: AttributeSpace
    rows: Mapping[int, tuple[int, ...]]

    def __call__(self, track: ObservedTrack, phrase: Phrase) -> float | None:
        """Return the probability, the mean over views and attributes; None where no view is known.

        :raises QuestionError: if the memory does not know such a look
        """
        for attribute in phrase.attributes:
            self._require_known(attribute)
        rows = self.rows.get(track.id, ())
        if not rows:
            return None
        asked = ParsedQuery(subject=Phrase(phrase.labels, phrase.attributes))
        scores = self.space.scores(asked, self.table.vectors[list(rows)])
        return math.exp(float(scores.mean()) / len(phrase.attributes))

    def _require_known(self, attribute: Attribute) -> None:
        places = self.space.places()
        part, value = attribute
        if part in places['whole']:
            is_known = any(value in colour for colour in places['colours'])
        else:
            is_known = part in places['parts'] and value in places['parts'][part][1]
        if not is_known:
            raise QuestionError(
                f'the memory of this flight does not know {part or "objects"} in {value}'
                if value not in ('yes', 'no')
                else f'the memory of this flight does not know {part}'
            )


def with_looks(flight: KnownFlight, memory: Path, detector: str = '') -> KnownFlight:
    """Add the looks of tracks from a memory; a problem is noted where it cannot be read.

    :param memory: its folder
    :param detector: bundle that it may have been made with, besides those that are installed
    """
    try:
        with MemoryReader(memory) as reader:
            table, header = reader.table(), reader.header
        bundles = [*bundle_folders(), *([default_detector(detector)] if detector else [])]
        space = scorer_for(bundles)(header)
        if isinstance(space, PairSpace):
            raise FlightMemoryError(
                f'{memory} was made with a pair; looks are asked of one that a bundle made'
            )
    except FlightMemoryError as err:
        return replace(flight, problems=(*flight.problems, f'looks are not known: {err}'))
    observations, looks_like = remembered_looks(flight.observations, table, space)
    return replace(flight, observations=observations, looks_like=looks_like)


def remembered_looks(
    observations: Observations, table: ItemTable, space: AttributeSpace
) -> tuple[Observations, RememberedLooks]:
    """Give the views of a memory to tracks; return the tracks with them, and how they look."""
    rows: dict[int, list[int]] = {}
    begins = np.array([track.begin_ns for track in observations.tracks], np.int64) - _SAME_TIME_NS
    ends = np.array([track.end_ns for track in observations.tracks], np.int64) + _SAME_TIME_NS
    views = np.flatnonzero(table.integers['kind'] == ViewKind.TRACK)
    for row in views:
        stamp_ns = int(table.integers['stamp'][row])
        there = np.flatnonzero((begins <= stamp_ns) & (stamp_ns <= ends))
        owner = _owner(
            [observations.tracks[place] for place in there],
            stamp_ns,
            str(table.texts['label'][row]),
            table.positions[row, :2],
        )
        if owner is not None:
            rows.setdefault(owner, []).append(int(row))
    tracks = tuple(
        replace(
            track,
            view_ids=tuple(int(n) for n in table.integers['id'][rows[track.id]]),
        )
        if track.id in rows
        else track
        for track in observations.tracks
    )
    owned = {number: tuple(of) for number, of in rows.items()}
    return replace(observations, tracks=tracks), RememberedLooks(table, space, owned)


def _owner(
    tracks: Sequence[ObservedTrack], stamp_ns: int, label: str, place: np.ndarray
) -> int | None:
    best, owner = _SAME_PLACE, None
    for track in tracks:
        if track.label != label:
            continue
        row = int(np.argmin(np.abs(track.stamps_ns - stamp_ns)))
        gap = float(np.hypot(*(track.positions[row, :2] - place)))
        if abs(int(track.stamps_ns[row]) - stamp_ns) <= _SAME_TIME_NS and gap <= best:
            best, owner = gap, track.id
    return owner


def pictures_of_views(memory: Path, answer: Answer) -> list[PromptPicture]:
    """Return thumbnails of what an answer is about; none where there is no memory."""
    numbers = [number for row in answer.evidence for number in row.views[:1]]
    if not numbers or not memory.exists():
        return []
    try:
        with MemoryReader(memory) as reader:
            found = [(number, reader.thumbnail(number)) for number in numbers[:MOST_PICTURES]]
    except FlightMemoryError:
        return []  # it was said when looks were asked for
    return [PromptPicture(f'view {number}', jpeg) for number, jpeg in found if jpeg]
