"""The content of a schedule's decisions: the pipeline's own, from the units that were used."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hand_made_encoded_flight import PERIODS, encoded_flight
from hand_made_schedules import FakeImputer, constant_profile, end_of, settings
from hand_made_units import person

from mmedge_lab.judging import EvaluationError
from mmedge_lab.policies.pipelined import Pipelined
from mmedge_lab.policies.schedule import Schedule, Use
from mmedge_lab.policies.scheduled_replay import StoredFeatures, replay_schedule
from mmedge_lab.policies.window_policies import Blocking, NonBlocking
from mmedge_ros.core.data_types import CAMERA, RADAR, UnitFeatures
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline
from mmedge_ros.report.report import decision_lines
from mmedge_ros.report.run_metrics import latency_metrics


def flight(seconds: float = 2.0):  # type: ignore[no-untyped-def]
    return encoded_flight(lambda when: 2 + (when > 1290.0), seconds)


def blocking(camera: float) -> Schedule:
    profile = constant_profile(camera=camera)
    return Blocking('blocking_cached', cached=True).schedule(
        StoredFeatures(flight()).arrivals, PERIODS, settings(profile)
    )


def test_what_the_pipeline_decides_itself_is_what_its_schedule_gives() -> None:
    schedule, record = Pipelined('any').replay(flight(), PerceptionPipeline(), settings())
    again = replay_schedule(flight(), schedule, PerceptionPipeline())
    assert any(d.tracks for d in record.decisions)

    def content(run):  # type: ignore[no-untyped-def]
        return decision_lines(
            [replace(d, trail=(), configuration_ids=(1,)) for d in run.decisions]
        )

    assert content(again) == content(record)


def test_the_record_has_all_that_latency_figures_are_made_of() -> None:
    record = replay_schedule(flight(), blocking(10.0), PerceptionPipeline())
    figures = latency_metrics(record)
    assert figures.latency_ms.p50 == pytest.approx(34.0)
    assert figures.age_ms[CAMERA].p50 > 34.0
    assert figures.stages_ms['camera.encode'].p50 == pytest.approx(10.0)
    assert record.units[CAMERA].encoded == 60
    for decision in record.decisions:
        if decision.trail:
            assert decision.trail[-1].stage == 'fusion'
            assert decision.trail[-1].end_ns == decision.published_ns
            steps = pairwise(decision.trail)
            assert all(before.end_ns == after.begin_ns for before, after in steps)


def test_made_up_features_serve_one_decision_and_no_tracker() -> None:
    slow = settings(constant_profile(camera=32.0))
    of = encoded_flight(lambda _: 1)
    schedule = NonBlocking('imputation', imputes=True).schedule(
        StoredFeatures(of).arrivals, PERIODS, slow
    )
    assert any(d.imputed for d in schedule.decisions)
    plain = replay_schedule(
        of,
        replace(schedule, decisions=tuple(replace(d, imputed=()) for d in schedule.decisions)),
        PerceptionPipeline(),
    )
    nothing = FakeImputer(lambda _: None)
    without = replay_schedule(of, schedule, PerceptionPipeline(), nothing)
    assert decision_lines(without.decisions) == decision_lines(plain.decisions)
    missing, ready = nothing.asked[-1]
    assert missing.detections == ()
    assert missing.image_size == (640, 480)
    assert {RADAR, CAMERA} == set(ready)

    def moved(unit: UnitFeatures) -> UnitFeatures:
        return replace(unit, detections=(person(150.0, 240.0, 50.0),))

    with_it = replay_schedule(of, schedule, PerceptionPipeline(), FakeImputer(moved))
    for made_up, real, planned in zip(
        with_it.decisions, plain.decisions, schedule.decisions, strict=True
    ):
        if not planned.imputed:
            assert decision_lines([made_up]) == decision_lines([real])
    boxes = [[t.box.x0 for t in run.decisions[-1].tracks if t.box] for run in (with_it, plain)]
    assert schedule.decisions[-1].imputed
    assert not np.allclose(boxes[0], boxes[1], atol=1.0)


def test_schedules_that_cannot_be_are_refused() -> None:
    schedule = blocking(1.0)
    backwards = replace(schedule, decisions=schedule.decisions[::-1])
    with pytest.raises(EvaluationError, match='must ascend on a grid'):
        replay_schedule(flight(), backwards, PerceptionPipeline())
    foreign = replace(schedule.decisions[3], uses=(Use(CAMERA, 999, ''),))
    with pytest.raises(EvaluationError, match='no camera unit 999'):
        replay_schedule(flight(), replace(schedule, decisions=(foreign,)), PerceptionPipeline())
    assert schedule.decisions[0].window_end_ns == end_of(1)
