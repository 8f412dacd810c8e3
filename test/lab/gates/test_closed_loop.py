"""Whole flights with a gate beside the same flights without one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hand_made_encoded_flight import encoded_flight
from hand_made_gates import always

from mmedge_ros.data_types import CAMERA, RADAR, Configuration, ModalityConfiguration
from mmedge_ros.lab.evaluation.bundle_evaluation import NOMINAL
from mmedge_ros.lab.evaluation.decision_log import decision_lines
from mmedge_ros.lab.gates.closed_loop import AtRandom, FlightLoop, LoopSettings, MaxScore
from mmedge_ros.lab.gates.loop_figures import (
    GateFigures,
    WindowWork,
    flight_figures,
    halves,
    reliability,
    saved,
    saving_ceiling,
)
from mmedge_ros.pipeline.perception_pipeline import PipelineParameters
from mmedge_ros.skipping.audits import AuditParameters
from mmedge_ros.skipping.skip_control import SkipParameters

SETTINGS = LoopSettings(
    Configuration(1, 0, (ModalityConfiguration(CAMERA, 30.0), ModalityConfiguration(RADAR, 20.0))),
    NOMINAL,
    PipelineParameters(),
    SkipParameters(audits=AuditParameters(share=0.0)),
)


def test_a_gate_that_never_says_yes_changes_nothing() -> None:
    flight = encoded_flight(lambda _: 2)
    reference = FlightLoop(flight, SETTINGS).reference()
    run = FlightLoop(flight, SETTINGS, reference).gated(always(0.0), 0.5)
    assert decision_lines(run.record.decisions) == decision_lines(reference.decisions)
    assert run.outcome.windows == len(reference.decisions) > 15
    assert run.outcome.early == 0
    assert run.record.units[CAMERA].encoded == reference.units[CAMERA].encoded


def test_in_a_quiet_scene_all_early_decisions_are_right() -> None:
    flight = encoded_flight(lambda _: 2)
    reference = FlightLoop(flight, SETTINGS).reference()
    run = FlightLoop(flight, SETTINGS, reference).gated(always(1.0), 0.5)
    assert run.outcome.early > 10
    assert run.outcome.differing == 0
    assert run.record.units[CAMERA].skipped >= 20
    assert max(d.early_by for d in run.early) > 0.2
    # And again, to the byte.
    again = FlightLoop(flight, SETTINGS, reference).gated(always(1.0), 0.5)
    assert decision_lines(again.record.decisions) == decision_lines(run.record.decisions)


def test_who_comes_while_the_camera_rests_makes_early_decisions_differ() -> None:
    flight = encoded_flight(lambda when: 2 + (when > 1290.0))
    reference = FlightLoop(flight, SETTINGS).reference()
    assert len(reference.decisions[-1].tracks) == 3
    run = FlightLoop(flight, SETTINGS, reference).gated(always(1.0), 0.5)
    assert 0 < run.outcome.differing < run.outcome.early


def test_what_is_remembered_of_a_flight_changes_no_decision() -> None:
    flight = encoded_flight(lambda when: 2 + (when > 1290.0))
    loop = FlightLoop(flight, SETTINGS)
    assert decision_lines(loop.reference().decisions) == decision_lines(
        FlightLoop(flight, SETTINGS).reference().decisions
    )
    rule = AtRandom(0.2, 3)
    for _ in range(2):
        run = loop.gated(rule, 0.5)
        alone = FlightLoop(flight, SETTINGS, loop.reference()).gated(rule, 0.5)
        assert run.outcome == alone.outcome
        assert decision_lines(run.record.decisions) == decision_lines(alone.record.decisions)
    assert run.outcome.early > 3


def test_every_moment_is_judged_those_with_a_no_as_well() -> None:
    loop = FlightLoop(encoded_flight(lambda when: 2 + (when > 1290.0)), SETTINGS)
    never = loop.judged(always(0.0), 0.5)
    assert len(never) > 2 * len(loop.reference().decisions)
    assert any(answer.agrees for answer in never)
    assert not all(answer.agrees for answer in never)
    # Of windows decided early the last answer is what was decided.
    run = loop.gated(always(1.0), 0.5)
    ever = loop.judged(always(1.0), 0.5)
    right = {(d.features, d.agrees) for d in run.early}
    assert right <= {(answer.features, answer.agrees) for answer in ever}


def test_audits_are_noted() -> None:
    settings = replace(SETTINGS, skipping=SkipParameters(audits=AuditParameters(share=1.0)))
    flight = encoded_flight(lambda _: 2)
    reference = FlightLoop(flight, settings).reference()
    run = FlightLoop(flight, settings, reference).gated(always(1.0), 0.5)
    assert run.outcome.early == 0
    assert len(run.audits) > 10
    assert all(run.audits[5:])


def test_the_figures_say_what_was_saved_beside_what_can_be() -> None:
    flight = encoded_flight(lambda when: 2 + (when > 1290.0))
    reference = FlightLoop(flight, SETTINGS).reference()
    runs = [FlightLoop(flight, SETTINGS, reference).gated(always(0.9), 0.5)] * 2
    figures = GateFigures(
        [flight_figures(run, reference) for run in runs], saving_ceiling(15, 0.5), 'always'
    ).report()
    camera = figures['units'][CAMERA]
    assert camera['captured'] == camera['transferred'] == camera['encoded']
    assert camera['encoded'] + camera['rested'] == 2 * reference.units[CAMERA].encoded
    assert 0.2 < figures['saved'] <= figures['ceiling'] == pytest.approx(7 / 15)
    assert figures['encoder_s']['gated'] < figures['encoder_s']['reference']
    assert 0.0 < figures['disagreement'] < 1.0
    assert figures['decided_before_end_ms']['p95'] > 100.0
    assert [row['confidence'] for row in figures['reliability']] == [pytest.approx(0.9)]
    agreement = figures['reliability'][0]['agreement']
    assert agreement == pytest.approx(1.0 - figures['disagreement'])
    # A camera that cannot pause is captured and transferred all the same.
    still = flight_figures(runs[0], reference, can_pause=False).units[CAMERA]
    assert still['captured'] == still['encoded'] + still['rested']


def test_the_easy_half_is_what_the_reference_does_well() -> None:
    windows = [
        WindowWork(0.9, 3, 1, True, False),
        WindowWork(0.2, 3, 3, False, False),
        WindowWork(0.8, 3, 2, True, True),
        WindowWork(0.1, 3, 3, False, False),
    ]
    easy, hard = halves(windows)
    assert [w.quality for w in easy] == [0.9, 0.8]
    assert saved(easy) == pytest.approx(0.5)
    assert saved(hard) == 0.0
    assert np.isnan(saved([]))


def test_reliability_is_by_confidence() -> None:
    rows = reliability(np.array([0.95, 0.97, 0.55, 1.0]), np.array([1.0, 0.0, 0.0, 1.0]))
    assert [row['early'] for row in rows] == [1, 3]
    assert rows[1]['agreement'] == pytest.approx(2 / 3)


@pytest.mark.parametrize(('units', 'ceiling'), [(15, 7 / 15), (10, 0.5), (5, 0.4), (1, 0.0)])
def test_the_ceiling_is_what_the_rule_allows(units: int, ceiling: float) -> None:
    assert saving_ceiling(units, 0.5) == pytest.approx(ceiling)


def test_rivals_are_asked_the_same() -> None:
    flight = encoded_flight(lambda _: 2)
    reference = FlightLoop(flight, SETTINGS).reference()
    by_score = FlightLoop(flight, SETTINGS, reference).gated(MaxScore(), 0.7)
    assert by_score.outcome.early > 0
    some = FlightLoop(flight, SETTINGS, reference).gated(AtRandom(0.2), 0.5)
    more = FlightLoop(flight, SETTINGS, reference).gated(AtRandom(0.9), 0.5)
    assert 0 < some.outcome.early < more.outcome.early
    assert (
        FlightLoop(flight, SETTINGS, reference).gated(AtRandom(0.2), 0.5).outcome == some.outcome
    )
