"""Chooses the moments of a run that are worth a look: where it did best, and where it failed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from mmedge_ros.core.data_types import NS_PER_S, Decision, Track
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.replay.ground_truth import GroundTruth
from mmedge_ros.report.accuracy_samples import picture_size
from mmedge_ros.report.latency_metrics import measured_decisions
from mmedge_ros.report.trajectories import start_ns
from mmedge_ros.report.truth_matching import (
    Match,
    counted_people,
    match_boxes,
    person_boxes,
)

KINDS = ('best', 'missed', 'false', 'renamed', 'crowded', 'uncertain', 'slowest')


# At first nobody has a track yet, which says nothing of a run.
_SETTLING_NS = NS_PER_S


class ReportMoment(NamedTuple):
    """A decision worth a look: one of `KINDS`, what it is called, and a sentence about it."""

    kind: str
    title: str
    sentence: str
    decision: Decision


class _Judged(NamedTuple):
    """A decision beside the truth; ``people`` (P,) are the ids of those in view."""

    decision: Decision
    people: list[int]
    tracks: list[Track]
    match: Match

    @property
    def missed(self) -> int:
        return len(self.people) - self.match.hits


def moments_of(record: RunRecord) -> list[ReportMoment]:
    """Return the moments of a run, each of another kind, those that did not occur left out."""
    judged = _judged(record, record.truth) if record.truth else []
    chosen = _against_truth(judged) if judged else _without_truth(record)
    return [*chosen, *_slowest(record)]


def seconds_of(record: RunRecord, stamp_ns: int) -> float:
    """Return when an instant was, in s since the start of the run."""
    return (stamp_ns - start_ns(record)) / NS_PER_S


def _judged(record: RunRecord, truth: GroundTruth) -> list[_Judged]:
    """Compare the decisions with the truth, where somebody is in view or a track has a box."""
    size = picture_size(record)
    judged = []
    for decision in record.decisions:
        frame = truth.frame_at(decision.state_ns)
        if frame is None:
            continue
        tracks, boxes = person_boxes(decision.tracks, 0.0, size)
        people = frame.ids[counted_people(frame)].tolist()
        if people or tracks:
            judged.append(_Judged(decision, people, tracks, match_boxes(frame, boxes)))
    return judged


def _against_truth(judged: list[_Judged]) -> Iterable[ReportMoment]:
    best = max(judged, key=lambda j: float(j.match.overlaps.sum()) - j.match.false - j.missed)
    if best.match.hits:
        yield ReportMoment(
            'best',
            'Best moment',
            f'{best.match.hits} of {_count(best.people)} in view have a track; the mean overlap '
            f'with the truth (IoU) is {best.match.overlaps.mean():.2f}.',
            best.decision,
        )
    begin_ns = judged[0].decision.state_ns + _SETTLING_NS
    settled = [entry for entry in judged if entry.decision.state_ns >= begin_ns] or judged
    missed = max(settled, key=lambda j: (j.missed, -float(j.match.overlaps.sum())))
    if missed.missed:
        yield ReportMoment(
            'missed',
            'Most people missed',
            f'{missed.missed} of {_count(missed.people)} in view have no track: the dashed boxes '
            'that no coloured one meets.',
            missed.decision,
        )
    false = max(judged, key=lambda j: j.match.false)
    if false.match.false:
        yield ReportMoment(
            'false',
            'Most false tracks',
            f'{false.match.false} of {len(false.tracks)} boxes meet no person: the coloured '
            'boxes without a dashed one.',
            false.decision,
        )
    yield from _renamed(judged)


def _renamed(judged: list[_Judged]) -> Iterable[ReportMoment]:
    """Return the change of id of the person who is largest in the picture."""
    known: dict[int, int] = {}
    changes: list[tuple[float, ReportMoment]] = []
    for entry in judged:
        for person, partner in zip(entry.people, entry.match.partners.tolist(), strict=True):
            if partner < 0:
                continue
            track = entry.tracks[partner]
            before = known.get(person, track.id)
            known[person] = track.id
            if before != track.id:
                sentence = (
                    f'The person who was track {before} before is track {track.id} from here on.'
                )
                moment = ReportMoment('renamed', 'A person changes id', sentence, entry.decision)
                changes.append((track.box.height if track.box else 0.0, moment))
    if changes:
        yield max(changes, key=lambda change: change[0])[1]


def _without_truth(record: RunRecord) -> Iterable[ReportMoment]:
    in_view = [(d, [t for t in d.tracks if t.box is not None]) for d in record.decisions]
    in_view = [(decision, tracks) for decision, tracks in in_view if tracks]
    if not in_view:
        return
    decision, tracks = max(in_view, key=lambda e: (len(e[1]), sum(t.score for t in e[1])))
    if len(tracks) > 1:
        sentence = f'{len(tracks)} tracks are in the picture at once, more than at other times.'
        yield ReportMoment('crowded', 'Most tracks at once', sentence, decision)
    spread, number, decision = max(
        ((_spread(track), track.id, decision) for decision, tracks in in_view for track in tracks),
        key=lambda entry: entry[0],
    )
    if spread > 0.0:
        yield ReportMoment(
            'uncertain',
            'Least certain place',
            f'Of all tracks in the picture the place of track {number} is here known least: '
            f'to {spread:.1f} m (one standard deviation).',
            decision,
        )


def _slowest(record: RunRecord) -> Iterable[ReportMoment]:
    measured = measured_decisions(record)
    if not measured:
        return
    latencies = np.array([decision.latency for decision in measured])
    slowest = measured[int(latencies.argmax())]
    yield ReportMoment(
        'slowest',
        'Slowest answer',
        f'This decision came {1e3 * slowest.latency:.1f} ms after its window, later than all '
        f'others; half of them come within {1e3 * np.median(latencies):.1f} ms.',
        slowest,
    )


def _spread(track: Track) -> float:
    """Return the horizontal standard deviation of a track's place in m; -1 where unknown."""
    with np.errstate(over='ignore', invalid='ignore'):
        spread = float(np.sqrt(np.trace(np.asarray(track.covariance)[:2, :2])))
    return spread if np.isfinite(spread) else -1.0


def _count(people: list[int]) -> str:
    return f'{len(people)} {"person" if len(people) == 1 else "people"}'
