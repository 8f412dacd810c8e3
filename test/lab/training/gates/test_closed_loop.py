"""Whole flights with a gate beside the same flights without one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hand_made_encoded_flight import encoded_flight
from hand_made_gates import always

from mmedge_lab.judging.bundle_evaluation import NOMINAL
from mmedge_lab.training.gates.closed_loop import AtRandom, FlightLoop, LoopSettings, Never
from mmedge_lab.training.gates.loop_figures import ReferenceFlight, encodes
from mmedge_ros.data_types import CAMERA, RADAR, Configuration, ModalityConfiguration
from mmedge_ros.pipeline.pipeline_parameters import PipelineParameters
from mmedge_ros.report.decision_log import decision_lines
from mmedge_ros.skipping import SkippingError
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
    run = FlightLoop(flight, SETTINGS, reference).gated(Never(), 0.5)
    assert decision_lines(run.record.decisions) == decision_lines(reference.decisions)
    assert len(reference.decisions) > 15
    assert not run.early
    assert encodes(run.record) == encodes(reference) > 0


def test_in_a_quiet_scene_early_decisions_lose_hardly_anything() -> None:
    flight = encoded_flight(lambda _: 2)
    reference = FlightLoop(flight, SETTINGS).reference()
    run = FlightLoop(flight, SETTINGS, reference).gated(always(1.0), 0.5)
    assert len(run.early) > 10
    assert np.mean([decision.loss for decision in run.early]) < 0.1
    assert encodes(reference) - encodes(run.record) >= 20
    assert max(d.early_by for d in run.early) > 0.2
    # And again, to the byte.
    again = FlightLoop(flight, SETTINGS, reference).gated(always(1.0), 0.5)
    assert decision_lines(again.record.decisions) == decision_lines(run.record.decisions)


def test_who_comes_while_the_camera_rests_is_lost_to_early_decisions() -> None:
    flight = encoded_flight(lambda when: 2 + (when > 1290.0))
    reference = FlightLoop(flight, SETTINGS).reference()
    assert len(reference.decisions[-1].tracks) == 3
    run = FlightLoop(flight, SETTINGS, reference).gated(always(1.0), 0.5)
    losses = [decision.loss for decision in run.early]
    # One of three boxes.
    assert max(losses) > 0.3 > min(losses)


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
        assert run.early == alone.early
        assert decision_lines(run.record.decisions) == decision_lines(alone.record.decisions)
    assert len(run.early) > 3


def test_every_moment_is_judged_those_with_a_no_as_well() -> None:
    loop = FlightLoop(encoded_flight(lambda when: 2 + (when > 1290.0)), SETTINGS)
    never = loop.judged(always(0.0), 0.5)
    assert len(never) > 2 * len(loop.reference().decisions)
    assert min(answer.loss for answer in never) < 0.1
    assert max(answer.loss for answer in never) > 0.3
    # Of windows decided early the last answer is what was decided.
    run = loop.gated(always(1.0), 0.5)
    ever = loop.judged(always(1.0), 0.5)
    lost = {(d.features, d.loss) for d in run.early}
    assert lost <= {(answer.features, answer.loss) for answer in ever}


def test_audits_are_noted() -> None:
    settings = replace(SETTINGS, skipping=SkipParameters(audits=AuditParameters(share=1.0)))
    flight = encoded_flight(lambda _: 2)
    reference = FlightLoop(flight, settings).reference()
    run = FlightLoop(flight, settings, reference).gated(always(1.0), 0.5)
    assert not run.early
    assert len(run.audits) > 10
    assert max(run.audits[5:]) < 0.3


def test_a_lower_rate_of_the_camera_is_another_way_to_save() -> None:
    flight = encoded_flight(lambda _: 2)
    reference = FlightLoop(flight, SETTINGS).reference()
    slower = SETTINGS.changed(CAMERA, 0.5, 1)
    assert slower.configuration.of(CAMERA).rate == 15.0
    assert slower.configuration.of(RADAR) == SETTINGS.configuration.of(RADAR)
    run = FlightLoop(flight, slower, reference).gated(Never(), 1.0)
    assert encodes(run.record) == pytest.approx(encodes(reference) / 2, abs=2)


def test_without_truth_nothing_is_measured() -> None:
    loop = FlightLoop(encoded_flight(lambda _: 2), SETTINGS)
    with pytest.raises(SkippingError, match='no ground truth'):
        ReferenceFlight(loop.reference()).figures(loop.gated(Never(), 1.0))


def test_chance_says_yes_as_often_as_it_is_told() -> None:
    flight = encoded_flight(lambda _: 2)
    reference = FlightLoop(flight, SETTINGS).reference()
    some, more = (
        FlightLoop(flight, SETTINGS, reference).gated(AtRandom(share), 0.5) for share in (0.2, 0.9)
    )
    assert 0 < len(some.early) < len(more.early)
    assert FlightLoop(flight, SETTINGS, reference).gated(AtRandom(0.2), 0.5).early == some.early
