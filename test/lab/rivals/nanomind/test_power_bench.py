"""Rows of the power bench fly the policy and its rivals, and a discharge weighs them."""

from __future__ import annotations

import numpy as np
import pytest
from hand_made_encoded_flight import encoded_flight

from mmedge_lab.judging.bundle_under_test import NOMINAL
from mmedge_lab.rivals.nanomind.discharge import (
    REPORTS,
    VOLTAGE_ALONE,
    Discharge,
    change_words,
    discharge,
    flown,
)
from mmedge_lab.rivals.nanomind.power_bench import (
    BELOW,
    NOTHING,
    OURS,
    PRINTED,
    mixtures,
)
from mmedge_lab.rivals.nanomind.power_rows import (
    ALPHAS,
    CRITICAL,
    LOW_RATE,
    ours,
    power_rows,
    replay_power_row,
)
from mmedge_ros.adaptation.power_policy import PowerMode, PowerState
from mmedge_ros.core.data_types import CAMERA, STANDBY
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline

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


def test_rules_fly_every_moment_of_a_discharge_in_some_row() -> None:
    found = flown(discharge())
    shares = mixtures(found)
    for of in shares.values():
        assert sum(of.values()) == pytest.approx(1.0)
        assert set(of) <= set(ROWS)
    critical = np.mean([state.mode is PowerMode.CRITICAL for state in found.states])
    assert shares[OURS][CRITICAL] == pytest.approx(critical, abs=0.001)
    assert shares[PRINTED][CRITICAL] == shares[OURS][CRITICAL]
    assert len(shares[PRINTED]) == len(ALPHAS) + 2
    assert set(shares[BELOW]) == {NOTHING, LOW_RATE}
    assert shares[NOTHING] == {NOTHING: pytest.approx(1.0)}


def test_the_printed_rule_is_interpolated_between_its_rows() -> None:
    states = [PowerState(PowerMode.PROPORTIONAL, 0.3)] * 2
    found = Discharge(np.array([0.0, 1.0]), np.array([0.5, 0.5]), states)
    assert mixtures(found)[PRINTED] == pytest.approx({'printed 0.2': 0.5, 'printed 0.4': 0.5})


@pytest.mark.parametrize('report', REPORTS)
def test_a_discharge_passes_through_every_state_once(report: str) -> None:
    words = change_words(flown(discharge(report)))
    assert words.count('PROPORTIONAL at') == 1
    # A voltage that sags under load says too little for that.
    assert words.count('CRITICAL at') == (report != VOLTAGE_ALONE)
    assert 'fell 0 times' in words
