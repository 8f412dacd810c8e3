"""What is told of the gate and the pictures of a pipeline."""

from __future__ import annotations

from pathlib import Path

from gated_bundle import write_gated_bundle
from hand_made_decisions import a_decision
from hand_made_pictures import fly, usual_pictures

from mmedge_ros.core.clock import SystemClock
from mmedge_ros.encoding.picture_drift import PictureDrift
from mmedge_ros.pipeline.decision_worker import DecisionWorker
from mmedge_ros.pipeline.fusion_strategy import open_pipeline
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline
from mmedge_ros.pipeline.pipeline_parameters import PipelineParameters
from mmedge_ros.pipeline.pipeline_status import PipelineStatus
from mmedge_ros.windows.early_decision import GatedDecision


def figures(status: PipelineStatus, pipeline: PerceptionPipeline) -> dict[str, object]:
    return status.figures(DecisionWorker(pipeline, SystemClock(), lambda _: None))


def test_without_a_gate_nothing_is_told_of_one() -> None:
    pipeline = PerceptionPipeline()
    status = PipelineStatus(pipeline)
    status.published(a_decision())
    found = figures(status, pipeline)
    assert (found['decisions'], found['degraded']) == (1, 'no odometry')
    assert not [name for name in found if name.startswith(('gate', 'early', 'lease'))]
    assert status.problems() == []


def test_a_gate_that_audits_have_switched_off_is_a_warning(tmp_path: Path) -> None:
    pipeline = open_pipeline(write_gated_bundle(tmp_path / 'm'), PipelineParameters())
    assert isinstance(pipeline.early_decision, GatedDecision)
    status = PipelineStatus(pipeline)
    status.published(a_decision())
    found = figures(status, pipeline)
    assert (found['gate_threshold'], found['gate_off'], found['early']) == ('0.9', False, 0)
    assert found['gate_audit_loss'] == 'nan'
    assert status.problems() == []
    pipeline.early_decision.control.audited(0.0)
    while not pipeline.early_decision.control.status.is_off:
        pipeline.early_decision.control.audited(1.0)
    status.published(a_decision())
    (words,) = status.problems()
    assert 'the gate is switched off' in words
    found = figures(status, pipeline)
    assert (found['gate_threshold'], found['gate_off']) == ('inf', True)
    assert 0.0 < float(str(found['gate_audit_loss'])) < 1.0


def test_pictures_unlike_the_calibration_flights_are_said() -> None:
    drift = PictureDrift(usual_pictures())
    pipeline = PerceptionPipeline(drift=drift)
    status = PipelineStatus(pipeline)
    assert status.problems() == []
    fly(drift, 20.0, contrast=0.3)
    (words,) = status.problems()
    assert words.startswith('pictures are unlike')
    assert figures(status, pipeline)['picture_alarms'] == 1


def test_with_a_gate_it_is_said_that_no_sensor_rests_meanwhile(tmp_path: Path) -> None:
    pipeline = open_pipeline(write_gated_bundle(tmp_path / 'm'), PipelineParameters())
    pipeline.drift = PictureDrift(usual_pictures())
    pipeline.drift.words = ('pictures are unlike',)
    status = PipelineStatus(pipeline)
    assert status.problems() == ['pictures are unlike', 'meanwhile no sensor rests']
