"""How well stated ranges hold the number of people who were in view, beside rivals.

Windows of 2, 5 and 10 s, each half over the one before. A person counts who was in view once in
the window: half of them or more, 14 px high or more.

The same is done with true tracks, and with tracks that are broken off again and again: those of
short flights seldom break.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.judging.bundle_report import plain
from mmedge_lab.judging.count_cases import CountedFlight, true_observations
from mmedge_lab.judging.flight_bootstrap import Estimate, interval, mean_by_seed
from mmedge_ros.data_types import NS_PER_S, FloatArray
from mmedge_ros.questions.counting import COVERAGE, CountFacts, count_facts, range_of
from mmedge_ros.questions.observations import Observations, ObservedTrack
from mmedge_ros.records.ground_truth import PERSON

_KEPT, _AWAY = 4.0, (0.3, 2.0)
_COLUMNS = ('stamps_ns', 'positions', 'velocities', 'deviations', 'seen')
SECONDS = (2.0, 5.0, 10.0)
# Recordings may be a little shorter than what they should be.
_TOLERANCE = 0.05
OURS, FIXED, IDS, GROUPS = 'range', 'median_fixed', 'ids', 'groups'
WORDS = {
    OURS: 'the stated range',
    FIXED: 'median seen at once, with a fixed width',
    IDS: 'distinct ids',
    GROUPS: 'merged tracks, without uncertainty',
}
# What the fixed width reaches from the median seen at once; `mmedge lab train counts` fits it.
FIXED_REACH = (-1, 3)


class Window(NamedTuple):
    """A window of a flight: what is known of it, and how many there were.

    ``true_facts`` are those of tracks that neither break nor miss, ``broken_facts`` those of
    tracks that are broken off.
    """

    flight: str
    seed: str
    light: str
    distance: str
    seconds: float
    facts: CountFacts
    true_facts: CountFacts
    broken_facts: CountFacts
    truth: int


class Span(NamedTuple):
    """What is said of a window, both ends included."""

    low: float
    high: float
    best: float


def people(seen: Observations) -> list[ObservedTrack]:
    """Return the tracks of people."""
    return [track for track in seen.tracks if track.label == PERSON]


def window_spans(flight: CountedFlight) -> list[tuple[int, int]]:
    """Return the first and last instant (ns) of each window of a flight."""
    if not len(flight.stamps_ns):
        return []
    first, last = int(flight.stamps_ns[0]), int(flight.stamps_ns[-1])
    found = []
    for seconds in SECONDS:
        length = round(seconds * NS_PER_S)
        latest = last - length + round(_TOLERANCE * length)
        found += [(begin, begin + length) for begin in range(first, latest + 1, length // 2)]
    return found


def true_count(flight: CountedFlight, begin_ns: int, end_ns: int) -> int:
    """Return how many different people were in view in a window."""
    stamps = flight.sights[:, 0]
    return len(np.unique(flight.sights[(stamps >= begin_ns) & (stamps <= end_ns), 1]))


def windows_of(flight: CountedFlight) -> list[Window]:
    """Return the windows of a flight with what is known of each."""
    seen, true = flight.observations, true_observations(flight)
    broken = broken_off(seen)
    return [
        Window(
            flight.name,
            flight.seed,
            flight.light,
            flight.distance,
            (end - begin) / NS_PER_S,
            count_facts(seen, people(seen), begin, end),
            count_facts(true, true.tracks, begin, end),
            count_facts(broken, people(broken), begin, end),
            true_count(flight, begin, end),
        )
        for begin, end in window_spans(flight)
    ]


def broken_off(seen: Observations) -> Observations:
    """Return observations whose tracks lose sight about every 4 s, and come back as others.

    Each is away for 0.3 to 2 s, and every piece has a share of the looks.
    """
    random = np.random.default_rng(0)
    number = max((track.id for track in seen.tracks), default=0)
    pieces: list[ObservedTrack] = []
    for track in seen.tracks:
        begins, ends = [track.begin_ns], []
        while begins[-1] <= track.end_ns:
            ends.append(begins[-1] + round(random.exponential(_KEPT) * NS_PER_S))
            begins.append(ends[-1] + round(random.uniform(*_AWAY) * NS_PER_S))
        looks = np.array_split(track.looks, len(ends))
        for begin, end, kept in zip(begins, ends, looks, strict=False):
            rows = (track.stamps_ns >= begin) & (track.stamps_ns <= end)
            if rows.any():
                number += 1
                columns = {name: getattr(track, name)[rows] for name in _COLUMNS}
                pieces.append(replace(track, id=number, looks=kept, view_ids=(), **columns))
    return replace(seen, tracks=tuple(pieces))


def rival_spans(facts: CountFacts) -> dict[str, Span]:
    """Return what each way to count says of a window."""
    ours = range_of(facts)
    groups = facts.groups + facts.brief
    middle = int(np.floor(facts.median + 0.5))
    return {
        OURS: Span(ours.low, ours.high, ours.best),
        FIXED: Span(max(middle + FIXED_REACH[0], 0), middle + FIXED_REACH[1], middle),
        IDS: Span(facts.ids, facts.ids, facts.ids),
        GROUPS: Span(groups, groups, groups),
    }


def interval_scores(spans: FloatArray, truth: FloatArray) -> FloatArray:
    """Return the interval score (N,) of ranges (N, 2) at 90 %: less is better.

    The width, and for what lies outside 20 times its distance (Gneiting and Raftery 2007).
    """
    low, high = spans[:, 0], spans[:, 1]
    outside = np.maximum(low - truth, 0.0) + np.maximum(truth - high, 0.0)
    scores: FloatArray = high - low + 2.0 / (1.0 - COVERAGE) * outside
    return scores


class Judged(NamedTuple):
    """Figures of N windows by name, each (N,), and what is drawn for intervals."""

    figures: Mapping[str, FloatArray]
    seeds: Sequence[str]

    def mean(self, figure: str, chosen: NDArray[np.bool_] | None = None) -> Estimate:
        """Estimate the mean of a figure over windows."""
        return self._mean(self.figures[figure], chosen)

    def less(self, other: Judged, figure: str) -> Estimate:
        """Estimate by how much a figure is less than another's in the same windows."""
        return self._mean(other.figures[figure] - self.figures[figure], None)

    def _mean(self, values: FloatArray, chosen: NDArray[np.bool_] | None) -> Estimate:
        weights = np.ones(len(values)) if chosen is None else chosen.astype(float)
        value, drawn = mean_by_seed(values, weights, self.seeds)
        known = {seed for seed, weight in zip(self.seeds, weights, strict=True) if weight}
        return Estimate(value, *interval(drawn, len(known)))


def judged(windows: Sequence[Window], say: Callable[[Window], Span]) -> Judged:
    """Judge what is said of windows."""
    spans = np.array([say(window) for window in windows], float).reshape(-1, 3)
    truth = np.array([window.truth for window in windows], float)
    return Judged(
        {
            'coverage': ((spans[:, 0] <= truth) & (truth <= spans[:, 1])).astype(float),
            'width': spans[:, 1] - spans[:, 0],
            'score': interval_scores(spans[:, :2], truth),
            'error': np.abs(spans[:, 2] - truth),
            'exact': (spans[:, 2] == truth).astype(float),
            'bias': spans[:, 2] - truth,
        },
        [window.seed for window in windows],
    )


def range_figures(windows: Sequence[Window]) -> dict[str, Any]:
    """Return the figures of a report: rivals, and ours by length, light and distance."""
    ours = judged(windows, lambda window: rival_spans(window.facts)[OURS])
    facts: dict[str, Callable[[Window], CountFacts]] = {
        'tracks': lambda window: window.facts,
        'true': lambda window: window.true_facts,
        'broken': lambda window: window.broken_facts,
    }
    rows: dict[str, dict[str, Any]] = {}
    for kind, of in facts.items():
        rows[kind] = {}
        by_rival = {
            name: judged(windows, lambda window: rival_spans(of(window))[name])  # noqa: B023
            for name in WORDS
        }
        for name, found in by_rival.items():
            rows[kind][name] = {
                'words': WORDS[name],
                **{figure: plain(found.mean(figure)) for figure in found.figures},
                'score_of_range_less_by': plain(by_rival[OURS].less(found, 'score')),
            }
    keys: dict[str, Sequence[object]] = {
        'seconds': [window.seconds for window in windows],
        'light': [window.light for window in windows],
        'distance': [window.distance for window in windows],
    }
    strata = {
        factor: {
            str(value): _stratum(ours, np.array([key == value for key in values], bool))
            for value in dict.fromkeys(values)
        }
        for factor, values in keys.items()
    }
    truth = np.array([window.truth for window in windows])
    return {
        'windows': len(windows),
        'people': {'mean': float(truth.mean()), 'most': int(truth.max())},
        'coverage_stated': COVERAGE,
        'rows': rows['tracks'],
        'with_true_tracks': rows['true'],
        'with_broken_tracks': rows['broken'],
        'strata': strata,
    }


def _stratum(ours: Judged, chosen: NDArray[np.bool_]) -> dict[str, Any]:
    return {
        'windows': int(np.count_nonzero(chosen)),
        **{figure: plain(ours.mean(figure, chosen)) for figure in ours.figures},
    }
