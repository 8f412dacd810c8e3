"""The rows of the bench: each method with each of its settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from mmedge_ros.lab.recognition.methods import (
    ExitHeads,
    FullRuns,
    GuardedRecall,
    KeptLabels,
    Method,
    PrintedRecall,
)
from mmedge_ros.lab.recognition.reused_pictures import ReusedBlocks
from mmedge_ros.lab.recognition.streams import FOUR, LONG_TAIL
from mmedge_ros.lab.recognition.subject import Subject

FULL, PRINTED, GUARDED, HEADS = 'full', 'printed', 'guarded', 'heads'
EPS = (0.005, 0.01, 0.02, 0.05, 0.1)
TAUS = (0.01, 0.03, 0.05, 0.1, 0.2, 0.5)
# Looks that the label of a track is kept for: a second at ten looks a second.
_KEPT = 10
_SPARSER = (2, 3)
_TRACKED_EPS = 0.01
_HISTOGRAM_LIMITS, _NOISE_RATIOS = (0.1, 0.3), (25.0, 20.0)
# Reused pictures are run in each look: they take the longest.
_STREAMS_OF_PICTURES = (FOUR, LONG_TAIL)


class BenchRow(NamedTuple):
    """A method with a setting, made anew for each stream; ``streams``: only these, all if none."""

    family: str
    setting: float
    make: Callable[[], Method]
    streams: Sequence[str] = ()


def bench_rows(subject: Subject) -> dict[str, BenchRow]:
    """Return the rows that a classifier allows, by name."""
    return dict(_rows(subject))


def absent(subject: Subject) -> Mapping[str, str]:
    """Say which methods a classifier does not allow, and why."""
    reasons: dict[str, str] = {}
    if subject.centres is None:
        reason = 'the bundle has no semantic memory; `mmedge model tap` fits one'
        reasons |= {PRINTED: reason, GUARDED: reason}
    if not subject.has_heads:
        reasons[HEADS] = 'no stage puts out exit_1, exit_2, ...; `mmedge train recogniser` does'
    return reasons


def _rows(subject: Subject) -> Iterator[tuple[str, BenchRow]]:
    kept, centres = subject.kept, subject.centres

    def full() -> Method:
        return FullRuns(kept)

    yield FULL, BenchRow(FULL, 0.0, full)
    if centres is not None:
        for tau in TAUS:
            yield f'{PRINTED} tau={tau:g}', BenchRow(PRINTED, tau, printed(subject, tau))
        for eps in EPS:
            yield f'{GUARDED} eps={eps:g}', BenchRow(GUARDED, eps, guarded(subject, eps))
    if subject.has_heads:
        for eps in EPS:
            yield f'{HEADS} eps={eps:g}', BenchRow(HEADS, eps, _heads(subject, eps))
    for every in _SPARSER:
        yield f'each {every}. look', BenchRow('sparser', every, _every(full, every))
    yield 'track labels', BenchRow('track labels', _KEPT, _every(full, _KEPT))
    if centres is not None:
        inner = guarded(subject, _TRACKED_EPS)
        name = f'track labels + {GUARDED} eps={_TRACKED_EPS:g}'
        yield name, BenchRow(name, _KEPT, _every(inner, _KEPT))
    for limit in _HISTOGRAM_LIMITS:
        made = _blocks(subject, limit, moves=False)
        yield f'DeepMon-like {limit:g}', BenchRow('DeepMon', limit, made, _STREAMS_OF_PICTURES)
    for limit in _NOISE_RATIOS:
        made = _blocks(subject, limit, moves=True)
        name = f'DeepCache-like {limit:g} dB'
        yield name, BenchRow('DeepCache', limit, made, _STREAMS_OF_PICTURES)


def printed(subject: Subject, tau: float) -> Callable[[], Method]:
    """Return what makes the printed memory."""
    assert subject.centres is not None
    centres = subject.centres
    return lambda: PrintedRecall(subject.kept, centres, tau)


def guarded(subject: Subject, eps: float) -> Callable[[], Method]:
    """Return what makes the guarded memory."""
    centres = subject.centres_of(eps)
    return lambda: GuardedRecall(subject.kept, centres, eps)


def _heads(subject: Subject, eps: float) -> Callable[[], Method]:
    thresholds = subject.heads_of(eps)
    return lambda: ExitHeads(subject.kept, thresholds)


def _every(inner: Callable[[], Method], every: int) -> Callable[[], Method]:
    return lambda: KeptLabels(inner(), every)


def _blocks(subject: Subject, limit: float, *, moves: bool) -> Callable[[], Method]:
    of = subject.classifier, subject.form, subject.crops.crops, limit
    return lambda: ReusedBlocks(*of, moves=moves)
