"""How tracks look, from a flight memory: its views are given to the tracks that were there then.

Numbers of tracks differ from one replay to the next, so that views go by time, label and place.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mmedge_ros.data_types import NS_PER_S
from mmedge_ros.memory.moment import ViewKind
from mmedge_ros.memory.query import Attribute, ParsedQuery, Phrase
from mmedge_ros.memory.spaces import AttributeSpace
from mmedge_ros.memory.store import ItemTable
from mmedge_ros.questions import QuestionError
from mmedge_ros.questions.observations import Observations, ObservedTrack

# A view is of the nearest track within these.
_SAME_TIME_NS, _SAME_PLACE = NS_PER_S // 5, 1.5


@dataclass(frozen=True)
class RememberedLooks:
    """Says how probable it is that a track looks so; ``rows`` are those of its views, by track."""

    table: ItemTable
    space: AttributeSpace
    rows: Mapping[int, tuple[int, ...]]

    def __call__(self, track: ObservedTrack, phrase: Phrase) -> float | None:
        """Return the probability, alike over views and attributes; None where no view is known.

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
            is_known = any(value in colour for colour in self.space.places()['colours'])
        else:
            is_known = part in places['parts'] and value in places['parts'][part][1]
        if not is_known:
            raise QuestionError(
                f'the memory of this flight does not know {part or "objects"} in {value}'
                if value not in ('yes', 'no')
                else f'the memory of this flight does not know {part}'
            )


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
