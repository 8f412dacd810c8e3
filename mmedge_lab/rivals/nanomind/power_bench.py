"""The flight of a battery: states of power beside other rules, by row and over a discharge.

Rows say what a state of power sees and encodes in simulated flights; a rule is a mixture of rows,
each for as long as its state lasts in a discharge. Energy is a model, not a measurement: processor
time of the camera's encoder times watts of a busy core.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from mmedge_lab.judging.accuracy_sums import FIGURES
from mmedge_lab.judging.bench import Bench, BenchRequest, Figure, Results, Row, Sums, total_of
from mmedge_lab.judging.judged_flight import (
    FlightOpener,
    JudgedFlight,
    bundle_about,
    bundle_of,
)
from mmedge_lab.rivals.nanomind.discharge import REPORTS, Discharge, change_words, discharge, flown
from mmedge_lab.rivals.nanomind.power_rows import (
    ALPHAS,
    CRITICAL,
    LOW_RATE,
    NOTHING,
    PowerRow,
    ours,
    power_rows,
    printed,
    replay_power_row,
)
from mmedge_ros.adaptation.power_policy import PowerMode, PowerState, power_caps
from mmedge_ros.core.data_types import CAMERA

OURS, PRINTED, BELOW = (
    'the policy',
    'rates interpolated, as printed',
    'small at 10 Hz below a limit',
)
# Shares of the time of a picture encoded at medium, as measured (docs/results/reuse.md).
SMALL_SHARE, FOLLOW_SHARE = 0.54, 0.10
# Processor time of a picture at medium, and watts of a busy core and of the rotors.
ENCODE_MS, WATTS, HOVER_WATTS = 10.4, 3.0, 270.0
_DISCHARGE = 'over a discharge'


def bench(request: BenchRequest, *, profile: str = '') -> Bench:
    """Fly a battery from full to nearly empty by several rules.

    :param profile: file of service times; nominal ones without it, every level alike
    """
    bundle, subjects = bundle_of(request.detector, profile), request.flights()
    found = flown(discharge())
    hours = float(found.times[-1]) / 3600.0
    rows = [Row(r.name, partial(_judged, r), r.words, levels=(r.level,)) for r in power_rows()]
    figures = {
        # What is left of what doing nothing sees.
        'streaming_mean_iou': FIGURES['streaming_mean_iou']._replace(relative=True),
        'recall': FIGURES['recall'],
        'idf1': FIGURES['idf1'],
        'encoder': Figure('encoder ms per s', 'encoder_ms', 'seconds', 1, relative=True),
        'energy': Figure('Wh, model', 'discharge_ms', 'seconds', scale=1e-3 * WATTS * hours),
        'gained': Figure(
            'longer flight, s', 'spared_ms', 'seconds', 1, scale=3.6 * hours * WATTS / HOVER_WATTS
        ),
    }
    return Bench(
        'States of power beside other rules',
        tuple(rows),
        figures,
        subjects,
        FlightOpener(bundle, with_greys=True),
        references=(NOTHING,),
        key=bundle.digest,
        about={
            **bundle_about(bundle, subjects),
            'energy': f'a model: {ENCODE_MS:g} ms per picture at {WATTS:g} W',
        },
        derive=partial(_over_a_discharge, found),
        notes=lambda _: [f'{r}: {change_words(flown(discharge(r)))}' for r in REPORTS],
    )


def _judged(row: PowerRow, of: JudgedFlight) -> Sums:
    sums = of.sums(replay_power_row(of.flight, row, of.pipeline(), of.bundle.profile))
    return {**sums, 'encoder_ms': ENCODE_MS * encoder_pictures(row.name, sums)}


def encoder_pictures(row: str, sums: Sums) -> float:
    """Return how many pictures encoded at medium took the time that a row's encoder took."""
    encoded, followed = total_of(sums, 'encoded'), total_of(sums, 'followed')
    return encoded * (SMALL_SHARE if row == LOW_RATE else 1.0) + followed * FOLLOW_SHARE


def row_of(state: PowerState) -> str:
    """Return the row of the policy in a state of power."""
    if state.mode is PowerMode.CRITICAL:
        return CRITICAL
    of_reuse = {_reuse(PowerState(PowerMode.PROPORTIONAL, alpha)): ours(alpha) for alpha in ALPHAS}
    return of_reuse.get(_reuse(state), NOTHING)


def _reuse(state: PowerState) -> int:
    return power_caps(state).reuse.get(CAMERA, 1)


def mixtures(found: Discharge) -> dict[str, dict[str, float]]:
    """Return for each rule how much of a discharge each row is flown; shares of 1.

    The printed rule is interpolated between its rows; in CRITICAL it does what the policy does.
    """
    steps = np.diff(found.times, append=2 * found.times[-1] - found.times[-2])
    shares: dict[str, dict[str, float]] = {rule: {} for rule in (NOTHING, OURS, PRINTED, BELOW)}

    def add(rule: str, row: str, share: float) -> None:
        shares[rule][row] = shares[rule].get(row, 0.0) + share

    known = [*((a, printed(a)) for a in ALPHAS[::-1]), (1.0, NOTHING)]
    for state, share in zip(found.states, (steps / steps.sum()).tolist(), strict=True):
        add(NOTHING, NOTHING, share)
        add(OURS, row_of(state), share)
        add(BELOW, NOTHING if state.mode is PowerMode.UNCONSTRAINED else LOW_RATE, share)
        if state.mode is PowerMode.CRITICAL:
            add(PRINTED, CRITICAL, share)
            continue
        place = np.interp(state.alpha, [alpha for alpha, _ in known], range(len(known)))
        lower, part = divmod(float(place), 1.0)
        add(PRINTED, known[int(lower)][1], share * (1.0 - part))
        add(PRINTED, known[min(int(lower) + 1, len(known) - 1)][1], share * part)
    return shares


def _over_a_discharge(found: Discharge, results: Results) -> Mapping[Row, list[Sums]]:
    columns = ('stream_overlap', 'streamed', 'encoder_ms', 'seconds')
    made: dict[Row, list[Sums]] = {}
    every = [total_of(of, 'encoder_ms') for of in results[NOTHING]]
    for rule, shares in mixtures(found).items():
        if not results.keys() >= shares.keys():  # some rows alone are asked for
            continue
        sums: list[Sums] = []
        for number, spent in enumerate(every):
            mixed = {
                column: sum(
                    share * total_of(results[row][number], column) for row, share in shares.items()
                )
                for column in columns
            }
            mixed['discharge_ms'] = mixed['encoder_ms']
            mixed['spared_ms'] = spent - mixed['encoder_ms']
            sums.append(mixed)
        made[Row(rule, group=_DISCHARGE)] = sums
    return made
