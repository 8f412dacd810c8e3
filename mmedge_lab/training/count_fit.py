"""Fits when tracks are merged, and how the number of people follows from them, on flights."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from mmedge_lab.judging.count_cases import CountedFlight
from mmedge_lab.judging.count_ranges import (
    broken_off,
    interval_scores,
    people,
    true_count,
    window_spans,
)
from mmedge_lab.judging.memory_truth import NOBODY
from mmedge_lab.training import TrainingError
from mmedge_lab.training.logistic_regression import logistic_weights
from mmedge_ros.data_types import NS_PER_S, FloatArray
from mmedge_ros.questions.counting import (
    COVERAGE,
    CountFacts,
    CountParameters,
    count_facts,
    range_of,
)
from mmedge_ros.questions.observations import Observations, ObservedTrack
from mmedge_ros.questions.tracklets import (
    EVIDENCE,
    MergeParameters,
    evidence,
    likeness,
    seen_together,
)

_FEWEST_SEEDS = 4
# So often all tracks of a flight are broken off, for so long, s.
_BREAKS, _AWAY = 8, (0.2, 6.0)
_RIDGE = 1e-2
_TAIL = (1.0 - COVERAGE) / 2.0
_WIDER = np.arange(0.0, 3.0, 0.05)
_REACHES = range(-4, 9)
# A camera that rests is tried in windows that are at least so long, s, for such shares of them.
_BLIND_SECONDS, _BLIND_SHARES = 5.0, (0.2, 0.8)


class CountExample(NamedTuple):
    """A window to learn from."""

    seed: str
    facts: CountFacts
    truth: int


class CountFit(NamedTuple):
    """What was fitted; ``pairs`` of tracks, ``same`` of them of one person, and ``windows``.

    ``left_out`` is the coverage on seeds left out, at the ``wider`` that was chosen for it;
    ``reach`` what the rival of a fixed width says beside the median seen at once.
    """

    merging: MergeParameters
    counting: CountParameters
    reach: tuple[int, int]
    pairs: int
    same: int
    windows: int
    left_out: float


def fit_counts(flights: Sequence[CountedFlight]) -> CountFit:
    """Fit everything.

    :raises TrainingError: if there are too few seeds, or no track ever broke
    """
    if len({flight.seed for flight in flights}) < _FEWEST_SEEDS:
        raise TrainingError(
            f'these are flights of fewer than {_FEWEST_SEEDS} seeds; simulate more with '
            'mmedge simulate'
        )
    merge, same, pairs = fit_merge(flights)
    examples = [example for flight in flights for example in examples_of(flight, merge)]
    count, left_out = fit_count(examples)
    return CountFit(merge, count, fixed_reach(examples), pairs, same, len(examples), left_out)


def fit_merge(flights: Sequence[CountedFlight]) -> tuple[MergeParameters, int, int]:
    """Fit the odds that two tracks are one; returns also how many pairs are, and of how many."""
    alike = [
        value
        for flight in flights
        for one, other in itertools.combinations(flight.observations.tracks, 2)
        if (value := likeness(one.looks, other.looks)) is not None
    ]
    usual = replace(MergeParameters(), usual_likeness=float(np.mean(alike)) if alike else 0.0)
    rows: list[FloatArray] = []
    same: list[bool] = []
    for flight in flights:
        for tracks, owners in broken(flight):
            apart = np.triu(~seen_together(tracks), 1)
            for i, j in zip(*np.nonzero(apart), strict=True):
                if owners[i] == owners[j] == NOBODY:
                    continue
                known = evidence(tracks[i], tracks[j], usual)
                if known is not None:
                    # Once more as if there were no looks, as without a memory.
                    rows += [known, np.array([*known[:-2], 0.0, 1.0])]
                    same += [owners[i] == owners[j]] * 2
    if not any(same) or all(same):
        raise TrainingError('no person has two tracks in these flights; name more flights')
    weights = logistic_weights(np.array(rows), np.array(same, float), _RIDGE)
    fitted = {name: round(float(w), 3) for name, w in zip(EVIDENCE, weights, strict=True)}
    rounded = round(usual.usual_likeness, 3)
    return replace(usual, usual_likeness=rounded, **fitted), sum(same), len(same)


def broken(flight: CountedFlight) -> Iterator[tuple[list[ObservedTrack], list[int]]]:
    """Yield tracks and whom they are of: as they are, and all broken off for a while.

    Few tracks break in short flights, so that what follows a break is mostly learned from tracks
    of which a piece is taken out; half of the looks belong to each part.
    """
    random = np.random.default_rng(0)
    tracks = [track for track in flight.observations.tracks if track.seen.any()]
    yield tracks, [flight.owners[track.id] for track in tracks]
    begin_ns, end_ns = flight.observations.begin_ns, flight.observations.end_ns
    for _ in range(_BREAKS):
        away_ns = round(np.exp(random.uniform(*np.log(_AWAY))) * NS_PER_S)
        first_ns = round(random.uniform(begin_ns, max(end_ns - away_ns, begin_ns)))
        pieces: list[ObservedTrack] = []
        owners: list[int] = []
        for track in tracks:
            half = (len(track.looks) + 1) // 2
            before = replace(
                track, seen=track.seen & (track.stamps_ns < first_ns), looks=track.looks[:half]
            )
            late = track.stamps_ns > first_ns + away_ns
            after = replace(track, seen=track.seen & late, looks=track.looks[half:])
            for piece in (before, after):
                if piece.seen.any():
                    pieces.append(piece)
                    owners.append(flight.owners[track.id])
        yield pieces, owners


def examples_of(flight: CountedFlight, merge: MergeParameters) -> list[CountExample]:
    """Return the windows of a flight as it is, with tracks broken off, and the camera away."""
    random = np.random.default_rng(int(flight.seed) if flight.seed.isdigit() else 0)
    broken = broken_off(flight.observations)
    found = []
    for begin, end in window_spans(flight):
        truth = true_count(flight, begin, end)
        views = [flight.observations, broken]
        if end - begin >= _BLIND_SECONDS * NS_PER_S:
            length = random.uniform(*_BLIND_SHARES) * (end - begin)
            away = round(random.uniform(begin, end - length))
            views.append(_blinded(flight.observations, away, away + round(length)))
        for seen in views:
            facts = count_facts(seen, people(seen), begin, end, merge)
            found.append(CountExample(flight.seed, facts, truth))
    return found


def fit_count(examples: Sequence[CountExample]) -> tuple[CountParameters, float]:
    """Fit the points of the distribution; returns also the coverage on seeds left out."""
    ranges: list[list[tuple[CountParameters, CountExample]]] = []
    for seed in sorted({example.seed for example in examples}):
        fitted = _quantiles([example for example in examples if example.seed != seed])
        ranges.append([(fitted, one) for one in examples if one.seed == seed])
    wider, left_out = 0.0, 0.0
    for wider in map(float, _WIDER):
        held = [
            np.mean([_holds(replace(fitted, wider=wider), one) for fitted, one in of_seed])
            for of_seed in ranges
        ]
        left_out = float(np.mean(held))
        # Seeds differ more than windows of one.
        if left_out - float(np.std(held)) / np.sqrt(len(held)) >= COVERAGE:
            break
    return replace(_quantiles(examples), wider=round(wider, 3)), left_out


def quantile_weights(rows: FloatArray, truth: FloatArray, share: float) -> FloatArray:
    """Return the weights (D,) of the linear quantile regression of truth (N,) on rows (N, D)."""
    count, size = rows.shape
    costs = np.concatenate([np.zeros(size), np.full(count, share), np.full(count, 1.0 - share)])
    equal = np.hstack([rows, np.eye(count), -np.eye(count)])
    bounds = [(None, None)] * size + [(0.0, None)] * (2 * count)
    solved = linprog(costs, A_eq=equal, b_eq=truth, bounds=bounds, method='highs')
    weights: FloatArray = solved.x[:size]
    return weights


def fixed_reach(examples: Sequence[CountExample]) -> tuple[int, int]:
    """Return what to add to the median seen at once for the best interval score."""
    middle = np.floor(np.array([one.facts.median for one in examples]) + 0.5)
    truth = np.array([one.truth for one in examples], float)

    def score(reach: tuple[int, int]) -> float:
        spans = np.stack([np.maximum(middle + reach[0], 0.0), middle + reach[1]], axis=1)
        return float(interval_scores(spans, truth).mean())

    return min(((a, b) for a in _REACHES for b in _REACHES if a <= b), key=score)


def as_code(fit: CountFit) -> str:
    """Return the constants that hold what was fitted, as they are written in the package."""
    merge = ', '.join(
        f'{one.name}={getattr(fit.merging, one.name)!r}' for one in fields(MergeParameters)
    )
    count = ', '.join(
        f'{one.name}={getattr(fit.counting, one.name)!r}' for one in fields(CountParameters)
    )
    return (
        f'MERGE = MergeParameters({merge})\nCOUNT = CountParameters({count})\n'
        f'FIXED_REACH = {fit.reach}\n'
    )


def _quantiles(examples: Sequence[CountExample]) -> CountParameters:
    rows = np.array([example.facts.features for example in examples])
    truth = np.array([example.truth for example in examples], float)

    def weights(share: float) -> tuple[float, ...]:
        return tuple(round(float(w), 3) for w in quantile_weights(rows, truth, share))

    return CountParameters(weights(_TAIL), weights(0.5), weights(1.0 - _TAIL))


def _holds(parameters: CountParameters, example: CountExample) -> bool:
    said = range_of(example.facts, parameters)
    return said.low <= example.truth <= said.high


def _blinded(seen: Observations, begin_ns: int, end_ns: int) -> Observations:
    """Return observations in which the camera sent nothing for a while."""

    def outside(stamps: NDArray[np.int64]) -> NDArray[np.bool_]:
        return (stamps < begin_ns) | (stamps > end_ns)

    tracks = tuple(
        replace(track, seen=track.seen & outside(track.stamps_ns)) for track in seen.tracks
    )
    return replace(seen, tracks=tracks, camera=seen.camera & outside(seen.stamps_ns))
