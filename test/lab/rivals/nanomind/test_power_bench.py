"""Rows of the power bench fly the policy and its rivals, and a discharge weighs them."""

from __future__ import annotations

import numpy as np
import pytest
from hand_made_encoded_flight import encoded_flight

from mmedge_lab.judging.bundle_evaluation import NOMINAL
from mmedge_lab.judging.flight_bootstrap import Drawings
from mmedge_lab.judging.flight_sums import SummedFlights, Sums
from mmedge_lab.judging.judged_rows import FIGURES
from mmedge_lab.rivals.nanomind.discharge import discharge, flown
from mmedge_lab.rivals.nanomind.power_bench import (
    BELOW,
    FOLLOW_SHARE,
    NOTHING,
    OURS,
    PRINTED,
    EnergyModel,
    courses,
    encoder_share,
    flight_of_a_battery,
    row_of,
)
from mmedge_lab.rivals.nanomind.power_figure import POWER, draw_power
from mmedge_lab.rivals.nanomind.power_rows import (
    ALPHAS,
    CRITICAL,
    LOW_RATE,
    charge_at,
    ours,
    power_rows,
    replay_power_row,
)
from mmedge_ros.data_types import CAMERA, STANDBY
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline
from mmedge_ros.power.power_policy import PowerMode, PowerState
from mmedge_ros.records.run_record import RunRecord

ROWS = {row.name: row for row in power_rows()}


def played(name: str) -> RunRecord:
    """Two people who stand still for two seconds."""
    return replay_power_row(
        encoded_flight(lambda ms: 2), ROWS[name], PerceptionPipeline(), NOMINAL
    )


def pictures(record: RunRecord) -> tuple[int, int]:
    """How many were encoded, and how many followed."""
    followed = [unit.followed for unit in record.features if unit.modality == CAMERA]
    return len(followed) - sum(followed), sum(followed)


def test_the_lower_alpha_the_fewer_pictures_are_encoded_and_none_is_left_out() -> None:
    asked = [played(ours(alpha)).configurations[-1].of(CAMERA) for alpha in ALPHAS]
    assert [part.reuse for part in asked] == [2, 3, 4, 5, 6]
    assert {part.rate for part in asked} == {0.0}


def test_in_critical_the_camera_rests_but_for_bursts() -> None:
    record = played(CRITICAL)
    assert {c.of(CAMERA).rate for c in record.configurations} <= {0.0, STANDBY, 10.0}
    assert sum(pictures(record)) < 0.3 * sum(pictures(played(NOTHING)))


def test_rates_are_interpolated_as_printed() -> None:
    all_of, _ = pictures(played(NOTHING))
    assert pictures(played('printed 0.4'))[0] == pytest.approx(0.44 * all_of, rel=0.2)
    assert pictures(played('printed 0'))[0] < 0.15 * all_of


def test_a_state_flies_the_row_of_its_reuse() -> None:
    assert row_of(PowerState()) == NOTHING
    assert row_of(PowerState(PowerMode.PROPORTIONAL, 0.37)) == ours(0.4)
    assert row_of(PowerState(PowerMode.PROPORTIONAL, 0.95)) == NOTHING
    assert row_of(PowerState(PowerMode.CRITICAL, 0.0)) == CRITICAL


def test_a_charge_leads_to_its_alpha_and_back() -> None:
    assert charge_at(1.0) == pytest.approx(0.68)
    assert charge_at(0.0) == pytest.approx(0.4)


def summed() -> SummedFlights:
    """Rows that see less the less they encode."""

    def sums(name: str) -> Sums:
        columns = {c for figure in FIGURES.values() for c in (figure.above, figure.below)}
        encoded = {NOTHING: 300.0, CRITICAL: 16.0, LOW_RATE: 100.0}.get(name, 100.0)
        followed = 200.0 if name.startswith('alpha') else 0.0
        overlap = encoded + 0.8 * followed
        return dict.fromkeys(columns, 300.0) | {
            'stream_overlap': overlap,
            'encoded': encoded,
            'followed': followed,
            'seconds': 10.0,
        }

    rows = {name: [sums(name), sums(name)] for name in ROWS}
    return SummedFlights(rows, Drawings.of(['1', '2']), FIGURES)


def test_encoder_time_counts_followed_pictures_at_their_share() -> None:
    model = EnergyModel(encode=0.01)
    assert encoder_share(summed(), NOTHING, model) == pytest.approx(0.3)
    expected = 0.1 + 20.0 * FOLLOW_SHARE * 0.01
    assert encoder_share(summed(), ours(0.4), model) == pytest.approx(expected)
    assert encoder_share(summed(), LOW_RATE, model) == pytest.approx(0.054)


def test_over_a_discharge_doing_nothing_sees_and_spends_the_most() -> None:
    flights, model = summed(), EnergyModel()
    found = flown(discharge())
    report = flight_of_a_battery(found, flights, model)
    assert report[NOTHING]['streaming_mean_iou'] == pytest.approx(1.0)
    assert report[NOTHING]['gained_s_model'] == 0.0
    for rule in (OURS, PRINTED, BELOW):
        assert report[rule]['streaming_mean_iou'] < 1.0
        assert 0.0 < report[rule]['encoder_s'] < report[NOTHING]['encoder_s']
        saved = report[NOTHING]['encoder_s'] - report[rule]['encoder_s']
        assert report[rule]['gained_s_model'] == pytest.approx(
            saved * model.watts / model.hover_watts
        )


def test_the_printed_rule_is_interpolated_and_stands_by_like_ours() -> None:
    found = flown(discharge())
    values = {name: float(number) for number, name in enumerate(ROWS)}
    course = courses(found, values)
    modes = np.array([int(state.mode) for state in found.states])
    assert set(course[PRINTED][modes == PowerMode.CRITICAL]) == {values[CRITICAL]}
    assert set(course[PRINTED][modes == PowerMode.UNCONSTRAINED]) == {values[NOTHING]}
    assert len(set(course[PRINTED][modes == PowerMode.PROPORTIONAL])) > 6


def test_a_discharge_is_drawn() -> None:
    found = flown(discharge())
    values = courses(found, dict.fromkeys(ROWS, 0.5))
    figure = draw_power(found, values, values)
    assert figure.name == POWER
    assert figure.png.startswith(b'\x89PNG')
