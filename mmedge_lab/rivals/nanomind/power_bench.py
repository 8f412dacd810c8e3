"""The flight of a battery: what each rule sees and spends from full to nearly empty.

Rows of the bench say what a state of power sees and encodes in simulated flights; a discharge says
for how long each state lasts. Energy is a model, not a measurement: processor time of the camera's
encoder times watts per busy core.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mmedge_lab.judging.flight_sums import SummedFlights
from mmedge_lab.rivals.nanomind.discharge import Discharge
from mmedge_lab.rivals.nanomind.power_rows import (
    ALPHAS,
    CRITICAL,
    LOW_RATE,
    NOTHING,
    ours,
    printed,
)
from mmedge_ros.data_types import FloatArray
from mmedge_ros.power.power_allowance import allowance_of
from mmedge_ros.power.power_policy import PowerMode, PowerState

OURS, PRINTED, BELOW = (
    'the policy',
    'rates interpolated, as printed',
    'small at 10 Hz below a limit',
)
RULES = (OURS, PRINTED, BELOW, NOTHING)
# Shares of the time of a picture encoded at medium, as `mmedge lab bench reuse` measured them.
SMALL_SHARE, FOLLOW_SHARE = 0.54, 0.10
_SECONDS_PER_HOUR = 3600.0


@dataclass(frozen=True)
class EnergyModel:
    """``encode`` s of processor time per picture at medium, ``watts`` of a busy core.

    ``hover_watts`` are what the rotors draw.
    """

    encode: float = 0.0104
    watts: float = 3.0
    hover_watts: float = 270.0


def encoder_share(flights: SummedFlights, row: str, model: EnergyModel) -> float:
    """Return the encoder's processor time per second of flight in a row."""
    encoded, followed, seconds = (
        flights.total(row, column) for column in ('encoded', 'followed', 'seconds')
    )
    each = model.encode * (SMALL_SHARE if row == LOW_RATE else 1.0)
    return (encoded * each + followed * FOLLOW_SHARE * model.encode) / seconds


def row_of(state: PowerState) -> str:
    """Return the row of the policy in a state of power."""
    if state.mode is PowerMode.CRITICAL:
        return CRITICAL
    of_reuse = {allowance_of(PowerState(PowerMode.PROPORTIONAL, a)).reuse: ours(a) for a in ALPHAS}
    return of_reuse.get(allowance_of(state).reuse, NOTHING)


def courses(found: Discharge, values: Mapping[str, float]) -> dict[str, FloatArray]:
    """Return what each rule has (K,) over a discharge, of a figure of the rows.

    The printed rule is interpolated between its rows; in CRITICAL it does what the policy does.
    """
    alphas = np.array([state.alpha for state in found.states])
    modes = np.array([int(state.mode) for state in found.states])
    known = (*ALPHAS[::-1], 1.0)
    of_printed = [values[printed(a)] for a in ALPHAS[::-1]] + [values[NOTHING]]
    interpolated = np.interp(alphas, known, of_printed)
    saves = modes != PowerMode.UNCONSTRAINED
    full = np.full(len(modes), values[NOTHING])
    return {
        OURS: np.array([values[row_of(state)] for state in found.states]),
        PRINTED: np.where(modes == PowerMode.CRITICAL, values[CRITICAL], interpolated),
        BELOW: np.where(saves, values[LOW_RATE], full),
        NOTHING: full,
    }


def flight_of_a_battery(
    found: Discharge, flights: SummedFlights, model: EnergyModel
) -> dict[str, Any]:
    """Return what each rule sees and spends over a discharge.

    ``gained_s`` is for how much longer the rotors turn on what the encoder does not use.
    """
    rows = list(flights.subjects)
    accuracy = courses(found, _of_rows(rows, lambda r: _streaming(flights, r)))
    share = courses(found, _of_rows(rows, lambda r: encoder_share(flights, r, model)))
    steps = np.diff(found.times, append=2 * found.times[-1] - found.times[-2])
    spent = {rule: float(share[rule] @ steps) for rule in RULES}
    return {
        rule: {
            'streaming_mean_iou': float(accuracy[rule] @ steps / steps.sum()),
            'encoder_s': spent[rule],
            'energy_wh_model': spent[rule] * model.watts / _SECONDS_PER_HOUR,
            'gained_s_model': (spent[NOTHING] - spent[rule]) * model.watts / model.hover_watts,
        }
        for rule in RULES
    }


def _of_rows(rows: list[str], value: Callable[[str], float]) -> dict[str, float]:
    return {row: value(row) for row in rows}


def _streaming(flights: SummedFlights, row: str) -> float:
    return flights.estimate(row, 'streaming_mean_iou').value


def row_report(flights: SummedFlights, row: str, model: EnergyModel) -> dict[str, Any]:
    """Return the figures of a row, and their shares of doing nothing."""
    streaming = _streaming(flights, row)
    spent = encoder_share(flights, row, model)
    return {
        'streaming_mean_iou': flights.estimate(row, 'streaming_mean_iou')._asdict(),
        'share_of_full': streaming / _streaming(flights, NOTHING),
        'recall': flights.estimate(row, 'recall')._asdict(),
        'idf1': flights.estimate(row, 'idf1')._asdict(),
        'encoder_share': spent / encoder_share(flights, NOTHING, model),
        'encoder_s_per_minute': 60.0 * spent,
    }
