"""The optimiser beside every fixed rate, level and reuse, under shares of a processor.

The *clairvoyant* knows every share beforehand, and what each configuration is worth in these very
flights: in each phase it flies the best of all that keep the limit in 97 % of the windows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from mmedge_lab.judging.accuracy_sums import FIGURES
from mmedge_lab.judging.bench import (
    Bench,
    BenchRequest,
    Figure,
    Results,
    Row,
    Subject,
    Sums,
    listed,
    total_of,
)
from mmedge_lab.judging.bundle_cases import RATES, REUSE
from mmedge_lab.judging.bundle_under_test import BundleUnderTest
from mmedge_lab.judging.judged_flight import FlightOpener, bundle_about, bundle_of
from mmedge_lab.judging.run_bench import JUDGED, judge
from mmedge_lab.policies.policy_run import optimiser_loop
from mmedge_lab.policies.settings import STATED
from mmedge_lab.rivals.mmedge.held_flight import Held, HeldFlight
from mmedge_lab.worker_processes import OnShare
from mmedge_ros.adaptation.configuration_space import LEVELS_FROM_CHEAPEST
from mmedge_ros.core.data_types import CAMERA

OPTIMISER, CLAIRVOYANT = 'the optimiser', 'the clairvoyant choice'
# Share of the windows in time of a configuration that keeps a limit.
IN_TIME = 0.97
COLUMNS = ('stream_overlap', 'streamed', 'windows', 'late')
# Shares of a processor that a flight may have, percent.
SHARES = (5.0, 100.0)
_SHOWN = 8
_FIGURES = {
    'streaming_mean_iou': FIGURES['streaming_mean_iou'],
    'ratio': FIGURES['streaming_mean_iou']._replace(relative=True, shown=False),
    'in_time': Figure('in time, %', 'late', 'windows', 1, offset=100.0, scale=-100.0),
    'changes': Figure('changes a minute', 'changes', 'flown', 1, scale=60.0),
    'release': Figure('s to full use after a release, median', 'release', digits=2, quantile=0.5),
}


class Condition(NamedTuple):
    """Shares of the processor in percent, one flight each."""

    shares: tuple[float, ...]

    @property
    def name(self) -> str:
        """The title of its table."""
        if len(self.shares) == 1:
            return f'{self.shares[0]:g} % of the processor'
        return f'steps of {", ".join(f"{share:g}" for share in self.shares)} % of the processor'


def _opened(
    opener: FlightOpener, limit: float, subject: Subject, rows: Sequence[Row], on_share: OnShare
) -> HeldFlight:
    """Open a flight encoded at all levels, to be flown again and again under a limit (s)."""
    opened = opener(subject, rows, on_share)
    return HeldFlight(opened.flight, opened.bundle, limit)


def bench(
    request: BenchRequest,
    *,
    shares: str = '100,64,50',
    steps: str = '100,50,30,100',
    limit_ms: float = 50.0,
    calibration: str = '',
    one_per_seed: bool = False,
    profile: str = '',
) -> Bench:
    """Fly the optimiser beside every fixed configuration, and the clairvoyant choice.

    :param shares: constant shares of the processor, percent by commas
    :param steps: shares in turn, a flight long each
    :param limit_ms: latency limit
    :param calibration: set on which the best fixed configuration is found, as another row
    :param one_per_seed: only the first flight of each seed
    :param profile: file of service times; those of a stated board without it
    """
    bundle = bundle_of(request.detector, profile, STATED)
    conditions = (
        *(Condition((share,)) for share in listed('shares', shares, *SHARES)),
        Condition(listed('steps', steps, *SHARES)),
    )
    levels = bundle.encoders()[CAMERA].levels or LEVELS_FROM_CHEAPEST[:1]
    held = [
        Held(rate, level, reuse) for rate in RATES[CAMERA] for level in levels for reuse in REUSE
    ]
    fixed = tuple(
        Row(one.name, partial(_held, one, c), group=c.name) for c in conditions for one in held
    )
    loops = tuple(
        Row(OPTIMISER, partial(_adapted, bundle, c, limit_ms / 1e3), group=c.name)
        for c in conditions
    )
    subjects = request.flights()
    if one_per_seed:
        subjects = tuple({subject.seed: subject for subject in subjects[::-1]}.values())[::-1]
    made = Bench(
        'The optimiser beside every fixed configuration',
        (*loops, *fixed),
        _FIGURES,
        subjects,
        partial(_opened, FlightOpener(bundle, levels, with_greys=True), limit_ms / 1e3),
        references=(OPTIMISER, CLAIRVOYANT),
        key=f'{bundle.digest} {limit_ms:g}',
        order='streaming_mean_iou',
        shown=_SHOWN,
        about={**bundle_about(bundle, subjects), 'limit': f'{limit_ms:g} ms'},
    )
    elsewhere: Mapping[str, str] = {}
    if calibration:
        flights = replace(request, inputs=(Path(calibration),)).flights()
        other = replace(made, rows=fixed, subjects=flights)
        results = judge(other, request.out / JUDGED / 'fixed, calibration', request.jobs).results
        elsewhere = {c.name: best_held(results, c) for c in conditions}
    return replace(made, derive=partial(_derived, conditions, elsewhere, Path(calibration).name))


def _held(held: Held, condition: Condition, flight: HeldFlight) -> Sums:
    return in_phases([flight.held(held, share / 100.0) for share in condition.shares])


def _adapted(
    bundle: BundleUnderTest, condition: Condition, limit: float, flight: HeldFlight
) -> Sums:
    shares = [share / 100.0 for share in condition.shares]
    # A machine is profiled as it is when the flight begins; steps come unannounced.
    phases = flight.adapted(optimiser_loop(bundle, limit, shares[0]), shares)
    return {
        **in_phases(phases),
        'changes': sum(phase['changes'] for phase in phases),
        'flown': sum(phase['seconds'] for phase in phases),
        'release': [phase['release'] for phase in phases if 'release' in phase],
    }


def in_phases(phases: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return sums of all phases, and of each by its number."""
    every = {column: sum(phase[column] for phase in phases) for column in COLUMNS}
    of_each = {f'{c} {n}': phase[c] for n, phase in enumerate(phases) for c in COLUMNS}
    return {**every, **of_each}


def fixed_of(results: Results, condition: Condition) -> dict[str, Sequence[Sums]]:
    """Return the sums of the fixed configurations that were flown in a condition, by name."""
    parts = {key.partition(': ')[::2]: flights for key, flights in results.items()}
    return {
        name: flights
        for (group, name), flights in parts.items()
        if group == condition.name and name != OPTIMISER
    }


def best_held(results: Results, condition: Condition, phase: int | None = None) -> str:
    """Return the fixed configuration with the best accuracy of those that keep the limit.

    Of all, where none does.

    :param phase: judged by this phase alone; None for all
    """
    end = '' if phase is None else f' {phase}'
    totals = {
        name: {c: sum(total_of(of, f'{c}{end}') for of in flights) for c in COLUMNS}
        for name, flights in fixed_of(results, condition).items()
    }
    keeping = [
        name for name, of in totals.items() if of['late'] <= (1.0 - IN_TIME) * of['windows']
    ]
    return max(
        keeping or totals,
        key=lambda n: totals[n]['stream_overlap'] / (totals[n]['streamed'] or math.inf),
    )


def _derived(
    conditions: Sequence[Condition],
    elsewhere: Mapping[str, str],
    calibration: str,
    results: Results,
) -> dict[Row, Sequence[Sums]]:
    made: dict[Row, Sequence[Sums]] = {}
    for condition in conditions:
        group, fixed = condition.name, fixed_of(results, condition)
        if not fixed:
            continue
        best = [best_held(results, condition, n) for n in range(len(condition.shares))]
        flights = [
            {
                column: sum(
                    total_of(fixed[name][number], f'{column} {phase}')
                    for phase, name in enumerate(best)
                )
                for column in COLUMNS
            }
            for number in range(len(fixed[best[0]]))
        ]
        made[_row(CLAIRVOYANT, group, '; '.join(best))] = flights
        known = elsewhere.get(group, '')
        if known in fixed:
            made[_row(f'best on {calibration}', group, known)] = fixed[known]
    return made


def _row(name: str, group: str, words: str) -> Row:
    return Row(name, words=words, group=group)
