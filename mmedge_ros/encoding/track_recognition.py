"""Which tracks are looked at, what the looks add up to, and what of it is new.

A track whose label is sure and fresh keeps it. New, doubtful and due ones are looked at, a few in
each decision; all looks at a track count. What comes into view after its label was absent for a
while is a novelty.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from mmedge_ros.core.data_types import (
    NS_PER_S,
    FloatArray,
    LabelSource,
    Novelty,
    Track,
    TrackLabel,
)
from mmedge_ros.core.parameter import group, parameter

# A recalled class counts as much as a look that was so sure of it.
_RECALLED = 0.9
# Older looks count less from so many on: people turn, and light changes.
_MOST_LOOKS = 20.0
# A track that was not seen for longer (s) is forgotten; it may come back under its id before.
_FORGOTTEN = 10.0
# Doubtful tracks are looked at so often before they, too, wait until they are due.
_DOUBTFUL_LOOKS = 6


@dataclass(frozen=True)
class RecognitionParameters:
    """How often tracks are looked at, and when something is new."""

    # A label that was absent for so long is a novelty when it appears (s).
    absent: float = 60.0
    # A track whose label is sure is looked at again after this (s).
    refresh: float = 2.0
    # The looks at a track must agree so much for its label to be taken.
    sure: float = 0.75
    # Most tracks that are looked at in one decision.
    looks: int = 3
    # In lower boxes (px) nothing can be recognised.
    smallest: float = 12.0
    # Looks at a track before it can be a novelty; more are later and surer.
    novelty_looks: int = 3


@dataclass(frozen=True)
class RecogniserParameters:
    """What recognises tracked objects, and how often."""

    model: str = parameter(
        '',
        'what says more of tracked objects than the detector does: `bundle` for the recogniser of '
        "the detector's bundle, or a bundle folder with one (see docs/models.md); empty for none",
    )
    memory: bool = parameter(
        False,
        'leave the recogniser early where its semantic memory recalls the class, not where an '
        'exit head is sure of it, which saves more',
    )
    tracks: RecognitionParameters = group(RecognitionParameters)


class NamedLook(NamedTuple):
    """One look at a track.

    ``shares`` (J,) are the probabilities of the classes; of a recalled class nearly all.
    ``attributes`` are the likeliest value of each, and its probability.
    """

    shares: FloatArray
    attributes: Mapping[str, tuple[str, float]]
    source: LabelSource
    exit: int


def recalled_shares(label: int, classes: int) -> FloatArray:
    """Return the shares (J,) that a recalled class stands for."""
    shares = np.full(classes, (1.0 - _RECALLED) / max(classes - 1, 1))
    shares[label] = _RECALLED
    return shares


@dataclass
class _Known:
    """What was seen of a track."""

    votes: FloatArray
    attributes: dict[str, dict[str, float]] = field(default_factory=dict)
    looks: int = 0
    looked_ns: int = 0
    seen_ns: int = 0
    exit: int = 0
    is_novel: bool = False


@dataclass
class RecognitionCounts:
    """How tracks got their labels: each track in each decision is counted once."""

    reused: int = 0
    memory: int = 0
    full: int = 0
    waiting: int = 0
    novelties: int = 0


class TrackRecognition:
    """Adds up looks at tracks; belongs to one thread.

    :param classes: (J) names; one that begins with one of ``labels`` is that label, and the rest
        of its name an attribute, such as ``person red``
    """

    def __init__(
        self,
        classes: Sequence[str],
        labels: Sequence[str] = (),
        parameters: RecognitionParameters | None = None,
    ) -> None:
        self.parameters = parameters or RecognitionParameters()
        self.counts = RecognitionCounts()
        self._names = [_split(name, labels) for name in classes]
        self._labels = sorted({label for label, _ in self._names})
        self._of_label = np.array(
            [[label == name for name, _ in self._names] for label in self._labels], float
        )
        self.reset()

    def reset(self) -> None:
        """Forget all tracks, and what was there."""
        self._known: dict[int, _Known] = {}
        self._present_ns: dict[str, int] = {}

    def due(self, tracks: Sequence[Track], now_ns: int) -> list[Track]:
        """Return the tracks to be looked at now, the most urgent ones first."""
        p = self.parameters
        found = []
        for track in tracks:
            if track.box is None or track.box.height < p.smallest or track.detection is None:
                continue
            known = self._known.get(track.id)
            if known is None or not known.looks:
                found.append((-math.inf, track))
                continue
            waited = (now_ns - known.looked_ns) / NS_PER_S
            doubtful = self._confidence(known)[1] < p.sure or known.looks < p.novelty_looks
            if waited >= p.refresh or (doubtful and known.looks < _DOUBTFUL_LOOKS):
                found.append((-waited - p.refresh * doubtful, track))
        # At the head those that were never looked at, then by how long they have waited.
        found.sort(key=lambda pair: pair[0])
        return [track for _, track in found[: p.looks]]

    def looked(self, track: Track, look: NamedLook, now_ns: int) -> None:
        """Enter a look at a track."""
        known = self._known.setdefault(track.id, _Known(np.zeros(len(self._names))))
        total = known.votes.sum()
        if total >= _MOST_LOOKS:
            known.votes *= 0.5
        known.votes += look.shares
        for name, (value, share) in look.attributes.items():
            values = known.attributes.setdefault(name, {})
            values[value] = values.get(value, 0.0) + share
        known.looks += 1
        known.looked_ns = known.seen_ns = now_ns
        known.exit = look.exit

    def labels(
        self, tracks: Sequence[Track], looks: Mapping[int, LabelSource], now_ns: int
    ) -> list[TrackLabel]:
        """Return what is known of tracks; nothing of those that were never looked at.

        Where the looks do not agree the label is the track's own.

        :param looks: what said the class of the tracks that were looked at just now
        """
        found = []
        for track in tracks:
            known = self._known.get(track.id)
            if known is None:
                self.counts.waiting += 1
                continue
            known.seen_ns = now_ns
            source = looks.get(track.id, LabelSource.REUSED)
            self.counts.reused += source is LabelSource.REUSED
            self.counts.memory += source is LabelSource.MEMORY
            self.counts.full += source is LabelSource.FULL
            label = self._label(track.id, known, source)
            if label.confidence < self.parameters.sure:
                label = replace(label, label=track.label)
            found.append(label)
        self._forget(now_ns)
        return found

    def novelties(
        self, tracks: Sequence[Track], labels: Sequence[TrackLabel], now_ns: int, frame_id: str
    ) -> list[Novelty]:
        """Return what is new; a label counts as present while a track in view has it."""
        p = self.parameters
        by_id = {track.id: track for track in tracks}
        new = []
        for label in labels:
            track, known = by_id[label.track_id], self._known[label.track_id]
            if track.box is None or label.confidence < p.sure or known.looks < p.novelty_looks:
                continue
            before_ns = self._present_ns.get(label.label)
            if before_ns is None or (now_ns - before_ns) / NS_PER_S >= p.absent:
                known.is_novel = True
                new.append(_novelty(track, label, before_ns, now_ns, frame_id))
            self._present_ns[label.label] = now_ns
        self.counts.novelties += len(new)
        return new

    def _label(self, track_id: int, known: _Known, source: LabelSource) -> TrackLabel:
        best, confidence = self._confidence(known)
        label, rest = self._names[best]
        attributes = [rest] if rest else []
        for name, values in known.attributes.items():
            value = max(values, key=lambda one: values[one])
            if value == 'yes':
                attributes.append(name)
            elif value != 'no':
                attributes.append(f'{name} {value}')
        return TrackLabel(
            track_id, label, confidence, tuple(attributes), source, known.exit, known.is_novel
        )

    def _confidence(self, known: _Known) -> tuple[int, float]:
        """Return the likeliest class within the likeliest label, and the share of that label."""
        total = float(known.votes.sum())
        if total <= 0.0:
            return 0, 0.0
        of_label = self._of_label @ known.votes
        chosen = int(of_label.argmax())
        best = int((known.votes * self._of_label[chosen]).argmax())
        return best, float(of_label[chosen]) / total

    def _forget(self, now_ns: int) -> None:
        gone = [
            number
            for number, known in self._known.items()
            if abs(now_ns - known.seen_ns) / NS_PER_S > _FORGOTTEN
        ]
        for number in gone:
            del self._known[number]


def _split(name: str, labels: Sequence[str]) -> tuple[str, str]:
    """Return the label of a class, and the rest of its name."""
    for label in labels:
        if name == label or name.startswith(f'{label} '):
            return label, name[len(label) + 1 :]
    return name, ''


def _novelty(
    track: Track, label: TrackLabel, before_ns: int | None, now_ns: int, frame_id: str
) -> Novelty:
    reason = f'the first {label.label}'
    if before_ns is not None:
        reason = f'no {label.label} for {(now_ns - before_ns) / NS_PER_S:.0f} s'
    return Novelty(
        now_ns, frame_id, track.id, label.label, label.confidence, track.position, reason
    )
