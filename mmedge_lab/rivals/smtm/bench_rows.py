"""The rows of the bench: each method with each of its settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from mmedge_lab.rivals.smtm.methods import (
    ExitHeads,
    FullRuns,
    GuardedRecall,
    KeptLabels,
    Method,
    PrintedRecall,
)
from mmedge_lab.rivals.smtm.reused_pictures import ReusedBlocks
from mmedge_lab.rivals.smtm.streams import FOUR, LONG_TAIL, VISIT
from mmedge_lab.rivals.smtm.subject import Subject

FULL, PRINTED, GUARDED, HEADS = 'full', 'printed', 'guarded', 'heads'
EPS = (0.005, 0.01, 0.02, 0.05, 0.1)
TAUS = (0.01, 0.03, 0.05, 0.1, 0.2, 0.5)
_SPARSER = (2, 3)
_TRACKED_EPS = 0.01
_HISTOGRAM_LIMITS, _NOISE_RATIOS = (0.1, 0.3), (25.0, 20.0)
# Reused pictures are run in each look: they take the longest.
_STREAMS_OF_PICTURES = (FOUR, LONG_TAIL)


class BenchRow(NamedTuple):
    """A method with a setting, made anew for each stream; ``streams``: only these, all if none.

    Those of the memories also take what `PrintedRecall` and `GuardedRecall` take last.
    """

    family: str
    setting: float
    make: Callable[..., Method]
    streams: Sequence[str] = ()


def bench_rows(subject: Subject) -> dict[str, BenchRow]:
    """Return the rows that a classifier allows, by name."""
    return dict(_rows(subject))


def absent(subject: Subject) -> Mapping[str, str]:
    """Say which methods a classifier does not allow, and why."""
    reasons: dict[str, str] = {}
    if subject.centres is None:
        reason = 'the bundle has no semantic memory; `mmedge lab train recogniser` fits one'
        reasons |= {PRINTED: reason, GUARDED: reason}
    if not subject.has_heads:
        reasons[HEADS] = 'no stage puts out exit_1, ...; `mmedge lab train recogniser` does'
    return reasons


def _rows(subject: Subject) -> Iterator[tuple[str, BenchRow]]:
    kept, centres = subject.kept, subject.centres

    full = partial(FullRuns, kept)
    yield FULL, BenchRow(FULL, 0.0, full)
    if centres is not None:
        for tau in TAUS:
            make = partial(PrintedRecall, kept, centres, tau)
            yield f'{PRINTED} tau={tau:g}', BenchRow(PRINTED, tau, make)
        for eps in EPS:
            yield f'{GUARDED} eps={eps:g}', BenchRow(GUARDED, eps, _guarded(subject, eps))
    if subject.has_heads:
        for eps in EPS:
            make_heads = partial(ExitHeads, kept, subject.heads_of(eps))
            yield f'{HEADS} eps={eps:g}', BenchRow(HEADS, eps, make_heads)
    for every in _SPARSER:
        yield f'each {every}. look', BenchRow('sparser', every, _every(full, every))
    yield 'track labels', BenchRow('track labels', VISIT, _every(full, VISIT))
    if centres is not None:
        inner = _guarded(subject, _TRACKED_EPS)
        name = f'track labels + {GUARDED} eps={_TRACKED_EPS:g}'
        yield name, BenchRow(name, VISIT, _every(inner, VISIT))
    pictures = partial(ReusedBlocks, subject.classifier, subject.form, subject.crops.crops)
    for limit in _HISTOGRAM_LIMITS:
        name, same = f'DeepMon-like {limit:g}', partial(pictures, limit)
        yield name, BenchRow('DeepMon', limit, same, _STREAMS_OF_PICTURES)
    for limit in _NOISE_RATIOS:
        name, moved = f'DeepCache-like {limit:g} dB', partial(pictures, limit, moves=True)
        yield name, BenchRow('DeepCache', limit, moved, _STREAMS_OF_PICTURES)


def _guarded(subject: Subject, eps: float) -> Callable[..., Method]:
    return partial(GuardedRecall, subject.kept, subject.centres_of(eps), eps)


def _every(inner: Callable[..., Method], every: int) -> Callable[[], Method]:
    return lambda: KeptLabels(inner(), every)
